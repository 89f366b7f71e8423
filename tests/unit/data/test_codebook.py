"""Codebooks: both forms, how their values are matched, what is counted, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from prade.core.errors import DataError, SchemaError
from prade.data.declare.display import Codebook, Labelling
from prade.data.declare.schema import Column, Schema
from prade.data.read.csv import CsvFile

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
NAME,SCHL,C,2,"Educational attainment"
VAL,SCHL,C,2,"bb","bb","N/A (less than 3 years old)"
VAL,SCHL,C,2,"01","01","No schooling completed"
VAL,SCHL,C,2,"24","24","Doctorate degree"
NAME,WAGP,N,6,"Wages or salary income past 12 months"
VAL,WAGP,N,6,"bbbbbb","bbbbbb","N/A (less than 15 years old)"
VAL,WAGP,N,6,"0","0","None"
VAL,WAGP,N,6,"4","999999","$4 to 999999 (Rounded and top-coded)"
NAME,SEX,C,1,"Sex",,
"""


def labelled(tmp_path: Path, text: str, schema: Schema = SCHEMA) -> Labelling:
    path = tmp_path / "codebook.csv"
    path.write_text(text, encoding="utf-8")
    return Codebook.read(path).label(schema)


def test_a_table_gives_words_and_labels(tmp_path: Path) -> None:
    made = labelled(tmp_path, TABLE)
    schema = made.schema
    assert (schema["SEX"].title, schema["SEX"].description) == ("Sex", "as registered")
    assert (schema["WAGP"].title, schema["WAGP"].unit) == ("Wages", "US dollars a year")
    assert schema["SEX"].labels == {"1": "male", "2": "female"}
    assert schema["TEN"].labels == {"own": "owned"}
    assert schema["DIS"].labels == {"true": "disabled"}
    assert schema["WAGP"].labels == {"missing": "no job"}
    assert schema["STATE"].labels == {"17": "Illinois"}
    assert schema["SCHL"].labels == {"2": "before", "24": "doctorate, or similar", "missing": "too young"}


def test_it_counts_what_was_used_and_names_what_was_not(tmp_path: Path) -> None:
    made = labelled(tmp_path, TABLE)
    assert made.columns == ("STATE", "SEX", "SCHL", "TEN", "DIS", "WAGP")
    assert made.values == 8
    assert made.without_entry == ("AGEP",)
    assert made.unknown_columns == ("OTHER",)
    assert made.unknown_values == {"SCHL": ("7",)}
    assert made.of_bins == 1


def test_the_rest_of_the_schema_stays(tmp_path: Path) -> None:
    made = labelled(tmp_path, TABLE)
    assert made.schema == SCHEMA
    assert made.schema.linked == SCHEMA.linked
    assert made.schema["SCHL"].title == "School"  # the codebook has none
    assert labelled(tmp_path, "column,title\nSCHL,Education\n").schema["SCHL"].title == "Education"


def test_the_census_bureaus_dictionary_is_read(tmp_path: Path) -> None:
    made = labelled(tmp_path, DICTIONARY)
    assert made.schema["SEX"].labels == {"1": "Male", "2": "Female"}
    assert made.schema["SCHL"].title == "Educational attainment"
    assert made.schema["SCHL"].labels == {
        "1": "No schooling completed",
        "2": "before",
        "24": "Doctorate degree",
        "missing": "N/A (less than 3 years old)",
    }
    assert made.schema["WAGP"].labels == {"missing": "N/A (less than 15 years old)"}
    assert (made.columns, made.unknown_columns, made.of_bins) == (("SEX", "SCHL", "WAGP"), ("RT",), 2)


def test_missing_cells_that_the_schema_does_not_allow_are_named(tmp_path: Path) -> None:
    made = labelled(tmp_path, 'VAL,SEX,C,1,"b","b","not asked"\nVAL,AGEP,N,2,"bb","bb","not born"\n')
    assert made.unknown_values == {"SEX": ("missing",), "AGEP": ("missing",)}
    assert made.values == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("SEX,Sex,,,,\nSEX,Gender,,,,\n", r"lines 2 and 3 contradict each other about the title in column 'SEX'"),
        ("SEX,,,,1,male\nSEX,,,,01,man\n", r"about the label of 01 in column 'SEX': 'male' and 'man'"),
        ("WAGP,,,euros,,\nWAGP,,,dollars,,\n", "about the unit"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        labelled(tmp_path, "column,title,description,unit,value,label\n" + rows)


def test_repetitions_are_not_contradictions_and_those_of_other_columns_do_not_matter(tmp_path: Path) -> None:
    rows = "SEX,Sex,1,male\nSEX,Sex,2,female\nSEX,Sex,01,male\nELSE,a,,\nELSE,b,,\n"
    made = labelled(tmp_path, "column,title,value,label\n" + rows)
    assert (made.schema["SEX"].title, made.values) == ("Sex", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("column,lable\nSEX,x\n", r"column 'lable' of the codebook is unknown; did you mean 'label'"),
        ("column,title,title\n", "'title' of the codebook appears twice"),
        ("title,value\n", "no column 'column'"),
        ("column,title\n,Sex\n", "line 2 does not name a column"),
        ("column,label,value\nSEX,male,\n", "line 2 has the label 'male' without a value"),
        ("column,title\nSEX,Sex, that is\n", "line 2 has 3 cells, but the header 2; put texts in quotes"),
        ("NAME,SEX,C,1,Sex\nWHAT,SEX,C,1\n", "line 2 begins with 'WHAT' and has 4 cells"),
        ("NAME,SEX,C\n", "line 1 begins with 'NAME' and has 3 cells"),
        ("VAL,SEX,C,1,1,1,Male,more\n", "has 8 cells"),
        ("column;title\nSEX;Sex\n", 'look separated by ";"'),
        ('column,title\nSEX,"Sex\x07"\n', "control character"),
    ],
)
def test_a_file_that_is_not_a_codebook_is_refused_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((DataError, SchemaError), match=message) as refused:
        labelled(tmp_path, text)
    assert "codebook.csv" in str(refused.value)


def test_other_encodings_and_delimiters_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "codebook.csv"
    path.write_text("column;value;label\nTEN;own;propriété\n", encoding="latin-1")
    with pytest.raises(DataError, match=r"separated by|not text in the encoding"):
        Codebook.read(path)
    with pytest.raises(DataError, match=r"line 2 of .* is not text in the encoding utf-8"):
        Codebook.read(CsvFile(path, delimiter=";"))
    made = Codebook.read(CsvFile(path, encoding="latin-1", delimiter=";")).label(SCHEMA)
    assert made.schema["TEN"].labels == {"own": "propriété"}


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no codebook"):
        Codebook.read(tmp_path / "none.csv")
