"""Private CSV files: every record counts, whatever bytes are in it, and no record changes how others are read."""

import csv
import datetime
import io
from collections import Counter

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prade import Column, CsvFile, Unit
from prade.data.read.csv import BLOCK, CsvFormat, csv_batches, header_of
from worlds.counting import counted, sqlite_file

NAMES = ["A", "B", "C"]
NOT_TEXT = "\ufffd"
quickly = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def rows_read(path, encoding="utf-8", delimiter=",", block=BLOCK):
    """The rows as prade reads them before it codes them, missing cells as None; their order does not matter."""
    rows = Counter()
    form = CsvFormat(encoding, delimiter)
    header = header_of(path, form)
    for batch in csv_batches(str(path), form, len(header), range(len(header)), block=block):
        columns = [cells.to_pylist() for cells in batch]
        rows.update(zip(*([_text(cell) for cell in column] for column in columns), strict=True))
    return rows


def _text(cell):
    """UTF-8 is still bytes here."""
    if not isinstance(cell, bytes):
        return cell
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return NOT_TEXT + cell.hex()


def expected_rows(content, encoding="utf-8", delimiter=",", columns=3):
    """The same by another way: on characters of Latin-1, which stand for bytes; doubled quotes become a mark first."""
    rows = Counter()
    for line in content.decode("latin-1").split("\n")[1:]:
        line = line[:-1] if line[-1:] == "\r" else line
        if line == "" and columns > 1:
            continue
        cells, rest = [], line
        while rest is not None:
            body, closed, after = rest[1:].replace('""', "\ue000").partition('"')
            if rest[:1] == '"' and closed and after[:1] in ("", delimiter):
                cell, rest = body.replace("\ue000", '"'), after[1:].replace("\ue000", '""') if after else None
            else:
                cell, more, rest = rest.partition(delimiter)
                rest = rest if more else None
            cells.append(cell)
        cells = [*cells, *[""] * columns][:columns]
        rows.update([tuple(_decoded(cell.encode("latin-1"), encoding) for cell in cells)])
    return rows


def _decoded(raw, encoding):
    try:
        return raw.decode(encoding) or None
    except UnicodeDecodeError:
        return NOT_TEXT + raw.hex()


# A byte takes the place of @, and the delimiter of the comma.
RECORDS = r'''
@f,m,1 f@,m,1 a@b,m,1 f,@m,1 f,m@,1 f,a@b,1 f,m,@1 f,m,1@ f,m,a@b @ f,@,1 f,m,@ f@m@1 f,m,1,@ @,@,@
"@f",m,1 "f@",m,1 "a@b",m,1 f,"@",1 @"f",m,1 "f"@,m,1 f,m,"1@" f,m,"1"@ f,m,@"1" "@","@","@" f,"m,@",1
f,"""@""",1 f,""@"",1 f,"m@,1'''


def bytes_everywhere(delimiter):
    lines = [
        record.replace(",", delimiter).encode().replace(b"@", bytes([byte]))
        for record in [*RECORDS.split(), "f,m,1@\r", "@\r"]
        for byte in range(256)
    ]
    return b"\n".join([delimiter.join(NAMES).encode(), *lines, b""])


@pytest.mark.parametrize(("encoding", "delimiter"), [("utf-8", ","), ("latin-1", "\t"), ("shift_jis", ";")])
def test_every_byte_in_every_position_is_one_record(encoding, delimiter, tmp_path):
    content = bytes_everywhere(delimiter)
    (tmp_path / "rows.csv").write_bytes(content)
    found = rows_read(tmp_path / "rows.csv", encoding, delimiter)
    assert found == expected_rows(content, encoding, delimiter)
    lines = content.split(b"\n")[1:]
    assert found.total() == sum(line not in (b"", b"\r") for line in lines)


@pytest.mark.parametrize("block", [1, 2, 7, 64, 1000])
def test_where_a_block_ends_does_not_matter(block, tmp_path):
    text = 'A,B,C\n1,"a, b",3\r\n"u""v",,\n\n4,"x\n5,y",6\r\n7,8'
    (tmp_path / "rows.csv").write_text(text, newline="")
    assert rows_read(tmp_path / "rows.csv", block=block) == Counter(
        [("1", "a, b", "3"), ('u"v', None, None), ("4", '"x', None), ("5", 'y"', "6"), ("7", "8", None)]
    )


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\r\n", b"x", b"x\n", b"\n\nx\r\n", b'"x"\n""\n"\n', b"x\ry\n", b"\xff"]
)
def test_a_file_with_one_column(content, tmp_path):
    """Empty lines are empty cells there; what comes after the last line end is a record if it is not empty."""
    (tmp_path / "rows.csv").write_bytes(b"A\n" + content)
    expected = expected_rows(b"A\n" + content, columns=1)
    if content[-1:] in (b"", b"\n"):
        expected -= Counter({(None,): 1})
    assert rows_read(tmp_path / "rows.csv") == expected


LINES = st.lists(st.binary(max_size=12), max_size=6).map(lambda lines: [line.replace(b"\n", b"") for line in lines])
ENCODINGS = st.sampled_from(["utf-8", "cp1252", "shift_jis"])
MARKED = st.lists(st.text(st.sampled_from('a"",,\r\x00é'), max_size=12).map(str.encode), max_size=6)


@quickly
@given(
    before=LINES | MARKED,
    line=LINES | MARKED,
    after=LINES | MARKED,
    block=st.sampled_from([3, 20, 2**20]),
    encoding=ENCODINGS,
)
def test_one_line_more_is_one_record_more(before, line, after, block, encoding, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "one-line-more.csv"
    found = []
    for lines in ([*before, *after], [*before, *line[:1], *after], line[:1]):
        path.write_bytes(b"\n".join([b"A,B,C", *lines, b""]))
        found.append(rows_read(path, encoding, block=block))
    assert found[1] == found[0] + found[2]
    assert found[2].total() == sum(each not in (b"", b"\r") for each in line[:1])


CELLS = st.text(st.sampled_from('ab",;\r é\x00'), max_size=6)


@quickly
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8),
    delimiter=st.sampled_from(",;\t"),
    quoting=st.sampled_from(["minimal", "all"]),
)
def test_a_file_that_a_csv_writer_wrote(rows, delimiter, quoting, tmp_path_factory):
    """Python's own reader agrees."""
    path = tmp_path_factory.getbasetemp() / "written.csv"
    style = {"delimiter": delimiter, "quoting": csv.QUOTE_ALL if quoting == "all" else csv.QUOTE_MINIMAL}
    text = io.StringIO(newline="")
    csv.writer(text, **style).writerows([NAMES, *rows])
    path.write_bytes(text.getvalue().encode())
    expected = Counter(
        tuple(cell or None for cell in row)
        for row in list(csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter))[1:]
    )
    assert expected.total() == len(rows)
    assert rows_read(path, delimiter=delimiter) == expected


def test_quotes_of_two_persons_do_not_hide_those_between_them(tmp_path):
    lines = ['1,"a,x', *["2,b,y"] * 1000, '3,c",z']
    (tmp_path / "rows.csv").write_text("\n".join(["A,B,C", *lines]))
    assert rows_read(tmp_path / "rows.csv") == Counter(
        {("1", '"a', "x"): 1, ("2", "b", "y"): 1000, ("3", 'c"', "z"): 1}
    )


def test_an_open_quote_does_not_change_which_cells_of_the_next_record_are_in_quotes(tmp_path):
    (tmp_path / "rows.csv").write_text('A,B,C\n1,"x,2\na,"b,c,d",e\n3,"y,4\n')
    assert rows_read(tmp_path / "rows.csv") == Counter([("1", '"x', "2"), ("a", "b,c,d", "e"), ("3", '"y', "4")])


TOWNS = ["Zürich", "Málaga", "Orléans"]


@pytest.mark.parametrize(("encoding", "expected"), [("latin-1", [50, 50, 50, 150, 0]), ("utf-8", [0, 0, 0, 150, 150])])
def test_a_latin_1_file_loses_no_row(encoding, expected, tmp_path):
    """Nor does a wrong declaration lose one."""
    lines = [f"{town};3\nBern;70" for town in TOWNS * 50]
    (tmp_path / "private.csv").write_bytes("\n".join(["TOWN;AGE", *lines, ""]).encode("latin-1"))
    column = Column("TOWN", "categorical", values=(*TOWNS, "Bern"), missing=True)
    assert counted(CsvFile(tmp_path / "private.csv", encoding, ";"), column).tolist() == [expected]


ODD = [b"f", b"m", b"\xff", b"f\xe9", b"f\x00", b"2020-01-01\xff", b"12\xff", b"\xed\xa0\x80"]
PERSONS = [b"p", b"q", b"\xff", b"\xfe", b"\xff\x00", b"x", b"y", b"z"]


def texts(cells):
    return pa.array(cells, pa.binary()).cast(pa.string(), safe=False)


def surrogates(cells):
    return pd.Series([cell.decode(errors="surrogateescape") for cell in cells], dtype=object)


def sqlite_rows(folder):
    change = "UPDATE people SET X = CAST(X AS TEXT), ID = CAST(ID AS TEXT)"
    return sqlite_file(folder / "rows.sqlite", "X TEXT, ID TEXT", zip(ODD, PERSONS, strict=True), change)


def parquet_rows(folder):
    pq.write_table(pa.table({"X": texts(ODD), "ID": texts(PERSONS)}), folder / "rows.parquet")
    return folder / "rows.parquet"


def csv_rows(folder):
    lines = [b",".join(pair) for pair in zip(ODD, PERSONS, strict=True)]
    (folder / "rows.csv").write_bytes(b"\n".join([b"X,ID", *lines]))
    return folder / "rows.csv"


@pytest.mark.parametrize(
    "made",
    [
        parquet_rows,
        csv_rows,
        sqlite_rows,
        lambda folder: pa.table({"X": texts(ODD), "ID": texts(PERSONS)}),
        lambda folder: pa.table({"X": texts(ODD).dictionary_encode(), "ID": texts(PERSONS).dictionary_encode()}),
        lambda folder: pd.DataFrame({"X": surrogates(ODD), "ID": surrogates(PERSONS)}),
        lambda folder: pl.DataFrame({"X": ODD, "ID": PERSONS}),
    ],
    ids=["parquet", "csv", "sqlite", "arrow", "dictionary", "surrogates", "polars"],
)
@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("X", "categorical", values=("f", "m"), missing=True), [1, 1, 6]),
        (Column("X", "categorical", values=("f", "m"), other="m"), [1, 7]),
        (Column("X", "numeric", edges=(5,), missing=True), [0, 0, 8]),
        (Column("X", "numeric", edges=(datetime.date(2020, 1, 1),), missing=True), [0, 0, 8]),
        (Column("X", "categorical", values=(False, True), missing=True), [0, 0, 8]),
    ],
    ids=["texts", "texts, another policy", "numbers", "dates", "truths"],
)
def test_text_that_is_not_unicode_follows_its_columns_policy(made, column, expected, tmp_path):
    private = made(tmp_path)
    assert counted(private, column).tolist() == [expected]
    # Bytes that differ are different persons.
    assert counted(private, column, None, Unit(1, person_id="ID")).sum() == len(PERSONS)
