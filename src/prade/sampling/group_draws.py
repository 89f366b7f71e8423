"""The rows of all groups, drawn group by group wherever there is a worker, and handed over in batches of groups.

A task is small: the number of a group goes out, the numbers of the public rows drawn for it come back. Every group has
a seed of its own, so a group's rows depend neither on the other groups nor on who draws them. Where there are several
batches, those that are finished are kept in the release's folder until all are: a run that was killed goes on.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Ints, smallest_unsigned
from prade.core.errors import EstimationError
from prade.core.progress import Progress
from prade.core.workers import Shared, Workers, WorkersError
from prade.estimating.levels.estimates import Estimates, inputs_hash
from prade.estimating.levels.kept_estimates import kept_estimates
from prade.release.derived_files import UNFINISHED_ROWS, FinishedBatches, keep_batch, run_key
from prade.release.release import Release
from prade.sampling.draw import check_whole
from prade.sampling.improve import Search, improved_ranks
from prade.sampling.sorted_rows import SortedRows, drawn_ranks
from prade.sampling.target_tables import tables_first

MOST_ROWS = 2**31  # more than files and memories hold; with a tiny budget, noise can make estimated numbers this large
ROWS_OF_BATCH = 100_000  # a batch has at least that many rows, unless nothing is left; it is held in memory whole
DRAWN_AHEAD = 16  # groups for each worker: while a batch is made into a table and written, the next one is drawn
MANY_GROUPS = 16  # for which it is worth the while to cluster columns

Rows = NDArray[Any]  # numbers of public rows, unsigned and as narrow as possible


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive groups of one part of the result, the number of rows of each, and their rows one after the other."""

    part: int
    groups: Ints
    sizes: Ints
    rows: Rows

    @property
    def group(self) -> Ints:
        """The group of each row."""
        return np.repeat(self.groups, self.sizes)


class Drawer:
    """Draws the rows of single groups; what all groups share is made once."""

    def __init__(self, estimates: Estimates, seed: int, search: Search) -> None:
        self.estimates = estimates
        self.seed = seed
        self.search = search

    def prepare(self) -> None:
        """Make now what all groups share, so that threads do not make it twice."""
        if len(self.sorted_rows):
            self.sorted_rows.coded(np.zeros(1, np.int64))
            if len(self.estimates.totals) >= MANY_GROUPS:
                self.sorted_rows.cluster()

    @cached_property
    def sorted_rows(self) -> SortedRows:
        """The support's rows, sorted so that neighbours are alike."""
        codes, plan = self.estimates.support.public.prior.codes, self.estimates.plan
        return SortedRows(codes, plan.schema, first=tables_first(plan.targets, plan.schema))

    def rows(self, group: int, number: int) -> Rows:
        """Public rows drawn for a group of the last level, in random order."""
        own = int(np.random.SeedSequence([self.seed, group]).generate_state(1)[0])
        weights = self.estimates.weights(len(self.estimates.levels) - 1, group)
        edges = self.sorted_rows.edges(weights)
        ranks = drawn_ranks(edges, number, np.random.default_rng(own))
        generator = np.random.default_rng([own, 1])
        ranks = improved_ranks(self.sorted_rows, weights, edges, ranks, generator, self.search)
        numbers = self.estimates.support.numbers(self.sorted_rows.order[ranks])
        return generator.permutation(numbers).astype(smallest_unsigned(len(self.estimates.public)))


def drawn_batches(
    estimates: Estimates,
    seed: int,
    *,
    search: Search,
    workers: Workers,
    parts: Sequence[Ints] | None = None,
    keep: bool = False,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """The rows of all groups of the last level, in random order within a group, in batches.

    `parts` are lists of groups that are not mixed in one batch; all groups in their order are one, if it is None. With
    `keep`, finished batches are kept in the release's folder until the last one has been used.
    """
    check_whole(seed=seed)
    totals = numbers_of_rows(estimates)
    batches = _batches(totals, [np.arange(len(totals))] if parts is None else parts)
    print_of_estimates = fingerprint(estimates) if keep or workers.executor is not None else ""
    drawer = Drawer(estimates, int(seed), search)
    drawer.prepare()
    shared = Shared(
        drawer, opened_drawer, str(estimates.release.path.absolute()), print_of_estimates, int(seed), search
    )
    wanted = tables_first(estimates.plan.targets, estimates.plan.schema)
    key = _key(print_of_estimates, int(seed), search, batches, wanted)
    with _finished(estimates.release, key, keep and len(batches) > 1) as finished:
        kept = [None if finished is None else finished.path(str(number)) for number in range(len(batches))]
        tasks = [
            (int(group), int(size))
            for batch, path in zip(batches, kept, strict=True)
            if path is None
            for group, size in zip(batch.groups, batch.sizes, strict=True)
            if size
        ]
        drawn = workers.map(partial(_drawn, shared), tasks, ahead=DRAWN_AHEAD)
        done = 0
        for number, batch in enumerate(batches):
            path, pieces = kept[number], [np.zeros(0, smallest_unsigned(len(estimates.public)))]
            for size in batch.sizes:
                if path is None and size:
                    pieces.append(next(drawn))
                done += 1
                if progress is not None:
                    progress("sampling", done, len(totals))
            rows = np.concatenate(pieces) if path is None else np.load(path)
            if finished is not None and path is None:
                with keep_batch(finished.folder, str(number), ".npy") as temporary, open(temporary, "wb") as file:
                    np.save(file, rows)
            yield Batch(batch.part, batch.groups, batch.sizes, rows)
        if finished is not None:
            finished.remove()


def numbers_of_rows(estimates: Estimates) -> Ints:
    """How many rows each group of the last level gets; an error if they are absurdly many."""
    if (number := estimates.totals.sum()) > MOST_ROWS:
        raise EstimationError(
            f"the estimates have {number:,.0f} rows in all, and at most {MOST_ROWS:,} can be drawn", remedy="rows"
        )
    return np.round(estimates.totals).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Planned:
    part: int
    groups: Ints
    sizes: Ints


def _batches(totals: Ints, parts: Sequence[Ints]) -> list[_Planned]:
    """Consecutive groups of each part, as many as have ROWS_OF_BATCH rows together."""
    found = []
    for part, groups in enumerate(parts):
        before = np.cumsum(totals[groups]) - totals[groups]
        for each in np.split(groups, np.flatnonzero(np.diff(before // ROWS_OF_BATCH)) + 1):
            found.append(_Planned(part, each, totals[each]))
    return found


# ---------------------------------------------------------------------- workers


def _drawn(shared: Shared[Drawer], task: tuple[int, int]) -> Rows:
    return shared.value.rows(*task)


def opened_drawer(folder: str, wanted: str, seed: int, search: Search) -> Drawer:
    """What a worker in another process draws with: the estimates that the release's folder keeps."""
    if not Path(folder).is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    estimates = kept_estimates(Release.load(folder))
    if fingerprint(estimates) != wanted:
        raise WorkersError(
            f"the estimates in {folder} are not those to draw from: workers in other processes use the ones that the "
            "folder keeps, so call prade.estimate with these settings first"
        )
    drawer = Drawer(estimates, seed, search)
    drawer.prepare()
    return drawer


def fingerprint(estimates: Estimates) -> str:
    """A hash of all that the distributions of the last level depend on."""
    digest = hashlib.sha256(inputs_hash(estimates.release, estimates.public).encode())
    digest.update(json.dumps(asdict(estimates.settings), sort_keys=True).encode())
    for level in estimates.levels:
        digest.update(np.ascontiguousarray(level.multipliers).tobytes())
        digest.update(b"" if level.alike is None else np.ascontiguousarray(level.alike).tobytes())
        for emptied in level.emptied:
            digest.update(b"-" if emptied is None else emptied)
    return digest.hexdigest()


# ---------------------------------------------------------------------- batches that are kept


def _key(
    estimates: str, seed: int, search: Search, batches: Sequence[_Planned], first: Sequence[tuple[str, str]] = ()
) -> str:
    """A fingerprint of all that batches depend on; without tables to be met first, it is that of earlier versions."""
    digest = hashlib.sha256(repr(first).encode() if first else b"")
    for batch in batches:
        digest.update(np.stack([batch.groups, batch.sizes]).astype(np.int64).tobytes() + b"end of batch")
    return run_key(estimates, seed, asdict(search), digest.hexdigest())


@contextmanager
def _finished(release: Release, key: str, wanted: bool) -> Iterator[FinishedBatches | None]:
    """The batches that an earlier run has finished; None where nothing is kept, as in a folder that is read only."""
    able = wanted and release.path.is_dir() and os.access(release.path, os.W_OK)
    with FinishedBatches.open(release.path / UNFINISHED_ROWS, key) if able else nullcontext() as finished:
        yield finished
