"""From estimates to a table: draw every group's rows, and give each the values of the public row it was drawn from.

Everything here is post-processing: no private row, no budget. For the same release, public table, settings and seed
the table is the same (with the same versions of libraries: to the last cell), whatever the number of threads and
however often it was interrupted: estimates are kept in the release's folder once they have been made, and each
group's rows have a seed of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.errors import DataError, EstimationError
from prade.core.progress import Progress
from prade.data.cell_types import python_values
from prade.data.cells import is_text, texts_of
from prade.data.column import Column
from prade.data.copies import with_copied_share
from prade.data.declared_types import Frame, Like
from prade.data.encoding import Coded
from prade.data.matching import code_cells
from prade.data.public_table import PublicTable
from prade.data.tables import plain_cells
from prade.estimating.levels.cell_counts import follows
from prade.estimating.levels.estimates import Estimates
from prade.sampling.draw import draw, ordering
from prade.sampling.improve import PASSES, improve
from prade.sampling.seed_note import with_seed

if TYPE_CHECKING:
    import pyarrow as pa


MOST_ROWS = 2**31  # more than memory holds; with a tiny budget, noise can make estimated numbers this large


def drawn_table(
    estimates: Estimates,
    public: PublicTable,
    seed: int,
    *,
    passes: int = PASSES,
    threads: int = 1,
    like: Like | None = None,
    progress: Progress | None = None,
) -> Frame:
    """Rows drawn from estimates, with values of public rows: an Arrow table, or a frame like the public one.

    The columns are those of the list of groups, then the schema's. `passes` rounds of improvement bring the rows' one-
    and two-way tables closer to those of the estimates (see `prade.sampling.improve.improve`). `like` is "pyarrow",
    "pandas" or "polars", and by default the kind of the public table. `progress(what, done, all)` reports progress.
    """
    drawn, group = _drawn_rows(estimates, seed, passes=passes, threads=threads, progress=progress)
    decoder = public.decoder(estimates.plan.schema)
    numbers = estimates.support.numbers(drawn)
    values = decoder.decode(_coded(estimates, drawn), seed=seed, drawn=numbers)
    table = decoder.types.of_table(with_groups(estimates, values, group, public.typed))
    noted = with_seed(with_copied_share(table, decoder.copied(table)), seed)
    return decoder.types.framed(noted, like or public.like)


def sample_groups(
    estimates: Estimates, seed: int, *, passes: int = PASSES, threads: int = 1, progress: Progress | None = None
) -> tuple[Coded, NDArray[np.int64]]:
    """Coded rows of all groups of the last level, in random order within a group, and the group of each."""
    drawn, group = _drawn_rows(estimates, seed, passes=passes, threads=threads, progress=progress)
    return _coded(estimates, drawn), group


def _coded(estimates: Estimates, rows: Ints) -> Coded:
    """The codes of some rows of the support."""
    codes = estimates.support.public.prior.codes
    return Coded(estimates.plan.schema, {name: code[rows] for name, code in codes.items()})


def _drawn_rows(
    estimates: Estimates, seed: int, *, passes: int, threads: int, progress: Progress | None
) -> tuple[Ints, Ints]:
    """Rows of the support for all groups of the last level, in random order within a group, and the group of each."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise EstimationError(f"seed is {seed!r}: give a whole number, 0 or more")
    codes, schema = estimates.support.public.prior.codes, estimates.plan.schema
    order = ordering(codes, schema) if passes else None
    totals = np.round(estimates.totals).astype(np.int64)
    if (number := estimates.totals.sum()) > MOST_ROWS:
        raise EstimationError(
            f"the estimates have {number:,.0f} rows in all, and at most {MOST_ROWS:,} can be drawn", remedy="rows"
        )

    def task(group: int, weights: Floats) -> Any:
        own = int(np.random.SeedSequence([seed, group]).generate_state(1)[0])
        rows = draw(weights, int(totals[group]), own, order=order)
        if passes:
            rows = improve(codes, schema, weights, rows, order=order, seed=own, passes=passes)
        return np.random.default_rng(own).permutation(rows)

    drawn = []
    for rows in estimates.map(task, threads):
        drawn.append(rows)
        if progress is not None:
            progress("sampling", len(drawn), len(totals))
    return np.concatenate(drawn), np.repeat(np.arange(len(totals)), totals)


def with_groups(estimates: Estimates, values: pa.Table, group: Any, public: pa.Table) -> pa.Table:
    """The rows with their groups' columns before them; with an arbitrary person id if the plan has that column.

    Group columns are written as the public table writes them, where its type holds the listed values.
    """
    import pyarrow as pa

    plan = estimates.plan
    columns: dict[str, Any] = {}
    if plan.unit.person_id is not None:
        columns[plan.unit.person_id] = np.arange(1, len(group) + 1)
    first = np.unique(plan.groupings[-1].number, return_index=True)[1]
    for k, column in enumerate(plan.groups.columns):
        if follows(plan, column.name):
            known = column.name in public.column_names
            listed = typed_as_public(column, public[column.name]) if known else pa.array(column.values)
            columns[column.name] = listed.take(pa.array(plan.groups.codes[first, k][group]))
    for name in values.column_names:
        columns[name] = values[name]
    return pa.table(columns)


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
