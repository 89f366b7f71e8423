"""Private rows and noise have one door: only `prade.measuring` opens a source, counts rows or draws noise."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import prade

ROOT = Path(prade.__file__).parent
# To say early what does not fit: it compares where files are, names of columns and declared types, and counts nothing.
EARLY = {f"prade.measuring.source{name}" for name in ("", ".refuse_early", ".refuse_unfit")}
# To let the custodian look at private rows: for these two, which lead there and nowhere else.
CHECK = {"prade.measuring.check", "prade.measuring.check.check"}
LEADS_TO_CHECK = ("__init__.py", "cli/check_commands.py")
ENGINES = ("opendp", "pyspark", "duckdb", "psycopg")
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
OUTSIDE = [name for name in MODULES if not name.startswith("measuring/")]


def imported(text):
    """Every module or name that a text imports, anywhere in it, by statement or by a name given as text."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = ".".join(filter(None, ["prade" if node.level else "", node.module]))
            found |= {home, *(f"{home}.{alias.name}" for alias in node.names)} - ({"prade.measuring"} & {home})
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # importlib.import_module("opendp"), __import__("opendp")
    return found


def offences(text):
    """Engines, and anything of the door but the one step that does everything in order."""
    names = imported(text)
    engines = [name for name in names if name.split(".")[0] in ENGINES and " " not in name]
    steps = {"prade.measuring.run", "prade.measuring.run.measure", *EARLY}
    door = [name for name in names if f"{name}.".startswith("prade.measuring.") and name not in steps]
    return sorted(engines + door)


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_other_module_reaches_for_engines_or_noise(name):
    found = [each for each in offences((ROOT / name).read_text()) if not (name in LEADS_TO_CHECK and each in CHECK)]
    assert found == []


def test_the_noise_library_is_imported_where_noise_is_drawn():
    users = [name for name in MODULES if "opendp.mod" in imported((ROOT / name).read_text())]
    assert users == ["measuring/noise.py"]


@pytest.mark.parametrize(
    "text",
    [
        "import opendp",
        "def f():\n    from opendp.mod import enable_features",
        "import importlib\nimportlib.import_module('opendp.prelude')",
        "import psycopg",
        "from prade.measuring.check import check",
        "from prade.measuring.noise import add_noise",
        "from prade.measuring import noise\nimport prade.measuring.tally as c",
        "from prade.measuring import add_noise",
        "from prade.measuring.run import measure, count",
        "import prade.measuring",
        "from prade import measuring",
        "from .measuring import noise",
        "from . import measuring",
        "import importlib\nimportlib.import_module('prade.measuring')",
    ],
)
def test_the_check_would_see_it(text):
    assert offences(text)


def test_the_one_step_may_be_called_from_elsewhere():
    assert offences("from prade.measuring.run import measure") == []


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import prade; [getattr(prade, name) for name in prade.__all__]", ["numpy"]),
        ("import prade.measuring", []),
        (
            "from fractions import Fraction; from prade.measuring.noise import add_noise; "
            "add_noise([1, 2], 'laplace', Fraction(2))",
            ["numpy", "opendp"],
        ),
    ],
)
def test_engines_and_noise_are_loaded_where_they_are_needed(code, loaded):
    watched = ("numpy", *ENGINES, "sklearn")
    code = f"import sys; {code}; print(*[each for each in {watched} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert set(loaded) <= set(done.stdout.split()) <= {"numpy", *loaded}
