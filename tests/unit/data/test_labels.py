"""Titles, units and labels: what a column accepts, files, texts for readers, and codebooks."""

import copy
import datetime
import pickle
from dataclasses import replace

import pytest

from prade.core.errors import DataError, SchemaError
from prade.data.declare.display import group_texts, labelled
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Column, Schema
from prade.data.public.joint import encode
from prade.data.read.csv import CsvFile

RACE = Column("RACE", "categorical", values=(1, 2), missing=True, labels={1: "white", 2: "Black", None: "not asked"})
WAGE = Column("WAGE", "numeric", edges=(1, 5), missing=True, title="Wages", unit="dollars", labels={None: "no job"})
STATE = Column("STATE", "group", title="State", labels={17: "Illinois", "36": "New York"})
LABELLED = Schema([STATE, RACE, WAGE])


def words(schema):
    """What equality leaves out."""
    return [(column.title, column.description, column.unit, column.labels) for column in schema]


# ---------------------------------------------------------------- labels of a column


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


# ---------------------------------------------------------------- texts for readers


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
        (
            {"edges": [datetime.date(1970, 1, 2), datetime.date(1971, 1, 1)]},
            ["before 1970-01-02", "1970-01-02 to 1970-12-31", "from 1971-01-01"],
        ),
    ],
)
def test_bins_are_told_in_words(changes, texts):
    assert Column("X", "numeric", **changes).display_texts() == texts


def test_groups_are_named_by_their_labels_and_titles():
    state = Column("STATE", "group", labels={17: "Illinois", 39: "Ohio"})
    place = Column("PLACE", "group", title="Place", labels={"a": "Springfield", "b": "Springfield"})
    groups = Groups.of({"STATE": [17, 17, 39], "PLACE": ["a", "b", "c"], "YEAR": [1, 1, 1]})
    texts = group_texts(Schema([state, place]), groups.level(["STATE", "PLACE", "YEAR"]))
    assert texts == ["Illinois, Springfield (a), YEAR 1", "Illinois, Springfield (b), YEAR 1", "Ohio, Place c, YEAR 1"]
    assert group_texts(Schema([state]), groups.level([])) == ["all"]


# ---------------------------------------------------------------- codebooks

SCHEMA = Schema(
    [
        Column("STATE", "group"),
        Column("SEX", "categorical", values=(1, 2)),
        Column("SCHL", "categorical", values=(1, 2, 24), missing=True, title="School", labels={2: "before"}),
        Column("TEN", "categorical", values=("own", "rent")),
        Column("DIS", "categorical", values=(False, True)),
        Column("WAGP", "numeric", edges=(1, 1000), missing=True),
        Column("AGEP", "numeric", edges=(18, 65)),
    ],
    linked=[["WAGP", "AGEP"]],
)

TABLE = """column,title,description,unit,value,label
STATE,State,,,17,Illinois
SEX,Sex,as  registered,,,
SEX,,,,1,male
SEX,,,,02,female

SCHL,,,,24," doctorate, or
 similar "
SCHL,,,,missing,too young
SCHL,,,,7,nothing
TEN,,,,own,owned
DIS,,,,TRUE,disabled
WAGP,Wages,,US dollars a year,missing,no job
WAGP,,,,0,none
OTHER,Something else,,,1,one
"""


@pytest.fixture
def codebook(tmp_path):
    def of(text):
        path = tmp_path / "codebook.csv"
        path.write_text(text, encoding="utf-8")
        return labelled(SCHEMA, path)

    return of


def test_a_table_gives_words_and_labels_and_names_what_was_not_used(codebook):
    result = codebook(TABLE)
    schema = result.schema
    assert (schema["SEX"].title, schema["SEX"].description) == ("Sex", "as registered")
    assert (schema["WAGP"].title, schema["WAGP"].unit) == ("Wages", "US dollars a year")
    assert {name: schema[name].labels for name in ("STATE", "SEX", "TEN", "DIS", "WAGP")} == {
        "STATE": {"17": "Illinois"},
        "SEX": {"1": "male", "2": "female"},
        "TEN": {"own": "owned"},
        "DIS": {"true": "disabled"},
        "WAGP": {"missing": "no job"},
    }
    assert schema["SCHL"].labels == {"2": "before", "24": "doctorate, or similar", "missing": "too young"}
    assert schema["SCHL"].title == "School"  # the codebook has none
    assert codebook("column,title\nSCHL,Education\n").schema["SCHL"].title == "Education"
    repeated = "SEX,Sex,1,male\nSEX,Sex,2,female\nSEX,Sex,01,male\nELSE,a,,\nELSE,b,,\n"  # no contradictions
    assert codebook(f"column,title,value,label\n{repeated}").values == 2
    assert (schema, schema.linked) == (SCHEMA, SCHEMA.linked)
    used = ("STATE", "SEX", "SCHL", "TEN", "DIS", "WAGP")
    assert result[1:] == (used, 8, ("AGEP",), ("OTHER",), {"SCHL": ("7",), "WAGP": ("0",)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("column,title\nSEX,Sex\nSEX,Gender\n", "column 'SEX' has two texts for the title: 'Sex' and 'Gender'"),
        ("column,value,label\nSEX,1,male\nSEX,01,man\n", "for the label of 01: 'male' and 'man'"),
        ("", "is empty"),
        ("column,lable\nSEX,x\n", "the header is column, lable; .*did you mean 'label'"),
        ("column,label,value\nSEX,male,\n", "row 1 needs a column, and for a label a value"),
        ("column,title\nSEX,Sex, that is\n", "is not a well-formed csv"),
        ('column,title\nSEX,"Sex\x07"\n', "without control characters"),
    ],
)
def test_a_file_that_is_not_a_codebook_is_refused_with_its_name(codebook, text, message):
    with pytest.raises((DataError, SchemaError), match=message) as refused:
        codebook(text)
    assert "codebook.csv" in str(refused.value)


def test_other_encodings_and_delimiters_are_declared(tmp_path):
    path = tmp_path / "codebook.csv"
    path.write_text("column;value;label\nTEN;own;propriété\n", encoding="latin-1")
    with pytest.raises(DataError, match="is not text in the encoding utf-8: line 2"):
        labelled(SCHEMA, CsvFile(path, delimiter=";"))
    labels = labelled(SCHEMA, CsvFile(path, encoding="latin-1", delimiter=";")).schema["TEN"].labels
    assert labels == {"own": "propriété"}
    with pytest.raises(DataError, match="there is no file"):
        labelled(SCHEMA, tmp_path / "none.csv")
