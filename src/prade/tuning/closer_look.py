"""A closer look at what a plan makes of the stand-ins: errors by level, column and pair, and a few places' tables.

The estimates are made in full, as in the real run, once for each stand-in, with noise that had no part in choosing the
plan. Levels above the last are scored as users will see them: the groups of the last level added up. Columns and pairs
are scored in groups of the last level that were kept back. The places that are shown are among them too, if there are
enough: their rows are public, and stand in for private ones.

What does not depend on the plan (true tables, the public baseline's errors) is worked out once for all budgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.execution import Execution
from prade.data.declare.display import group_texts
from prade.data.public import Public
from prade.data.recurring_groups import RecurringGroups
from prade.estimating.levels.cell_counts import sum_variances
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.totals import FEWEST_ROWS
from prade.planning.plan import Plan
from prade.queries.parts import Marginal
from prade.sampling.table import sample_groups
from prade.scoring.distances import Codes, Pair, mean_distance, pair_errors
from prade.scoring.evaluation import PublicBaseline
from prade.tuning.expectation import expected_in_another
from prade.tuning.rehearse import Rehearsal

Columns = tuple[str, ...]

MOST_PLACES = 4  # that are shown: one small, one large, two between
MOST_LOOKED_AT = 8  # groups per stand-in whose pairs are all scored
MOST_ABOVE = 16  # groups per stand-in that are scored at a level above the last


@dataclass(frozen=True)
class LevelError:
    """The error to expect at a level, how far it may be off two times in three, and that of the public baseline."""

    level: str
    error: float
    spread: float
    prior: float


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
class PlaceTables:
    """What a plan makes of a place, as shares of all columns' cells; raw answers are NaN where nothing is measured."""

    noisy: Floats
    estimate: Floats
    sd: Floats
    synthetic: Floats


@dataclass(frozen=True, eq=False)
class Look:
    """Errors of levels above the last, of columns and of pairs [columns, columns], and the tables of all places."""

    above: tuple[LevelError, ...]
    columns: Floats
    pairs: Floats
    tables: tuple[PlaceTables, ...]


class CloserLook:
    """The stand-ins of a rehearsal with all that is the same for every plan of some levels (the columns of each)."""

    def __init__(self, rehearsal: Rehearsal, levels: Sequence[Columns], seed: int = 0) -> None:
        self.rehearsal = rehearsal
        self.levels = tuple(levels)
        self.seed = seed
        self.schema = rehearsal.stand_ins[0].public.prior.schema
        self.names = self.schema.coded
        self.kinds: tuple[Pair, ...] = tuple((name, name) for name in self.names) + tuple(combinations(self.names, 2))

    # ---------------------------------------------------------------- the same for every plan

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """A few groups of different sizes: of the first stand-in, or of all where it has too few."""
        fresh = [
            [(k, group) for group in self.rehearsal.groups_of(k, fresh=True)]
            for k in range(len(self.rehearsal.stand_ins))
        ]
        pool = fresh[0] if len(fresh[0]) >= MOST_PLACES else [each for groups in fresh for each in groups]
        pool = sorted(pool, key=lambda each: self._rows(*each))
        ranks = np.unique(np.rint(np.linspace(0, len(pool) - 1, MOST_PLACES)).astype(int))
        return tuple(self._place(*pool[rank]) for rank in ranks)

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """The public baseline's errors of columns, and of pairs [columns, columns]."""
        found = []
        for k, chosen in enumerate(self.rehearsal.stand_ins):
            baseline = PublicBaseline(chosen.public, chosen.recurring)
            found.append([self._distances(k, group, baseline.weights(group)) for group in self._looked_at(k)])
        return self._by_column(found)

    @cached_property
    def prior_above(self) -> list[list[Floats]]:
        """The public baseline's errors in groups of the levels above the last: [levels][stand-ins]."""
        return [
            [self._prior_above(by, stand_in) for stand_in in range(len(self.rehearsal.stand_ins))]
            for by in self.levels[:-1]
        ]

    def _prior_above(self, by: Columns, stand_in: int) -> Floats:
        chosen, above = self.rehearsal.stand_ins[stand_in], self._above(by, stand_in)
        baseline = PublicBaseline(chosen.public, RecurringGroups.of(chosen.public, chosen.groups.level(by)))
        errors = [
            baseline.error(self._truth_above(stand_in, above, group), group, self.rehearsal.pairs)
            for group in range(min(int(above.max()) + 1, MOST_ABOVE))
        ]
        return np.array(errors) * chosen.shrink

    # ---------------------------------------------------------------- one plan

    def at(self, plan: Plan) -> Look:
        """What a plan makes of all stand-ins."""
        errors_above: list[list[Floats]] = [[] for _ in self.levels[:-1]]
        distances: list[list[Floats]] = []
        tables: dict[int, PlaceTables] = {}
        for k, chosen in enumerate(self.rehearsal.stand_ins):
            release = self.rehearsal.release(plan, k, self.seed)
            execution = Execution(self.rehearsal.threads)
            estimates = Estimates.of(release, chosen.public, plan.settings, cells=chosen.cells, execution=execution)
            distances.append(
                [self._distances(k, group, self._weights(estimates, group)) for group in self._looked_at(k)]
            )
            for found, error in zip(errors_above, self._errors_above(estimates, k), strict=True):
                found.append(error)
            tables |= self._tables(estimates, k)
        columns, pairs = self._by_column(distances)
        above = tuple(self._level_error(plan, depth, errors) for depth, errors in enumerate(errors_above))
        return Look(above, columns, pairs, tuple(tables[number] for number in range(len(self.places))))

    def _level_error(self, plan: Plan, depth: int, errors: Sequence[Floats]) -> LevelError:
        by = self.levels[depth]
        error, spread = expected_in_another([each[None] for each in errors], len(plan.groups.level(by)))
        prior = float(np.mean([each.mean() for each in self.prior_above[depth]]))
        return LevelError("+".join(by), round(error, 6), round(spread, 6), round(prior, 6))

    def _errors_above(self, estimates: Estimates, stand_in: int) -> list[Floats]:
        """The errors in groups of the levels above the last, whose estimates are the sums of the last level's."""
        aboves = [self._above(by, stand_in) for by in self.levels[:-1]]
        sizes = [min(int(above.max()) + 1, MOST_ABOVE) for above in aboves]
        sums = [np.zeros((size, len(estimates.support))) for size in sizes]
        if not sums:
            return []
        weights = estimates.map(lambda _, weights: weights, self.rehearsal.threads)
        for group, (total, weight) in enumerate(zip(estimates.totals, weights, strict=True)):
            for above, summed in zip(aboves, sums, strict=True):
                if above[group] < len(summed):
                    summed[above[group]] += total * weight
        prior, shrink = estimates.support.public.prior, self.rehearsal.stand_ins[stand_in].shrink
        return [
            shrink
            * np.array(
                [
                    mean_distance(self._truth_above(stand_in, above, group), prior, self.rehearsal.pairs, weights)
                    for group, weights in enumerate(summed)
                ]
            )
            for above, summed in zip(aboves, sums, strict=True)
        ]

    def _tables(self, estimates: Estimates, stand_in: int) -> dict[int, PlaceTables]:
        """The tables of the places of one stand-in, by their number."""
        mine = {number: place.group for number, place in enumerate(self.places) if place.stand_in == stand_in}
        if not mine:
            return {}
        each, groups = np.arange(len(estimates.totals)), list(mine.values())
        parts = [Marginal.of(self.schema, [name]) for name in self.names]
        cells = [(part.cells(self.schema, estimates.public.prior.codes), part.n_cells) for part in parts]
        rows = np.maximum(estimates.totals, FEWEST_ROWS)[:, None]
        sd = np.sqrt(sum_variances(estimates, cells, each, len(each))) / rows
        chosen = np.isin(each, groups)
        resized, execution = (
            estimates.with_totals(np.where(chosen, estimates.totals, 0.0)),
            Execution(self.rehearsal.threads),
        )
        drawn, group = sample_groups(resized, self.seed, execution=execution)
        answers = estimates.answers[-1]
        found = {}
        for number, place in mine.items():
            noisy = [
                answers.counts[answers.parts.index(part)][place] / max(answers.totals[place], 1.0)
                if part in answers.parts
                else np.full(part.n_cells, np.nan)
                for part in parts
            ]
            own = {name: code[group == place] for name, code in drawn.codes.items()}
            estimate = self._shares(estimates.public.prior.codes, self._weights(estimates, place))
            found[number] = PlaceTables(np.concatenate(noisy), estimate, sd[place], self._shares(own))
        return found

    # ---------------------------------------------------------------- tables and distances

    def _place(self, stand_in: int, group: int) -> Place:
        chosen = self.rehearsal.stand_ins[stand_in]
        weights = PublicBaseline(chosen.public, chosen.recurring).weights(group)
        truth, public = (
            self._shares(self.rehearsal.truth(stand_in, group)),
            self._shares(chosen.public.prior.codes, weights),
        )
        return Place(stand_in, group, self._label(stand_in, group), self._rows(stand_in, group), truth, public)

    def _label(self, stand_in: int, group: int) -> str:
        chosen = self.rehearsal.stand_ins[stand_in]
        if self.rehearsal.kind == "no groups":
            return f"public rows drawn at random, group {group + 1}"
        if not chosen.groups.names:
            return f"public group {stand_in + 1}, in place of the whole table"
        name = group_texts(self.schema, chosen.groups.level(chosen.groups.names))[group]
        return f"half of {name}" if self.rehearsal.kind == "recurring groups" else name

    def _rows(self, stand_in: int, group: int) -> int:
        return int(np.sum(self.rehearsal.stand_ins[stand_in].group == group))

    def _looked_at(self, stand_in: int) -> range:
        return self.rehearsal.groups_of(stand_in, fresh=True)[:MOST_LOOKED_AT]

    def _above(self, by: Columns, stand_in: int) -> Ints:
        """The group of a level above that each group of a stand-in is in."""
        groups = self.rehearsal.stand_ins[stand_in].groups
        return groups.level(groups.names).above(groups.level(by))

    def _truth_above(self, stand_in: int, above: Ints, group: int) -> Codes:
        chosen = self.rehearsal.stand_ins[stand_in]
        rows = np.flatnonzero(above[chosen.group] == group)
        return {name: code[rows] for name, code in chosen.codes.items()}

    def _weights(self, estimates: Estimates, group: int) -> Floats:
        return estimates.support.spread(estimates.weights(len(estimates.levels) - 1, group))

    def _distances(self, stand_in: int, group: int, weights: Floats) -> Floats:
        """The distances of all columns and pairs between a group's true rows and weighted public rows."""
        truth, chosen = self.rehearsal.truth(stand_in, group), self.rehearsal.stand_ins[stand_in]
        return _distances(chosen.public, truth, weights, self.kinds, self.rehearsal.threads) * chosen.shrink

    def _by_column(self, distances: Sequence[Sequence[Floats]]) -> tuple[Floats, Floats]:
        """Means over groups and stand-ins, of columns and of pairs [columns, columns], NaN on the diagonal."""
        mean = np.mean([np.mean(each, axis=0) for each in distances], axis=0)
        number = len(self.names)
        pairs = np.full((number, number), np.nan)
        rows, columns = np.triu_indices(number, 1)
        pairs[rows, columns] = pairs[columns, rows] = mean[number:]
        return mean[:number], pairs

    def _shares(self, codes: Mapping[str, Ints], weights: Floats | None = None) -> Floats:
        """Shares of the cells of all columns, one after the other."""
        each = np.ones(len(next(iter(codes.values())))) if weights is None else weights
        tables = [mass_per_cell(codes[name], each, self.schema[name].size) for name in self.names]
        return np.concatenate(tables) / max(float(each.sum()), 1e-300)


def _distances(public: Public, truth: Codes, weights: Floats, kinds: Sequence[Pair], threads: int) -> Floats:
    one, other = (np.zeros(len(next(iter(codes.values()))), np.int64) for codes in (truth, public.prior.codes))
    schema, codes = public.prior.schema, public.prior.codes
    return pair_errors(schema, truth, one, codes, other, 1, kinds, weights=weights, threads=threads).ravel()
