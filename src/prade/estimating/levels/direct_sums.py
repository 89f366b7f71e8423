"""What the raw answers alone say about a sum of cells: a limit to its error that needs no model of groups.

Let a question be made up of whole cells of a measured part, such as AGEP >= 65 of the one-way table of AGEP. Let y be
the sum of the raw answers to these cells over all groups, V the variance of the noise in it, and q the estimate. Then
the truth is y less the noise, and the mean square of the error of q, given what is known, is

    V + (y - q)^2

if nothing is assumed about the truth. An estimate that follows its answers therefore has an error of at most about
theirs. A model of groups usually expects less; it expects too much where it takes columns for unrelated of which one
follows from the other, as whether somebody rents and whether there is a rent.

Public rows tell which cells make up the question. A cell without public rows may belong to it and have private rows, so
a part with such cells only tells about its own cells, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.benchmarking import added_up
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.public_cells import Cells

LOOKED_AT = 1_000  # public rows that rule out most parts before all rows are looked at


def direct_variances(
    estimates: Distributions,
    level: int,
    asked: Sequence[Cells],
    sum_of: Ints,
    counts: Floats,
    combined: Floats | None = None,
) -> Floats:
    """V + (y - q)^2 of sums over a level's groups, [sums, all cells]; infinite where no measured part tells them.

    `sum_of` says which sum each group is in. `counts` are the estimates q of the first sums; others are not asked for.
    With `combined`, [combinations, cells], both are of linear combinations of the cells of the one part that is asked.
    """
    answers, schema, codes = estimates.answers[level], estimates.plan.schema, estimates.public.prior.codes
    found, n_sums = [], len(counts)
    sum_of = np.minimum(sum_of, n_sums)
    some = np.linspace(0, len(estimates.public) - 1, LOOKED_AT).astype(np.int64)
    few = {name: code[some] for name, code in codes.items()}
    cells_of_few = [part.cells(schema, few) for part in answers.parts]
    for cells, size in asked:
        best, least = np.full((2, n_sums, size), np.nan), np.inf
        for number, part in enumerate(answers.parts):
            noise = float(answers.variance[:, number].sum())
            seldom = _cells_in(cells_of_few[number], part.n_cells, cells[some], size)
            if seldom is None or noise * (seldom < size).sum() >= least:  # all rows are in no fewer cells than some
                continue
            into = _whole_cells(part.cells(schema, codes), part.n_cells, cells, size)
            if into is not None and (told := noise * float((into < size).sum())) < least:
                best, least = _summed(answers, number, into, size, sum_of, n_sums + 1)[:, :n_sums], told
        found.append(best)
    direct, variance = np.concatenate(found, axis=2)
    if combined is not None:
        direct, variance = direct @ combined.T, variance @ combined.T**2
    return np.where(np.isnan(direct), np.inf, variance + (direct - counts) ** 2)


def _cells_in(part: NDArray[Any], n_cells: int, cells: NDArray[Any], size: int) -> Ints | None:
    """The cell of the question, or `size` for none, that each cell of a part lies in; None if one lies in several.

    Both are given by the cells of the same rows. A cell without rows is in none.

    >>> _cells_in(np.array([0, 1, 2, 2]), 4, np.array([1, 0, 0, 0]), 1)
    array([1, 0, 0, 1])
    >>> _cells_in(np.array([0, 1, 2, 2]), 4, np.array([1, 0, 0, 1]), 1) is None
    True
    """
    into = np.full(n_cells + 1, size)
    into[part] = cells
    return into[:-1] if into[-1] == size and np.array_equal(into[part], cells) else None


def _whole_cells(part: NDArray[Any], n_cells: int, cells: NDArray[Any], size: int) -> Ints | None:
    """As `_cells_in`; None also if a cell without rows may be part of the question: private rows may well be in it.

    Only a question about the part's own cells, one by one, is known not to have it.

    >>> _whole_cells(np.array([0, 1, 1]), 3, np.array([1, 0, 0]), 1) is None
    True
    >>> _whole_cells(np.array([0, 1, 1]), 3, np.array([0, 1, 1]), 3)
    array([0, 1, 3])
    """
    into = _cells_in(part, n_cells, cells, size)
    if into is None or (size == n_cells and np.array_equal(part, cells)):
        return into
    return into if len(np.unique(part[part < n_cells])) == n_cells else None


def _summed(answers: RawAnswers, number: int, into: Ints, size: int, sum_of: Ints, n_sums: int) -> Floats:
    """The sums y and variances V, [2, sums, cells], of the raw answers to a part; NaN for cells that it has none in."""
    asked = into < size
    counts, variance = np.zeros((len(sum_of), size)), np.bincount(into[asked], minlength=size).astype(np.float64)
    np.add.at(counts.T, into[asked], answers.counts[number].T[asked])
    variances = answers.variance[:, number, None] * variance
    both = np.stack([added_up(each, sum_of, n_sums) for each in (counts, variances)])
    both[:, :, variance == 0] = np.nan
    return both
