"""The faces of the package and of some rooms: the names that pages show, loaded when they are first used."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import prade

ROOT = Path(prade.__file__).parent
FACES = ["prade", *(f"prade.{path.parent.name}" for path in sorted(ROOT.glob("*/__init__.py")))]
LAZY = [name for name in FACES if hasattr(importlib.import_module(name), "__getattr__")]


def for_type_checkers(package):
    """The names that a type checker sees in a package, and their modules."""
    tree = ast.parse(Path(importlib.import_module(package).__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_importing_the_package_is_silent_and_loads_nothing_heavy():
    code = "import prade, sys; print([each for each in ('numba', 'scipy', 'pyarrow', 'pandas') if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_the_package_and_the_rooms_that_pages_show_have_a_face():
    assert LAZY == ["prade", "prade.data", "prade.estimating", "prade.examples"]


@pytest.mark.parametrize("package", LAZY)
def test_every_name_that_type_checkers_see_is_there(package):
    module, homes = importlib.import_module(package), for_type_checkers(package)
    assert sorted(module.__all__) == sorted([*homes, *(["__version__"] if package == "prade" else [])])
    # importing a module hides a name: `prade.measure` must not be a package and a function at once
    assert {each.name for each in pkgutil.iter_modules(module.__path__)} & set(homes) == set()
    for name, home in homes.items():
        assert name in dir(module)
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="has no attribute 'Priror'"):
        importlib.import_module(package).Priror
