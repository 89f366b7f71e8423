"""Names of data sets: each has a budget in the ledger, so two spellings of one name must not count as two names."""

from __future__ import annotations

import unicodedata

from prade.core.errors import PradeError

# Greek and Cyrillic letters of which either case looks like a Latin letter, and below each that letter.
_LOOK_ALIKES = str.maketrans(
    "αβεζηικμνορτυχωавеѕіјкмнорстухүһӏԁԛԝ",
    "abezhikmnoptyxwabesijkmhopctyxyhldqw",
)


def dataset_name(name: object) -> str:
    """A data set's name in normal form (NFKC); a PradeError if it has invisible characters, or no letter and no digit.

    >>> dataset_name("ｃｅｎｓｕｓ ２０２０")
    'census 2020'
    """
    normal = unicodedata.normalize("NFKC", name) if isinstance(name, str) else ""
    if not normal.isprintable() or not any(character.isalnum() for character in normal):
        raise PradeError(
            f"the name of a data set is {name!a}: give one that has a letter or a digit, and no invisible characters"
        )
    return normal


def confusable(one: str, other: str) -> bool:
    """Whether two names differ only in case, spaces, punctuation, symbols or letters that look alike."""
    return _plain(one) == _plain(other)


def _plain(name: str) -> str:
    """The letters, accents and digits of a name, without case, in Latin letters where these look the same."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    return "".join(each for each in folded if unicodedata.category(each)[0] in "LMN").translate(_LOOK_ALIKES)
