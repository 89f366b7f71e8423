"""Titles, units and labels: what a column accepts, files, and texts for readers."""

import copy
import datetime
import pickle
from dataclasses import replace

import pytest

from prade.core.errors import SchemaError
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Column, Schema
from prade.data.public.joint import encode

RACE = Column("RACE", "categorical", values=(1, 2), missing=True, labels={1: "white", 2: "Black", None: "not asked"})
WAGE = Column("WAGE", "numeric", edges=(1, 5), missing=True, title="Wages", unit="dollars", labels={None: "no job"})
STATE = Column("STATE", "group", title="State", labels={17: "Illinois", "36": "New York"})
SECOND, NEXT = datetime.date(1970, 1, 2), datetime.date(1971, 1, 1)
LABELLED = Schema([STATE, RACE, WAGE])


def words(schema):
    """What equality leaves out."""
    return [(column.title, column.description, column.unit, column.labels) for column in schema]


def test_keys_are_text_as_toml_writes_values_in_the_order_of_the_codes():
    column = Column("X", "categorical", values=(2, 1), missing=True, labels={None: "none", 1: "one", 2: "two"})
    assert list(column.labels.items()) == [("2", "two"), ("1", "one"), ("missing", "none")]
    assert [column.label_of(value) for value in (2, 1, None)] == ["two", "one", "none"]
    listed = Column("X", "categorical", values=("missing", "a"), missing=True, labels={"missing": "lost"})
    assert (listed.label_of("missing"), listed.label_of(None)) == ("lost", None)
    with pytest.raises(SchemaError, match=r"missing cells cannot have a label"):
        replace(listed, labels={None: "empty"})
    for values, key, value in (((False, True), "true", True), ((0.5, 2.0), "2", 2.0), (("01", "1"), "01", "01")):
        column = Column("X", "categorical", values=values, labels={key: "this one"})
        assert [each for each in values if column.label_of(each)] == [value]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": {3: "Asian"}}, r'column \'RACE\': there is a label for "3"; only listed values .1, 2. have'),
        ({"labels": {None: "x"}, "missing": False}, "missing with missing = true"),
        ({"labels": {1: ""}}, r'the label of "1" is empty, or given twice'),
        ({"labels": {1: 5}}, r'the label of "1" is \'5\'; write a text'),
        ({"labels": {1: "two\nlines"}}, "in one line"),
        ({"kind": "numeric", "values": (), "edges": (1,), "labels": {0: "none"}}, "only listed values .there are none"),
        ({"description": "\ud800"}, "description is .* without control characters"),
    ],
)
def test_what_a_reader_could_not_read_is_refused(changes, message):
    with pytest.raises(SchemaError, match=message):
        replace(RACE, **{"labels": {}, **changes})


def test_a_file_keeps_words_and_labels_and_so_do_copies_and_selections():
    assert words(Schema.from_toml(LABELLED.to_toml())) == words(LABELLED)
    assert '\n[column.labels]\n1 = "white"\n2 = "Black"\nmissing = "not asked"\n' in LABELLED.to_toml()
    assert words(LABELLED.select(["WAGE", "RACE"])) == words(LABELLED)[:0:-1]
    assert words(LABELLED.with_invariants(())) == words(LABELLED)
    assert words(copy.deepcopy(LABELLED)) == words(pickle.loads(pickle.dumps(LABELLED))) == words(LABELLED)
    listed = LABELLED.with_groups({"STATE": [17, 39]})["STATE"]
    assert (listed.values, listed.title, listed.labels) == ((17, 39), "State", {"17": "Illinois"})


def test_labels_are_never_used_to_match_cells():
    """Not even where the label of one value is the text of another."""
    crossed = Schema([replace(RACE, labels={1: "2", 2: "1", None: "white"}), WAGE])
    table = {"RACE": ["1", "2", "white", "Black", None, "not asked"], "WAGE": [0, 3, 9, None, "no job", "dollars"]}
    codes = {name: each.tolist() for name, each in encode(crossed, table).codes.items()}
    assert codes == {"RACE": [0, 1, 2, 2, 2, 2], "WAGE": [0, 1, 2, 3, 3, 3]}


def test_a_label_is_shown_alone_unless_another_cell_looks_the_same():
    assert Column("WAGP", "numeric", edges=(1,), unit="dollars").heading == "WAGP (dollars)"
    assert WAGE.heading == "Wages (dollars)"
    sex = Column("SEX", "categorical", values=(1, 2), description="as registered", labels={1: "male"})
    page = {"name": "SEX", "title": "SEX", "description": "as registered", "unit": "", "labels": ["male", "2"]}
    assert sex.described() == page
    labels = {1: "white", 2: "other", 3: "other", None: "white"}
    column = Column("RACE", "categorical", values=(1, 2, 3, 4), missing=True, labels=labels)
    assert column.display_texts() == ["white (1)", "other (2)", "other (3)", "4", "white (missing)"]
    assert Column("X", "categorical", values=("a", "b"), labels={"a": "b"}).display_texts() == ["b (a)", "b"]


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"edges": [18, 65], "integer": True, "min": 0, "max": 99}, ["0 to 17", "18 to 64", "65 to 99"]),
        ({"edges": [0.5, 2, 3], "integer": True, "min": 0}, ["0", "1", "2", "3 or more"]),
        ({"edges": [0, 20000], "integer": True, "min": -9}, ["-9 to -1", "0 to 19,999", "20,000 or more"]),
        ({"edges": [1, 2.5], "max": 4}, ["under 1", "1 to under 2.5", "2.5 to 4"]),
        ({"edges": [1], "missing": True, "labels": {None: "no job"}}, ["under 1", "1 or more", "no job"]),
        ({"edges": [SECOND, NEXT]}, ["before 1970-01-02", "1970-01-02 to 1970-12-31", "from 1971-01-01"]),
    ],
)
def test_bins_are_told_in_words(changes, texts):
    assert Column("X", "numeric", **changes).display_texts() == texts


def test_groups_are_named_by_their_labels_and_titles():
    state = Column("STATE", "group", labels={17: "Illinois", 39: "Ohio"})
    place = Column("PLACE", "group", title="Place", labels={"a": "Springfield", "b": "Springfield"})
    groups = Groups.of({"STATE": [17, 17, 39], "PLACE": ["a", "b", "c"], "YEAR": [1, 1, 1]})
    texts = groups.level(["STATE", "PLACE", "YEAR"]).labels(Schema([state, place]))
    assert texts == ["Illinois, Springfield (a), YEAR 1", "Illinois, Springfield (b), YEAR 1", "Ohio, Place c, YEAR 1"]
    assert groups.level([]).labels(Schema([state])) == ["all"]
