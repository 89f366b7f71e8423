"""A table of public benchmark data that plays a private one: its answers and the choices made by them cost epsilon.

Noise and choices are exact, by OpenDP, and take no seed. There is no ledger, because nobody is to be protected here;
the epsilons of choices and answers add up to what a method has all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from prade import Budget, Groups, Part, Schema, Unit
from prade.core.arrays import PreciseMean
from prade.core.numbers import exact, float_above
from prade.data.public.joint import Prior
from prade.measuring.noise import add_noise
from prade.measuring.source import counts_of, open_source, tally_of
from prade.queries.parts import Marginal, everybody
from prade.release.release import Measurement

STEPS_PER_ROW = 64  # the unit in which the dependence is counted
TOTAL_SHARE = 0.05  # of epsilon, for the number of rows, which the papers assume to be known
SMALLEST_VARIANCE = 1e-9

Counts = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Score:
    """A whole number for the true counts of a part; adding or removing r rows moves it by at most r per_row + extra."""

    part: Part
    of: Callable[[Counts], int]
    per_row: int
    extra: int = 0


def misfit(part: Part, estimate: Counts, penalty: int = 0) -> Score:
    """sum over cells |true count - estimated count| - penalty: a row is in at most one cell, so it moves this by 1."""
    return Score(part, lambda counts: int(np.abs(counts - estimate).sum()) - penalty, 1)


def gain(part: Part, estimate: Counts, offer: Counts | None = None, penalty: int = 0) -> Score:
    """What an offer in place of an estimate gains: sum |true - estimate| - sum |true - offer| - penalty.

    Without an offer the part would be asked for, and the penalty is the expected noise. A row moves each sum by at most
    1, and the difference by 2 if the true count lies between the estimated one and the offered one.
    """

    def of(counts: Counts) -> int:
        offered = 0 if offer is None else int(np.abs(counts - offer).sum())
        return int(np.abs(counts - estimate).sum()) - offered - penalty

    return Score(part, of, 2)


def dependence(part: Marginal) -> Score:
    """The dependence of a marginal's last column X on its other columns P: n R(X; P), in 64ths of a row.

        n R(X; P) = 1/2 sum over cells |c - a b / n|        c: counts of (P, X); a: of X; b: of P; n: of all rows

    A row moves one c by 1, and the products a b / n by less than 3 in sum, so the score by less than (1 + 3) / 2 = 2
    rows. Rounding adds at most one 64th to a difference, and floating-point errors less than another. (Zhang et al.
    bound it by 3 + 2 / n for an exchanged row and a known n.)
    """

    def of(counts: Counts) -> int:
        table = counts.reshape(-1, part.sizes[-1]).astype(np.float64)
        independent = np.outer(table.sum(axis=1), table.sum(axis=0) / max(table.sum(), 1.0))
        return round(STEPS_PER_ROW * float(np.abs(table - independent).sum()) / 2)

    return Score(part, of, 2 * STEPS_PER_ROW, 2)


class Table:
    """The rows of one table, and the epsilon that is left for questions about them."""

    def __init__(self, rows: Any, schema: Schema, unit: Unit, epsilon: Any) -> None:
        self.source, self.schema, self.unit, self.left = open_source(rows), schema, unit, exact(epsilon, "epsilon")
        self.answers: list[Measurement] = []
        self.record: list[tuple[str, Fraction, int]] = []  # parts, what each question cost, and among how many
        self._counts: dict[Part, Counts] = {}

    def noise(self, epsilon: Fraction) -> Fraction:
        """The noise scale of an answer for this epsilon."""
        return Budget.pure(epsilon).noise_scale(self.unit.rows, self.unit.rows**2)

    def choose(self, scores: Sequence[Score], epsilon: Fraction) -> int:
        """The index of a large score: epsilon-DP, by permute-and-flip (McKenna and Sheldon 2020)."""
        self._pay(epsilon)
        self._need([score.part for score in scores])
        sensitivity = max(score.per_row * self.unit.rows + score.extra for score in scores)
        scale = float(float_above(2 * sensitivity / epsilon))
        index = _noisy_max([score.of(self._counts[score.part]) for score in scores], scale)
        self.record.append((scores[index].part.name, epsilon, len(scores)))
        return index

    def answer(self, part: Part, epsilon: Fraction) -> Measurement:
        """Noisy counts of a part: discrete Laplace noise of scale rows / epsilon."""
        self._pay(epsilon)
        self._need([part])
        scale = self.noise(epsilon)
        self.answers.append(Measurement(part, add_noise(self._counts[part], "laplace", scale), float(scale)))
        self.record.append((part.name, epsilon, 1))
        return self.answers[-1]

    def ask_total(self, share: Any = TOTAL_SHARE) -> None:
        """A noisy number of rows, which every method asks for first."""
        self.answer(everybody(self.schema, self.schema.coded[0]), self.left * exact(share, "share"))

    @property
    def total(self) -> float:
        """The number of rows: the mean of all sums of answers that cover all rows, by inverse variances; 1 at least."""
        mean = PreciseMean()
        for each in (each for each in self.answers if each.part.covers):
            mean.add(each.counts.sum(), max(each.variance.sum(), SMALLEST_VARIANCE))
        return max(float(mean.value), 1.0)

    def _pay(self, epsilon: Fraction) -> None:
        if not 0 < epsilon <= self.left:
            raise ValueError(f"the question costs {epsilon}, and {self.left} is left")
        self.left -= epsilon

    def _need(self, parts: Sequence[Part]) -> None:
        missing = [part for part in dict.fromkeys(parts) if part not in self._counts]
        if not missing:
            return
        tally = tally_of(self.source, self.schema, [((), missing)], Groups.of(), self.unit)
        (counts,) = counts_of(self.source, tally)
        self._counts.update((part, each[0]) for part, each in zip(missing, counts, strict=True))


def _noisy_max(scores: list[int], scale: float) -> int:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    return int(make_noisy_max(*space, max_divergence(), scale=scale)(scores))


def joint(schema: Schema, codes: dict[str, Any], weights: Counts) -> Prior:
    """The distribution with these weights on these rows."""
    return Prior(schema, codes, weights / weights.sum())
