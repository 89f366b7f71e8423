"""Pages, messages and comments keep to plain English: idioms that were removed do not come back.

An idiom is a regular expression, and what to write instead. `docs/glossary.md` decides the words. Pages and
every room of the source are held to all of them.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "prade"
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")), *sorted(ROOT.glob("docs/*.md"))]
ROOMS = sorted(path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())

FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
REFUSED = re.compile(r"^## We say, we do not say\n.*", re.MULTILINE | re.DOTALL)  # the glossary lists idioms there

AMOUNTS = "counts?|rows?|numbers?|cells?|queries|parts?|bytes|lookups?|multipliers?|codes?|passes|statements?|seconds"
THINGS = "group|part|person|cell|row|column|level|bundle|sweep|place|household|question|query|count|scan|round|run"
TABLES = "rows?|groups?|tables?|halves|years?|states?|places?|ones"


class Idiom(NamedTuple):
    """What not to write, and what to write instead."""

    pattern: str
    instead: str


PER = Idiom(rf"\b({AMOUNTS}) an? ({THINGS})\b", "counts per group")
IS_NO = Idiom(r"(?<!there )\bis no (?!longer|more|less|worse|better|larger|smaller|further)\w+", "is not a number")
SO_MANY = Idiom(r"\bso many\b", "that many")
AS_IT_IS = Idiom(r"\bas (they are|it is)\b(?! \w+e[dn]\b)", "the raw answers; the public baseline; unchanged")
IN_EARNEST = Idiom(r"\bin earnest\b", "in the real run")
BY_HEART = Idiom(r"\bby heart\b", "from memory")
PLAYED = Idiom(rf"\b({TABLES}) (play|plays|played|playing)\b", "stand in for; stand-ins")
OF_WHICH = Idiom(r"\bof which (a|one|each) row\b", "such that each row satisfies at most one of them")
ASKED_OF = Idiom(r"\basked of (whom|which)\b", "measured at which level")
BUT_FOR = Idiom(r"\bbut for\b", "except; apart from")
FOR_NOTHING = Idiom(r"\bfor nothing\b", "at no cost")
WHOEVER = Idiom(r"\bwhoever\b", "anyone who; the person who")
SHALL = Idiom(r"\bshall\b", "must; should")
YOURS_TO = Idiom(r"\byours to\b", "your responsibility; you choose")
TABLES_SAY = Idiom(r"\b(an?|the|every|each|public|private) tables? says?\b", "a table shows")
ALL_ELSE = Idiom(r"\ball else\b", "everything else")

IDIOMS = [value for value in list(vars().values()) if isinstance(value, Idiom)]


def prose(page: Path) -> str:
    """A page without its code, and without what the glossary lists as not said."""
    text = page.read_text("utf-8")
    if page.name == "glossary.md":
        text = REFUSED.sub("", text)
    return CODE.sub("", FENCE.sub("", text))


def written(file: Path) -> Iterator[str]:
    """The comments, docstrings and other texts of a module."""
    with file.open("rb") as opened:
        for token in tokenize.tokenize(opened.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield token.string


def found(texts: Iterator[str], idioms: Sequence[Idiom]) -> list[str]:
    """Each idiom that occurs, with the words around it and what to write instead."""
    lines = (re.sub(r"\s+", " ", text) for text in texts)
    return [
        f"...{line[max(match.start() - 30, 0) : match.end() + 30]}...: write {idiom.instead!r}"
        for line in lines
        for idiom in idioms
        for match in re.finditer(idiom.pattern, line, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_are_written_in_plain_english(page: Path) -> None:
    assert found(iter([prose(page)]), IDIOMS) == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_source_is_written_in_plain_english(room: str) -> None:
    place = SOURCE / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert found((text for file in files for text in written(file)), IDIOMS) == []


@pytest.mark.parametrize(
    ("idiom", "text"),
    [
        (PER, "8 parts, 71 counts a\ngroup"),
        (IS_NO, "the epsilon is no number"),
        (SO_MANY, "at most so many rows"),
        (AS_IT_IS, "the noisy answers as they are"),
        (IN_EARNEST, "the groups in earnest"),
        (BY_HEART, "learnt by heart"),
        (PLAYED, "one half of each group's rows played this year's"),
        (OF_WHICH, "queries of which one row satisfies one"),
        (ASKED_OF, "what is asked of whom"),
        (BUT_FOR, "all but for the last"),
        (FOR_NOTHING, "the next run completes it for nothing"),
        (WHOEVER, "Whoever has more is protected less"),
        (SHALL, "what can fail shall fail here"),
        (YOURS_TO, "the view is yours to see to"),
        (TABLES_SAY, "what the public table says"),
        (ALL_ELSE, "all else is derived"),
    ],
)
def test_idioms_are_noticed(idiom: Idiom, text: str) -> None:
    (line,) = found(iter([text]), IDIOMS)
    assert line.endswith(f"write {idiom.instead!r}")


@pytest.mark.parametrize(
    "text",
    [
        "there is no such file",
        "is no longer",
        "a row per person",
        "as many as it is estimated to have",
    ],
)
def test_usual_english_is_not(text: str) -> None:
    assert found(iter([text]), IDIOMS) == []


def test_comments_and_strings_are_read_and_code_is_not(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('shall = 1  # it shall\nmessage = f"so many {1}"\n', encoding="utf-8")
    assert len(found(written(file), IDIOMS)) == 2
