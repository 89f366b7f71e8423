"""The distributions of all groups of a release: for every group a vector of multipliers.

    q_g  is proportional to  p_g exp(W' lambda_g)        p_g: the group's prior (`prade.estimating.levels.foundation`)

So thousands of groups take megabytes instead of groups x rows; a distribution is worked out when it is needed, in one
pass over the public rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.compiled import compiled
from prade.core.errors import DataError
from prade.core.execution import Execution, Shared, several
from prade.core.files import replace_file
from prade.data.public.joint import Prior
from prade.data.public.public import Public
from prade.estimating.levels.answers import RawAnswers, raw_answers
from prade.estimating.levels.foundation import Foundation, GroupPriors
from prade.estimating.levels.group_fits import Made
from prade.estimating.levels.public_cells import Cells, PublicCells, Support
from prade.estimating.levels.totals import ErrorsOfRows
from prade.estimating.levels.tree import Kind
from prade.estimating.levels.variation import numbered
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.queries.parts import Part
from prade.release.derived_files import KEPT_ESTIMATES, KEPT_WEIGHTS, WEIGHTS, check_kept, is_kept, recorded
from prade.release.release import Release, file_hash

Result = TypeVar("Result")

SPAN = 32  # groups worked out together: what comes back has one weight per public row, whatever their number
FEWEST_SPANS = 64  # where there are many groups


@dataclass(frozen=True, eq=False)
class LevelEstimates:
    """The groups of a level: numbers of rows, variances of their errors, own scales, and the model of the shares."""

    totals: Floats
    rows_variance: Floats
    scale: Floats
    kinds: dict[bool, Kind]


class Distributions:
    """The distributions of a release's groups, on the rows of a public table, or on those of its `support`.

    `levels` are everybody and those of the plan (`Foundation.groupings`); `made` are the estimates of the last one's
    groups. All above are their sums.
    """

    def __init__(
        self,
        release: Release,
        public: Public,
        settings: Settings,
        levels: Sequence[LevelEstimates],
        made: Sequence[Made],
    ) -> None:
        self.release = release
        self.plan: Plan = release.plan
        self.public = public
        self.settings = settings
        self.levels = tuple(levels)
        self.made = tuple(made)
        self.kept_weights: Kept | None = None  # of the last level, opened in the release's folder
        self.weights_when_asked: WeightsWhenAsked | None = None  # opens them, or writes them first

    def weights(self, group: int) -> Floats:
        """Weights of the support's rows in a group of the last level."""
        return self.foundation.weights_of(self.made[group].tilt)

    def joint(self, group: int, level: int = -1) -> Prior:
        """A group's distribution: answers `project(columns)` and `expect(query)`, and can be the prior of a release."""
        within = self.plan.groupings[-1].above(self.plan.groupings[level])
        mine = np.flatnonzero(within == group).tolist()
        rows = np.maximum(self.totals[mine], 1e-9)
        weights = sum(number * self.weights(each) for number, each in zip(rows / rows.sum(), mine, strict=True))
        return self.support.public.prior.with_weights(np.asarray(weights))

    def map(self, task: Callable[[int, Floats], Result], threads: int = 1) -> Iterator[Result]:
        """task(group, weights) for every group of the last level, in order, in threads."""
        return several(lambda group: task(group, self.weights(group)), range(len(self.totals)), threads)

    def masses(self, cells: Cells, times: Floats | None = None, threads: int = 1) -> Floats:
        """Shares of some cells in every group of the last level, times a number of each public row: [groups, cells]."""
        numbers, size = self.support.of(cells[0]), cells[1]
        each = np.ones(len(self.support)) if times is None else self.support.of(times)
        if (kept := self._kept(threads)) is not None:
            return masses(kept, numbers, size, each, threads)

        def of_group(_: int, weights: Floats) -> Floats:
            return mass_per_cell(numbers, weights.astype(np.float32) * each, size + 1)[:size]

        return np.array(list(self.map(of_group, threads)))

    def tables(
        self,
        parts: Sequence[Part],
        rows: Floats,
        *,
        shared: Shared[Any] | None = None,
        execution: Execution = Execution(),
    ) -> tuple[Floats, Floats]:
        """Shares of the cells of several parts in every group of the last level, [groups, all cells], in one pass.

        The second array has the weights of the public rows in all groups together, which have these numbers of rows.
        Workers in other processes need these distributions as something `shared`.
        """
        each, everybody = list[Floats](), np.zeros(len(self.support))

        def keep(shares: Floats) -> None:
            each.append(shares)
            execution.tell("comparing groups", sum(map(len, each)), len(rows))

        if (kept := self._kept(execution.threads)) is not None:
            sizes, prior = [part.n_cells for part in parts], self.support.public.prior
            cells = numbered([part.cells(prior.schema, prior.codes) for part in parts], sizes)
            for shares in tables(kept, cells, sum(sizes), execution.threads):
                keep(shares)
            return np.concatenate(each), self.support.spread(together(kept, rows / rows.sum()))
        width = min(max(len(rows) // FEWEST_SPANS, 1), SPAN)  # the order of sums depends on the groups only
        spans = [(first, (rows / rows.sum())[first : first + width]) for first in range(0, len(rows), width)]
        for shares, weights in execution.map(partial(_tables_of, shared or Shared(self, _not_shared), parts), spans):
            keep(shares)
            everybody += weights
        return np.concatenate(each), self.support.spread(everybody)

    def _kept(self, threads: int) -> Kept | None:
        """The weights in the release's folder, if it can have them; those that ask first have them written."""
        if self.kept_weights is None and self.weights_when_asked is not None:
            self.kept_weights = self.weights_when_asked(self, threads)
            self.weights_when_asked = None
        return self.kept_weights

    def tables_of(self, parts: Sequence[Part], first: int, factors: Floats) -> tuple[Floats, Floats]:
        """As `tables` for as many groups as there are factors, from `first` on; their weights add up by factors."""
        known, shares, everybody = self.foundation.layout, list[Floats](), np.zeros(len(self.support))
        own = set(parts) <= set(known.workload)  # among the cells that the groups were estimated from
        numbers = np.arange(known.n_cells)
        at = [numbers[known.part(known.workload.parts.index(part))] for part in parts] if own else []
        layout = known if own else self.foundation.layout_of(tuple(parts))
        for group, factor in enumerate(factors, first):
            weights, masses = self.foundation.worked_out(self.made[group].tilt)
            shares.append(masses[np.concatenate(at)] if own else layout.masses_of(layout.collapsed(weights)))
            everybody += factor * weights
        return np.stack(shares), everybody

    @property
    def totals(self) -> Floats:
        """Number of rows of each group of the last level."""
        return self.levels[-1].totals

    @cached_property
    def errors_of_rows(self) -> ErrorsOfRows:
        """For `variance_of_sums`, from the last level up to everybody."""
        variances = [each.rows_variance for each in self.levels[::-1]]
        parents = [self.foundation.parents(number) for number in range(len(self.levels) - 1, 0, -1)]
        return ErrorsOfRows(tuple(variances), tuple(parents))

    @property
    def benchmarked(self) -> bool:
        """Whether the groups of each parent add up to its estimate; those that were fitted to raw answers do not."""
        return self.settings.smooth and self.settings.estimator == "map"

    def with_totals(self, totals: Floats) -> Self:
        """The same distributions with other numbers of rows in the last level; what was worked out is shared."""
        other = copy(self)
        other.levels = (*self.levels[:-1], replace(self.levels[-1], totals=totals))
        other.__dict__.pop("kept_errors", None)  # they depend on the numbers of rows
        return other

    # ---------------------------------------------------------------- what is worked out once

    @cached_property
    def foundation(self) -> Foundation:  # what the groups were estimated from
        return Foundation.of(self.plan, self.cells, self.settings)

    @cached_property
    def priors(self) -> list[GroupPriors]:  # what everybody and the groups of each level started from
        return [self.foundation.priors(number) for number in range(len(self.levels))]

    @cached_property
    def answers(self) -> list[RawAnswers]:  # what is measured about the groups of each level of the plan
        return [raw_answers(self.release, level) for level in range(len(self.plan.levels))]

    @cached_property
    def cells(self) -> PublicCells:
        return PublicCells(self.public)

    @property
    def support(self) -> Support:  # the public rows that have weights
        return self.foundation.support

    @cached_property
    def kept_errors(self) -> dict[tuple[int, int], Any]:  # by level and block, for `error_bars`
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be worked out again: weights, priors, and matrices of error bars."""
        left_out = {"foundation", "priors", "kept_errors"}
        state = {name: value for name, value in self.__dict__.items() if name not in left_out}
        return {**state, "kept_weights": None, "weights_when_asked": None}


WeightsWhenAsked = Callable[[Distributions, int], "Kept | None"]  # the number is that of threads


def _tables_of(shared: Shared[Distributions], parts: Sequence[Part], span: tuple[int, Floats]) -> tuple[Floats, Floats]:
    """`Distributions.tables_of`, for whichever worker is free."""
    return shared.value.tables_of(parts, *span)


def _not_shared() -> Distributions:
    raise AssertionError("workers on other processes need something shared")


# ---------------------------------------------------------------------- weights kept in a file

# To work the weights out takes a pass over the public rows for each group; to add them up in some cells takes one look
# at the file. The first answer writes the file. It may be removed at any time: the next answer then takes longer and
# is the same to the last bit, because both ways add up weights in single precision in the same order. It is used only
# if its record (`prade.release.derived_files`) names the estimates and the public rows that the folder has now, and
# these are the ones that were opened.


Kept = NDArray[np.float32]  # [public rows, groups]

LARGEST_FILE = 2**30  # bytes; with more, every answer works the weights out again
AT_ONCE = 16  # groups that one thread reads, at least: a line of the processor's cache
WAITING = 2**26  # bytes of weights that are written together: the fewer times, the fewer pages of the file are touched
IN_MEMORY = 2**25  # bytes of the file that are mapped while it is written
TABLES_AT_ONCE = 64  # groups whose tables are added up together: those of some hundred cells stay in the cache
ROWS_AT_ONCE = 10_000


def record_of_estimates(release: Release) -> str:
    """The hash of the record of the folder's estimates, which tells them from all others."""
    return file_hash(release.path / KEPT_ESTIMATES.name)


def keep_weights(release: Release, shape: tuple[int, int], each_group: Iterable[Floats], estimates: str) -> None:
    """Write the weights of each group, [rows, groups] in all; if the disk is full, no file is written.

    Nor is one written if the folder gets other estimates meanwhile: `estimates` is the hash of their record.
    """
    with suppress(OSError), recorded(release, KEPT_WEIGHTS), replace_file(release.path / WEIGHTS) as temporary:
        offset = np.lib.format.open_memmap(temporary, "w+", np.float32, shape).offset
        waiting: list[Kept] = []
        for group, weights in enumerate(each_group):
            waiting.append(weights.astype(np.float32))
            if len(waiting) * shape[0] * 4 >= WAITING or group == shape[1] - 1:
                _write(temporary, offset, shape, group + 1 - len(waiting), waiting)
                waiting.clear()
        if record_of_estimates(release) != estimates:
            raise OSError(f"{release.path} has other estimates now")


def _write(path: Path, offset: int, shape: tuple[int, int], first: int, waiting: Sequence[Kept]) -> None:
    """Write the weights of some groups, from the number `first` on; a stretch of rows at a time."""
    step = max(1, IN_MEMORY // (4 * shape[1]))
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        stretch = np.memmap(
            path, np.float32, "r+", offset=offset + 4 * shape[1] * start, shape=(stop - start, shape[1])
        )
        stretch[:, first : first + len(waiting)] = np.stack([each[start:stop] for each in waiting], axis=1)


def kept_weights(release: Release, shape: tuple[int, int]) -> Kept | None:
    """The weights in the release's folder; None if there are none, or if they do not belong to its estimates.

    The file stays open: what another run writes under its name is another file.
    """
    if not is_kept(release, KEPT_WEIGHTS):
        return None
    try:
        check_kept(release, KEPT_WEIGHTS)
    except DataError:
        return None
    kept: Kept = np.load(release.path / WEIGHTS, mmap_mode="r")
    return kept if kept.shape == shape else None


def masses(kept: Kept, cells: Ints, size: int, times: Floats, threads: int) -> Floats:
    """Sum of weights x times in each of `size` cells: [groups, cells]. A row in no cell has the number `size`."""
    rows = np.flatnonzero(cells < size)
    cells = cells[rows].astype(np.int64)
    groups = kept.shape[1]
    # Whole lines of the processor's cache for each thread, and the same order of additions for any number of threads.
    width = -(-groups // (threads * AT_ONCE)) * AT_ONCE
    spans = [(first, min(first + width, groups)) for first in range(0, groups, width)]
    each = several(lambda span: _masses(kept, rows, cells, times, size, *span), spans, threads)
    return np.concatenate(list(each), axis=1).T


@compiled
def _masses(kept: Kept, rows: Ints, cells: Ints, times: Floats, size: int, first: int, last: int) -> Floats:
    found = np.zeros((size, last - first))
    for k in range(len(rows)):
        row, cell, factor = rows[k], cells[k], times[rows[k]]
        for group in range(first, last):
            found[cell, group - first] += factor * kept[row, group]
    return found


def tables(kept: Kept, cells: NDArray[np.int32], size: int, threads: int) -> Iterator[Floats]:
    """As `masses` for several parts in one pass: [some groups, cells of all parts], until all groups have had a turn.

    `cells` has for each row, [rows, parts], the numbers of its cells among those of all parts, or `size` for none.
    """
    groups = kept.shape[1]
    spans = [(first, min(first + TABLES_AT_ONCE, groups)) for first in range(0, groups, TABLES_AT_ONCE)]
    return several(lambda span: _tables(kept, cells, size, *span)[:size].T, spans, threads)


@compiled
def _tables(kept: Kept, cells: NDArray[np.int32], size: int, first: int, last: int) -> Floats:
    found = np.zeros((size + 1, last - first))
    for row in range(len(cells)):
        mine = kept[row, first:last]
        for part in range(cells.shape[1]):
            table = found[cells[row, part]]
            for group in range(last - first):
                table[group] += mine[group]
    return found


def together(kept: Kept, times: Floats) -> Floats:
    """The sum over groups of weights x times: [rows]."""
    return np.concatenate([kept[first : first + ROWS_AT_ONCE] @ times for first in range(0, len(kept), ROWS_AT_ONCE)])
