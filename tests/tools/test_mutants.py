"""The list of mutants keeps up with the code: each can be made, and the tests that must notice it exist."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import mutants

EVERYTHING = mutants.read_mutants(Path(mutants.__file__).with_suffix(".toml"))


def test_all_mutants_can_be_made():
    assert mutants.faults(EVERYTHING) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"old": "no such text"}, "its text stands 0 times"),
        ({"new": EVERYTHING[0].old}, "it changes nothing"),
        ({"tests": ("tests/unit/no_such_file.py",)}, "there is no test"),
        ({"tests": ("tests/tools/test_mutants.py::test_all",)}, "there is no test"),
    ],
)
def test_one_that_cannot_be_made_is_named(change, fault):
    (found,) = mutants.faults([replace(EVERYTHING[0], **change)])
    assert found.startswith(f"{EVERYTHING[0].name}: ")
    assert re.search(fault, found)
