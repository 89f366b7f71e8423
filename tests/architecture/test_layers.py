"""The rooms of `src/prade` import downwards only, in the order that docs/architecture.md gives."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MOST_AT_THE_TOP = 6

Graph = dict[str, frozenset[str]]  # of each module, those that it imports


def written_order(page):
    """The rooms, and the modules between them, from the ground up: the table under "The rooms"."""
    section = page.split("## The rooms", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)(?:\.py)?` \|", section, flags=re.MULTILINE)


ORDER = written_order((ROOT / "docs" / "architecture.md").read_text())
FILES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}


@cache  # most tests change one module of many
def nodes(text):
    """All nodes of a module's tree."""
    return list(ast.walk(ast.parse(text)))


def imports(name, text, known):
    """The modules of prade that a module imports, wherever in it: in functions and for type checkers too."""
    package = name if FILES.get(name, Path("x.py")).name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "prade")
        elif isinstance(node, ast.ImportFrom):
            home = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                home = ".".join([*above, *([node.module] if node.module else [])])
            if home.split(".")[0] == "prade":
                yield from (f"{home}.{a.name}" if f"{home}.{a.name}" in known else home for a in node.names)


def named(text, known):
    """The modules that a module names as a text, for `importlib.import_module` or `__import__`."""
    modules = known - {"prade"}
    for node in nodes(text):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in modules:
            yield node.value


@cache
def needed(name, text, known):
    """The other modules that a module imports or names."""
    return frozenset({*imports(name, text, known), *named(text, known)} - {name})


def rank(module):
    """How high a module's room is; the package's public names are right below the command line.

    What else stands outside the rooms is above all of them.
    """
    if module == "prade":
        return ORDER.index("cli") - 0.5
    room = module.split(".")[1] if module.count(".") else ""
    return ORDER.index(room) if room in ORDER else len(ORDER)


def upward(graph):
    """Imports of a room that is above the importing module's own."""
    return [f"{one} imports {other}" for one in graph for other in graph[one] if rank(other) > rank(one)]


def circle(graph):
    """Modules that import each other in a circle, if there are any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def graph_of(texts):
    """Which modules each module imports."""
    return {name: needed(name, text, frozenset(texts)) for name, text in texts.items()}


TEXTS = {name: path.read_text() for name, path in FILES.items()}


@pytest.fixture(scope="module")
def graph():
    """Which module of the package imports which."""
    return graph_of(TEXTS)


def test_every_room_is_in_the_list_and_every_listed_room_is_there():
    rooms = {path.name for path in (SOURCE / "prade").iterdir() if (path / "__init__.py").exists()}
    assert set(ORDER) == rooms | {"pipeline", "synthesizer"}
    assert len(ORDER) == len(set(ORDER))


def test_few_modules_stand_outside_the_rooms():
    assert len(list((SOURCE / "prade").glob("*.py"))) <= MOST_AT_THE_TOP


def test_no_import_points_upward(graph):
    assert upward(graph) == []


def test_no_imports_go_in_circles(graph):
    modules = frozenset(name for name, path in FILES.items() if path.name != "__init__.py")
    assert circle({name: graph[name] & modules for name in modules}) == []


@pytest.mark.parametrize("room", [room for room in ORDER if FILES[f"prade.{room}"].name == "__init__.py"])
def test_a_room_is_introduced_in_one_sentence(room):
    text = ast.get_docstring(ast.parse((SOURCE / "prade" / room / "__init__.py").read_text()))
    assert text is not None
    assert text.splitlines()[0].endswith(".")


@pytest.mark.parametrize(
    "line",
    [
        "from prade.cli.main import text_table",
        "import prade.cli.main",
        "def f():\n    from prade.cli import console",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from prade.synthesizer import Synthesizer",
        "from ..cli import console",
        "from prade import synthesizer",
        "import prade",
        "import importlib\nimportlib.import_module('prade.cli.main')",
        "__import__('prade.pipeline')",
    ],
)
def test_an_import_that_is_turned_round_would_be_seen(line):
    assert upward(graph_of({**TEXTS, "prade.core.errors": f"{TEXTS['prade.core.errors']}\n{line}\n"}))


def test_a_circle_within_a_room_would_be_seen():
    texts = {**TEXTS, "prade.core.numbers": f"{TEXTS['prade.core.numbers']}\nimport prade.core.errors\n"}
    texts["prade.core.errors"] += "\ndef f():\n    from prade.core.numbers import exact\n"
    modules = {name for name in texts if FILES[name].name != "__init__.py"}
    assert {"prade.core.numbers", "prade.core.errors"} <= set(
        circle({name: needs & modules for name, needs in graph_of(texts).items() if name in modules})
    )
