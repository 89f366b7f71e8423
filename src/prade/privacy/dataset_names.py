"""Names of data sets: one spelling for each, so that a look-alike name cannot get a second budget for the same people.

Each name in the ledger has its own budget. Two spellings of one name would have two budgets, so a name is normalised
(NFKC), must contain visible characters only, and must differ from every other name in a letter or digit.
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

# Letters and digits that look similar in many typefaces: I, l, 1 and a bar; O and 0; letters that look like quotation
# marks, which are removed like these.
SIMILAR = str.maketrans(
    {**dict.fromkeys("I1|", "l"), "0": "O", **dict.fromkeys("\u02b9\u02ba\u02bb\u02bc\u02bd\u02c8\ua78c")}
)


def dataset_name(name: object) -> str:
    """A data set's name in normal form; a PradeError if it is empty, has invisible characters or mixes alphabets.

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
    if not any(unicodedata.category(character)[0] in "LN" for character in normal):
        raise PradeError(
            f"the data set's name {name!r} has no letter and no digit, so it cannot be told from other names; give it "
            "one"
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
    """Whether two names could be mistaken for each other: their letters and digits are the same, or similar.

    Case, spaces, punctuation and symbols make no difference.

    >>> confusable("Census_2020", "census 2020"), confusable("census 1", "census 2")
    (True, False)
    >>> confusable("census-10", "censuslO")
    True
    """
    return any(_plain(way(one)) == _plain(way(other)) for way in (str, _letters, _shapes))


def _invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or (category[0] == "Z" and character != " ") or ord(character) in INVISIBLE


def _plain(name: str) -> str:
    """The letters, accents and digits of a name, without case."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    kept = "".join(character for character in folded if unicodedata.category(character)[0] in "LMN")
    return unicodedata.normalize("NFKD", kept)


def _letters(name: str) -> str:
    """The name in Latin letters of the same shapes; accents stay."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFKC", name)).translate(LOOK_ALIKES)


def _shapes(name: str) -> str:
    """The name with one character for each set of similar ones, and digits of all scripts as ASCII digits."""
    digits = (str(unicodedata.digit(character, character)) for character in _letters(name))
    return "".join(digits).translate(SIMILAR)
