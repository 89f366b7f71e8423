"""The tests are where a reader looks for them: folders like the rooms, a list of them, one place for what is shared."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FILES = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py"))


def test_contributing_lists_every_folder_of_tests():
    listed = re.findall(r"^\| `tests/(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted({name.split("/")[0] for name in FILES if "/" in name})


def test_unit_tests_are_in_folders_named_after_rooms():
    rooms = {path.parent.name for path in (ROOT / "src" / "prade").glob("*/__init__.py")}
    assert {name.split("/")[1] for name in FILES if re.match("unit/.+/", name)} <= rooms


@pytest.mark.parametrize("name", FILES)
def test_nothing_changes_where_python_looks_for_modules(name):
    tree = ast.parse((TESTS / name).read_text("utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {each for each in used if each == "sys.path" or each.endswith("syspath_prepend")}
