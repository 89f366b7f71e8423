"""From estimates to a table: draw every group's rows, and give each the values of the public row it was drawn from.

Everything here is post-processing: no private row, no budget. For the same release, public table, settings and seed
the table is the same (with the same versions of libraries: to the last cell), whatever the number of workers, the size
of batches and however often it was interrupted: estimates are kept in the release's folder once they have been made,
and each group's rows have a seed of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Chances, Ints
from prade.core.errors import DataError
from prade.core.progress import Progress
from prade.core.workers import Workers
from prade.data.cell_types import python_values
from prade.data.cells import is_text, texts_of
from prade.data.column import Column
from prade.data.encoding import Coded
from prade.data.matching import code_cells
from prade.data.public.table import PublicTable
from prade.data.read.files import noted_share
from prade.data.read.frames import Frame, Like
from prade.data.read.tables import plain_cells
from prade.estimating.levels.cell_counts import follows
from prade.estimating.levels.estimates import Estimates
from prade.sampling.draw import check_whole
from prade.sampling.group_draws import Batch, drawn_batches, numbers_of_rows
from prade.sampling.improve import PASSES, Search
from prade.sampling.seed_note import with_seed

if TYPE_CHECKING:
    import pyarrow as pa


def drawn_table(
    estimates: Estimates,
    public: PublicTable,
    seed: int,
    *,
    passes: int = PASSES,
    workers: Workers | None = None,
    like: Like | None = None,
    progress: Progress | None = None,
) -> Frame:
    """Rows drawn from estimates, with values of public rows: an Arrow table, or a frame like the public one.

    The columns are those of the list of groups, then the schema's. `passes` rounds of improvement bring the rows' one-
    and two-way tables closer to those of the estimates (see `prade.sampling.improve.improve`). `like` is "pyarrow",
    "pandas" or "polars", and by default the kind of the public table. `progress(what, done, all)` reports progress.
    """
    import pyarrow as pa

    made = TableOfRows(estimates, public, seed)
    batches = drawn_batches(
        estimates, seed, search=Search(passes), workers=workers or Workers(), keep=True, progress=progress
    )
    tables, copied = zip(*(made.table(batch) for batch in batches), strict=True)
    table = pa.concat_tables(tables)
    if len(tables) > 1:
        table = table.unify_dictionaries()
    noted = table.replace_schema_metadata(noted_share(made.schema, sum(copied), table.num_rows).metadata)
    return made.decoder.types.framed(noted, like or public.like)


def sample_groups(
    estimates: Estimates,
    seed: int,
    *,
    passes: int = PASSES,
    threads: int = 1,
    progress: Progress | None = None,
) -> tuple[Coded, NDArray[np.int64]]:
    """Coded rows of all groups of the last level, in random order within a group, and the group of each."""
    search, workers = Search(passes), Workers(threads)
    batches = list(drawn_batches(estimates, seed, search=search, workers=workers, progress=progress))
    coded = _coded(estimates, np.concatenate([batch.rows for batch in batches]))
    return coded, np.concatenate([batch.group for batch in batches])


def _coded(estimates: Estimates, rows: NDArray[Any]) -> Coded:
    """The codes of some public rows."""
    return Coded(estimates.plan.schema, {name: code[rows] for name, code in estimates.public.prior.codes.items()})


class TableOfRows:
    """Turns batches of drawn rows into tables of one schema, whatever a batch has in it.

    A row's cells and its person id do not depend on the batch that it is in.
    """

    def __init__(self, estimates: Estimates, public: PublicTable, seed: int) -> None:
        check_whole(seed=seed)
        self.estimates = estimates
        self.seed = seed
        self.decoder = public.decoder(estimates.plan.schema)
        self._groups = group_cells(estimates, public)
        totals = numbers_of_rows(estimates)
        self._before = np.cumsum(totals) - totals
        self.schema = self._schema()

    def table(self, batch: Batch) -> tuple[pa.Table, int]:
        """The rows of a batch with values of public rows, and how many are copies of one public row."""
        drawn = batch.rows.astype(np.int64)
        coded = _coded(self.estimates, drawn)
        table = self._table(batch.groups, batch.sizes, drawn, coded).cast(self.schema)
        return table, int(self.decoder.copied(table, coded, drawn).sum())

    def rows_of(self, groups: Ints, sizes: Ints, drawn: Ints) -> pa.Table:
        """The rows of some groups, one group after the other, with values of the public rows of these numbers."""
        return self._table(groups, sizes, drawn, _coded(self.estimates, drawn)).cast(self.schema)

    def _table(self, groups: Ints, sizes: Ints, drawn: Ints, coded: Coded) -> pa.Table:
        import pyarrow as pa

        chances = Chances.of_groups(self.seed, groups.tolist(), sizes.tolist())
        values: Any = self.decoder.decode(coded, seed=chances, drawn=drawn)
        group = np.repeat(groups, sizes)
        columns: dict[str, Any] = {}
        if (person := self.estimates.plan.unit.person_id) is not None:
            within = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            columns[person] = self._before[group] + within + 1  # an arbitrary person id
        columns |= {name: cells.take(pa.array(group)) for name, cells in self._groups.items()}
        columns |= {name: values[name] for name in values.column_names}
        return self.decoder.types.of_table(pa.table(columns))

    def _schema(self) -> pa.Schema:
        """The schema of all batches: that of public rows that have, together, every code of every column."""
        rows = set[int]()
        for name, codes in self.estimates.public.prior.codes.items():
            last = np.full(self.estimates.plan.schema.size(name), -1)
            last[codes] = np.arange(len(codes))
            rows.update(last[last >= 0].tolist())
        every = np.array(sorted(rows), np.int64)
        made = self._table(np.zeros(1, np.int64), np.array([len(every)]), every, _coded(self.estimates, every))
        return with_seed(made, self.seed).schema


def group_cells(estimates: Estimates, public: PublicTable) -> dict[str, pa.Array]:
    """The cells of the groups' columns, one for each group of the last level.

    They are written as the public table writes them, where its type holds the listed values.
    """
    import pyarrow as pa

    plan = estimates.plan
    first = np.unique(plan.groupings[-1].number, return_index=True)[1]
    found = {}
    for k, column in enumerate(plan.groups.columns):
        if follows(plan, column.name):
            known = column.name in public.typed.column_names
            listed = typed_as_public(column, public.typed[column.name]) if known else pa.array(column.values)
            found[column.name] = listed.take(pa.array(plan.groups.codes[first, k]))
    return found


def typed_as_public(column: Column, public: pa.ChunkedArray) -> pa.Array:
    """The listed values in the type of the public cells, if they are the same values there by the rule of measuring."""
    import pyarrow as pa

    listed, seen = pa.array(column.values), plain_cells(public).unique()
    try:
        typed = _spelt(column, listed, seen) if is_text(seen.type) else listed.cast(seen.type)
        codes, fits = code_cells(column, typed)
    except (pa.ArrowException, DataError):  # a number that the type has no room for, a text that is not a number
        return listed
    return typed if fits.all() and np.array_equal(codes, np.arange(len(listed))) else listed


def _spelt(column: Column, listed: pa.Array, seen: pa.Array) -> pa.Array:
    """The listed values as texts: as the public table spells them; one that it lacks with leading zeros if it has any.

    A list of states read from a CSV file may hold the numbers 6 and 17, where the tables have the texts "06" and "17".
    """
    import pyarrow as pa

    spelling = dict(zip(range(len(listed)), texts_of(listed).to_pylist(), strict=True))
    texts = seen.drop_null()
    if not is_text(listed.type):
        known = [text for text in python_values(texts) if text.isdecimal()]
        if any(text.startswith("0") for text in known) and len({*map(len, known)}) == 1:
            spelling = {code: text.zfill(len(known[0])) for code, text in spelling.items()}
        codes, fits = code_cells(column, texts)
        spelling |= {int(code): text.as_py() for code, text, fit in zip(codes, texts, fits, strict=True) if fit}
    return pa.array(list(spelling.values()), seen.type)
