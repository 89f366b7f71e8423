"""Each room's face: the few names that it exports, loaded when they are first used."""

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import prade

ROOT = Path(prade.__file__).parent
FACES = ["prade", *(f"prade.{path.parent.name}" for path in sorted(ROOT.glob("*/__init__.py")))]
LAZY = [name for name in FACES if hasattr(importlib.import_module(name), "_HOMES")]


def for_type_checkers(package: str) -> dict[str, str]:
    """The names that a type checker sees in a package, and their modules."""
    tree = ast.parse(Path(importlib.import_module(package).__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_most_rooms_have_a_face():
    assert len(LAZY) > 8


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_and_readers_see_the_same_names(package):
    assert for_type_checkers(package) == importlib.import_module(package)._HOMES


@pytest.mark.parametrize("package", LAZY)
def test_every_name_is_there(package):
    module = importlib.import_module(package)
    for name in module._HOMES:
        assert name in dir(module)
        assert getattr(module, name).__name__ == name or name == "Part"


@pytest.mark.parametrize("package", LAZY)
def test_no_name_is_also_a_module(package):
    """Importing the module would hide the name: `prade.measure` must not be a package and a function at once."""
    module = importlib.import_module(package)
    modules = {each.name for each in pkgutil.iter_modules(module.__path__)}
    assert modules & set(module._HOMES) == set()


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="has no attribute 'Priror'"):
        importlib.import_module(package).Priror
