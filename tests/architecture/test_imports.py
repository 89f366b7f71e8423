"""Importing the package is cheap, and everything it promises is there."""

import json
import subprocess
import sys

import pytest

import prade

HEAVY = ("numba", "scipy", "pyarrow", "pandas", "polars")


def run(code: str) -> str:
    """Output of a fresh interpreter: what this one has loaded says nothing."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_import_loads_nothing_heavy():
    loaded = json.loads(
        run("import prade, sys, json; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))")
    )
    assert "prade" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_import_is_silent():
    assert run("import prade") == ""


def test_every_promised_name_resolves_in_a_fresh_interpreter():
    code = "import prade; print([n for n in prade.__all__ if getattr(prade, n, None) is None])"
    assert run(code).strip() == "[]"


@pytest.mark.parametrize("name", prade.__all__)
def test_name_is_listed_and_is_itself(name):
    assert name in dir(prade)
    value = getattr(prade, name)
    if isinstance(value, type):
        assert value.__name__ == name


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Priror'"):
        prade.Priror


def test_private_names_behind_all_are_sorted_and_distinct():
    assert list(prade.__all__) == sorted(set(prade.__all__))
