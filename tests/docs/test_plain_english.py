"""Pages, messages and comments keep to plain English: idioms that were removed do not come back.

An idiom is a regular expression, and what to write instead. `docs/glossary.md` decides the words. Pages and
every room of the source are held to all of them.
"""

import re
import tokenize
from pathlib import Path

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

IDIOMS = [  # pattern, what to write instead
    (rf"\b({AMOUNTS}) an? ({THINGS})\b", "counts per group"),
    (r"(?<!there )\bis no (?!longer|more|less|worse|better|larger|smaller|further)\w+", "is not a number"),
    (r"\bso many\b", "that many"),
    (r"\bas (they are|it is)\b(?! \w+e[dn]\b)", "the raw answers; the public baseline; unchanged"),
    (r"\bin earnest\b", "in the real run"),
    (r"\bby heart\b", "from memory"),
    (rf"\b({TABLES}) (play|plays|played|playing)\b", "stand in for; stand-ins"),
    (r"\bof which (a|one|each) row\b", "such that each row satisfies at most one of them"),
    (r"\basked of (whom|which)\b", "measured at which level"),
    (r"\bbut for\b", "except; apart from"),
    (r"\bfor nothing\b", "at no cost"),
    (r"\bwhoever\b", "anyone who; the person who"),
    (r"\bshall\b", "must; should"),
    (r"\byours to\b", "your responsibility; you choose"),
    (r"\b(an?|the|every|each|public|private) tables? says?\b", "a table shows"),
    (r"\ball else\b", "everything else"),
]


def prose(page):
    """A page without its code, and without what the glossary lists as not said."""
    text = page.read_text("utf-8")
    if page.name == "glossary.md":
        text = REFUSED.sub("", text)
    return CODE.sub("", FENCE.sub("", text))


def written(file):
    """The comments, docstrings and other texts of a module."""
    with file.open("rb") as opened:
        for token in tokenize.tokenize(opened.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield token.string


def idioms(texts):
    """Each idiom that occurs, with the words around it and what to write instead."""
    lines = (re.sub(r"\s+", " ", text) for text in texts)
    return [
        f"...{line[max(match.start() - 30, 0) : match.end() + 30]}...: write {instead!r}"
        for line in lines
        for pattern, instead in IDIOMS
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_are_written_in_plain_english(page):
    assert idioms([prose(page)]) == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_source_is_written_in_plain_english(room):
    place = SOURCE / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert idioms(text for file in files for text in written(file)) == []


def test_idioms_are_noticed_and_usual_english_and_code_are_not(tmp_path):
    usual = ["there is no such file", "is no longer", "a row per person", "as many as it is estimated to have"]
    assert idioms(usual) == []
    assert len(idioms(["8 parts, 71 counts a\ngroup", "the epsilon is no number", "what the public table says"])) == 3
    file = tmp_path / "module.py"
    file.write_text('shall = 1  # it shall\nmessage = f"so many {1}"\n', encoding="utf-8")
    assert len(idioms(written(file))) == 2
