"""How tests are given out to workers: what shares a Java machine stays together, and the longest begin first."""

import re
from pathlib import Path

from worlds.schedule import LONGEST, PAGES, SPARK, longest_first, unit_of

ROOT = Path(__file__).parents[2]


def test_every_named_file_and_page_is_there_and_named_once():
    assert len(set(LONGEST)) == len(LONGEST)
    for unit in {*LONGEST, *SPARK} - {"spark"}:
        file, _, test = unit.removeprefix(PAGES).removesuffix("]").partition("::")
        assert (f"def {test}(" if test else "") in (ROOT / file).read_text(), unit


def test_all_tests_of_spark_are_in_one_unit():
    """A test of Spark takes the fixture `spark`, and a page says that it needs it."""
    asks = re.compile(r"^def (test_\w+)\([^)]*\bspark(?:_settings)?\b", re.MULTILINE)
    tests = [(path, name) for path in (ROOT / "tests").rglob("test_*.py") for name in asks.findall(path.read_text())]
    pages = [path for path in (ROOT / "docs").glob("*.md") if "<!-- needs: spark -->" in path.read_text()]
    assert len({path for path, _ in tests}) >= 3
    assert len(pages) >= 1
    for path, name in tests:
        assert unit_of(f"{path.relative_to(ROOT).as_posix()}::{name}[1]") == "spark"
    for path in pages:
        assert unit_of(f"{PAGES}{path.relative_to(ROOT).as_posix()}]") == "spark"


def test_the_longest_units_come_first_and_others_keep_their_order():
    short, spark, page = "tests/unit/a.py::x", "tests/integration/test_spark.py::x", f"{PAGES}docs/plan.md]"
    given = [short, page, spark, "tests/unit/a.py::y"]
    assert [given[k] for k in longest_first(given)] == [spark, page, short, "tests/unit/a.py::y"]
