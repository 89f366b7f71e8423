"""What a tuner may try: which parts to ask at which level, for which share of the budget, and how to estimate.

Which parts are worth their noise is predicted first. Let S be the second moments of what the prior is off by, over the
groups that are played, in the cells of all one-way parts, and v the noise's variance in a share. Asking a part with
cells A leaves

    S' = S - S[:, A] (S[A, A] + v I)^-1 S[A, :]          worth  sum over all cells of  sqrt(S_ii) - sqrt(S'_ii)

and parts are taken one by one, the best first: what others tell already is worth little. A two-way part is ranked by
what one-way parts do not tell. Its cells are off by u (mean square over groups) once the prior's table has been scaled
to the group's own one-way shares, and by u v / (u + v) when it is asked. The rehearsal has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.joint import mass_per_cell
from prade.parts import Marginal
from prade.plan import Ask, Level, Plan
from prade.public import Public
from prade.rehearse import Fold, Rehearsal
from prade.schema import Schema
from prade.select import Information, strongest_pairs
from prade.settings import Settings
from prade.workload import Workload

Floats = NDArray[np.float64]
Columns = tuple[str, ...]
Change = tuple[str, "Choice"]

TOTALS = tuple(Fraction(share) for share in ("0", "1/50", "1/20", "1/10", "1/5", "1/3", "1/2", "4/5", "19/20"))
ONE_WAY = tuple(Fraction(share) for share in ("1", "3/4", "1/2", "1/3", "1/4", "1/6", "1/9", "1/12"))  # of the columns
TWO_WAY = (0, 5, 15)
SHARES_ABOVE = tuple(Fraction(share) for share in ("1/30", "1/10", "3/10"))
MIXTURES = (0.0, 0.3, 0.7)
MOST_CELLS = 100  # of a two-way part: a group has too few rows for more
SMALL_RISK = 0.01  # of a wrong number of rows: it costs less than a hundredth of the worst error then
MOST_PAIRS = 60  # of which it is predicted what they are worth


@dataclass(frozen=True)
class Choice:
    """What is chosen: the columns of each part and the share of the totals at the last level, and what is asked above.

    `above` has the share of the whole budget and the parts of each level but the last.
    """

    parts: tuple[Columns, ...]
    above: tuple[tuple[Fraction, tuple[Columns, ...]], ...] = ()
    total: Fraction = Fraction(0)
    settings: Settings = field(default_factory=Settings)

    def levels(self, schema: Schema, nest: Sequence[Columns]) -> list[Level]:
        """The levels of a plan.

        >>> schema = Schema.from_mbi({"age": 4, "sex": 2})
        >>> choice = Choice((("age",), ("sex",)), ((Fraction(1, 10), (("age", "sex"),)),), Fraction(1, 3))
        >>> [str(level.share) for level in choice.levels(schema, [("STATE",), ("PUMA",)])]
        ['1/10', '9/10']
        """
        found = [
            Level(by, Ask(Workload.marginals(schema, parts), share) if share else (), 0)
            for by, (share, parts) in zip(nest[:-1], self.above, strict=True)
        ]
        last = 1 - sum((share for share, _ in self.above), Fraction(0))
        ask = Ask(Workload.marginals(schema, self.parts), last * (1 - self.total))
        return [*found, Level(nest[-1], ask, last * self.total)]


class Candidates:
    """What may be changed, one thing at a time, from simple to elaborate."""

    def __init__(self, rehearsal: Rehearsal, public: Public, plan_of: Callable[[Choice], Plan]) -> None:
        self.rehearsal = rehearsal
        self.schema = public.prior.schema
        self.plan_of = plan_of
        self.single: tuple[Columns, ...] = tuple((name,) for name in self.schema.coded)
        strongest = strongest_pairs(Information.of(public.prior, self.schema.coded))
        small = [pair for pair in strongest if self.schema.domain_size(pair) <= MOST_CELLS]
        self.pairs: tuple[Columns, ...] = tuple(small[:MOST_PAIRS])
        ends = np.cumsum([0, *self.schema.shape(self.schema.coded)]).tolist()
        self.cells = [slice(*each) for each in pairwise(ends)]
        self.moments = shrunk_moments(self._deviations())

    def simplest(self, levels: int) -> Choice:
        """All one-way parts at the last level, and of the totals' shares the first that is enough to know them by."""
        above = ((Fraction(0), ()),) * (levels - 1)
        choices = [Choice(self.single, above, share) for share in TOTALS]
        folds = range(len(self.rehearsal.folds))
        risks = []
        for choice in choices:
            risks.append(float(np.mean([self.rehearsal.risk(self.plan_of(choice), fold) for fold in folds])))
            if risks[-1] < SMALL_RISK:
                break
        return choices[int(np.argmin(risks))]

    def ladders(self, best: Callable[[], Choice]) -> Iterator[Iterator[Change]]:
        """Changes of what is best by then, in words: on each ladder from simple to elaborate, the quick ones first."""
        # A whole table is larger than the single public groups that play it, and like none of them: what pays for them,
        # to ask less and to look for one that it resembles, is not tried for it.
        grouped = bool(self.plan_of(best()).groups.names)
        if grouped:
            yield self._one_way(best)
        place = TOTALS.index(best().total)
        for shares in (reversed(TOTALS[:place]), TOTALS[place + 1 :]):
            yield self._totals(best, shares)
        above = range(len(best().above))
        for place in reversed(above):
            yield iter([self._above(best, place, "nothing", Fraction(0), ())])
            others = tuple(part for part in self.single if part not in best().parts)
            if others:
                yield self._shares_above(best, place, "the other one-way parts", others)
            yield self._shares_above(best, place, "one-way parts", self.single)
        if grouped and all(len(fold.public.groups) > 1 for fold in self.rehearsal.folds):
            yield self._settings(best, "mixture", MIXTURES)
        if self._same_groups(self.plan_of(best())):
            yield self._settings(best, "own", (0.98, 0.9))
            yield self._settings(best, "own", (0.98, 0.999))
        yield self._settings(best, "n0", (10.0, 3.0))
        yield self._settings(best, "n0", (10.0, 30.0, 100.0, 300.0, 1000.0))
        yield self._two_way(best)
        for place in reversed(above):
            parts = self.single + self.pairs[: TWO_WAY[-1]]
            yield self._shares_above(best, place, "one- and two-way parts", parts)

    def _totals(self, best: Callable[[], Choice], shares: Iterable[Fraction]) -> Iterator[Change]:
        for share in shares:
            yield f"share {share} for the totals", replace(best(), total=share)

    def _one_way(self, best: Callable[[], Choice]) -> Iterator[Change]:
        for share in ONE_WAY:
            number = math.ceil(share * len(self.single))
            pairs = tuple(part for part in best().parts if len(part) > 1)
            asked = replace(best(), parts=self.single[:number] + pairs)  # any ones: the noise is that of so many parts
            kept = telling_parts(self.moments, self.cells, self._variance(asked) * self.per_row_squared, number)
            yield f"{number} one-way parts", replace(best(), parts=tuple(self.single[k] for k in sorted(kept)) + pairs)

    def _two_way(self, best: Callable[[], Choice]) -> Iterator[Change]:
        single = tuple(part for part in best().parts if len(part) == 1)
        variance = self._variance(best())
        gains = [predicted_gain(self.rehearsal.folds, self.schema, pair, variance) for pair in self.pairs]
        ranked = [self.pairs[k] for k in np.argsort(-np.array(gains), kind="stable")]
        for number in TWO_WAY:
            yield f"{number} two-way parts", replace(best(), parts=single + tuple(ranked[:number]))

    def _shares_above(
        self, best: Callable[[], Choice], place: int, words: str, parts: tuple[Columns, ...]
    ) -> Iterator[Change]:
        free = 1 - sum((share for k, (share, _) in enumerate(best().above) if k != place), Fraction(0))
        for share in SHARES_ABOVE:
            yield self._above(best, place, f"{words} for {share} of the budget", share * free, parts)

    def _above(
        self, best: Callable[[], Choice], place: int, words: str, share: Fraction, parts: tuple[Columns, ...]
    ) -> Change:
        above = list(best().above)
        above[place] = share, parts
        return f"level {place + 1}: {words}", replace(best(), above=tuple(above))

    def _settings(self, best: Callable[[], Choice], name: str, values: Sequence[float]) -> Iterator[Change]:
        for value in values:
            changed: dict[str, Any] = {name: value}
            yield f"{name} {value:g}", replace(best(), settings=replace(best().settings, **changed))

    @cached_property
    def per_row_squared(self) -> float:
        """What turns the variance of a count into that of a share: the mean of 1 / rows^2."""
        return float(np.mean([np.mean((fold.shrink / np.bincount(fold.group)) ** 2) for fold in self.rehearsal.folds]))

    def _variance(self, choice: Choice) -> float:
        """Of the noise in a count of the last level."""
        return self.plan_of(choice).questions[-1].variance

    def _deviations(self) -> Floats:
        """What the prior is off by in the cells of all one-way parts: [played groups of all folds, cells]."""
        parts = []
        for part in self.single:
            both = [fold_shares(fold, self.schema, part) for fold in self.rehearsal.folds]
            parts.append(np.concatenate([truth - prior for truth, prior in both]))
        return np.concatenate(parts, axis=1)

    def _same_groups(self, plan: Plan) -> bool:
        """Whether there are public rows of the groups that are played, at any level."""
        grouped = [level.by for level in plan.levels if level.by]
        return any(
            (fold.public.within(fold.groups.level(by)) >= 0).any() for fold in self.rehearsal.folds for by in grouped
        )


def shrunk_moments(deviations: Floats) -> Floats:
    """Second moments of [groups, cells], the correlations shrunk as far as so few groups cannot tell them from chance.

    r_ij is known to within (1 - r_ij^2) / sqrt(groups); of all r_ij the share lambda = sum of the squares of that over
    sum of r_ij^2 is chance (Schäfer and Strimmer, 2005).

    >>> shrunk_moments(np.array([[1.0, 1.0], [-1.0, 1.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    moments = deviations.T @ deviations / len(deviations)
    scale = np.sqrt(np.diag(moments))
    correlation = _ratio(moments, np.outer(scale, scale))
    apart = ~np.eye(len(scale), dtype=np.bool_)
    known = correlation[apart] ** 2
    chance = float(np.sum((1 - known) ** 2)) / len(deviations)
    kept = 1 - min(1.0, chance / max(float(known.sum()), chance, 1e-300))
    return np.asarray(np.where(apart, kept * moments, moments))


def telling_parts(moments: Floats, cells: Sequence[slice], variance: float, number: int) -> list[int]:
    """So many parts, the one that tells most first, given those before it. Cells of part k are at `cells[k]`.

    >>> twins_and_another = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 0.5]])
    >>> telling_parts(twins_and_another, [slice(0, 1), slice(1, 2), slice(2, 3)], 0.1, 2)
    [0, 2]
    """
    left = moments.copy()
    found: list[int] = []
    for _ in range(number):
        best, told = -1.0, np.zeros_like(left)
        for k, at in enumerate(cells):
            if k in found:
                continue
            mine = left[:, at]
            answered = np.linalg.solve(left[at, at] + variance * np.eye(mine.shape[1]), mine.T)
            rest = np.diag(left) - np.einsum("ij,ji->i", mine, answered)
            worth = float(np.sum(np.sqrt(np.maximum(np.diag(left), 0.0)) - np.sqrt(np.maximum(rest, 0.0))))
            if worth > best:
                best, chosen, told = worth, k, mine @ answered
        found.append(chosen)
        left = left - told
    return found


def predicted_gain(folds: Sequence[Fold], schema: Schema, columns: Columns, variance: float) -> float:
    """By how much a two-way part comes nearer to the truth when it is asked with noise of this variance in counts.

    Only what its columns' one-way shares do not tell, summed over cells.
    """
    gains = []
    for fold in folds:
        truth, prior = fold_shares(fold, schema, columns)
        for axis in (1, 2):
            prior *= _ratio(truth.sum(axis=axis, keepdims=True), prior.sum(axis=axis, keepdims=True))
        off = np.mean((truth - prior) ** 2, axis=0)
        noise = variance * float(np.mean((fold.shrink / np.bincount(fold.group)) ** 2))
        gains.append(float(np.sum(np.sqrt(off) - np.sqrt(off * noise / (off + noise)))))
    return float(np.mean(gains))


def fold_shares(fold: Fold, schema: Schema, columns: Columns) -> tuple[Floats, Floats]:
    """Shares of the cells in every group of a fold, true ones and the prior's: [groups, *sizes] each."""
    part = Marginal.of(schema, columns)
    shape = len(fold.groups), *part.sizes
    size = part.n_cells

    def shares(codes: dict[str, NDArray[np.int64]], group: NDArray[np.int64], weights: Floats) -> Floats:
        inside = group >= 0
        cells = part.cells(schema, codes).astype(np.int64)[inside] + size * group[inside]
        mass = mass_per_cell(cells, weights[inside], len(fold.groups) * size).reshape(shape)
        return _ratio(mass, mass.sum(axis=tuple(range(1, len(shape))), keepdims=True))

    rows = fold.public.prior
    truth = shares(dict(fold.codes), fold.group, np.ones(len(fold.group)))
    prior = shares(rows.codes, fold.public.within(fold.groups.level(fold.groups.names)), rows.weights)
    absent = prior.reshape(len(prior), -1).sum(axis=1) == 0
    prior[absent] = mass_per_cell(part.cells(schema, rows.codes), rows.weights, size).reshape(part.sizes)
    return truth, prior


def _ratio(above: Floats, below: Floats) -> Floats:
    shape = np.broadcast_shapes(above.shape, below.shape)
    return np.divide(above, below, out=np.zeros(shape), where=np.broadcast_to(below > 0, shape))
