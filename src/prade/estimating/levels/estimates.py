"""All estimates of a release: answers with their standard errors, and the file of the estimates.

Queries and tables are answered from the distributions themselves (`prade.estimating.levels.distributions`), without
sampling.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from prade.core.errors import WorkloadError, names_of
from prade.core.execution import Execution, Shared, WorkersError
from prade.data.public.public import Public
from prade.estimating.levels.answer_tables import (
    cell_columns,
    count_table,
    described_by,
    described_columns,
    value_table,
    with_labels,
)
from prade.estimating.levels.asked_rows import (
    Piece,
    asked_schema,
    basis,
    basis_of,
    counted,
    pieces_of,
    read_query,
)
from prade.estimating.levels.cell_counts import cell_counts
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.distributions import (
    LARGEST_FILE,
    Distributions,
    Kept,
    LevelEstimates,
    keep_weights,
    kept_weights,
    record_of_estimates,
)
from prade.estimating.levels.estimates_file import read_estimates, save_estimates
from prade.estimating.levels.group_fits import FinishedGroups
from prade.estimating.levels.public_cells import PublicCells
from prade.estimating.levels.statistics import Asked, mean_or_sum_of, quantile_of, ratio_of
from prade.planning.invariants import obeying, possible_cells
from prade.planning.settings import Settings
from prade.queries.asked import Statistic, statistic_of
from prade.queries.workload import Workload
from prade.release.derived_files import (
    ESTIMATES,
    KEPT_ESTIMATES,
    SUPPORT,
    UNFINISHED_ESTIMATES,
    FinishedBatches,
    check_kept,
    disk_trouble_reported,
    is_kept,
    recorded,
    run_key,
)
from prade.release.release import Release, file_hash

if TYPE_CHECKING:
    import pyarrow as pa


class Estimates(Distributions):
    """The estimates of a release: answers with their error bars, and a file."""

    @classmethod
    def of(
        cls,
        release: Release,
        public: Public,
        settings: Settings | None = None,
        *,
        cells: PublicCells | None = None,
        unfinished: FinishedBatches | None = None,
        execution: Execution = Execution(),
    ) -> Estimates:
        """Estimate every group of every level.

        `cells` is what other estimates from the same public table share. `unfinished` has the groups that an earlier
        run finished, and keeps those of this one.
        """
        public = obeying(public, release.plan.invariants)
        descent = Descent(release, public, settings, cells=cells, execution=execution)
        number = len(release.plan.groupings[-1])
        with FinishedGroups(unfinished) as finished, _folder_for_workers(execution, unfinished) as folder:
            if folder is not None:
                descent.share(folder, uuid4().hex)
            made = dict(finished.earlier)
            for batch in descent.made(made):
                made |= {each.tilt.group: each for each in batch}
                finished.add(batch)
                execution.tell("estimating", len(made), number)
        levels = [
            LevelEstimates(each.totals, each.rows_variance, each.scale, each.kinds) for each in descent.tree.levels
        ]
        in_order = [made[group] for group in range(number)]
        estimates = cls(release, descent.public, descent.settings, levels, in_order)
        estimates.cells = descent.cells
        return estimates

    # ---------------------------------------------------------------- answers

    def answer(
        self,
        query: str,
        by: str | Sequence[str] = (),
        *,
        of: str | None = None,
        labels: bool = False,
        execution: Execution = Execution(),
    ) -> pa.Table:
        """Answer a question for the groups `by`, with a 95 % interval.

        * A query such as "AGEP >= 65 and SEX == 2" counts rows. Columns: the groups', count, share (of the group's
          rows), sd (of the share), low and high (of the count), basis.
        * With `of`, a second query: the count of the first per row of the second. Columns: the groups', value, sd, low
          and high (of the value), basis.
        * "mean(WAGP)", "sum(WAGP)", "median(WAGP)" and "quantile(WAGP, 0.9)", each also with "where SEX == 2" after it:
          the same columns. Rows without a value are left out. Numbers inside a bin are those of public rows.
        * "histogram(WAGP)": counts, with the bin in the columns WAGP_from and WAGP_to.

        A value that cannot be given because no row is left is null. A query may also use the groups' columns. With
        `labels`, each group's value and each bin has its text for readers beside it, as in STATE_label.

        The interval is for the true figure of the private table itself, whether its rows are a sample or not. It covers
        the noise and the prior's error, as far as differences between public groups and this release's own answers show
        it (`prade.estimating.levels.error_bars`). It hardly covers people of a kind that the public table lacks (such
        a cell has a count of 0), nor a private table that differs from the public one in a way in which
        public groups do not differ from each other. `basis` says what it rests on
        (`prade.estimating.levels.asked_rows`).
        """
        table = self._answer(query, by, of, execution.threads)
        return with_labels(table, described_by(self.plan, query, by)) if labels else table

    def _answer(self, query: str, by: str | Sequence[str], of: str | None, threads: int) -> pa.Table:
        statistic = statistic_of(query, asked_schema(self.plan))
        if statistic is not None:
            if of is not None:
                raise WorkloadError(f"{statistic.text} is not a count: a ratio takes two queries that count rows")
            return self._statistic(statistic, by, threads)
        queries = [read_query(self, text) for text in (query, of) if text is not None]
        pieces = pieces_of(self, queries)
        words = basis_of(self.plan, by, pieces)
        if of is not None:
            return value_table(ratio_of(Asked(self, by, pieces, threads)), words)
        return count_table(counted(self, by, pieces, threads=threads), words)

    def _statistic(self, asked: Statistic, by: str | Sequence[str], threads: int) -> pa.Table:
        column = self.plan.schema[asked.column]
        pieces = [Piece(None, (True,), (np.ones(len(self.public), np.bool_),))]
        if asked.where is not None:
            pieces = pieces_of(self, [read_query(self, asked.where)])
        if asked.kind == "histogram":
            codes, size = self.public.prior.codes[column.name].astype(np.int64), column.present
            cells = [(np.where(piece.rows[0], np.minimum(codes, size), size), size) for piece in pieces]
            marginal = Workload.marginals(self.plan.schema, [column.name])[0]
            word = "model" if asked.where is not None else basis(self.plan, by, marginal)
            counts = counted(self, by, pieces, cells, threads=threads)
            return count_table(counts, word, cell_columns([column], missing=False))
        numbers, rows = self.public.numbers[column.name], Asked(self, by, pieces, threads)
        if asked.kind == "quantile":
            return value_table(quantile_of(rows, column.name, numbers, asked.at), "model", column)
        return value_table(mean_or_sum_of(rows, column.name, numbers, mean=asked.kind == "mean"), "model")

    def marginal(
        self,
        columns: str | Sequence[str],
        by: str | Sequence[str] = (),
        *,
        labels: bool = False,
        execution: Execution = Execution(),
    ) -> pa.Table:
        """The table of some columns for the groups `by`: one row per group and cell, with the columns of `answer`.

        Each column has its value, null for missing. A numeric column AGE has the bounds of its bin instead, in AGE_from
        and AGE_to: its numbers are at least AGE_from and below AGE_to (or equal to it, if it is the schema's maximum);
        an open end is null. Each interval is for its own cell: of 100 true counts, about 5 are outside theirs. With
        `labels`, the text for readers of each value or bin is beside it, as in AGE_label.
        """
        part = Workload.marginals(self.plan.schema, [names_of(columns)])[0]
        cells = part.cells(self.plan.schema, self.public.prior.codes), part.n_cells
        counts = cell_counts(self, by, cells, threads=execution.threads)
        counts = counts.limited_to(possible_cells(part, self.plan.invariants, self.plan.schema))
        described = cell_columns([self.plan.schema[name] for name in part.columns])
        table = count_table(counts, basis(self.plan, by, part), described)
        return with_labels(table, described_columns(self.plan, part.columns, by)) if labels else table

    # ---------------------------------------------------------------- the file

    def save(self, path: str | PathLike[str]) -> None:
        """Write a parquet file: one row per group of each level."""
        inputs = inputs_hash(self.release, self.public)
        save_estimates(path, self.plan, self.settings, self.levels, self.made, inputs)

    @classmethod
    def load(cls, path: str | PathLike[str], release: Release, public: Public) -> Estimates:
        """Read what `save` wrote; the release and the public table must be those that it was made from.

        Rows are added to the table as before, unless it is the one that was kept with them.
        """
        public = obeying(public, release.plan.invariants)

        def inputs_of(settings: Settings) -> str:
            nonlocal public
            if not public.added:
                public = PublicCells(public).with_added(release, settings).public
            return inputs_hash(release, public)

        settings, levels, made = read_estimates(path, release.plan, inputs_of)
        return cls(release, public, settings, levels, made)


@contextmanager
def _folder_for_workers(execution: Execution, unfinished: FinishedBatches | None) -> Iterator[Path | None]:
    """A folder in which workers find what they need, if they are elsewhere: that of the run, or a temporary one."""
    if execution.executor is None:
        yield None
    elif unfinished is not None:
        yield unfinished.folder
    else:
        with TemporaryDirectory(prefix="prade-workers-") as folder:
            yield Path(folder)


def inputs_hash(release: Release, public: Public) -> str:
    """A fingerprint of what estimates are made from, settings aside: plan, noisy counts, coded public rows, groups."""
    digest = hashlib.sha256(release.fingerprint.encode())
    named = [[str(value) for value in row] for row in (public.groups.by, *public.groups.values)]
    digest.update(json.dumps(named).encode())
    for name, code in public.prior.codes.items():
        digest.update(name.encode() + np.ascontiguousarray(code).tobytes())
    digest.update(public.prior.weights.tobytes() + public.group.astype(np.int64).tobytes())
    return digest.hexdigest()


# ---------------------------------------------------------------------- estimates in a release's folder


def kept_estimates(release: Release) -> Estimates:
    """The estimates that the release's folder keeps; a DataError where there are none, or where a file has changed."""
    check_kept(release, KEPT_ESTIMATES)
    return _with_weights(Estimates.load(release.path / ESTIMATES, release, Public.load(release.path / SUPPORT)))


def shared_estimates(estimates: Estimates) -> Shared[Estimates]:
    """The estimates that a release's folder keeps, for tasks on workers, which open them there."""
    folder = estimates.release.path
    return Shared(estimates, opened_estimates, str(folder.absolute()), file_hash(folder / KEPT_ESTIMATES.name))


def opened_estimates(folder: str, record: str) -> Estimates:
    """The estimates in a folder, if the hash of their record is the one that is meant."""
    path = Path(folder) / KEPT_ESTIMATES.name
    open(path, "rb").close()  # a missing file is an error that names it
    if file_hash(path) != record:
        raise WorkersError(f"the estimates in {folder} have changed since this run began: run the same command again")
    return kept_estimates(Release.load(folder))


def estimates_of(
    release: Release,
    public: Public,
    settings: Settings | None = None,
    *,
    anew: bool = False,
    execution: Execution = Execution(),
) -> Estimates:
    """The estimates in the release's folder, if they were made with these inputs and settings; otherwise new ones.

    Without `settings`, any estimates in the folder will do, and new ones use the plan's settings. Damaged estimates are
    an error; `anew` makes new ones without looking at those. If a run that makes new ones is killed, the next one goes
    on where it was.
    """
    if is_kept(release, KEPT_ESTIMATES) and not anew:
        check_kept(release, KEPT_ESTIMATES)
        kept = Estimates.load(release.path / ESTIMATES, release, public)
        if settings in (None, kept.settings):
            return _with_weights(kept)
    wanted = settings or release.plan.settings or Settings()
    if not release.path.is_dir():
        return Estimates.of(release, public, wanted, execution=execution)
    public = obeying(public, release.plan.invariants)
    key = run_key(inputs_hash(release, public), asdict(wanted))
    cells = PublicCells(public)
    # the thread is waited for, even by an interrupt, before another run may use the folder
    with FinishedBatches.open(release.path / UNFINISHED_ESTIMATES, key) as unfinished, ThreadPoolExecutor(1) as pool:
        rows = unfinished.folder / SUPPORT
        writing = pool.submit(cells.with_added(release, wanted).public.save, rows)  # while the estimates are made

        def look(task: str, done: float, total: float) -> None:
            if writing.done():  # what went wrong is not said after hours only
                _written(writing, release)
            execution.tell(task, done, total)

        looking = replace(execution, progress=look)
        estimates = Estimates.of(release, public, wanted, cells=cells, unfinished=unfinished, execution=looking)
        _written(writing, release)
        with disk_trouble_reported(release.path), recorded(release, KEPT_ESTIMATES):
            rows.replace(release.path / SUPPORT)
            estimates.save(release.path / ESTIMATES)
        unfinished.remove()
    return _with_weights(estimates)


def _written(writing: Future[None], release: Release) -> None:
    """Wait until something is written in the release's folder."""
    with disk_trouble_reported(release.path):
        writing.result()


def _with_weights(estimates: Estimates) -> Estimates:
    """The same estimates, which are the folder's now: their first answer takes its weights, or writes them."""
    estimates.weights_when_asked = partial(weights_in_folder, record_of_estimates(estimates.release))
    return estimates


def weights_in_folder(record: str, estimates: Distributions, threads: int) -> Kept | None:
    """The weights in the folder of these estimates, written now if it has none; None if it cannot have them.

    They are too many, the folder cannot be written to, or it has other estimates now: `record` is the hash of the
    record of those that were opened.
    """
    release, shape = estimates.release, (len(estimates.support), len(estimates.totals))
    if not (release.path / KEPT_ESTIMATES.name).is_file() or record_of_estimates(release) != record:
        return None
    kept = kept_weights(release, shape)
    if kept is None and 4 * math.prod(shape) <= LARGEST_FILE:
        keep_weights(release, shape, estimates.map(lambda _, weights: weights, threads), record)
        kept = kept_weights(release, shape)
    return kept
