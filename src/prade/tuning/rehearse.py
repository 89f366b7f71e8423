"""The whole run rehearsed on public data: some public rows stand in for the private ones, and the result is scored.

The counts of the stand-ins (`prade.tuning.stand_ins`) get noise of the plan's law and scale, the estimates are made as
in the real run (`prade.estimating.levels.descent`), and a group's error is

    (1 - P) * mean over pairs of |p - q|_1  +  2 P          P: probability that its number of rows is off by 250 or more

or, with targets, that of what they name (`prade.tuning.target_errors`).

Groups that chose a plan make its error look smaller than it is. So where a stand-in has enough groups, some choose the
plan and others, which had no part in it, say which error to expect.

The noise comes from numpy with a seed: the data are public, and trials must be comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from prade.core.arrays import Floats, Ints, PreciseMean, mass_by_group
from prade.core.errors import names_of
from prade.core.execution import Execution
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Rule
from prade.data.public.public import Public, kept
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.estimating.levels.tree import LevelPosterior
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.planning.task import Target
from prade.release.release import Release
from prade.scoring.distances import WORST, Codes, Pair, mean_distance
from prade.scoring.evaluation import PublicBaseline
from prade.scoring.score import CONTEST_BIAS, chosen_pairs
from prade.tuning.stand_ins import TOO_SMALL, Kind, StandIn, TooSmall, stand_ins_of
from prade.tuning.target_errors import LEAST_ERROR, REST, StandInTargets, WantedErrors, errors_in

MOST_SCORED = 16  # groups per stand-in: their mean error is then known to about a quarter of what groups differ by
MOST_PAIRS = 80  # the mean over these differs from the mean over all pairs by far less than groups differ
FEWEST_APART = 8  # groups that choose a plan, and as many others that say its error: with fewer, the same do both


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The stand-ins that a public table offers, and the errors that a plan would make with them."""

    kind: Kind
    stand_ins: Sequence[StandIn]
    pairs: Sequence[Pair]
    scored: int = MOST_SCORED
    bias: int | None = CONTEST_BIAS
    threads: int = 1
    wanted: WantedErrors | None = None

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
        threads: int = 1,
        targets: Sequence[Target] = (),
    ) -> Rehearsal:
        """For a plan with these groups and levels (the columns of each). The seed decides which rows stand in.

        At most `scored` groups per stand-in are scored, on at most `pairs` pairs of columns.
        """
        columns = tuple(dict.fromkeys(name for level in levels for name in names_of(level)))
        finest = Groups.of(groups).level(columns)
        generator = np.random.default_rng([seed, 0])
        if len(public) < 2:  # one row cannot both stay public and stand in
            raise TooSmall(TOO_SMALL)
        kind, stand_ins = stand_ins_of(kept(public, np.arange(len(public))), finest, generator)
        if not stand_ins:
            raise TooSmall(TOO_SMALL)
        every = chosen_pairs(public.prior.schema.coded, "all")
        among = [every[k] for k in sorted(generator.permutation(len(every))[:pairs])]
        return cls(kind, stand_ins, among, scored, bias, threads, WantedErrors(targets, public) if targets else None)

    @cached_property
    def apart(self) -> bool:
        """Whether the groups that say which error to expect are others than those that choose the plan."""
        return all(min(self.scored, len(each.groups) // 2) >= FEWEST_APART for each in self.stand_ins)

    def groups_of(self, stand_in: int, *, fresh: bool = False) -> range:
        """The groups of a stand-in that choose a plan, or those that say its error: its list is in random order."""
        number = len(self.stand_ins[stand_in].groups)
        if not self.apart:
            return range(min(self.scored, number))
        half = min(self.scored, number // 2)
        return range(half, 2 * half) if fresh else range(half)

    def kept_back(self, stand_in: int) -> range:
        """The groups of a stand-in that must have no part in choosing a plan."""
        return self.groups_of(stand_in, fresh=True) if self.apart else range(0)

    # ---------------------------------------------------------------- what comes out

    def errors(
        self, plan: Plan, settings: Settings | None = None, *, seed: int = 0, stand_in: int = 0, fresh: bool = False
    ) -> Floats:
        """The errors in the groups of one stand-in that choose a plan; with `fresh`, in those that say its error.

        Trials with one seed share the noise, up to its scale. With targets, they are those of what the targets name.
        """
        return self._joined(*self.both_errors(plan, settings, seed=seed, stand_in=stand_in, fresh=fresh))

    def both_errors(
        self, plan: Plan, settings: Settings | None = None, *, seed: int = 0, stand_in: int = 0, fresh: bool = False
    ) -> tuple[Floats, Floats]:
        """The errors of two-way tables [groups], and those of everything that targets name [groups, wanted]."""
        descent, scored = self._descent(plan, settings, stand_in, seed), self.groups_of(stand_in, fresh=fresh)

        def distance(each: GroupEstimate) -> float:
            return mean_distance(self.truth(stand_in, each.group), each.estimate, self.pairs)

        wanted = np.zeros((len(scored), 0))
        if self.wanted is not None:
            distances, wanted = errors_in(descent, scored, self.targets[stand_in], distance)
        else:
            distances = np.array(list(descent.map(distance, scored)))
        risk = self.risk(plan, stand_in, descent.last)
        return np.asarray((1 - risk) * (distances * self.stand_ins[stand_in].shrink) + WORST * risk), wanted

    def rehearsed_risk(self, plan: Plan) -> float:
        """The mean over stand-ins of P, with numbers of rows as a rehearsal of the plan finds them."""
        if self.bias is None or len(plan.levels) - 1 in plan.published:
            return 0.0
        risks = []
        for stand_in in range(len(self.stand_ins)):
            descent = self._descent(plan, plan.settings, stand_in, 0)
            risks.append(self.risk(plan, stand_in, descent.last))
        return float(np.mean(risks))

    def _descent(self, plan: Plan, settings: Settings | None, stand_in: int, seed: int) -> Descent:
        chosen, execution = self.stand_ins[stand_in], Execution(self.threads)
        release = self.release(plan, stand_in, seed)
        return Descent(release, chosen.public, settings, rough=True, cells=chosen.cells, execution=execution)

    def risk(self, plan: Plan, stand_in: int = 0, known: LevelPosterior | None = None) -> float:
        """P: the chance that a group's number of rows is off by `bias`.

        Its error is taken to have the law of the plan's noise: with Laplace noise, one group in a hundred was off by
        more than a Gaussian error explains (ACS, epsilon 0.1). `known` is what a rehearsal found, which also knows how
        far off that is. Without it, the error is that of noisy numbers and sums of tables, drawn towards what is
        expected of groups that differ as the stand-in's do.
        """
        if self.bias is None or len(plan.levels) - 1 in plan.published:
            return 0.0
        chosen, recur = self.stand_ins[stand_in], self.kind == "recurring groups"
        if known is not None:
            off_by = known.totals - np.bincount(chosen.group, minlength=len(chosen.rows))
            choosing = np.isin(np.arange(len(off_by)), self.kept_back(stand_in), invert=True)
            expected = max(float(np.mean(known.rows_variance[choosing])), 1e-300)
            wrong = float(np.mean(off_by[choosing] ** 2)) / expected
            # in the real run, noise is larger by 1 / chosen.noise
            variance = max(wrong, 1.0) * known.rows_variance / chosen.noise**2
        else:
            told = PreciseMean(1)
            for question in (each for each in plan.questions if each.level == len(plan.levels) - 1):
                for _, of_part in question.total_variances():
                    told.add(np.zeros(1), of_part)
            if not told.known:
                return 1.0
            sizes = chosen.rows if recur else chosen.sizes
            away = chosen.rows - sizes * (chosen.rows.sum() / sizes.sum())
            # this year's number and last year's are both samples: their difference has the variance 2 rows
            spread = np.maximum(2.0 * chosen.rows, float(np.mean(away**2)))
            variance = spread * told.variance / (spread + told.variance)
        return float(np.mean(plan.law.beyond(self.bias / np.sqrt(np.maximum(variance, 1e-300)))))

    def public_errors(self, stand_in: int = 0, *, fresh: bool = False) -> Floats:
        """The errors of the public baseline in the same groups as those of `errors`."""
        return self._joined(*self.both_public_errors(stand_in, fresh=fresh))

    def both_public_errors(self, stand_in: int = 0, *, fresh: bool = False) -> tuple[Floats, Floats]:
        """As `both_errors`, of the public baseline."""
        chosen = self.stand_ins[stand_in]
        baseline = PublicBaseline(chosen.public, chosen.recurring)
        groups = self.groups_of(stand_in, fresh=fresh)
        errors = [baseline.error(self.truth(stand_in, group), group, self.pairs) for group in groups]
        wanted = np.zeros((len(groups), 0)) if self.wanted is None else self.targets[stand_in].public_errors(groups)
        return np.array(errors) * chosen.shrink, wanted

    # ---------------------------------------------------------------- targets

    @cached_property
    def targets(self) -> list[StandInTargets]:
        """What the targets name, in each stand-in."""
        return [] if self.wanted is None else [StandInTargets(self.wanted, each) for each in self.stand_ins]

    @cached_property
    def targets_above(self) -> bool:
        """Whether some target is at a level above the last, where all groups share the noise, and so its luck."""
        return any(not last for each in self.targets for last in each.last)

    @cached_property
    def _scales(self) -> tuple[float, Floats]:
        """The public table's mean errors, to divide by, in the groups that choose a plan."""
        both = [self.both_public_errors(stand_in) for stand_in in range(len(self.stand_ins))]
        wanted = np.mean([each.mean(axis=0) for _, each in both], axis=0)
        by_level = wanted if self.wanted is None else self.wanted.by_level(wanted)
        return max(mean_of([each for each, _ in both]), LEAST_ERROR), np.maximum(by_level, LEAST_ERROR)

    def _joined(self, distances: Floats, wanted: Floats) -> Floats:
        """The errors that count: of two-way tables or, with targets, mostly of what they name."""
        if self.wanted is None:
            return distances
        of_distance, of_wanted = self._scales
        joined = wanted @ (self.wanted.weights / of_wanted) + REST * distances / of_distance
        return np.asarray(joined / (1 + REST))

    # ---------------------------------------------------------------- one trial

    def release(self, plan: Plan, stand_in: int = 0, seed: int = 0) -> Release:
        """What measuring would give if a stand-in were the private table.

        Where its noise shrinks by s, it gets the same plan with a budget of eps / s or rho / s^2.
        """
        chosen, power = self.stand_ins[stand_in], 1 if plan.noise_budget.kind == "pure" else 2
        budget = plan.noise_budget * (1 / chosen.noise**power)
        rules = [each for each in plan.invariants if isinstance(each, Rule)]  # added rows obey them too
        what = plan.dataset, plan.schema, budget, plan.unit, plan.levels, chosen.groups
        rehearsed = Plan(*what, invariants=rules, noise=plan.law)
        return Release(Path(), rehearsed, _noisy(rehearsed, chosen, seed))

    def truth(self, stand_in: int, group: int) -> Codes:
        """The rows of a group of a stand-in."""
        chosen = self.stand_ins[stand_in]
        rows = np.flatnonzero(chosen.group == group)
        return {name: code[rows] for name, code in chosen.codes.items()}


def mean_of(errors: Sequence[Floats]) -> float:
    """Each stand-in counts alike, and each group within its stand-in."""
    return float(np.mean([each.mean() for each in errors]))


# ---------------------------------------------------------------------- noise


def _noisy(plan: Plan, chosen: StandIn, seed: int) -> tuple[tuple[Ints, ...], ...]:
    """Counts with noise: the standard noise of a part depends on seed, level, part and law, whatever else is asked."""
    noisy = []
    for question in plan.questions:
        level, counts = plan.groupings[question.level], []
        group = plan.groupings[-1].above(level)[chosen.group]
        for part, name in zip(question.parts, question.names(), strict=True):
            generator = np.random.default_rng([seed, 2, question.level, crc32(name.encode())])
            standard = question.law.from_laplace(generator.laplace(size=(len(level), part.n_cells)))
            noise, cells = standard * float(question.scale), part.cells(plan.schema, chosen.codes)
            counts.append(mass_by_group(group, len(level), cells, part.n_cells) + np.rint(noise).astype(np.int64))
        noisy.append(tuple(counts))
    return tuple(noisy)
