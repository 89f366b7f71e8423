"""Distances between the two-way tables of two sets of coded rows, group by group: the inner part of a score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import compiled
from prade.core.errors import DataError
from prade.core.execution import cores
from prade.data.declare.schema import Schema
from prade.data.public.joint import Joint

Codes = Mapping[str, NDArray[Any]]
Pair = tuple[str, str]
TwoColumns = tuple[NDArray[Any], NDArray[Any], Ints, Floats]  # codes, where groups begin, weights

WORST = 2.0  # the distance of distributions that have nothing in common
NO_WEIGHTS = np.empty(0)


def pair_errors(
    schema: Schema,
    truth_codes: Codes,
    truth_group: NDArray[Any],
    synth_codes: Codes,
    synth_group: NDArray[Any],
    n_groups: int,
    pairs: Sequence[Pair],
    *,
    weights: Floats | None = None,
    threads: int | None = None,
) -> Floats:
    """Distances d[g, k] between the two-way tables of two sets of coded rows, by group and pair.

    Rows carry group numbers 0 to `n_groups` - 1; the first ones count once, the others by their weights. A group in
    which one side has no mass is at distance 2, one in which neither has any at NaN.
    """
    columns = list(dict.fromkeys(name for pair in pairs for name in pair))
    width = np.min_scalar_type(max(schema.shape(columns)) - 1)
    truth, start, mass = _by_group(truth_codes, truth_group, n_groups, columns, width)
    synth, other_start, other_mass = _by_group(synth_codes, synth_group, n_groups, columns, width, weights)
    # The order of the two columns does not matter, and a pair drawn twice needs one calculation.
    kinds = list(dict.fromkeys((min(pair), max(pair)) for pair in pairs))
    distances = np.empty((len(kinds), n_groups))

    def measure(kind: int) -> None:
        a, b = kinds[kind]
        size = schema.size(b)
        cells = schema.size(a) * size
        one, other = (truth[a], truth[b], start, mass), (synth[a], synth[b], other_start, other_mass)
        _distances(one, other, size, cells, distances[kind])

    with ThreadPoolExecutor(threads or cores(), thread_name_prefix="prade") as pool:
        list(pool.map(measure, range(len(kinds))))
    number = {kind: k for k, kind in enumerate(kinds)}
    return np.ascontiguousarray(distances[[number[min(pair), max(pair)] for pair in pairs]].T)


def distances_of(
    truth: Codes, joint: Joint, pairs: Sequence[Pair], weights: Floats | None = None, *, threads: int | None = 1
) -> Floats:
    """Each pair's distance between true rows and a distribution; `weights` stand in for its own."""
    one, other = (np.zeros(len(next(iter(codes.values()))), np.int64) for codes in (truth, joint.codes))
    weights = joint.weights if weights is None else weights
    errors = pair_errors(joint.schema, truth, one, joint.codes, other, 1, pairs, weights=weights, threads=threads)
    return np.asarray(errors[0])


def mean_distance(truth: Codes, joint: Joint, pairs: Sequence[Pair], weights: Floats | None = None) -> float:
    """Mean over pairs of the distance between true rows and a distribution; `weights` stand in for its own."""
    return float(distances_of(truth, joint, pairs, weights).mean())


def _by_group(
    codes: Codes, group: NDArray[Any], n_groups: int, columns: Sequence[str], width: Any, weights: Floats | None = None
) -> tuple[dict[str, NDArray[Any]], Ints, Floats]:
    """Coded rows with those of a group side by side: group g has rows start[g] to start[g + 1]."""
    if len(group) and not 0 <= int(group.min()) <= int(group.max()) < n_groups:
        raise DataError(f"group numbers must lie between 0 and {n_groups - 1}; leave out rows in no group")
    number = np.asarray(group).astype(np.min_scalar_type(n_groups))  # small numbers sort fast
    start = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=n_groups))])
    order = slice(None) if (number[1:] >= number[:-1]).all() else np.argsort(number, kind="stable")
    sorted_codes = {name: np.ascontiguousarray(codes[name][order], dtype=width) for name in columns}
    return sorted_codes, start, NO_WEIGHTS if weights is None else np.ascontiguousarray(weights[order], np.float64)


@compiled
def _tally(first: Any, second: Any, weights: Floats, begin: int, end: int, size: int, mass: Floats) -> float:
    """Mass of each cell over the rows `begin` to `end`, and the sum; without weights a row has mass 1."""
    mass[:] = 0.0
    if len(weights) == 0:
        for j in range(begin, end):
            mass[np.intp(first[j]) * size + np.intp(second[j])] += 1.0
        return float(end - begin)
    total = 0.0
    for j in range(begin, end):
        mass[np.intp(first[j]) * size + np.intp(second[j])] += weights[j]
        total += weights[j]
    return total


@compiled
def _distances(one: TwoColumns, another: TwoColumns, size: int, cells: int, distance: Floats) -> None:
    """distance[g] = sum over cells |mass / total - other mass / other total| for the rows of each group."""
    first, second, start, weights = one
    other_first, other_second, other_start, other_weights = another
    mass, other_mass = np.empty(cells), np.empty(cells)
    for g in range(len(distance)):
        total = _tally(first, second, weights, start[g], start[g + 1], size, mass)
        other = _tally(other_first, other_second, other_weights, other_start[g], other_start[g + 1], size, other_mass)
        if total <= 0.0 or other <= 0.0:
            distance[g] = WORST if total > 0.0 or other > 0.0 else math.nan
            continue
        far = 0.0
        for c in range(cells):
            # divided, not multiplied by an inverse: equal shares of different totals then differ by exactly 0
            far += abs(mass[c] / total - other_mass[c] / other)
        distance[g] = far
