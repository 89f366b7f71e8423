"""Synthetic rows in files: drawn and written batch by batch, so that the table is never held whole.

They are one file, or a data set: a parquet file for each batch, in a folder for each group of the first level. Both
have the same rows and types. A file or a data set is written beside its name and takes it when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from prade.core.arrays import Ints
from prade.core.errors import DataError
from prade.core.execution import Execution
from prade.core.files import replace_file, replace_folder
from prade.data.public.table import PublicTable
from prade.data.read.files import folder_name, noted_share, parts_of, schema_of
from prade.data.read.tables import SUFFIXES, file_format, format_to_write
from prade.estimating.levels.estimates import Estimates
from prade.planning.plan import Plan
from prade.release.derived_files import SYNTHETIC, SYNTHETIC_PARTS, keep_rows_as
from prade.release.release import Release
from prade.sampling.table import ROWS_OF_BATCH, Batch, TableOfRows, drawn_batches, numbers_of_rows, seed_of

Write = Callable[[pa.Table, int, int], None]  # the rows of a batch, its part, and how many are copies

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
        cls, release: Release, output: str | None = None, *, partitioned: bool = False, spreadsheet_safe: bool = False
    ) -> Output | None:
        """What was asked for; None for the release's own folder, where the number of rows decides.

        A name that ends in a slash, or is that of a folder, is a data set.
        """
        path = Path(output or release.path / SYNTHETIC_PARTS)
        folder = partitioned or output is None or output.endswith("/") or path.is_dir()
        if folder and spreadsheet_safe:
            raise DataError("spreadsheet-safe is for CSV files only; leave it out, or name a CSV file to write")
        if output is None:
            return cls(path, True) if partitioned else None
        if folder:
            if path.name.lower().endswith(SUFFIXES) and not path.is_dir():
                raise DataError(f"{output} is the name of a file; a data set needs the name of a folder")
            _need_replaceable(path)
        else:
            format_to_write(path, spreadsheet_safe=spreadsheet_safe)
        return cls(path, folder, spreadsheet_safe)


def write_drawn_rows(
    estimates: Estimates,
    public: PublicTable,
    seed: int,
    output: Output | None = None,
    *,
    rows_of_batch: int = ROWS_OF_BATCH,
    largest_file: int = LARGEST_FILE,
    execution: Execution = Execution(),
) -> RowFiles:
    """Draw the rows of all groups and write them; without `output`, to the release's folder with their record."""
    release, plan, sizes = estimates.release, estimates.plan, numbers_of_rows(estimates)
    tables = TableOfRows(plan, estimates.public, sizes, public, seed)
    if output is None:
        many = int(sizes.sum()) > largest_file
        output = Output(release.path / (SYNTHETIC_PARTS if many else SYNTHETIC), many)
    folders = folders_of(plan) if output.partitioned else {}
    batches = drawn_batches(
        estimates,
        seed,
        parts=list(folders.values()) or None,
        rows_of_batch=rows_of_batch,
        resume=True,
        execution=execution,
    )
    return write_batches(release, tables, batches, output, list(folders))


def write_batches(
    release: Release,
    tables: TableOfRows,
    batches: Iterable[Batch],
    output: Output | None = None,
    folders: Sequence[str] = (),
) -> RowFiles:
    """Write drawn rows; to the release's folder, where one file is the usual output, with their record."""
    output = output or Output(release.path / SYNTHETIC)
    own = output.path.resolve() in {(release.path / name).resolve() for name in (SYNTHETIC, SYNTHETIC_PARTS)}
    rows, copied = 0, 0
    with (
        keep_rows_as(release, output.path.name) if own else nullcontext(),
        _writer(output, tables.schema, folders) as write,
    ):
        for batch in batches:
            table, copies = tables.table(batch)
            write(table, batch.part, copies)
            rows, copied = rows + table.num_rows, copied + copies
    return RowFiles(output.path, rows, tables.schema.names, copied / rows if rows else 0.0)


def folders_of(plan: Plan) -> dict[str, Ints]:
    """The folders of a data set, and the groups of the last level in each: by the first level, or one for all."""
    last = plan.groupings[-1]
    first = next((each for each in plan.groupings if each.by), last)
    if not first.by or len(first) > MOST_FOLDERS:
        return {"": np.arange(len(last))}
    names = ("/".join(map(folder_name, first.by, values)) for values in first.values)
    return {name: np.flatnonzero(last.above(first) == number) for number, name in enumerate(names)}


# ---------------------------------------------------------------------- writers


@contextmanager
def _writer(output: Output, schema: pa.Schema, folders: Sequence[str]) -> Iterator[Write]:
    if output.partitioned:
        with replace_folder(output.path) as temporary, _parts(temporary, schema, folders) as write:
            yield write
    else:
        with replace_file(output.path) as temporary, _one_file(temporary, schema, output) as write:
            yield write


@contextmanager
def _parts(root: Path, schema: pa.Schema, folders: Sequence[str]) -> Iterator[Write]:
    """A data set: one file for each batch that has rows, or a single one without rows."""
    numbers = [0] * len(folders)

    def write_part(table: pa.Table, part: int, copied: int) -> None:
        folder = root / folders[part]
        folder.mkdir(parents=True, exist_ok=True)
        noted = table.replace_schema_metadata(noted_share(schema, copied, table.num_rows).metadata)
        pq.write_table(noted, folder / f"part-{numbers[part]:05d}.parquet")
        numbers[part] += 1

    yield lambda table, part, copied: write_part(table, part, copied) if table.num_rows else None
    if not any(numbers):
        write_part(schema.empty_table(), 0, 0)


@contextmanager
def _one_file(path: Path, schema: pa.Schema, output: Output) -> Iterator[Write]:
    """One file; what it notes about all rows is added at the end."""
    numbers = np.zeros(2, np.int64)  # of copies, of rows
    kind, safe = file_format(output.path), output.spreadsheet_safe
    with kind.writer(
        path, schema, lambda: noted_share(schema, *numbers.tolist()), spreadsheet_safe=safe
    ) as write_table:

        def write(table: pa.Table, part: int, copied: int) -> None:
            write_table(table)
            numbers[:] += copied, table.num_rows

        yield write


def _need_replaceable(path: Path) -> None:
    """Refuse to replace a folder that is not a data set of synthetic rows."""
    if path.is_file():
        raise DataError(f"{path} is a file; give another name for the folder of the data set")
    if not path.exists() or not any(path.iterdir()):
        return
    with suppress(DataError):
        files = {each for each in path.rglob("*") if each.is_file()}
        if files == set(parts_of(path)) and seed_of(schema_of(path)) is not None:
            return
    raise DataError(f"{path} has other files than a data set of synthetic rows; give another folder, or empty it")
