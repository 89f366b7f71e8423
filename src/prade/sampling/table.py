"""From estimates to a table: rows are drawn group by group, and have the values of the public rows they are drawn from.

Everything here is post-processing: no private row, no budget. For the same release, public table, settings and seed the
table is the same, whatever the number of workers, the size of batches and however often it was interrupted. A task is
small: the number of a group goes out, the numbers of the public rows drawn for it come back, and each group has a seed
of its own. Where rows are written in several batches, those that are finished wait in the release's folder until all
are: a run that was killed goes on.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.arrays import Chances, Ints, shared_out
from prade.core.errors import DataError, EstimationError, PradeError, closest
from prade.core.execution import Execution, Shared, WorkersError
from prade.core.numbers import whole
from prade.data.declare.column import Column
from prade.data.public.joint import Coded
from prade.data.public.public import Public
from prade.data.public.table import PublicTable
from prade.data.read.cells import is_text, plain_cells, python_values, texts_of
from prade.data.read.coding import code_cells
from prade.data.read.files import noted_share
from prade.data.read.frames import Frame, Like
from prade.estimating.levels.cell_counts import follows
from prade.estimating.levels.estimates import Estimates, inputs_hash, kept_estimates
from prade.planning.plan import Plan
from prade.release.derived_files import UNFINISHED_ROWS, FinishedBatches, keep_batch, run_key
from prade.release.release import Release
from prade.sampling.draw import SortedRows, check_whole, sample, tables_first

MOST_ROWS = 2**31  # more than files and memories hold; with a tiny budget, noise can make estimated numbers this large
ROWS_OF_BATCH = 100_000  # a batch has at least that many rows, unless nothing is left; it is held in memory whole
DRAWN_AHEAD = 16  # groups for each worker, which draws them while a batch is written
SEED = b"prade:seed"  # notes in a table's schema
METHOD = b"prade:method"  # that drew the rows, if it is not prade's own

Rows = NDArray[Any]  # numbers of public rows, unsigned and as narrow as possible


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive groups of one part of the result, the number of rows of each, and their rows one after the other."""

    part: int
    groups: Ints
    sizes: Ints
    rows: Rows


class Drawer:
    """Draws the rows of single groups; what all groups share is made once."""

    def __init__(self, estimates: Estimates, seed: int) -> None:
        self.estimates, self.seed = estimates, seed
        codes, plan = estimates.support.public.prior.codes, estimates.plan
        self.sorted_rows = SortedRows(codes, plan.schema, tables_first(plan.targets, plan.schema))

    def rows(self, group: int, number: int) -> Rows:
        """Public rows drawn for a group of the last level, in random order."""
        own = int(np.random.SeedSequence([self.seed, group]).generate_state(1)[0])
        weights = self.estimates.weights(group)
        rows = sample(self.sorted_rows, weights, number, own)
        return self.estimates.support.numbers(rows).astype(np.min_scalar_type(len(self.estimates.public)))


def drawn_batches(
    estimates: Estimates,
    seed: int,
    *,
    parts: Sequence[Ints] | None = None,
    rows_of_batch: int = ROWS_OF_BATCH,
    resume: bool = False,
    execution: Execution = Execution(),
) -> Iterator[Batch]:
    """The rows of all groups of the last level, in random order within a group; no batch mixes two `parts`.

    With `resume`, several batches begin with those of an interrupted run; all are kept until the last one is used.
    """
    check_whole(seed=seed)
    seed, release, totals = int(seed), estimates.release, numbers_of_rows(estimates)
    batches = [
        (part, each)
        for part, groups in enumerate([np.arange(len(totals))] if parts is None else parts)
        for each in np.split(groups, np.flatnonzero(np.diff(_rows_before(totals[groups]) // rows_of_batch)) + 1)
    ]
    resume = resume and len(batches) > 1 and os.access(release.path, os.W_OK)
    hashed = fingerprint(estimates) if resume or execution.executor is not None else ""
    shared = Shared(Drawer(estimates, seed), opened_drawer, str(release.path.absolute()), hashed, seed)
    targets = tables_first(estimates.plan.targets, estimates.plan.schema)
    key = run_key(hashed, seed, targets, [[each.tolist(), totals[each].tolist()] for _, each in batches])
    folder = FinishedBatches.open(release.path / UNFINISHED_ROWS, key) if resume else nullcontext()
    with folder as finished:
        known = {} if finished is None else {path.name.split(".")[0]: path for path in finished.paths(".npy")}
        new = [each for number, (_, each) in enumerate(batches) if str(number) not in known]
        tasks = [(group, int(totals[group])) for each in new for group in each.tolist() if totals[group]]
        drawn, done = execution.map(partial(_drawn, shared), tasks, ahead=DRAWN_AHEAD), 0
        for number, (part, each) in enumerate(batches):
            path = known.get(str(number))
            pieces: list[Rows] = [np.zeros(0, np.min_scalar_type(len(estimates.public)))]
            for size in totals[each]:
                if size and path is None:
                    pieces.append(next(drawn))
                done += 1
                execution.tell("sampling", done, len(totals))
            rows = np.concatenate(pieces) if path is None else np.load(path)
            if finished is not None and path is None:
                with keep_batch(finished.folder, str(number), ".npy") as temporary, open(temporary, "wb") as file:
                    np.save(file, rows)
            yield Batch(part, each, totals[each], rows)
        if finished is not None:
            finished.remove()


def _rows_before(sizes: Ints) -> Ints:
    return np.asarray(np.cumsum(sizes) - sizes)


def numbers_of_rows(estimates: Estimates) -> Ints:
    """How many rows each group of the last level gets."""
    if (number := estimates.totals.sum()) > MOST_ROWS:
        raise EstimationError(
            f"the estimates have {number:,.0f} rows in all, and at most {MOST_ROWS:,} can be drawn", remedy="rows"
        )
    return np.round(estimates.totals).astype(np.int64)


# ---------------------------------------------------------------------- workers


def _drawn(shared: Shared[Drawer], task: tuple[int, int]) -> Rows:
    return shared.value.rows(*task)


def opened_drawer(folder: str, wanted: str, seed: int) -> Drawer:
    """What a worker in another process draws with: the estimates that the release's folder keeps."""
    if not Path(folder).is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    estimates = kept_estimates(Release.load(folder))
    if fingerprint(estimates) != wanted:
        raise WorkersError(
            f"the estimates in {folder} are not those to draw from: workers in other processes use the ones that the "
            "folder keeps, so call prade.estimate with these settings first"
        )
    return Drawer(estimates, seed)


def fingerprint(estimates: Estimates) -> str:
    """A hash of all that the distributions of the last level depend on."""
    digest = hashlib.sha256(inputs_hash(estimates.release, estimates.public).encode())
    digest.update(json.dumps(asdict(estimates.settings), sort_keys=True).encode())
    digest.update(estimates.totals.tobytes())
    for each in estimates.made:
        digest.update(np.ascontiguousarray(each.tilt.multipliers).tobytes() + (each.tilt.emptied or b"-"))
    return digest.hexdigest()


# ---------------------------------------------------------------------- tables of drawn rows


def drawn_table(
    estimates: Estimates, public: PublicTable, seed: int, like: Like | None = None, execution: Execution = Execution()
) -> Frame:
    """Rows drawn from estimates, with values of public rows: an Arrow table, or a frame like the public one.

    The columns are those of the list of groups, then the schema's. `like` is "pyarrow", "pandas" or
    "polars", and by default the kind of the public table.
    """
    rows = TableOfRows(estimates.plan, estimates.public, numbers_of_rows(estimates), public, seed)
    batches = drawn_batches(estimates, seed, execution=execution)
    tables, copied = zip(*(rows.table(batch) for batch in batches), strict=True)
    table = pa.concat_tables(tables)
    if len(tables) > 1:
        table = table.unify_dictionaries()
    noted = table.replace_schema_metadata(noted_share(rows.schema, sum(copied), table.num_rows).metadata)
    return rows.decoder.types.framed(noted, like or public.like)


def sample_groups(estimates: Estimates, seed: int, *, execution: Execution = Execution()) -> tuple[Coded, Ints]:
    """Coded rows of all groups of the last level, in random order within a group, and the group of each."""
    batches = list(drawn_batches(estimates, seed, execution=execution))
    coded = _coded(estimates.public, np.concatenate([batch.rows for batch in batches]))
    return coded, np.concatenate([np.repeat(batch.groups, batch.sizes) for batch in batches])


def _coded(public: Public, rows: NDArray[Any]) -> Coded:
    return Coded(public.prior.schema, {name: code[rows] for name, code in public.prior.codes.items()})


class TableOfRows:
    """Turns batches of drawn rows into tables of one schema; a row's cells do not depend on the batch that it is in.

    `sizes` are the numbers of rows of the groups of the last level. The schema names the `method` if it is not prade's.
    """

    def __init__(self, plan: Plan, rows: Public, sizes: Ints, public: PublicTable, seed: int, method: str = "") -> None:
        check_whole(seed=seed)
        self.plan, self.rows, self.seed, self.method = plan, rows, seed, method
        self.decoder = public.decoder(plan.schema)
        self._groups = group_cells(plan, public)
        self._before = _rows_before(sizes)
        self.schema = self._schema()

    def table(self, batch: Batch) -> tuple[pa.Table, int]:
        """The rows of a batch with values of public rows, and how many are copies of one public row."""
        drawn = batch.rows.astype(np.int64)
        table = self.rows_of(batch.groups, batch.sizes, drawn)
        return table, int(self.decoder.copied(table, _coded(self.rows, drawn), drawn).sum())

    def rows_of(self, groups: Ints, sizes: Ints, drawn: Ints) -> pa.Table:
        """The rows of some groups, one group after the other, with values of the public rows of these numbers."""
        return self._table(groups, sizes, drawn).cast(self.schema)

    def _table(self, groups: Ints, sizes: Ints, drawn: Ints) -> pa.Table:
        chances = Chances.of_groups(self.seed, groups.tolist(), sizes.tolist())
        values: Any = self.decoder.decode(_coded(self.rows, drawn), seed=chances, drawn=drawn)
        group = np.repeat(groups, sizes)
        columns: dict[str, Any] = {}
        if (person := self.plan.unit.person_id) is not None:
            within = np.arange(len(group)) - np.repeat(_rows_before(sizes), sizes)
            columns[person] = self._before[group] + within + 1  # an arbitrary person id
        columns |= {name: cells.take(pa.array(group)) for name, cells in self._groups.items()}
        columns |= {name: values[name] for name in values.column_names}
        return self.decoder.types.of_table(pa.table(columns))

    def _schema(self) -> pa.Schema:
        """The schema of all batches: that of public rows that have, together, every code of every column."""
        last = []
        for name, codes in self.rows.prior.codes.items():
            rows = np.full(self.plan.schema.size(name), -1)
            rows[codes] = np.arange(len(codes))
            last.append(rows[rows >= 0])
        every = np.unique(np.concatenate(last))
        schema = self._table(np.zeros(1, np.int64), np.array([len(every)]), every).schema
        notes = {**(schema.metadata or {}), SEED: str(self.seed).encode()}
        return schema.with_metadata({**notes, METHOD: self.method.encode()} if self.method else notes)


def group_cells(plan: Plan, public: PublicTable) -> dict[str, pa.Array]:
    """The cells of the groups' columns, one for each group of the last level, as the public table writes them."""
    first = np.unique(plan.groupings[-1].number, return_index=True)[1]
    cells = {}
    for k, column in enumerate(plan.groups.columns):
        if follows(plan, column.name):
            known = column.name in public.typed.column_names
            listed = typed_as_public(column, public.typed[column.name]) if known else pa.array(column.values)
            cells[column.name] = listed.take(pa.array(plan.groups.codes[first, k]))
    return cells


def typed_as_public(column: Column, public: pa.ChunkedArray) -> pa.Array:
    """The listed values in the type of the public cells, if they are the same values there by the rule of measuring."""
    listed, seen = pa.array(column.values), plain_cells(public).unique()
    try:
        typed = _spelt(column, listed, seen) if is_text(seen.type) else listed.cast(seen.type)
        codes, fits = code_cells(column, typed)
    except (pa.ArrowException, DataError):  # a number that the type has no room for, a text that is not a number
        return listed
    return typed if fits.all() and np.array_equal(codes, np.arange(len(listed))) else listed


def _spelt(column: Column, listed: pa.Array, seen: pa.Array) -> pa.Array:
    """The listed values as the public table spells them (6 as "06"); one that it lacks with zeros if it has any."""
    spelling = dict(zip(range(len(listed)), texts_of(listed).to_pylist(), strict=True))
    texts = seen.drop_null()
    if not is_text(listed.type):
        known = [text for text in python_values(texts) if text.isdecimal()]
        if any(text.startswith("0") for text in known) and len({*map(len, known)}) == 1:
            spelling = {code: text.zfill(len(known[0])) for code, text in spelling.items()}
        codes, fits = code_cells(column, texts)
        spelling |= {int(code): text.as_py() for code, text, fit in zip(codes, texts, fits, strict=True) if fit}
    return pa.array(list(spelling.values()), seen.type)


# ---------------------------------------------------------------------- other numbers of rows


def resized(estimates: Estimates, rows: int | None = None, groups: Mapping[str, Any] | None = None) -> Estimates:
    """The same distributions with `rows` rows in all, and none outside the chosen groups.

    `rows` are divided in proportion to the estimated numbers; None keeps those. `groups` are values, or lists of
    values, of columns of the list of groups.
    """
    if rows is not None and not whole(rows, 1):
        raise PradeError(f"num_rows is {rows!r}; give a whole number, 1 or more, or None for the estimated numbers")
    totals = np.where(_chosen(estimates, groups or {}), np.round(estimates.totals), 0.0)
    if rows is not None:
        if not totals.sum():
            raise DataError("these groups are estimated to be empty, so they can have no rows: choose others")
        totals = shared_out(int(rows), totals)
    return estimates.with_totals(totals)


def _chosen(estimates: Estimates, wanted: Mapping[str, Any]) -> NDArray[np.bool_]:
    plan = estimates.plan
    last, listed = plan.groupings[-1], plan.groups.to_dict()
    first = np.unique(last.number, return_index=True)[1]
    known = {name: values for name, values in listed.items() if follows(plan, name)}
    chosen = np.ones(len(last), np.bool_)
    for name, given in wanted.items():
        if name not in known:
            raise DataError(f"{name!r} does not tell the groups apart; their columns are {', '.join(known) or 'none'}")
        values = list(given) if isinstance(given, (list, tuple, set, frozenset, np.ndarray)) else [given]
        if unknown := [value for value in values if value not in known[name]]:
            raise DataError(f"no group has {name} {unknown[0]!r}{closest(str(unknown[0]), map(str, known[name]))}")
        chosen &= np.array([known[name][row] in values for row in first])
    if not chosen.any():
        raise DataError("no group has all these values together: choose others")
    return chosen


# ---------------------------------------------------------------------- answers with the types of the synthetic table


def like_public(table: pa.Table, plan: Plan, public: PublicTable, like: Like | None = None) -> Frame:
    """A table of answers, like the public one, whose columns have the types that they have in the synthetic table."""
    decoder = public.decoder(plan.schema)
    typed = {
        column.name: (column, typed_as_public(column, public.typed[column.name]))
        for column in plan.groups.columns
        if column.name in table.column_names and column.name in public.typed.column_names
    }
    for column in plan.schema:
        if column.name in table.column_names and not (column.numeric or column.groups):
            typed[column.name] = column, decoder.listed(column.name)
    for name, (column, written) in typed.items():
        code = {value: number for number, value in enumerate(column.values)}
        codes = pa.array([None if cell is None else code[cell] for cell in table[name].to_pylist()], pa.int64())
        table = table.set_column(table.column_names.index(name), name, written.take(codes))
    return decoder.types.framed(table, like or public.like)


def seed_of(schema: pa.Schema) -> int | None:
    """The seed that a table's schema states; None if it states none."""
    stated = (schema.metadata or {}).get(SEED)
    with suppress(ValueError):
        return None if stated is None else int(stated)
    return None


def method_of(schema: pa.Schema) -> str | None:
    """The method that drew a table's rows, if it is not prade's own."""
    stated = (schema.metadata or {}).get(METHOD)
    return None if stated is None else stated.decode(errors="replace")
