"""A format of table files is one entry in `FORMATS`: all that handles files takes it from there."""

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from prade.data.read import tables
from prade.data.read.csv import DEFAULT_FORMAT
from prade.data.read.tables import FORMATS, FileFormat, file_format, format_to_write, read_table, write_table
from prade.measuring.source import open_source

TABLE = pa.table({"A": [1, 2, 3], "B": ["x", None, "z"]})


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.suffix)
def test_every_format_is_written_read_and_counted_from(kind, tmp_path):
    path = tmp_path / f"rows{kind.suffix}"
    assert format_to_write(path) is file_format(str(path).upper()) is kind
    write_table(TABLE, path)
    assert read_table(path).equals(TABLE)
    assert read_table(path, ["B"]).equals(TABLE.select(["B"]))
    assert kind.names(path, DEFAULT_FORMAT) == ["A", "B"]
    with open_source(path, rows_per_batch=2) as source:
        cells = [cell.as_py() for batch in source.read(["A"]) for cell in batch["A"]]
    assert [int(cell) for cell in cells] == [1, 2, 3]


class Feather(FileFormat):
    """What a new format takes."""

    def names(self, path, form):
        return feather.read_table(path).column_names

    def read(self, path, chosen, guess, form):
        return feather.read_table(path, columns=chosen(self.names(path, form)))

    def batches(self, path, names, form, rows):
        for batch in feather.read_table(path, columns=list(names)).to_batches(rows):
            yield batch.columns

    def writer(self, path, schema, noted=None, *, spreadsheet_safe=False):
        raise NotImplementedError


def test_a_new_format_is_one_more_entry(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "FORMATS", (*FORMATS, Feather(".feather", "feather", typed=True)))
    feather.write_feather(TABLE, tmp_path / "rows.feather")
    assert read_table(tmp_path / "rows.feather", ["B"]).equals(TABLE.select(["B"]))
    with open_source(tmp_path / "rows.feather") as source:
        assert [cell.as_py() for batch in source.read(["A"]) for cell in batch["A"]] == [1, 2, 3]
