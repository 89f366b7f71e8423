"""Titles, units and labels: what a column accepts, that files keep them, and that they never say what a cell is."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from prade.core.errors import SchemaError, WorkloadError
from prade.data.declare.schema import Column, Schema
from prade.data.public.joint import encode
from prade.queries.query import parse

RACE = Column("RACE", "categorical", values=(1, 2), missing=True, labels={1: "white", 2: "Black", None: "not asked"})
WAGE = Column("WAGE", "numeric", edges=(1, 5), missing=True, title="Wages", unit="dollars", labels={None: "no job"})
STATE = Column("STATE", "group", title="State", labels={17: "Illinois", "36": "New York"})
LABELLED = Schema([STATE, RACE, WAGE], linked=())
ALL = ("title", "description", "unit", "labels")


def words(schema: Schema) -> list[tuple[Any, ...]]:
    """What equality leaves out."""
    return [tuple(getattr(column, key) for key in ALL) for column in schema]


# ---------------------------------------------------------------- keys


def test_keys_are_kept_as_text_in_the_order_of_the_codes() -> None:
    column = Column("X", "categorical", values=(2, 1), missing=True, labels={None: "none", 1: "one", 2: "two"})
    assert list(column.labels.items()) == [("2", "two"), ("1", "one"), ("missing", "none")]
    assert [column.label_of(value) for value in (2, 1, None)] == ["two", "one", "none"]


@pytest.mark.parametrize(
    ("values", "key", "value"),
    [((False, True), "true", True), ((0.5, 2.0), "2", 2.0), ((0.5, 2.0), "0.5", 0.5), (("01", "1"), "01", "01")],
)
def test_a_key_is_the_text_of_a_value_as_toml_writes_it(values: Any, key: str, value: Any) -> None:
    column = Column("X", "categorical", values=values, labels={key: "this one"})
    assert column.label_of(value) == "this one"
    assert column.value_labelled("This One") == value
    assert [each for each in values if column.label_of(each)] == [value]


def test_a_listed_value_called_missing_has_the_key_of_that_name() -> None:
    column = Column("X", "categorical", values=("missing", "a"), missing=True, labels={"missing": "lost"})
    assert (column.label_of("missing"), column.label_of(None)) == ("lost", None)
    with pytest.raises(SchemaError, match=r"missing cells cannot have a label"):
        replace(column, labels={None: "empty"})


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": {3: "Asian"}}, r'column \'RACE\': there is a label for "3"; the values are 1, 2'),
        ({"labels": {"01": "white"}}, r'a label for "01"'),
        ({"labels": {None: "x"}, "missing": False}, "needs missing = true"),
        ({"labels": {1: ""}}, r'the label of "1" is empty'),
        ({"labels": {1: 5}}, r'the label of "1" is \'5\'; write a text'),
        ({"labels": {1: "a", "1": "b"}}, r'the label of "1" is given twice'),
        ({"labels": ["white", "Black"]}, "write a table"),
        ({"labels": {1: "two\nlines"}}, "line break"),
        ({"labels": {1: "half \ud800"}}, "half a character"),
        ({"title": 5}, "title is '5'; write a text"),
        ({"title": "a\tb"}, "control character"),
        ({"unit": None}, "unit is 'None'"),
        ({"description": "\ud800"}, "description contains half a character"),
    ],
)
def test_what_a_reader_could_not_read_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        replace(RACE, **{"labels": {}, **changes})


def test_bins_have_no_labels() -> None:
    with pytest.raises(SchemaError, match=r'a label for "0", but bins have no labels'):
        replace(WAGE, labels={0: "nothing"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('titel = "Sex"', "unknown key 'titel'; did you mean 'title'"),
        ('label = {1 = "male"}', "unknown key 'label'; did you mean 'labels'"),
        ('labels = {3 = "x"}', 'a label for "3"'),
        ('labels = "male"', "write a table"),
    ],
)
def test_unknown_keys_and_values_in_a_file_are_refused(line: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(f'version = 1\n[[column]]\nname = "SEX"\nkind = "categorical"\nvalues = [1, 2]\n{line}\n')


# ---------------------------------------------------------------- schemas and files


def test_a_file_keeps_words_and_labels() -> None:
    again = Schema.from_toml(LABELLED.to_toml())
    assert words(again) == words(LABELLED)
    assert '\n[column.labels]\n1 = "white"\n2 = "Black"\nmissing = "not asked"\n' in LABELLED.to_toml()


def test_copies_and_selections_keep_them() -> None:
    assert words(LABELLED.select(["WAGE", "RACE"])) == words(LABELLED)[:0:-1]
    assert words(LABELLED.with_invariants(())) == words(LABELLED)
    assert words(copy.deepcopy(LABELLED)) == words(pickle.loads(pickle.dumps(LABELLED))) == words(LABELLED)


def test_a_list_of_groups_keeps_the_labels_of_its_groups() -> None:
    listed = LABELLED.with_groups({"STATE": [17, 39]})["STATE"]
    assert (listed.values, listed.title, listed.labels) == ((17, 39), "State", {"17": "Illinois"})


def test_labels_do_not_make_another_schema() -> None:
    bare = LABELLED.unlabelled()
    assert bare == LABELLED
    assert hash(bare) == hash(LABELLED)
    assert bare.fingerprint() == LABELLED.fingerprint()
    assert words(bare) == [("", "", "", {})] * 3
    assert "labels" not in bare.to_toml()


# ---------------------------------------------------------------- what a cell is


def test_labels_are_never_used_to_match_cells() -> None:
    """Not even where the label of one value is the text of another."""
    crossed = Schema([replace(RACE, labels={1: "2", 2: "1", None: "white"}), WAGE])
    table = {"RACE": ["1", "2", "white", "Black", None, "not asked"], "WAGE": [0, 3, 9, None, "no job", "dollars"]}
    expected, found = encode(crossed.unlabelled(), table), encode(crossed, table)
    for name in ("RACE", "WAGE"):
        np.testing.assert_array_equal(found.codes[name], expected.codes[name])
    assert found.codes["RACE"].tolist() == [0, 1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("RACE == 'Black'", "'Black' is the label of 2: write RACE == 2"),
        ("RACE != 'black'", "write RACE != 2"),
        ("RACE in ('white', 'Black')", "'white' is the label of 1"),
        ("RACE == Black", "it is the label of 2: write 2 instead"),
        ("RACE == 'not asked'", "write RACE is missing"),
        ("RACE != 'Not Asked'", "write RACE is not missing"),
    ],
)
def test_a_query_with_a_label_is_refused_with_the_code_to_write(query: str, advice: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        parse(query, LABELLED)
    assert advice in str(refused.value)


def test_a_text_that_is_neither_value_nor_label_gets_no_advice_about_labels() -> None:
    tenure = Column("TENURE", "categorical", values=("own", "rent"), labels={"own": "owned"})
    with pytest.raises(WorkloadError, match="'owned' is the label of 'own'"):
        tenure.satisfying("==", "owned")
    with pytest.raises(WorkloadError) as refused:
        tenure.satisfying("==", "borrowed")
    assert "label" not in str(refused.value)
