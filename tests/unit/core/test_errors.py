"""Errors carry their remedy as data, and each language has its own words for it."""

import copy
import pickle
import re
from pathlib import Path

import pytest

import prade
from prade import Budget, BudgetError, DataError, PradeError, Unit
from prade.core.errors import _WORDS, Remedy, in_words
from worlds.commands import commands

SOURCE = Path(prade.__file__).parent


def test_every_remedy_in_use_has_words_and_every_word_is_used():
    texts = (path.read_text() for path in SOURCE.rglob("*.py"))
    assert {name for text in texts for name in re.findall(r'(?:remedy=|Remedy\()\s*"(\w+)"', text)} == set(_WORDS)


@pytest.mark.parametrize("name", sorted(_WORDS))
def test_python_speaks_of_arguments_and_the_shell_of_options(name):
    python, shell = (in_words(Remedy(name, "prade x"), language) for language in ("python", "shell"))
    assert "--" not in python
    assert not re.search(r"\w=", shell)
    options = {option for command in commands().values() for each in command.params for option in each.opts}
    assert set(re.findall(r"--[a-z-]+", shell)) <= options


def test_an_error_says_it_in_python_and_in_the_shell():
    with pytest.raises(PradeError) as caught:
        Unit(max_rows=0)
    assert caught.value.remedy.name == "max_rows"
    assert str(caught.value).endswith("write Unit(max_rows=1)")
    assert caught.value.worded("shell").endswith("write --max-rows-per-person 1")


def test_a_prefix_keeps_the_remedy():
    error = DataError("no such thing", remedy="public").within("plan.toml")
    assert str(error) == "plan.toml: no such thing; give the public table as public="
    assert isinstance(error, DataError)


@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_being_copied_and_sent(copied):
    error = BudgetError("too much", Budget.pure(1), Budget.pure(2), remedy="raise_cap")
    again = copied(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
