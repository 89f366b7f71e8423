"""Every number that decides what a release says stands in docs/constants.md, under what it rests on."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("diagnosis", "estimating", "sampling", "tuning", "baselines")
PAGE = (ROOT / "docs" / "constants.md").read_text()


def constants(text):
    """The names in capitals that a module gives a number to, or several numbers.

    >>> list(constants("LIMIT = 5.0\\nFEW, MANY = 1, 2\\nNAME = 'x'\\nlow = 1"))
    ['LIMIT', 'FEW', 'MANY']
    """
    for node in ast.parse(text).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        numbers = (type(each.value) in (int, float) for each in ast.walk(node) if isinstance(each, ast.Constant))
        if names and all(name.isupper() for name in names) and any(numbers):
            yield from names


def on_the_page(room):
    """The constants that the page lists for a room, as ``module.NAME``."""
    section = PAGE.split(f"\n## {room}\n", 1)[1].split("\n## ", 1)[0]
    return Counter(re.findall(r"`([a-z_.0-9]+\.[A-Z_0-9]+)`", section))


@pytest.mark.parametrize("room", ROOMS)
def test_every_constant_of_a_room_stands_on_the_page_once(room):
    home = ROOT / "src" / "prade" / room
    in_code = Counter(
        f"{'.'.join(path.relative_to(home).with_suffix('').parts)}.{name}"
        for path in home.rglob("*.py")
        for name in constants(path.read_text())
    )
    assert on_the_page(room) == in_code
