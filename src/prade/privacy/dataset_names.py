"""Names of data sets: one spelling for each, so that nobody gets a second budget for the same people by a look-alike.

A budget belongs to a name. Two names that people take for the same would be two budgets, so a name is brought to its
normal form (NFKC), must consist of what can be seen, and must not be one that a reader takes for another.
"""

from __future__ import annotations

import re
import unicodedata

from prade.core.errors import PradeError

# Characters that show nothing though Unicode counts them as letters, marks or symbols: fillers, variation selectors.
INVISIBLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0} | {
    code for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)) for code in range(first, last + 1)
}
# Alphabets that share shapes of letters, as the Unicode names of their letters begin.
ALPHABETS = {"LATIN", "GREEK", "CYRILLIC", "COPTIC", "ARMENIAN", "GEORGIAN", "CHEROKEE", "LISU"}
# Greek and Cyrillic letters and Latin ones of other forms, and below each the plain letter that looks the same.
LOOK_ALIKES = str.maketrans(
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορυωϳАВЕЅІЈКМНОРСТУХҮҺӀԌԚԜавеѕіјкмнорстухһүӏԁԛԝгпᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢɑɡıɩȷ",
    "ABEZHIKMNOPTYXayiknopuwjABESIJKMHOPCTYXYHIGQWaBesijkMHopcTyxhyldqwrnABCDEFGHIJKLMNOPQRSTUVWYZagiij",
)

# What many typefaces hardly tell apart: I, l, 1 and a bar; O and 0; dashes and minus signs; single and double quotes.
HARDLY_TOLD_APART = str.maketrans(
    {
        **dict.fromkeys("I1|", "l"),
        "0": "O",
        **dict.fromkeys("\u02d7\u2043\u2212", "-"),
        **dict.fromkeys("`\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u02b9\u02bb\u02bc\u02bd\u02c8\ua78c", "'"),
        **dict.fromkeys('"\u201c\u201d\u201e\u201f\u00ab\u00bb\u02ba\u301d\u301e\u301f', "''"),
    }
)


def dataset_name(name: object) -> str:
    """The normal form of a data set's name; a PradeError for one that is blank, invisible in part, or of mixed scripts.

    >>> dataset_name("ｃｅｎｓｕｓ ２０２０")
    'census 2020'
    """
    if not isinstance(name, str) or not name.strip():
        raise PradeError(
            f"the name of a data set must be text that is not blank, got {name!r}: give the name under which the "
            "ledger knows the private table"
        )
    normal = unicodedata.normalize("NFKC", name)
    if unseen := next((character for character in normal if _unseen(character)), None):
        raise PradeError(
            f"the data set's name {name!a} has the character U+{ord(unseen):04X}, which cannot be seen: two names "
            "could look the same and have a budget each; leave it out"
        )
    for word in re.findall(r"[^\W\d_]+", normal):
        scripts = sorted({unicodedata.name(letter, "").split(" ")[0] for letter in word} & ALPHABETS)
        if len(scripts) > 1:
            raise PradeError(
                f"the data set's name {name!a} has the word {word!r} with letters of several alphabets "
                f"({', '.join(scripts).title()}): it could be taken for another name; write each word in one alphabet"
            )
    return normal


def confusable(one: str, other: str) -> bool:
    """Whether people would take two names for the same: by case, by blanks, or by characters that look alike.

    >>> confusable("Census", "census "), confusable("census 1", "census 2")
    (True, False)
    >>> confusable("census-10", "census\N{EN DASH}lO")
    True
    """
    return any(_plain(way(one)) == _plain(way(other)) for way in (str, _letters, _shapes))


def _unseen(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] == "C" or (kind[0] == "Z" and character != " ") or ord(character) in INVISIBLE


def _plain(name: str) -> str:
    """What is left of a name when one overlooks what people overlook."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _letters(name: str) -> str:
    """The name in Latin letters of the same shapes; accents stay."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFKC", name)).translate(LOOK_ALIKES)


def _shapes(name: str) -> str:
    """The name's letters, with one character for all that are hardly told apart and digits of all scripts as ASCII."""
    return "".join(map(_digit_or_dash, _letters(name))).translate(HARDLY_TOLD_APART)


def _digit_or_dash(character: str) -> str:
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    return "-" if unicodedata.category(character) == "Pd" else character
