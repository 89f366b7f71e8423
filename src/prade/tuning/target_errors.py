"""How far estimates of a stand-in are off in what the targets name, at the targets' levels.

A stand-in's group g has the error

    sum over wanted w of  weight_w e_w(g) / p_l(w)   +   rest * d(g) / p_d,        divided by 1 + rest

e_w(g) is the error of what is wanted (`prade.planning.task`) in the group itself or, for a level above the last, in
the group of that level that contains g. d(g) is the error of two-way tables of the last level. p_l is the public
table's mean error in all that is wanted at level l, and p_d its d: the public table has the error one. `REST` keeps a
plan from giving up what nobody named.

At a level above the last, the estimate is the sum of the last level's groups, as users will see it. Where a stand-in
has too many of them, it is the level's own estimate, which is nearer to the truth in what is not measured below it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_by_group, mass_per_cell
from prade.data.declare.groups import Grouping, RecurringGroups
from prade.data.public.public import Public
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.planning.task import Target, wanted_of
from prade.scoring.evaluation import PublicBaseline
from prade.tuning.stand_ins import StandIn

REST = 0.1  # weight of all two-way tables of the last level beside that of all targets together
MOST_SUMMED = 400  # groups of a stand-in that are all estimated for the sake of levels above; otherwise only some are
LEAST_ERROR = 1e-3  # of the public table, to divide by: what it has right to within that needs no budget

CellsOfRows = tuple[NDArray[Any], int]  # the cell of each row, and the number of cells


class WantedErrors:
    """All that the targets of a task want, with what is needed to score it."""

    def __init__(self, targets: Sequence[Target], public: Public) -> None:
        self.schema = public.prior.schema
        self.wanted = wanted_of(targets, self.schema)
        self.weights = np.array([each.weight for each in self.wanted])
        means = {each.part.columns[0] for each in self.wanted if each.kind == "mean"}
        self.scales = {name: _scale(public, name) for name in means}

    def by_level(self, errors: Floats) -> Floats:
        """The weighted mean of errors, one for each thing wanted, over all that is wanted at its level."""
        levels = [each.by for each in self.wanted]
        same = np.array([[one == other for one in levels] for other in levels])
        return np.asarray((same @ (self.weights * errors)) / (same @ self.weights))

    def cells(self, number: int, codes: Mapping[str, NDArray[Any]]) -> CellsOfRows:
        """The cells that tell what is wanted; the last one has the rows that have no part in a statistic."""
        each = self.wanted[number]
        if each.kind in ("table", "predicate"):
            return each.part.cells(self.schema, codes), each.part.n_cells + (each.kind == "predicate")
        column = each.part.columns[0]
        size = self.schema[column].present
        code = np.minimum(codes[column].astype(np.int64), size)
        return (code if each.query is None else np.where(each.query.mask(codes), code, size)), size + 1

    def errors(self, number: int, truth: Floats, estimate: Floats) -> Floats:
        """The errors of estimated masses of cells, each group's beside its true ones: [groups]."""
        each = self.wanted[number]
        if each.kind in ("table", "predicate"):
            return np.asarray(np.abs(_shares(truth) - _shares(estimate)).sum(axis=1))
        true, estimated = _shares(truth[:, :-1]), _shares(estimate[:, :-1])
        if each.kind == "mean":
            centres, deviation = self.scales[each.part.columns[0]]
            return np.asarray(np.abs((true - estimated) @ centres) / deviation)
        return np.array([_quantile_error(*both, each.at) for both in zip(true, estimated, strict=True)])


def _scale(public: Public, column: str) -> tuple[Floats, float]:
    """What the public rows tell about the numbers in a numeric column: the mean in each bin, and one row's spread.

    A bin without rows has the number between its neighbours.
    """
    numbers, weights = public.numbers[column], public.prior.weights
    size, known = public.prior.schema[column].present, ~np.isnan(numbers)
    if not known.any():
        return np.zeros(size), 1.0
    code, number, weight = public.prior.codes[column][known], numbers[known], weights[known]
    mass = mass_per_cell(code, weight, size)
    seen = np.flatnonzero(mass)
    centres = np.interp(np.arange(size), seen, mass_per_cell(code, weight * number, size)[seen] / mass[seen])
    mean = np.average(number, weights=weight)
    deviation = float(np.sqrt(np.average((number - mean) ** 2, weights=weight)))
    return centres, deviation if deviation > 0 else 1.0


class StandInTargets:
    """The true shares of what is wanted in a stand-in's groups, and where its public rows are."""

    def __init__(self, errors: WantedErrors, stand_in: StandIn, most_summed: int = MOST_SUMMED) -> None:
        self.errors = errors
        self.stand_in = stand_in
        self.most_summed = most_summed
        finest = stand_in.groups.level(stand_in.groups.names)
        self.levels: list[Grouping] = [stand_in.groups.level(each.by) for each in errors.wanted]
        self.above: list[Ints] = [finest.above(level) for level in self.levels]
        self.last = [len(level) == len(finest) and set(level.by) == set(finest.by) for level in self.levels]

    @cached_property
    def truth(self) -> list[Floats]:
        """True numbers of rows in the cells of everything wanted: [groups of its level, cells]."""
        truth = []
        for number, (level, above) in enumerate(zip(self.levels, self.above, strict=True)):
            cells, size = self.errors.cells(number, self.stand_in.codes)
            truth.append(mass_by_group(above[self.stand_in.group], len(level), cells, size).astype(np.float64))
        return truth

    @cached_property
    def cells(self) -> list[CellsOfRows]:
        """The cells of the public rows in everything wanted."""
        codes = self.stand_in.public.prior.codes
        return [self.errors.cells(number, codes) for number in range(len(self.errors.wanted))]

    def errors_of(self, number: int, groups: Ints, masses: Floats) -> Floats:
        """The errors of masses [groups, cells] in these groups of a wanted thing's level."""
        return self.errors.errors(number, self.truth[number][groups], masses) * self.stand_in.shrink

    def public_errors(self, groups: range) -> Floats:
        """The public baseline's errors: [groups of the last level, wanted]."""
        errors, public = np.zeros((len(groups), len(self.errors.wanted))), self.stand_in.public
        for number, level in enumerate(self.levels):
            baseline = PublicBaseline(public, RecurringGroups.of(public.groups, level))
            errors[:, number] = self.own_errors(number, groups, self.cells[number], baseline.weights)
        return errors

    def own_errors(self, number: int, groups: range, cells: CellsOfRows, weights_of: Callable[[int], Floats]) -> Floats:
        """The errors of the estimates that a wanted thing's own level has, in these groups of the last level."""
        places, mine = np.unique(self.above[number][list(groups)], return_inverse=True)
        masses = np.stack([mass_per_cell(cells[0], weights_of(int(place)), cells[1]) for place in places])
        return np.asarray(self.errors_of(number, places, masses)[mine])


def errors_in(
    descent: Descent, scored: range, targets: StandInTargets, distance: Callable[[GroupEstimate], float]
) -> tuple[Floats, Floats]:
    """distance(estimate) of the scored groups of the last level, and the errors of everything wanted in them.

    The second array is [scored groups, wanted]; groups of one parent share the errors of its level.
    """
    last, above = np.flatnonzero(targets.last).tolist(), np.flatnonzero(np.logical_not(targets.last)).tolist()
    support, groups = descent.foundation.support, len(targets.stand_in.groups)
    both = [targets.errors.cells(k, support.public.prior.codes) for k in range(len(targets.errors.wanted))]
    cells = [(each.astype(np.intp), size) for each, size in both]  # the type that `bincount` takes without a copy
    summed = above if groups <= targets.most_summed else []
    errors = np.zeros((len(scored), len(targets.errors.wanted)))

    def of_group(each: GroupEstimate) -> tuple[float, list[float], list[Floats]]:
        masses = {k: mass_per_cell(cells[k][0], each.estimate.weights, cells[k][1]) for k in (*last, *summed)}
        parts = [each.total * masses[number] for number in summed]
        if each.group not in scored:
            return 0.0, [], parts
        group = np.array([each.group])
        return distance(each), [float(targets.errors_of(k, group, masses[k][None])[0]) for k in last], parts

    for place, grouping in enumerate(descent.foundation.groupings[:-1]):
        for number in (each for each in above if not summed):
            if set(targets.levels[number].by) == set(grouping.by):
                weights_of = partial(descent.weights, number=place)
                errors[:, number] = targets.own_errors(number, scored, cells[number], weights_of)
    wanted = range(groups) if summed else scored
    estimates = list(descent.map(of_group, wanted))
    for k, number in enumerate(summed):
        sums = np.zeros((len(targets.levels[number]), cells[number][1]))
        np.add.at(sums, targets.above[number], np.stack([parts[k] for _, _, parts in estimates]))
        errors[:, number] = targets.errors_of(number, np.arange(len(sums)), sums)[targets.above[number][list(scored)]]
    mine = [estimates[wanted.index(group)] for group in scored]
    errors[:, last] = np.array([of_last for _, of_last, _ in mine]).reshape(len(mine), len(last))
    return np.array([away for away, _, _ in mine]), errors


def _shares(masses: Floats) -> Floats:
    whole = masses.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(masses, whole, out=np.zeros_like(masses), where=whole > 0))


def _quantile_error(truth: Floats, estimate: Floats, at: float) -> float:
    """Twice the share of the true rows between the place that the estimate takes for the quantile and the true one."""
    edges = np.arange(len(truth) + 1.0)
    reached = np.concatenate([[0.0], np.cumsum(estimate)])
    place = np.interp(at, reached, edges) if reached[-1] > 0 else edges[-1] / 2
    return float(2 * abs(np.interp(place, edges, np.concatenate([[0.0], np.cumsum(truth)])) - at))
