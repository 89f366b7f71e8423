"""Codebooks: what they give a schema, what of them cannot be used, and `prade schema label`."""

import json
from pathlib import Path

import pytest

from prade import Column, CsvFile, DataError, Level, Release, Schema, SchemaError, Workload
from prade.data.declare.codebook import labelled
from worlds.commands import call
from worlds.plans import plan_of
from worlds.releases import invented, write_folder

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

DICTIONARY = """NAME,RT,C,1,"Record Type"
VAL,RT,C,1,"P","P","Person Record"
NAME,SEX,C,1,"Sex"
VAL,SEX,C,1,"1","1","Male"
VAL,SEX,C,1,"2","2","Female"
VAL,SEX,C,1,"b","b","not asked"
NAME,SCHL,C,2,"Educational attainment"
VAL,SCHL,C,2,"bb","bb","N/A (less than 3 years old)"
VAL,SCHL,C,2,"01","01","No schooling completed"
VAL,SCHL,C,2,"24","24","Doctorate degree"
NAME,WAGP,N,6,"Wages or salary income past 12 months"
VAL,WAGP,N,6,"bbbbbb","bbbbbb","N/A (less than 15 years old)"
VAL,WAGP,N,6,"0","0","None"
VAL,WAGP,N,6,"4","999999","$4 to 999999 (Rounded and top-coded)"
VAL,AGEP,N,2,"bb","bb","not born"
NAME,SEX,C,1,"Sex",,
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


def test_the_census_bureaus_dictionary_is_read(codebook):
    result = codebook(DICTIONARY)
    assert result.schema["SEX"].labels == {"1": "Male", "2": "Female"}
    assert result.schema["SCHL"].title == "Educational attainment"
    missing = "N/A (less than 3 years old)"
    expected = {"1": "No schooling completed", "2": "before", "24": "Doctorate degree", "missing": missing}
    assert result.schema["SCHL"].labels == expected
    assert result.schema["WAGP"].labels == {"missing": "N/A (less than 15 years old)"}
    assert (result.columns, result.unknown_columns) == (("SEX", "SCHL", "WAGP", "AGEP"), ("RT",))
    assert result.unknown_values == {"SEX": ("missing",), "WAGP": ("0", "4 to 999999"), "AGEP": ("missing",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("column,title\nSEX,Sex\nSEX,Gender\n", "lines 2 and 3 contradict each other about the title in column 'SEX'"),
        ("column,value,label\nSEX,1,male\nSEX,01,man\n", "about the label of 01 in column 'SEX': 'male' and 'man'"),
        ("\n\n", "is empty"),
        ("column,lable\nSEX,x\n", "the header is column, lable; .*did you mean 'label'"),
        ("column,label,value\nSEX,male,\n", "line 2 has 3 cells; it needs a column, a value if"),
        ("column,title\nSEX,Sex, that is\n", "line 2 has 3 cells; .* at most 2 cells: put texts"),
        ("NAME,SEX,C,1,Sex\nWHAT,SEX,C,1\n", "line 2 begins with 'WHAT' and has 4 cells"),
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
    with pytest.raises(DataError, match=r"line 2 of .* is not text in the encoding utf-8"):
        labelled(SCHEMA, CsvFile(path, delimiter=";"))
    labels = labelled(SCHEMA, CsvFile(path, encoding="latin-1", delimiter=";")).schema["TEN"].labels
    assert labels == {"own": "propriété"}
    with pytest.raises(DataError, match="there is no codebook"):
        labelled(SCHEMA, tmp_path / "none.csv")


LABEL = "schema", "label", "--codebook", "codebook.csv"
FEW = Schema([Column("PLACE", "group"), *SCHEMA.select(["SEX", "AGEP"])])


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FEW.save("schema.toml")
    rows = "SEX,Sex,1,male", "SEX,,2,female", "SEX,,3,other", "AGEP,Age,18,of age", "WEIGHT,Weight,,"
    Path("codebook.csv").write_text("\n".join(["column,title,value,label", *rows]))
    return tmp_path


def test_the_command_writes_the_labels_and_says_what_is_left(files):
    done = call(*LABEL, "schema.toml", "-o", "labelled.toml")
    assert done.stdout == "labelled.toml: 2 columns and 2 values labelled\n"
    assert done.stderr.splitlines() == [
        "Without an entry in codebook.csv: PLACE",
        "In codebook.csv, but not in the schema: WEIGHT",
        "SEX does not list these values of codebook.csv: 3",
        "AGEP does not list these values of codebook.csv: 18",
    ]
    assert Schema.load("labelled.toml")["SEX"].labels == {"1": "male", "2": "female"}
    assert "schema.toml exists already" in call(*LABEL, "schema.toml", code=1).stderr
    again = call(*LABEL, "schema.toml", "--force", "--json")
    assert json.loads(again.stdout).items() >= {"columns": ["SEX", "AGEP"], "values": 2}.items()
    assert Schema.load("schema.toml")["SEX"].label_of(2) == "female"


def test_the_command_labels_a_release(files):
    plan = plan_of(FEW, Level("PLACE", Workload.all_marginals(FEW, 1)), groups={"PLACE": ["a", "b"]})
    write_folder(files / "release", plan, invented(plan).noisy)
    assert call(*LABEL, "release").stdout == "release/labels.toml: 2 columns and 2 values labelled\n"
    assert Release.load("release").plan.schema["SEX"].label_of(2) == "female"
    assert "exists already" in call(*LABEL, "release", code=1).stderr
