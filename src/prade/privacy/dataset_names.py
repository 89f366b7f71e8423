"""Names of data sets: one spelling for each, so that a look-alike name cannot get a second budget for the same people.

Each name in the ledger has its own budget. Two names that look the same would have two budgets, so a name is
normalised (NFKC), must contain visible characters only, and must not be confusable with another name.
"""

from __future__ import annotations

import re
import unicodedata

from prade.core.errors import PradeError

# Characters that are invisible although Unicode classes them as letters, marks or symbols: fillers and the like.
INVISIBLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0} | {
    code for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)) for code in range(first, last + 1)
}
# Alphabets with letters of the same shape, given by the first word of their letters' Unicode names.
ALPHABETS = {"LATIN", "GREEK", "CYRILLIC", "COPTIC", "ARMENIAN", "GEORGIAN", "CHEROKEE", "LISU"}
# Greek, Cyrillic and unusual Latin letters, and below each the plain letter that looks the same.
LOOK_ALIKES = str.maketrans(
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορυωϳАВЕЅІЈКМНОРСТУХҮҺӀԌԚԜавеѕіјкмнорстухһүӏԁԛԝгпᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢɑɡıɩȷ",
    "ABEZHIKMNOPTYXayiknopuwjABESIJKMHOPCTYXYHIGQWaBesijkMHopcTyxhyldqwrnABCDEFGHIJKLMNOPQRSTUVWYZagiij",
)

# Characters that look similar in many typefaces: I, l, 1 and a bar; O and 0; dashes and minus signs; quotation marks.
SIMILAR = str.maketrans(
    {
        **dict.fromkeys("I1|", "l"),
        "0": "O",
        **dict.fromkeys("\u02d7\u2043\u2212", "-"),
        **dict.fromkeys("`\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u02b9\u02bb\u02bc\u02bd\u02c8\ua78c", "'"),
        **dict.fromkeys('"\u201c\u201d\u201e\u201f\u00ab\u00bb\u02ba\u301d\u301e\u301f', "''"),
    }
)


def dataset_name(name: object) -> str:
    """A data set's name in normal form; a PradeError if it is blank, or has invisible characters or mixed alphabets.

    >>> dataset_name("ｃｅｎｓｕｓ ２０２０")
    'census 2020'
    """
    if not isinstance(name, str) or not name.strip():
        raise PradeError(
            f"the name of a data set must not be empty, got {name!r}; give the name under which the ledger records "
            "the private table"
        )
    normal = unicodedata.normalize("NFKC", name)
    if invisible := next((character for character in normal if _invisible(character)), None):
        raise PradeError(
            f"the data set's name {name!a} contains the invisible character U+{ord(invisible):04X}; remove it, because "
            "two names that look the same would each have a budget"
        )
    for word in re.findall(r"[^\W\d_]+", normal):
        scripts = sorted({unicodedata.name(letter, "").split(" ")[0] for letter in word} & ALPHABETS)
        if len(scripts) > 1:
            raise PradeError(
                f"the data set's name {name!a} contains the word {word!r}, which mixes alphabets "
                f"({', '.join(scripts).title()}), so it could be mistaken for another; write each word in one alphabet"
            )
    return normal


def confusable(one: str, other: str) -> bool:
    """Whether two names could be mistaken for each other: they differ only in case, spaces or similar characters.

    >>> confusable("Census", "census "), confusable("census 1", "census 2")
    (True, False)
    >>> confusable("census-10", "census\N{EN DASH}lO")
    True
    """
    return any(_plain(way(one)) == _plain(way(other)) for way in (str, _letters, _shapes))


def _invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or (category[0] == "Z" and character != " ") or ord(character) in INVISIBLE


def _plain(name: str) -> str:
    """The name without differences in case and spacing, which readers overlook."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _letters(name: str) -> str:
    """The name in Latin letters of the same shapes; accents stay."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFKC", name)).translate(LOOK_ALIKES)


def _shapes(name: str) -> str:
    """The name with one character for each set of similar ones, and digits of all scripts as ASCII digits."""
    return "".join(map(_digit_or_dash, _letters(name))).translate(SIMILAR)


def _digit_or_dash(character: str) -> str:
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    return "-" if unicodedata.category(character) == "Pd" else character
