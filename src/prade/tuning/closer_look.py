"""A closer look at what a plan makes of the stand-ins: errors by level, column and pair, and a few places' tables.

The estimates are made in full, as in the real run, once for each stand-in, with noise that had no part in choosing the
plan. Levels above the last are scored as users will see them: the groups of the last level added up. Columns and pairs
are scored in groups of the last level that were kept back. The places that are shown are among them too, if there are
enough: their rows are public, and stand in for private ones.

What does not depend on the plan (true tables, the public baseline's errors) is worked out once for all budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.execution import Execution
from prade.data.declare.display import group_texts
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Joint
from prade.estimating.levels.cell_counts import sum_variances
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.totals import FEWEST_ROWS
from prade.planning.plan import Plan
from prade.queries.parts import Marginal
from prade.sampling.table import sample_groups
from prade.scoring.distances import mean_distance, pair_errors
from prade.scoring.evaluation import PublicBaseline
from prade.tuning.expectation import expected_in_another
from prade.tuning.gain import Columns
from prade.tuning.rehearse import Rehearsal

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
        self.stand_ins = rehearsal.stand_ins
        self.levels = tuple(levels)
        self.seed = seed
        self.schema = self.stand_ins[0].public.prior.schema
        self.names = self.schema.coded

    # ---------------------------------------------------------------- the same for every plan

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """A few groups of different sizes: of the first stand-in, or of all where it has too few."""
        every = range(len(self.stand_ins))
        fresh = [(k, group) for k in every for group in self.rehearsal.groups_of(k, fresh=True)]
        first = [each for each in fresh if each[0] == 0]
        pool = sorted(first if len(first) >= MOST_PLACES else fresh, key=lambda each: self._rows(*each))
        ranks = np.unique(np.rint(np.linspace(0, len(pool) - 1, MOST_PLACES)).astype(int))
        return tuple(self._place(*pool[rank]) for rank in ranks)

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """The public baseline's errors of columns, and of pairs [columns, columns]."""
        baselines = [PublicBaseline(each.public, each.recurring) for each in self.stand_ins]
        return self._by_column([self._distances(k, each.weights) for k, each in enumerate(baselines)])

    @cached_property
    def prior_above(self) -> list[list[Floats]]:
        """The public baseline's errors in groups of the levels above the last: [levels][stand-ins]."""
        return [[self._prior_above(by, k) for k in range(len(self.stand_ins))] for by in self.levels[:-1]]

    def _prior_above(self, by: Columns, stand_in: int) -> Floats:
        chosen = self.stand_ins[stand_in]
        baseline = PublicBaseline(chosen.public, RecurringGroups.of(chosen.public.groups, chosen.groups.level(by)))
        return self._errors_above(by, stand_in, chosen.public.prior, baseline.weights)

    def _place(self, stand_in: int, group: int) -> Place:
        chosen = self.stand_ins[stand_in]
        truth = self._shares(self.rehearsal.truth(stand_in, group))
        weights = PublicBaseline(chosen.public, chosen.recurring).weights(group)
        public = self._shares(chosen.public.prior.codes, weights)
        return Place(stand_in, group, self._label(stand_in, group), self._rows(stand_in, group), truth, public)

    def _label(self, stand_in: int, group: int) -> str:
        chosen = self.stand_ins[stand_in]
        if self.rehearsal.kind == "no groups":
            return f"public rows drawn at random, group {group + 1}"
        if not chosen.groups.names:
            return f"public group {stand_in + 1}, in place of the whole table"
        name = group_texts(self.schema, chosen.groups.level(chosen.groups.names))[group]
        return f"half of {name}" if self.rehearsal.kind == "recurring groups" else name

    def _rows(self, stand_in: int, group: int) -> int:
        return int(np.sum(self.stand_ins[stand_in].group == group))

    # ---------------------------------------------------------------- one plan

    def at(self, plan: Plan) -> Look:
        """What a plan makes of all stand-ins."""
        above: list[list[Floats]] = []
        distances: list[Floats] = []
        tables: dict[int, PlaceTables] = {}
        for k, chosen in enumerate(self.stand_ins):
            release, execution = self.rehearsal.release(plan, k, self.seed), Execution(self.rehearsal.threads)
            estimates = Estimates.of(release, chosen.public, plan.settings, cells=chosen.cells, execution=execution)
            distances.append(self._distances(k, partial(_weights, estimates)))
            above.append(self._sums(estimates, k))
            tables |= self._tables(estimates, k)
        errors = zip(*above, strict=True)
        levels = tuple(self._level_error(plan, depth, of_level) for depth, of_level in enumerate(errors))
        return Look(levels, *self._by_column(distances), tuple(tables[number] for number in range(len(self.places))))

    def _level_error(self, plan: Plan, depth: int, errors: Sequence[Floats]) -> LevelError:
        by = self.levels[depth]
        error, spread = expected_in_another([each[None] for each in errors], len(plan.groups.level(by)))
        prior = float(np.mean([each.mean() for each in self.prior_above[depth]]))
        return LevelError("+".join(by), round(error, 6), round(spread, 6), round(prior, 6))

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

    def _tables(self, estimates: Estimates, stand_in: int) -> dict[int, PlaceTables]:
        """The tables of the places of one stand-in, by their number."""
        mine = {number: place.group for number, place in enumerate(self.places) if place.stand_in == stand_in}
        if not mine:
            return {}
        each = np.arange(len(estimates.totals))
        parts = [Marginal.of(self.schema, [name]) for name in self.names]
        codes = estimates.public.prior.codes
        cells = [(part.cells(self.schema, codes), part.n_cells) for part in parts]
        sd = np.sqrt(sum_variances(estimates, cells, each, len(each)))
        sd /= np.maximum(estimates.totals, FEWEST_ROWS)[:, None]
        chosen = estimates.with_totals(np.where(np.isin(each, list(mine.values())), estimates.totals, 0.0))
        drawn, group = sample_groups(chosen, self.seed, execution=Execution(self.rehearsal.threads))
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
            estimate = self._shares(codes, _weights(estimates, place))
            found[number] = PlaceTables(np.concatenate(noisy), estimate, sd[place], self._shares(own))
        return found

    # ---------------------------------------------------------------- tables and distances

    def _above(self, by: Columns, stand_in: int) -> Ints:
        """The group of a level above that each group of a stand-in is in."""
        groups = self.stand_ins[stand_in].groups
        return groups.level(groups.names).above(groups.level(by))

    def _errors_above(self, by: Columns, stand_in: int, prior: Joint, weights: Callable[[int], Floats]) -> Floats:
        """The errors of weighted public rows in the first groups of a level above the last."""
        chosen, above = self.stand_ins[stand_in], self._above(by, stand_in)
        errors = []
        for group in range(min(int(above.max()) + 1, MOST_ABOVE)):
            rows = np.flatnonzero(above[chosen.group] == group)
            truth = {name: code[rows] for name, code in chosen.codes.items()}
            errors.append(mean_distance(truth, prior, self.rehearsal.pairs, weights(group)))
        return np.array(errors) * chosen.shrink

    def _distances(self, stand_in: int, weights: Callable[[int], Floats]) -> Floats:
        """The mean distances, over groups, of all columns and pairs between true rows and weighted public rows."""
        chosen, names = self.stand_ins[stand_in], self.names
        kinds = [*((name, name) for name in names), *combinations(names, 2)]
        public = chosen.public.prior.codes
        found = []
        for group in self.rehearsal.groups_of(stand_in, fresh=True)[:MOST_LOOKED_AT]:
            truth = self.rehearsal.truth(stand_in, group)
            one, other = (np.zeros(len(codes[names[0]]), np.int64) for codes in (truth, public))
            threads = self.rehearsal.threads
            distances = pair_errors(
                self.schema, truth, one, public, other, 1, kinds, weights=weights(group), threads=threads
            )
            found.append(distances.ravel() * chosen.shrink)
        return np.asarray(np.mean(found, axis=0))

    def _by_column(self, distances: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Means over stand-ins, of columns and of pairs [columns, columns], NaN on the diagonal."""
        mean, number = np.mean(distances, axis=0), len(self.names)
        pairs = np.full((number, number), np.nan)
        rows, columns = np.triu_indices(number, 1)
        pairs[rows, columns] = pairs[columns, rows] = mean[number:]
        return mean[:number], pairs

    def _shares(self, codes: Mapping[str, Ints], weights: Floats | None = None) -> Floats:
        """Shares of the cells of all columns, one after the other."""
        each = np.ones(len(next(iter(codes.values())))) if weights is None else weights
        tables = [mass_per_cell(codes[name], each, self.schema[name].size) for name in self.names]
        return np.concatenate(tables) / max(float(each.sum()), 1e-300)


def _weights(estimates: Estimates, group: int) -> Floats:
    """Weights of the public rows in a group of the last level."""
    return estimates.support.spread(estimates.weights(len(estimates.levels) - 1, group))
