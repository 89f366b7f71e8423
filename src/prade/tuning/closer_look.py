"""A closer look at what a plan makes of the stand-ins: errors by level, column and pair, and a few places' tables.

The estimates are made in full, as in the real run, with noise that had no part in choosing the plan. Levels above the
last are scored as users will see them: the groups of the last level added up. Columns and pairs are scored, and places
shown, in groups of the last level that were kept back, if there are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.execution import Execution
from prade.data.declare.groups import Grouping, RecurringGroups
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
        self.rehearsal, self.seed, self.stand_ins = rehearsal, seed, rehearsal.stand_ins
        self.execution = Execution(rehearsal.threads)
        self.levels = [*levels[:-1], self.stand_ins[0].groups.names]
        self.schema = self.stand_ins[0].public.prior.schema
        self.parts = [Marginal.of(self.schema, [name]) for name in self.schema.coded]
        rows = [np.bincount(each.group, minlength=len(each.groups)) for each in self.stand_ins]
        fresh = [(k, g) for k in range(len(rows)) for g in rehearsal.groups_of(k, fresh=True)]
        first = [each for each in fresh if each[0] == 0]
        pool = sorted(first if len(first) >= MOST_PLACES else fresh, key=lambda each: rows[each[0]][each[1]])
        ranks = np.unique(np.rint(np.linspace(0, len(pool) - 1, MOST_PLACES)).astype(int))
        self.places = [pool[rank] for rank in ranks]
        public = (
            self._distances(k, each.public.prior, partial(self._baseline, k)) for k, each in enumerate(self.stand_ins)
        )
        self.prior = self._means(list(public))

    def shown_places(self) -> list[dict[str, Any]]:
        """The name, the number of rows, the true shares and the public baseline's of each place, as plain values."""
        places = []
        for k, g in self.places:
            truth, public = self.rehearsal.truth(k, g), self.stand_ins[k].public.prior.codes
            shares = {"truth": self._shares(truth), "public": self._shares(public, self._baseline(k, -1)(g))}
            about = {"label": self._label(k, g), "rows": len(next(iter(truth.values())))}
            places.append({**about, **{name: listed(each) for name, each in shares.items()}})
        return places

    def _label(self, stand_in: int, group: int) -> str:
        if self.rehearsal.kind == "no groups":
            return f"public rows drawn at random, group {group + 1}"
        if not self.levels[-1]:
            return f"public group {stand_in + 1}, in place of the whole table"
        label = self._groups(stand_in, -1).labels(self.schema)[group]
        return f"half of {label}" if self.rehearsal.kind == "recurring groups" else label

    def at(self, plan: Plan) -> dict[str, Any]:
        """What a plan makes of all stand-ins, as plain values.

        `by_level` has the error to expect, how far it may be off two times in three, and that of the public baseline.
        `tables` has, for each place, the shares of all columns' cells: noisy ones (None where nothing is measured),
        estimates with their standard deviations and 95 % intervals, and synthetic rows. `risk` says how many groups
        will have a number of rows that is far off, `too_small` how many stand-in groups have fewer rows in an average
        measured cell than the standard deviation of its noise.
        """
        distances, tables = [], dict[tuple[int, int], dict[str, Any]]()
        for k, chosen in enumerate(self.stand_ins):
            release, settings = self.rehearsal.release(plan, k, self.seed), plan.settings
            estimates = Estimates.of(release, chosen.public, settings, cells=chosen.cells, execution=self.execution)
            distances.append(self._distances(k, estimates.public.prior, partial(self._estimated, k, estimates)))
            if shown := [place for place in self.places if place[0] == k]:
                tables |= zip(shown, self._tables(k, estimates, [group for _, group in shown]), strict=True)
        means, expected = self._means(distances), plan.expected
        assert expected is not None
        by_level = []
        for level, prior in enumerate(self.prior["above"]):
            errors, by = [each[level].mean(axis=1)[None] for each in distances], self.levels[level]
            by_level.append(("+".join(by), *expected_in_another(errors, len(plan.groups.level(by))), prior))
        by_level.append((plan.levels[-1].name, expected.error, expected.error_spread, expected.prior))
        measured = [each for each in plan.questions if each.level == len(plan.levels) - 1 and not each.is_total]
        rows = np.concatenate([each.rows for each in self.stand_ins])
        noise = sum(each.cells * each.variance**0.5 for each in measured)
        too_small, of = int(np.sum(rows * sum(len(each.parts) for each in measured) < noise)), len(plan.groupings[-1])
        risk = float(round(self.rehearsal.rehearsed_risk(plan) * of, 2))
        keys = "level", "error", "spread", "prior"
        return {
            "by_level": [
                dict(zip(keys, (name, *(round(x, 6) for x in rest)), strict=True)) for name, *rest in by_level
            ],
            "column_errors": means["columns"],
            "pair_errors": means["pairs"],
            "tables": [tables[place] for place in self.places],
            "risk": {"groups": risk, "of": of, "bias": self.rehearsal.bias},
            "too_small": {"groups": too_small, "of": len(rows)},
        }

    def _tables(self, stand_in: int, estimates: Estimates, groups: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The shares in some groups of the last level."""
        each, answers, codes = np.arange(len(estimates.totals)), estimates.answers[-1], estimates.public.prior.codes
        cells = [(part.cells(self.schema, codes), part.n_cells) for part in self.parts]
        sd = np.sqrt(sum_variances(estimates, cells, each, len(each)))
        sd /= np.maximum(estimates.totals, FEWEST_ROWS)[:, None]
        chosen = estimates.with_totals(np.where(np.isin(each, groups), estimates.totals, 0.0))
        drawn, group_of = sample_groups(chosen, self.seed, execution=self.execution)
        counts = dict(zip(answers.parts, answers.counts, strict=True))
        for group in groups:
            rows = max(answers.totals[group], 1.0)
            noisy = [counts[each][group] / rows if each in counts else [np.nan] * each.n_cells for each in self.parts]
            shares = self._shares(codes, self._estimated(stand_in, estimates, -1)(group))
            low, high = interval(shares, sd[group], 0.0, 1.0)
            synthetic = self._shares({name: code[group_of == group] for name, code in drawn.codes.items()})
            series = {"noisy": np.concatenate(noisy), "estimate": shares, "sd": sd[group], "low": low, "high": high}
            yield {name: listed(values) for name, values in (series | {"synthetic": synthetic}).items()}

    # ---------------------------------------------------------------- tables and distances

    def _groups(self, stand_in: int, level: int) -> Grouping:
        return self.stand_ins[stand_in].groups.level(self.levels[level])

    def _within(self, stand_in: int, level: int) -> Ints:
        """The group of a level that each group of the last level is in."""
        return self._groups(stand_in, -1).above(self._groups(stand_in, level))

    def _baseline(self, stand_in: int, level: int) -> Callable[[int], Floats]:
        public = self.stand_ins[stand_in].public
        return PublicBaseline(public, RecurringGroups.of(public.groups, self._groups(stand_in, level))).weights

    def _estimated(self, stand_in: int, estimates: Estimates, level: int) -> Callable[[int], Floats]:
        within = self._within(stand_in, level)
        rows = np.ones(len(within)) if level == -1 else estimates.totals

        def weights(group: int) -> Floats:
            mine = np.flatnonzero(within == group).tolist()
            return estimates.support.spread(np.asarray(sum(rows[each] * estimates.weights(each) for each in mine)))

        return weights

    def _distances(self, stand_in: int, prior: Joint, weights_of: WeightsOf) -> list[Floats]:
        """Distances between true rows and weighted rows: of each level [groups, pairs], of the last also of columns."""
        chosen, names, distances = self.stand_ins[stand_in], self.schema.coded, []
        for level in (*range(len(self.levels) - 1), -1):
            groups, kinds = range(min(len(self._groups(stand_in, level)), MOST_ABOVE)), self.rehearsal.pairs
            if level == -1:
                groups = self.rehearsal.groups_of(stand_in, fresh=True)[:MOST_LOOKED_AT]
                kinds = [*zip(names, names, strict=True), *combinations(names, 2)]
            weights, group_of_row, of_groups = weights_of(level), self._within(stand_in, level)[chosen.group], []
            for group in groups:
                truth = {name: code[group_of_row == group] for name, code in chosen.codes.items()}
                of_groups.append(distances_of(truth, prior, kinds, weights(group), threads=self.rehearsal.threads))
            distances.append(np.array(of_groups) * chosen.shrink)
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
