"""A closer look at what a plan makes of the stand-ins: errors by level, column and pair, and a few places' tables.

The estimates are made in full, as in the real run, with noise that had no part in choosing the plan. Levels above the
last are scored as users will see them: the groups of the last level added up. Columns and pairs are scored, and places
shown, in groups of the last level that were kept back, if there are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.execution import Execution
from prade.data.declare.display import group_texts
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Joint
from prade.estimating.levels.cell_counts import interval, sum_variances
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.totals import FEWEST_ROWS
from prade.planning.plan import Plan
from prade.queries.parts import Marginal
from prade.sampling.table import sample_groups
from prade.scoring.distances import distances_of, mean_distance
from prade.scoring.evaluation import PublicBaseline
from prade.tuning.expectation import expected_in_another
from prade.tuning.gain import Columns
from prade.tuning.rehearse import Rehearsal

MOST_PLACES = 4  # that are shown: one small, one large, two between
MOST_LOOKED_AT = 8  # groups per stand-in whose pairs are all scored
MOST_ABOVE = 16  # groups per stand-in that are scored at a level above the last


@dataclass(frozen=True, eq=False)
class Place:
    """A group of a stand-in: its name, number of rows, true shares of all columns' cells, and the public baseline's."""

    stand_in: int
    group: int
    label: str
    rows: int
    truth: Floats
    public: Floats


@dataclass(frozen=True, eq=False)
class Look:
    """What a plan makes of the stand-ins.

    `above` are errors of the levels above the last, by name: that to expect, how far it may be off two times in three,
    and that of the public baseline. `pairs` are [columns, columns]. `tables` has the shares of all columns' cells in
    each place: noisy ones (NaN where nothing is measured), those of the estimate with their standard deviations and
    95 % intervals, and those of synthetic rows.
    """

    above: tuple[dict[str, Any], ...]
    columns: Floats
    pairs: Floats
    tables: tuple[dict[str, Floats], ...]


class CloserLook:
    """The stand-ins of a rehearsal with all that is the same for every plan of some levels (the columns of each)."""

    def __init__(self, rehearsal: Rehearsal, levels: Sequence[Columns], seed: int = 0) -> None:
        self.rehearsal, self.levels, self.seed = rehearsal, tuple(levels), seed
        self.execution = Execution(rehearsal.threads)
        self.stand_ins = rehearsal.stand_ins
        self.schema = self.stand_ins[0].public.prior.schema
        self.names = self.schema.coded
        self.baselines = [PublicBaseline(each.public, each.recurring) for each in self.stand_ins]
        self.places = self._places()
        self.prior = self._by_column([self._distances(k, each.weights) for k, each in enumerate(self.baselines)])
        self._prior_above = [
            float(np.mean([self._baseline_above(by, k).mean() for k in range(len(self.stand_ins))]))
            for by in self.levels[:-1]
        ]

    def _places(self) -> tuple[Place, ...]:
        """A few groups of different sizes: of the first stand-in, or of all where it has too few."""
        rows = [np.bincount(each.group, minlength=len(each.groups)) for each in self.stand_ins]
        fresh = [(k, g) for k in range(len(rows)) for g in self.rehearsal.groups_of(k, fresh=True)]
        first = [each for each in fresh if each[0] == 0]
        pool = sorted(first if len(first) >= MOST_PLACES else fresh, key=lambda each: rows[each[0]][each[1]])
        ranks = np.unique(np.rint(np.linspace(0, len(pool) - 1, MOST_PLACES)).astype(int))
        return tuple(self._place(k, g, int(rows[k][g])) for k, g in (pool[rank] for rank in ranks))

    def _place(self, stand_in: int, group: int, rows: int) -> Place:
        chosen, kind = self.stand_ins[stand_in], self.rehearsal.kind
        if kind == "no groups":
            label = f"public rows drawn at random, group {group + 1}"
        elif not chosen.groups.names:
            label = f"public group {stand_in + 1}, in place of the whole table"
        else:
            label = group_texts(self.schema, chosen.groups.level(chosen.groups.names))[group]
            label = f"half of {label}" if kind == "recurring groups" else label
        truth = self._shares(self.rehearsal.truth(stand_in, group))
        public = self._shares(chosen.public.prior.codes, self.baselines[stand_in].weights(group))
        return Place(stand_in, group, label, rows, truth, public)

    # ---------------------------------------------------------------- one plan

    def at(self, plan: Plan) -> Look:
        """What a plan makes of all stand-ins."""
        above: list[list[Floats]] = []
        distances: list[Floats] = []
        tables: dict[int, dict[str, Floats]] = {}
        for k, chosen in enumerate(self.stand_ins):
            release = self.rehearsal.release(plan, k, self.seed)
            estimates = Estimates.of(
                release, chosen.public, plan.settings, cells=chosen.cells, execution=self.execution
            )
            distances.append(self._distances(k, partial(_weights, estimates)))
            above.append(self._sums(estimates, k))
            tables |= self._tables(estimates, k)
        levels = []
        for by, prior, errors in zip(self.levels, self._prior_above, zip(*above, strict=True), strict=False):
            error, spread = expected_in_another([each[None] for each in errors], len(plan.groups.level(by)))
            rounded = {"error": round(error, 6), "spread": round(spread, 6), "prior": round(prior, 6)}
            levels.append({"level": "+".join(by), **rounded})
        return Look(tuple(levels), *self._by_column(distances), tuple(tables[k] for k in range(len(self.places))))

    def _sums(self, estimates: Estimates, stand_in: int) -> list[Floats]:
        """The errors in groups of the levels above the last, whose estimates are the sums of the last level's."""
        aboves = [self._above(by, stand_in) for by in self.levels[:-1]]
        sums = [np.zeros((min(int(above.max()) + 1, MOST_ABOVE), len(estimates.support))) for above in aboves]
        if not sums:
            return []
        weights = estimates.map(lambda _, weights: weights, self.rehearsal.threads)
        for group, (total, weight) in enumerate(zip(estimates.totals, weights, strict=True)):
            for above, of_level in zip(aboves, sums, strict=True):
                if above[group] < len(of_level):
                    of_level[above[group]] += total * weight
        prior = estimates.support.public.prior
        return [
            self._errors_above(by, stand_in, prior, of_level.__getitem__)
            for by, of_level in zip(self.levels, sums, strict=False)
        ]

    def _tables(self, estimates: Estimates, stand_in: int) -> dict[int, dict[str, Floats]]:
        mine = {number: place.group for number, place in enumerate(self.places) if place.stand_in == stand_in}
        if not mine:
            return {}
        each, answers = np.arange(len(estimates.totals)), estimates.answers[-1]
        parts = [Marginal.of(self.schema, [name]) for name in self.names]
        codes = estimates.public.prior.codes
        cells = [(part.cells(self.schema, codes), part.n_cells) for part in parts]
        sd = np.sqrt(sum_variances(estimates, cells, each, len(each)))
        sd /= np.maximum(estimates.totals, FEWEST_ROWS)[:, None]
        chosen = estimates.with_totals(np.where(np.isin(each, list(mine.values())), estimates.totals, 0.0))
        drawn, group = sample_groups(chosen, self.seed, execution=self.execution)
        tables = {}
        for number, place in mine.items():
            noisy = [
                answers.counts[answers.parts.index(part)][place] / max(answers.totals[place], 1.0)
                if part in answers.parts
                else np.full(part.n_cells, np.nan)
                for part in parts
            ]
            shares = self._shares(codes, _weights(estimates, place))
            low, high = interval(shares, sd[place], 0.0, 1.0)
            tables[number] = {
                "noisy": np.concatenate(noisy),
                "estimate": shares,
                "sd": sd[place],
                "low": low,
                "high": high,
                "synthetic": self._shares({name: code[group == place] for name, code in drawn.codes.items()}),
            }
        return tables

    # ---------------------------------------------------------------- tables and distances

    def _above(self, by: Columns, stand_in: int) -> Ints:
        groups = self.stand_ins[stand_in].groups
        return groups.level(groups.names).above(groups.level(by))

    def _baseline_above(self, by: Columns, stand_in: int) -> Floats:
        chosen = self.stand_ins[stand_in]
        baseline = PublicBaseline(chosen.public, RecurringGroups.of(chosen.public.groups, chosen.groups.level(by)))
        return self._errors_above(by, stand_in, chosen.public.prior, baseline.weights)

    def _errors_above(self, by: Columns, stand_in: int, prior: Joint, weights: Callable[[int], Floats]) -> Floats:
        chosen, above = self.stand_ins[stand_in], self._above(by, stand_in)
        errors = []
        for group in range(min(int(above.max()) + 1, MOST_ABOVE)):
            rows = np.flatnonzero(above[chosen.group] == group)
            truth = {name: code[rows] for name, code in chosen.codes.items()}
            errors.append(mean_distance(truth, prior, self.rehearsal.pairs, weights(group)))
        return np.array(errors) * chosen.shrink

    def _distances(self, stand_in: int, weights: Callable[[int], Floats]) -> Floats:
        """The mean distances, over groups, of all columns and pairs between true rows and weighted public rows."""
        chosen, distances = self.stand_ins[stand_in], []
        public, kinds = chosen.public.prior, [*((name, name) for name in self.names), *combinations(self.names, 2)]
        for group in self.rehearsal.groups_of(stand_in, fresh=True)[:MOST_LOOKED_AT]:
            truth = self.rehearsal.truth(stand_in, group)
            errors = distances_of(truth, public, kinds, weights(group), threads=self.rehearsal.threads)
            distances.append(errors * chosen.shrink)
        return np.asarray(np.mean(distances, axis=0))

    def _by_column(self, distances: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Means over stand-ins, of columns and of pairs [columns, columns], NaN on the diagonal."""
        mean, number = np.mean(distances, axis=0), len(self.names)
        pairs = np.full((number, number), np.nan)
        rows, columns = np.triu_indices(number, 1)
        pairs[rows, columns] = pairs[columns, rows] = mean[number:]
        return mean[:number], pairs

    def _shares(self, codes: Mapping[str, Ints], weights: Floats | None = None) -> Floats:
        each = np.ones(len(next(iter(codes.values())))) if weights is None else weights
        tables = [mass_per_cell(codes[name], each, self.schema[name].size) for name in self.names]
        return np.concatenate(tables) / max(float(each.sum()), 1e-300)


def _weights(estimates: Estimates, group: int) -> Floats:
    return estimates.support.spread(estimates.weights(len(estimates.levels) - 1, group))
