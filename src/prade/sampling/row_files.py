"""Synthetic rows in files: drawn and written batch by batch, so that the table is never held whole.

    synthetic.parquet, rows.csv       one file
    synthetic/                        a data set: a parquet file for each batch, in a folder for each group of the first
                                      level, as in synthetic/STATE-17/part-00000.parquet

Both have the same rows and the same types; in a data set the rows of one folder are together. A file or a data set is
written beside its name and takes it when it is complete.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from prade.core.arrays import Ints
from prade.core.errors import DataError
from prade.core.execution import Execution
from prade.core.files import replace_file, replace_folder
from prade.data.public.table import PublicTable
from prade.data.read.files import folder_name, noted_share, parts_of
from prade.data.read.tables import csv_cells, require_csv, table_suffix
from prade.estimating.levels.estimates import Estimates
from prade.planning.plan import Plan
from prade.release.derived_files import SYNTHETIC, SYNTHETIC_PARTS, keep_rows_as
from prade.release.release import Release
from prade.sampling.draw import PASSES, Search
from prade.sampling.table import Batch, TableOfRows, drawn_batches, numbers_of_rows

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_FILE = 5_000_000  # rows; a release's folder gets more of them as a data set, unless another name is given
MOST_FOLDERS = 1_000  # of groups of the first level; with more, the parts are side by side


@dataclass(frozen=True)
class RowFiles:
    """Where synthetic rows were written, and what the file or data set has."""

    path: Path
    rows: int
    columns: list[str]
    copied: float


@dataclass(frozen=True)
class Output:
    """Where synthetic rows are to be written, and how: checked before the work."""

    path: Path
    partitioned: bool = False
    spreadsheet_safe: bool = False

    @classmethod
    def of(
        cls,
        release: Release,
        output: str | None = None,
        *,
        partitioned: bool = False,
        spreadsheet_safe: bool = False,
    ) -> Output | None:
        """What was asked for; None for the release's own folder, where the number of rows decides.

        A name that ends in a slash, or is that of a folder, is a data set.
        """
        if output is None:
            if spreadsheet_safe:
                raise DataError("spreadsheet-safe is for CSV files only; leave it out, or name a CSV file to write")
            return cls(release.path / SYNTHETIC_PARTS, True) if partitioned else None
        path = Path(output)
        folder = partitioned or output.endswith("/") or path.is_dir()
        if folder and spreadsheet_safe:
            raise DataError(
                "spreadsheet-safe is for CSV files only; leave it out, because parquet files do not need it"
            )
        if folder:
            if path.name.lower().endswith((".csv", ".csv.gz", ".parquet")) and not path.is_dir():
                raise DataError(f"{output} is the name of a file; a data set needs the name of a folder")
            _need_replaceable(path)
        else:
            require_csv(path) if spreadsheet_safe else table_suffix(path)
        return cls(path, folder, spreadsheet_safe)


def write_drawn_rows(
    estimates: Estimates,
    public: PublicTable,
    seed: int,
    output: Output | None = None,
    *,
    passes: int = PASSES,
    execution: Execution = Execution(),
) -> RowFiles:
    """Draw the rows of all groups and write them; without `output`, to the release's folder with their record."""
    release, plan, sizes = estimates.release, estimates.plan, numbers_of_rows(estimates)
    made = TableOfRows(plan, estimates.public, sizes, public, seed)
    if output is None:
        many = int(sizes.sum()) > LARGEST_FILE
        output = Output(release.path / (SYNTHETIC_PARTS if many else SYNTHETIC), many)
    folders = folders_of(plan) if output.partitioned else None
    batches = drawn_batches(
        estimates,
        seed,
        search=Search(passes),
        parts=None if folders is None else list(folders.values()),
        keep=True,
        execution=execution,
    )
    own = (release.path / name for name in (SYNTHETIC, SYNTHETIC_PARTS))
    if output.path.resolve() in {path.resolve() for path in own}:
        with keep_rows_as(release, output.path.name):
            return _written(made, batches, output, list(folders or []))
    return _written(made, batches, output, list(folders or []))


def write_batches(release: Release, made: TableOfRows, batches: Iterable[Batch]) -> RowFiles:
    """Write rows that are drawn already to the release's folder, as one file with its record."""
    with keep_rows_as(release, SYNTHETIC):
        return _written(made, batches, Output(release.path / SYNTHETIC), [])


def _written(made: TableOfRows, batches: Iterable[Batch], output: Output, folders: list[str]) -> RowFiles:
    rows, copied = 0, 0
    with _writer(output, made.schema, folders) as writer:
        for batch in batches:
            table, copies = made.table(batch)
            writer.write(table, batch.part, copies)
            rows, copied = rows + table.num_rows, copied + copies
    return RowFiles(output.path, rows, made.schema.names, copied / rows if rows else 0.0)


def folders_of(plan: Plan) -> dict[str, Ints]:
    """The folders of a data set, and the groups of the last level in each: by the first level that has groups.

    There are none, but one for all, if the plan has no groups or very many at that level.
    """
    last = plan.groupings[-1]
    first = next((each for each in plan.groupings if each.by), last)
    if not first.by or len(first) > MOST_FOLDERS:
        return {"": np.arange(len(last))}
    above = last.above(first)
    return {
        "/".join(folder_name(name, value) for name, value in zip(first.by, values, strict=True)): np.flatnonzero(
            above == number
        )
        for number, values in enumerate(first.values)
    }


# ---------------------------------------------------------------------- writers


class _Writer(Protocol):
    def write(self, table: pa.Table, part: int, copied: int) -> None:
        """Write the rows of one batch."""


@contextmanager
def _writer(output: Output, schema: pa.Schema, folders: list[str]) -> Iterator[_Writer]:
    if output.partitioned:
        with replace_folder(output.path) as temporary:
            parts = _Parts(temporary, schema, folders)
            yield parts
            parts.close()
        return
    with replace_file(output.path) as temporary:
        if table_suffix(output.path) == ".parquet":
            with _OneFile.open(temporary, schema) as one:
                yield one
        else:
            with _Csv.open(temporary, schema, output) as lines:
                yield lines


class _Parts:
    """A data set: one file for each batch that has rows, or a single one without rows."""

    def __init__(self, folder: Path, schema: pa.Schema, folders: list[str]) -> None:
        self.folder = folder
        self.schema = schema
        self.folders = folders
        self.numbers = dict.fromkeys(range(len(folders)), 0)

    def write(self, table: pa.Table, part: int, copied: int) -> None:
        if table.num_rows:
            self._write(table, part, copied)

    def _write(self, table: pa.Table, part: int, copied: int) -> None:
        import pyarrow.parquet as pq

        folder = self.folder / self.folders[part]
        folder.mkdir(parents=True, exist_ok=True)
        noted = table.replace_schema_metadata(noted_share(self.schema, copied, table.num_rows).metadata)
        pq.write_table(noted, folder / f"part-{self.numbers[part]:05d}.parquet")
        self.numbers[part] += 1

    def close(self) -> None:
        if not any(self.numbers.values()):
            self._write(self.schema.empty_table(), 0, 0)


class _OneFile:
    """One parquet file, a row group for each batch; what it notes about all rows is added at the end."""

    def __init__(self, writer: object, schema: pa.Schema) -> None:
        self.writer = writer
        self.schema = schema
        self.rows = self.copied = 0

    @classmethod
    @contextmanager
    def open(cls, path: Path, schema: pa.Schema) -> Iterator[_OneFile]:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(path, schema) as writer:
            made = cls(writer, schema)
            yield made
            noted = noted_share(schema, made.copied, made.rows)
            # Arrow reads notes from its own copy of the schema.
            own = {b"ARROW:schema": base64.b64encode(noted.serialize().to_pybytes())}
            writer.add_key_value_metadata({**(noted.metadata or {}), **own})

    def write(self, table: pa.Table, part: int, copied: int) -> None:
        self.writer.write_table(table, row_group_size=max(1, table.num_rows))  # type: ignore[attr-defined]
        self.rows, self.copied = self.rows + table.num_rows, self.copied + copied


class _Csv:
    """One CSV file, perhaps compressed."""

    def __init__(self, writer: object, safe: bool) -> None:
        self.writer = writer
        self.safe = safe

    @classmethod
    @contextmanager
    def open(cls, path: Path, schema: pa.Schema, output: Output) -> Iterator[_Csv]:
        import pyarrow as pa
        import pyarrow.csv as csv

        compression = "gzip" if table_suffix(output.path) == ".csv.gz" else None
        written = csv_cells(schema.empty_table(), spreadsheet_safe=output.spreadsheet_safe).schema
        with (
            pa.output_stream(str(path), compression=compression) as stream,
            csv.CSVWriter(stream, written) as writer,
        ):
            yield cls(writer, output.spreadsheet_safe)

    def write(self, table: pa.Table, part: int, copied: int) -> None:
        self.writer.write_table(csv_cells(table, spreadsheet_safe=self.safe))  # type: ignore[attr-defined]


def _need_replaceable(path: Path) -> None:
    """Refuse to replace a folder that is not a data set of synthetic rows."""
    from prade.data.read.files import schema_of
    from prade.sampling.table import seed_of

    if path.is_file():
        raise DataError(f"{path} is a file; give another name for the folder of the data set")
    if not path.exists() or not any(path.iterdir()):
        return
    files = [each for each in path.rglob("*") if each.is_file()]
    try:
        ours = set(files) == set(parts_of(path)) and seed_of(schema_of(path)) is not None
    except DataError:
        ours = False
    if not ours:
        raise DataError(f"{path} has other files than a data set of synthetic rows; give another folder, or empty it")
