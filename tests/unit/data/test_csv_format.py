"""Declared formats of CSV files: which are known, and what a header says about a wrong one."""

import gzip

import pytest

from prade import CsvFile
from prade.core.errors import DataError
from prade.data.read.csv import CsvFormat, header_of
from prade.data.read.tables import read_table


@pytest.mark.parametrize(
    ("given", "encoding"),
    [("UTF-8", "utf-8"), ("utf-8-sig", "utf-8"), ("Latin-1", "iso8859-1"), ("cp1252", "cp1252"), ("euc_jp", "euc_jp")],
)
def test_known_encodings(given, encoding):
    assert CsvFormat(given).encoding == encoding
    assert all(CsvFormat(given, tab).delimiter == "\t" for tab in ("tab", r"\t", "\t"))


@pytest.mark.parametrize(
    "encoding",
    [
        *["utf-16", "utf-16-le", "utf-32", "utf-7", "cp037", "hz", "iso2022_jp", "iso2022_kr", "unicode_escape"],
        *["raw_unicode_escape", "rot13", "base64", "zlib", "idna", "punycode", "undefined", "", "a\0b", None],
    ],
)
def test_encodings_in_which_a_delimiter_could_be_something_else_are_refused(encoding):
    with pytest.raises(DataError, match="encoding is"):
        CsvFormat(encoding)


@pytest.mark.parametrize(("encoding", "delimiter"), [("shift_jis", "|"), ("big5", "|"), ("johab", ";"), ("gbk", "|")])
def test_a_delimiter_that_ends_characters_of_the_encoding_is_refused(encoding, delimiter):
    with pytest.raises(DataError, match=f"encoding is '{encoding}'"):
        CsvFormat(encoding, delimiter)
    assert CsvFormat(encoding, ",").delimiter == ","


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "a", "7", "§", None, 7])
def test_delimiters_that_are_none(delimiter):
    with pytest.raises(DataError, match="delimiter is"):
        CsvFormat(delimiter=delimiter)


def test_a_header_with_a_byte_order_mark(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfA,B\n1,2\n"))
    assert header_of(tmp_path / "t.csv.gz", CsvFormat()) == ["A", "B"]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_public_table_in_another_format(suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    content = "PLACE;AGE\nZürich;3\nOrléans;\n".encode("latin-1")
    path.write_bytes(gzip.compress(content) if suffix == ".csv.gz" else content)
    expected = {"PLACE": ["Zürich", "Orléans"], "AGE": [3, None]}
    assert read_table(CsvFile(path, "latin-1", ";")).to_pydict() == expected
    assert read_table(CsvFile(path, "latin-1", ";"), guess=False)["PLACE"].to_pylist() == expected["PLACE"]
    with pytest.raises(DataError, match="line 2 is the first that is not"):
        read_table(CsvFile(path, delimiter=";"))
    with pytest.raises(DataError, match='look separated by ";"'):
        read_table(path)
    path.write_bytes(gzip.compress(b"") if suffix == ".csv.gz" else b"")
    with pytest.raises(DataError, match="is empty"):
        read_table(path)
