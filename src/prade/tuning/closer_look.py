"""A closer look at what a plan makes of the stand-ins: errors by level, column and pair, and a few places' tables.

The estimates are made in full, as in the real run, with noise that had no part in choosing the plan. Levels above the
last are scored as users will see them: the groups of the last level added up. Columns and pairs are scored, and places
shown, in groups of the last level that were kept back, if there are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.execution import Execution
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Joint
from prade.estimating.levels.cell_counts import interval, sum_variances
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.totals import FEWEST_ROWS
from prade.planning.plan import Plan
from prade.queries.parts import Marginal
from prade.sampling.table import sample_groups
from prade.scoring.distances import distances_of
from prade.scoring.evaluation import PublicBaseline
from prade.tuning.expectation import expected_in_another
from prade.tuning.gain import Columns
from prade.tuning.rehearse import Rehearsal

MOST_PLACES = 4  # that are shown: one small, one large, two between
MOST_LOOKED_AT = 8  # groups per stand-in whose pairs are all scored
MOST_ABOVE = 16  # groups per stand-in that are scored at a level above the last

WeightsOf = Callable[[int], Callable[[int], Floats]]  # level -> group -> weights of the public rows


class CloserLook:
    """The stand-ins of a rehearsal with all that is the same for every plan of some levels (the columns of each).

    `places` are a few groups, (stand-in, group), of different sizes: of the first stand-in, or of all where it has too
    few. `prior` has the errors of the public baseline, as `at` has those of a plan.
    """

    def __init__(self, rehearsal: Rehearsal, levels: Sequence[Columns], seed: int = 0) -> None:
        self.rehearsal, self.levels, self.seed = rehearsal, levels, seed
        self.stand_ins, self.execution = rehearsal.stand_ins, Execution(rehearsal.threads)
        self.schema = self.stand_ins[0].public.prior.schema
        self.parts = [Marginal.of(self.schema, [name]) for name in self.schema.coded]
        rows = [np.bincount(each.group, minlength=len(each.groups)) for each in self.stand_ins]
        fresh = [(k, g) for k in range(len(rows)) for g in rehearsal.groups_of(k, fresh=True)]
        first = [each for each in fresh if each[0] == 0]
        pool = sorted(first if len(first) >= MOST_PLACES else fresh, key=lambda each: rows[each[0]][each[1]])
        ranks = np.unique(np.rint(np.linspace(0, len(pool) - 1, MOST_PLACES)).astype(int))
        self.places = [pool[rank] for rank in ranks]
        public = [
            self._distances(k, each.public.prior, partial(self._baseline, k)) for k, each in enumerate(self.stand_ins)
        ]
        self.prior = self._means(public)

    def shown_places(self) -> list[dict[str, Any]]:
        """The name, the number of rows, the true shares and the public baseline's of each place, as plain values."""
        places = []
        for k, g in self.places:
            chosen, truth = self.stand_ins[k], self.rehearsal.truth(k, g)
            public = self._shares(chosen.public.prior.codes, self._baseline(k, -1)(g))
            shares = {"truth": listed(self._shares(truth)), "public": listed(public)}
            places.append({"label": self._label(k, g), "rows": int(np.sum(chosen.group == g)), **shares})
        return places

    def _label(self, stand_in: int, group: int) -> str:
        groups, kind = self.stand_ins[stand_in].groups, self.rehearsal.kind
        if kind == "no groups":
            return f"public rows drawn at random, group {group + 1}"
        if not groups.names:
            return f"public group {stand_in + 1}, in place of the whole table"
        label = groups.level(groups.names).labels(self.schema)[group]
        return f"half of {label}" if kind == "recurring groups" else label

    def at(self, plan: Plan) -> dict[str, Any]:
        """What a plan makes of all stand-ins, as plain values.

        `by_level` has levels above the last: the error to expect, how far it may be off two times in three, and that of
        the public baseline. `pair_errors` are [columns, columns]. `tables` has, for each place, the shares of all
        columns' cells: noisy ones (None where nothing is measured), those of the estimate with their standard
        deviations and 95 % intervals, and those of synthetic rows.
        """
        distances, tables = [], dict[int, dict[str, Any]]()
        for k, chosen in enumerate(self.stand_ins):
            release, settings = self.rehearsal.release(plan, k, self.seed), plan.settings
            estimates = Estimates.of(release, chosen.public, settings, cells=chosen.cells, execution=self.execution)
            distances.append(self._distances(k, estimates.public.prior, partial(self._estimated, k, estimates)))
            tables |= self._tables(estimates, k)
        levels = []
        for level, (by, prior) in enumerate(zip(self.levels[:-1], self.prior["above"], strict=True)):
            groups = len(plan.groups.level(by))
            error, spread = expected_in_another([each[level].mean(axis=1)[None] for each in distances], groups)
            rounded = {"error": round(error, 6), "spread": round(spread, 6), "prior": round(prior, 6)}
            levels.append({"level": "+".join(by), **rounded})
        means = self._means(distances)
        errors = {"column_errors": means["columns"], "pair_errors": means["pairs"]}
        return {"by_level": levels, **errors, "tables": [tables[number] for number in range(len(self.places))]}

    def _tables(self, estimates: Estimates, stand_in: int) -> dict[int, dict[str, Any]]:
        mine = {number: group for number, (k, group) in enumerate(self.places) if k == stand_in}
        if not mine:
            return {}
        each, answers, codes = np.arange(len(estimates.totals)), estimates.answers[-1], estimates.public.prior.codes
        cells = [(part.cells(self.schema, codes), part.n_cells) for part in self.parts]
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
                for part in self.parts
            ]
            shares = self._shares(codes, self._estimated(stand_in, estimates, -1)(place))
            low, high = interval(shares, sd[place], 0.0, 1.0)
            synthetic = self._shares({name: code[group == place] for name, code in drawn.codes.items()})
            series = {"noisy": np.concatenate(noisy), "estimate": shares, "sd": sd[place], "low": low, "high": high}
            tables[number] = {name: listed(values) for name, values in (series | {"synthetic": synthetic}).items()}
        return tables

    # ---------------------------------------------------------------- tables and distances

    def _parents(self, stand_in: int, level: int) -> Ints:
        """The group of a level that each group of the last level is in."""
        groups = self.stand_ins[stand_in].groups
        last = groups.level(groups.names)
        return np.arange(len(last)) if level == -1 else last.above(groups.level(self.levels[level]))

    def _baseline(self, stand_in: int, level: int) -> Callable[[int], Floats]:
        chosen = self.stand_ins[stand_in]
        if level == -1:
            return PublicBaseline(chosen.public, chosen.recurring).weights
        groups = RecurringGroups.of(chosen.public.groups, chosen.groups.level(self.levels[level]))
        return PublicBaseline(chosen.public, groups).weights

    def _estimated(self, stand_in: int, estimates: Estimates, level: int) -> Callable[[int], Floats]:
        if level == -1:
            return lambda group: estimates.support.spread(estimates.weights(len(estimates.levels) - 1, group))
        parents = self._parents(stand_in, level)
        sums = np.zeros((min(int(parents.max()) + 1, MOST_ABOVE), len(estimates.support)))
        weights = estimates.map(lambda _, weights: weights, self.rehearsal.threads)
        for parent, total, weight in zip(parents, estimates.totals, weights, strict=True):
            if parent < len(sums):
                sums[parent] += total * weight
        return lambda group: estimates.support.spread(sums[group])

    def _distances(self, stand_in: int, prior: Joint, weights_of: WeightsOf) -> list[Floats]:
        """Distances between true rows and weighted rows: of each level [groups, pairs], of the last also of columns."""
        chosen, distances, names = self.stand_ins[stand_in], [], self.schema.coded
        for level in (*range(len(self.levels) - 1), -1):
            parents = self._parents(stand_in, level)
            groups, kinds = range(min(int(parents.max()) + 1, MOST_ABOVE)), self.rehearsal.pairs
            if level == -1:
                groups = self.rehearsal.groups_of(stand_in, fresh=True)[:MOST_LOOKED_AT]
                kinds = [*((name, name) for name in names), *combinations(names, 2)]
            weights, found = weights_of(level), []
            for group in groups:
                rows = np.flatnonzero(parents[chosen.group] == group)
                truth = {name: code[rows] for name, code in chosen.codes.items()}
                threads = self.rehearsal.threads
                found.append(distances_of(truth, prior, kinds, weights(group), threads=threads))
            distances.append(np.array(found) * chosen.shrink)
        return distances

    def _means(self, distances: Sequence[list[Floats]]) -> dict[str, Any]:
        """Means over stand-ins: of levels above, of columns, and of pairs [columns, columns], None on the diagonal."""
        above = [float(np.mean([each.mean() for each in of_level])) for of_level in zip(*distances, strict=True)][:-1]
        mean, number = np.mean([each[-1].mean(axis=0) for each in distances], axis=0), len(self.parts)
        pairs = np.full((number, number), np.nan)
        rows, columns = np.triu_indices(number, 1)
        pairs[rows, columns] = pairs[columns, rows] = mean[number:]
        return {"above": above, "columns": listed(mean[:number]), "pairs": listed(pairs)}

    def _shares(self, codes: Mapping[str, Ints], weights: Floats | None = None) -> Floats:
        each = np.ones(len(next(iter(codes.values())))) if weights is None else weights
        tables = [mass_per_cell(codes[name], each, self.schema[name].size) for name in self.schema.coded]
        return np.concatenate(tables) / max(float(each.sum()), 1e-300)


def listed(values: Floats) -> Any:
    """An array as lists, with None for NaN."""
    known = np.round(values, 6).astype(object)
    known[np.isnan(values)] = None
    return known.tolist()
