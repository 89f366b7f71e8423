"""The whole run rehearsed on public data: some public rows play the private ones, and the result is scored.

A fold splits the public table in two: rows that stay public, and rows that play the private ones. Their counts get
noise of the plan's law and scale, the estimates are made as in earnest (`prade.estimating.levels.descent`), and a
group's error is

    (1 - P) * mean over pairs of |p - q|_1  +  2 P          P: probability that its number of rows is off by 250 or more

Who plays whom is said in `prade.tuning.stand_ins`. The noise comes from numpy with a seed: the data are public, nothing
is to be protected, and trials must be comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from prade.core.arrays import Floats, Ints, mass_by_group
from prade.core.errors import DataError
from prade.core.threads import cores
from prade.core.words import names_of
from prade.data.groups import Groups
from prade.data.public import Public
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.estimating.levels.totals import smooth_totals
from prade.planning.plan import Plan
from prade.planning.questions import Question
from prade.planning.settings import Settings
from prade.queries.parts import Part
from prade.release.release import Release
from prade.scoring.distances import WORST, Codes, Pair, mean_distance
from prade.scoring.public_baseline import PublicBaseline
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.stand_ins import Fold, Kind, folds_of, kept

MOST_SCORED = 16  # groups a fold: their mean error is then known to about a tenth of what groups differ by
MOST_PAIRS = 80
DRAWS = 400  # of each group's number of rows


class Rehearsal:
    """Folds of a public table, and the errors that a plan would make in them.

    >>> from prade import Ask, Budget, Level, Unit, Workload
    >>> from prade.data.invented import census_like
    >>> data = census_like(persons=2_000, places_per_state=4, seed=1)
    >>> public = Public.of(data.schema, data.public, ["STATE", "PLACE"])
    >>> groups = data.groups.select(["STATE", "PLACE"]).group_by(["STATE", "PLACE"]).aggregate([])
    >>> rehearsal = Rehearsal.of(public, groups, ["STATE", "PLACE"])
    >>> rehearsal.kind, len(rehearsal.folds)
    ('other groups', 2)
    >>> ages = Ask(Workload.marginals(data.schema, ["AGE"]))
    >>> levels = [Level("STATE"), Level("PLACE", ages, total="1/10")]
    >>> plan = Plan("people", data.schema, Budget.pure(10), Unit(1), levels, groups)
    >>> bool(0 < rehearsal.error(plan) < rehearsal.prior_error < 2)
    True
    """

    def __init__(
        self,
        kind: Kind,
        folds: Sequence[Fold],
        pairs: Sequence[Pair],
        *,
        scored: int = MOST_SCORED,
        bias: int | None = CONTEST_BIAS,
        threads: int | None = None,
    ) -> None:
        self.kind = kind
        self.folds = tuple(folds)
        self.pairs = tuple(pairs)
        self.scored = scored
        self.bias = bias
        self.threads = threads or cores()

    @classmethod
    def of(
        cls,
        public: Public,
        groups: Any,
        levels: Sequence[str | Sequence[str]],
        *,
        scored: int = MOST_SCORED,
        pairs: int = MOST_PAIRS,
        bias: int | None = CONTEST_BIAS,
        seed: int = 0,
        threads: int | None = None,
    ) -> Rehearsal:
        """The folds for a plan with these groups and levels (the columns of each). The seed says who plays whom.

        At most `scored` groups a fold are scored, on at most `pairs` pairs of columns.
        """
        columns = tuple(dict.fromkeys(name for level in levels for name in names_of(level)))
        finest = Groups.of(groups).level(columns)
        generator = np.random.default_rng([seed, 0])
        kind, folds = folds_of(kept(public, np.arange(len(public))), finest, generator)
        if not folds:
            raise DataError("the public table is too small for a rehearsal: give more rows, or write the plan yourself")
        every = list(combinations(public.prior.schema.coded, 2))
        if not every:
            raise DataError("a rehearsal scores pairs of columns, and the schema has only one column")
        chosen = generator.permutation(len(every))[:pairs]
        return cls(kind, folds, [every[k] for k in sorted(chosen)], scored=scored, bias=bias, threads=threads)

    # ---------------------------------------------------------------- what comes out

    def error(self, plan: Plan, settings: Settings | None = None, *, seed: int = 0) -> float:
        """The mean over folds and groups of the error of a plan's estimates."""
        return mean_of([self.errors(plan, settings, seed=seed, fold=fold) for fold in range(len(self.folds))])

    def errors(self, plan: Plan, settings: Settings | None = None, *, seed: int = 0, fold: int = 0) -> Floats:
        """The errors of the scored groups of a fold. Trials with one seed share the noise, up to its scale."""
        played = self.folds[fold]
        stage = self._plan(plan, played)
        release = Release(Path(), stage, _noisy(stage, played, seed))
        descent = Descent(
            release, played.public, settings or Settings(), rough=True, threads=self.threads, cells=played.cells
        )
        truth = self._truth(fold)

        def distance(found: GroupEstimate) -> float:
            return mean_distance(truth[found.group], found.estimate, self.pairs)

        distances = np.array(list(islice(descent.map(distance), len(truth)))) * played.shrink
        risk = self.risk(plan, fold, seed)
        return np.asarray((1 - risk) * distances + WORST * risk)

    def risk(self, plan: Plan, fold: int = 0, seed: int = 0) -> float:
        """P, simulated: the noisy numbers of rows of all groups of a fold, smoothed together as the estimates are."""
        if self.bias is None:
            return 0.0
        played = self.folds[fold]
        last = len(plan.levels) - 1
        asked = [question for question in plan.questions if question.level == last]
        generator = np.random.default_rng([seed, 1])
        shape = DRAWS, len(played.rows)
        same = self.kind == "same groups"
        # last year's numbers and this year's are both samples: the square of their difference is about 2 rows a row
        rows = played.rows + np.sqrt(2 * played.rows) * generator.standard_normal(shape) * same
        weighted, precision = np.zeros(shape), 0.0
        for question in asked:
            for place, variance_of_sum in question.total_variances():
                cells, weight = question.parts[place].n_cells, 1 / variance_of_sum
                weighted += weight * _sum_of_noise(question, cells, shape, generator)
                precision += weight
        if not precision:
            return 1.0
        noisy = rows + weighted / precision
        variance = np.full(shape[1], 1 / precision)
        sizes = played.rows if same else played.sizes
        off = 0.0
        for truth, answer in zip(rows, noisy, strict=True):
            expected = sizes * (answer.sum() / sizes.sum())
            off += float(np.mean(np.abs(smooth_totals(answer, variance, expected) - truth) >= self.bias))
        return off / DRAWS

    def prior_errors(self, fold: int = 0) -> Floats:
        """Errors of the public rows as they are: those of the same group where there are any, or else all of them."""
        played = self.folds[fold]
        baseline = PublicBaseline(played.public, played.own)
        errors = [baseline.error(truth, group, self.pairs) for group, truth in enumerate(self._truth(fold))]
        return np.array(errors) * played.shrink

    @property
    def prior_error(self) -> float:
        """The mean of the prior's errors."""
        return mean_of([self.prior_errors(fold) for fold in range(len(self.folds))])

    # ---------------------------------------------------------------- one trial

    def _plan(self, plan: Plan, played: Fold) -> Plan:
        """The same plan for the groups of a fold; where noise shrinks by s, a budget of eps / s or rho / s^2."""
        power = 1 if plan.noise_budget.kind == "pure" else 2
        budget = plan.noise_budget * (1 / played.noise**power)
        return Plan(plan.dataset, plan.schema, budget, plan.unit, plan.levels, played.groups)

    def _truth(self, fold: int) -> list[Codes]:
        """The rows of each scored group: the first ones of the fold's list, which is in random order."""
        played = self.folds[fold]
        number = min(self.scored, len(played.groups))
        rows = [np.flatnonzero(played.group == group) for group in range(number)]
        return [{name: code[each] for name, code in played.codes.items()} for each in rows]


def mean_of(errors: Sequence[Floats]) -> float:
    """Each fold counts alike, and each group within its fold."""
    return float(np.mean([each.mean() for each in errors]))


# ---------------------------------------------------------------------- noise


def _noisy(plan: Plan, played: Fold, seed: int) -> tuple[tuple[Ints, ...], ...]:
    """Counts with noise: the standard noise of a part depends on seed, level and part only, whatever else is asked."""
    finest = plan.groupings[-1]
    found = []
    for question in plan.questions:
        level = plan.groupings[question.level]
        group = finest.above(level)[played.group]
        found.append(
            tuple(
                mass_by_group(group, len(level), part.cells(plan.schema, played.codes), part.n_cells)
                + np.rint(_standard(question, part, name, len(level), seed) * float(question.scale)).astype(np.int64)
                for part, name in zip(question.parts, question.names(), strict=True)
            )
        )
    return tuple(found)


def _standard(question: Question, part: Part, name: str, groups: int, seed: int) -> Floats:
    generator = np.random.default_rng([seed, 2, question.level, crc32(name.encode())])
    shape = groups, part.n_cells
    return generator.laplace(size=shape) if question.law == "laplace" else generator.standard_normal(shape)


def _sum_of_noise(question: Question, cells: int, shape: tuple[int, int], generator: np.random.Generator) -> Floats:
    """The noise in the sum of so many counts: Laplace noise is the difference of two exponential ones."""
    if question.law == "laplace":
        sums = generator.standard_gamma(cells, shape) - generator.standard_gamma(cells, shape)
    else:
        sums = np.sqrt(cells) * generator.standard_normal(shape)
    return np.asarray(float(question.scale) * sums)
