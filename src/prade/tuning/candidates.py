"""What the tuner may try: which parts to ask for at which level, for which share of the budget, and how to estimate.

Which parts are worth their noise is predicted first (`prade.tuning.gain`), level by level; the rehearsal decides.

What spends on targets comes first. A two-way table of a small group may be better known from its two columns than from
its own cells, which are many. So three sets of parts are tried at the last level, with larger shares than the rest: the
targets' own, their single columns, and both. At a level above, whose groups are large, it is the targets' own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, islice, pairwise, product
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import many
from prade.data.declare.schema import Schema
from prade.data.public.joint import Information
from prade.data.public.public import Public
from prade.estimating.levels.added_rows import is_small
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level, shared_asks
from prade.planning.settings import Settings
from prade.privacy.budget import Budget
from prade.privacy.noise_law import LAPLACE, NoiseLaw
from prade.queries.parts import Marginal, Part
from prade.queries.workload import Workload
from prade.scoring.distances import WORST
from prade.tuning.gain import (
    Columns,
    StandInLevel,
    left_by_noise,
    off_by,
    predicted_gain,
    shrunk_moments,
    telling_parts,
)
from prade.tuning.mutual_information import strongest_pairs
from prade.tuning.rehearse import Rehearsal

# What is tried. The steps are coarse: neighbours on a ladder differ in error by little more than the noise of a
# rehearsal, and a finer ladder would choose between them by luck.

# Shares of the last level's budget for the number of rows: 0 derives it from the tables, 1 leaves nothing to them.
TOTALS = tuple(Fraction(share) for share in ("0", "1/50", "1/20", "1/10", "1/5", "1/3", "1/2", "4/5", "19/20", "1"))
# Shares of the columns whose one-way tables are asked for: each step leaves out a quarter to a half of those before.
ONE_WAY = tuple(Fraction(share) for share in ("1", "3/4", "1/2", "1/3", "1/4", "1/6", "1/9", "1/12"))
# Numbers of two-way tables that are smoothed. More of them rarely pay: in rehearsals on invented census tables
# (`census_like`, three seeds, epsilon 1) the error rose steadily from 0.226 without any to 0.241 with 25.
TWO_WAY = (0, 5, 15)
# Shares of all pairs whose two-way tables are asked for where answers stay raw.
RAW_PAIRS = tuple(Fraction(share) for share in ("1", "1/2", "1/4", "1/8"))
# Shares of the budget for one level above the last, in steps of about 3: little, some, much.
SHARES_ABOVE = tuple(Fraction(share) for share in ("1/30", "1/10", "3/10"))
# Weights of a group's own public rows, from the usual one down and up: places that change need less, others more.
OWN = (0.8, 0.65, 0.5, 0.35, 0.2), (0.8, 0.9, 0.98, 0.999)
TRUST = (1.0, 3.0, 10.0, 30.0, 100.0)  # factors of the n0 that raw answers give, which is rather too small
NUMBERS_ABOVE = (1, 2, 4, 8, 16, 32)  # of parts at a level above the last; predicting their gains takes little time
STANDS_OUT = 4  # noise standard deviations that an average cell has in rows: with fewer, smoothed answers are better
FEWEST_ROWS = 10  # in an average cell: tables of nearly empty cells take long, and tell little that others do not
# Of all two-way tables of a level, or of the targets' parts: the time for smoothing grows with the cube of it.
MOST_CELLS = 500
SMALL_RISK = 0.01  # of a wrong number of rows: it then costs less than a hundredth of the worst error
BISECTIONS = 30
MOST_PAIRS = 60  # whose gain is predicted: the strongest of those that fit; each takes a pass over the public rows
# Shares of the prior's weight on added rows, upwards and downwards: the error is flat around the best.
EXTRA = (0.003, 0.01, 0.03, 0.1), (0.01, 0.003, 0.001, 0.0)
EXTRA_OF_DOMAIN = 0.01  # the first share that is tried for the rest of a small domain
MOST_COUNTED = 2**18  # cells of the table of all columns, over all groups: a rehearsal of more takes minutes
LEAST_OUT_OF_REACH = 0.001  # of the rows, on average over the tables: below it, nothing is to be gained
# How many times the share of another part a target's part gets: first in long steps, then in short ones from the best
# of these. With equal shares of 36 tables, 32 times for five of them leaves the others a sixth of the budget.
LONG_STEPS = Fraction(4), Fraction(16)
TIMES = tuple(Fraction(times) for times in (2, 4, 8, 16, 32))
# Shares of the budget for the targets of one level above the last.
TARGETS_ABOVE = (*SHARES_ABOVE, Fraction(3, 5))


@dataclass(frozen=True)
class Choice:
    """What is chosen: the columns of each part and the share of the totals at the last level, and what is asked above.

    `above` has the share of the whole budget and the parts of each level except the last. With a share of 1 for the
    totals, no part is asked for at the last one. The parts of the last level have equal shares, or, if `weighted`,
    shares that grow with their number of cells. `law` is that of the noise, None the usual one of the budget's kind.
    `first` are the parts of each level that tell what the targets name: each has `times` the share of another part.
    `budget` is the task's own if it is None.
    """

    parts: tuple[Columns, ...]
    above: tuple[tuple[Fraction, tuple[Columns, ...]], ...] = ()
    total: Fraction = Fraction(0)
    settings: Settings = field(default_factory=Settings)
    weighted: bool = False
    law: NoiseLaw | None = None
    first: tuple[tuple[Part, ...], ...] = ()
    times: Fraction = Fraction(1)
    budget: Budget | None = None

    @property
    def favoured(self) -> tuple[Part, ...]:
        """The parts of the last level that tell what the targets name."""
        return self.first[-1] if self.first else ()

    def levels(self, schema: Schema, nest: Sequence[Columns]) -> list[Level]:
        """The levels of a plan."""

        def asks(parts: tuple[Columns, ...], depth: int, share: Fraction, weighted: bool = False) -> tuple[Ask, ...]:
            others, first = [Marginal.of(schema, columns) for columns in parts], self.first[depth] if self.first else ()
            return shared_asks(Workload(schema, others), first, self.times, share, weighted=weighted)

        above = [
            Level(by, asks(parts, depth, share) if share else (), 0)
            for depth, (by, (share, parts)) in enumerate(zip(nest[:-1], self.above, strict=True))
        ]
        last = self.left_for(len(self.above))
        if self.total == 1:
            return [*above, Level(nest[-1], (), last)]
        mine = asks(self.parts, len(nest) - 1, last * (1 - self.total), self.weighted)
        return [*above, Level(nest[-1], mine, last * self.total)]

    def asking_above(self, depth: int, share: Fraction, parts: tuple[Columns, ...]) -> Choice:
        """The same choice with other parts at one level above the last, for a share of the budget."""
        above = list(self.above)
        above[depth] = share, parts
        return replace(self, above=tuple(above))

    def left_for(self, depth: int) -> Fraction:
        """What other levels above the last leave of the budget."""
        return 1 - sum((share for k, (share, _) in enumerate(self.above) if k != depth), Fraction(0))

    def favouring(self, depth: int, parts: tuple[Part, ...]) -> Choice:
        """The same choice with other parts that tell the targets of one level."""
        first = list(self.first or ((),) * (len(self.above) + 1))
        first[depth] = parts
        return replace(self, first=tuple(first))


Change = tuple[str, Choice]  # in words, and what comes out
Best = Callable[[], Choice]  # the best choice so far


class Candidates:
    """What may be changed, one thing at a time, from simple to elaborate, in a plan with these levels."""

    def __init__(
        self, rehearsal: Rehearsal, public: Public, nest: Sequence[Columns], plan_of: Callable[[Choice], Plan]
    ) -> None:
        self.rehearsal = rehearsal
        self.schema = public.prior.schema
        self.plan_of = plan_of
        self.nest = tuple(nest)
        self.single: tuple[Columns, ...] = tuple((name,) for name in self.schema.coded)
        self.pairs: tuple[Columns, ...] = tuple(strongest_pairs(Information.of(public.prior, self.schema.coded)))
        self.levels = [[StandInLevel.of(stand_in, by) for stand_in in rehearsal.stand_ins] for by in nest[:-1]]
        self.levels.append(
            [StandInLevel.of(each, nest[-1], rehearsal.kept_back(k)) for k, each in enumerate(rehearsal.stand_ins)]
        )
        ends = np.cumsum([0, *self.schema.shape(self.schema.coded)]).tolist()
        self.cells = [slice(*each) for each in pairwise(ends)]
        both = [[level.shares(self.schema, part) for level in self.levels[-1]] for part in self.single]
        tables = [np.concatenate([part[k][0] - part[k][1] for part in both], axis=1) for k in range(len(both[0]))]
        off = np.concatenate(tables)  # [groups of all stand-ins, cells]
        self.moments = shrunk_moments(off)
        # what a table's groups have in common, and what they differ by
        self.common = np.mean([np.outer(each.mean(axis=0), each.mean(axis=0)) for each in tables], axis=0)
        self.apart = shrunk_moments(np.concatenate([each - each.mean(axis=0) for each in tables]))
        self.groups = len(off) / len(tables)
        self._off: dict[tuple[int, Columns], Floats] = {}

    def simplest(self, budget: Budget | None = None, law: NoiseLaw | None = None) -> Choice:
        """All one-way tables at the last level, and the smallest share for the totals that tells them well enough.

        Where none does, the share with the least risk, the largest of several: perhaps numbers of rows alone, as noise
        would drown all others.
        """
        above = ((Fraction(0), ()),) * (len(self.levels) - 1)
        choices = [Choice(self.single, above, share, law=law, budget=budget) for share in TOTALS]
        stand_ins = range(len(self.rehearsal.stand_ins))
        risks: list[float] = []
        for plan in map(self.plan_of, choices):
            risks.append(float(np.mean([self.rehearsal.risk(plan, stand_in) for stand_in in stand_ins])))
            if risks[-1] < SMALL_RISK:
                break
        return choices[min(range(len(risks)), key=lambda number: (risks[number], -number))]

    def ladders(self, best: Best) -> Iterator[Iterator[Change]]:
        """Changes of the best choice so far, in words: each ladder goes from simple to elaborate, quick ones first."""
        # A whole table is larger than the single public groups that stand in for it, and unlike any of them: asking
        # less may pay for them, and is not tried for it.
        grouped = bool(self.plan_of(best()).groups.names)
        if self.rehearsal.wanted is not None:
            yield from self._for_targets(best)
        if best().total < 1 and self.pairs:
            yield self._joint_table(best)
        smoothed = best().settings.smooth
        if grouped and smoothed and best().total < 1:
            yield self._one_way(best, fewer=True)
            yield self._one_way(best, fewer=False)
        if best().total < 1 and len({self.schema.domain_size(part) for part in best().parts}) > 1:
            yield self._toggled(best, "weighted", "equal shares for the parts", "larger shares for larger parts")
        now = TOTALS.index(best().total)
        for totals in (reversed(TOTALS[:now]), TOTALS[now + 1 :]):
            yield ((f"share {share} for the totals", replace(best(), total=share)) for share in totals)
        for depth in reversed(range(len(best().above))):
            yield iter([_above(best(), depth, Fraction(0), ())])
            yield self._shares_above(best, depth)
        if any(level.by and level.recurring.recurs.any() for level in chain(*self.levels)):
            for weights in OWN:
                yield self._settings(best, "own", weights)
        if smoothed:
            yield self._settings(best, "n0", (10.0, 3.0))
            yield self._settings(best, "n0", (10.0, 30.0, 100.0, 300.0, 1000.0))
        else:
            yield self._settings(best, "trust", TRUST)
            yield self._settings(best, "trust", (1.0, 1 / 3))
        if smoothed and best().total < 1:
            yield self._two_way(best)
        if best().total < 1 and self.pairs:
            yield self._raw_pairs(best, RAW_PAIRS)
            if best().settings.smooth:
                yield self._raw_pairs(best, RAW_PAIRS[::-1])
        # adding rows to the support may be worth it where some are added, or stand-ins have rows that are out of reach
        if best().total < 1 and (best().settings.extra or self.out_of_reach(best().parts) > LEAST_OUT_OF_REACH):
            for shares in EXTRA:
                yield self._settings(best, "extra", shares)

    def _toggled(self, best: Best, name: str, off: str, on: str) -> Iterator[Change]:
        changed: dict[str, Any] = {name: not getattr(best(), name)}
        yield on if changed[name] else off, replace(best(), **changed)

    def _one_way(self, best: Best, fewer: bool) -> Iterator[Change]:
        now = sum(len(part) == 1 for part in best().parts)
        for number in self._numbers() if fewer else reversed(self._numbers()):
            if number != now and (number < now) == fewer:
                yield f"{number} one-way tables", self._with_one_way(best(), number)

    def _numbers(self) -> list[int]:
        """Numbers of one-way tables that are tried, the largest first."""
        return [math.ceil(share * len(self.single)) for share in ONE_WAY]

    def _with_one_way(self, choice: Choice, number: int) -> Choice:
        """The choice with this many one-way tables, those that tell most at its noise."""
        pairs = tuple(part for part in choice.parts if len(part) > 1)
        any_ones = replace(choice, parts=self.single[:number] + pairs)  # the noise depends on their number only
        telling = telling_parts(self.moments, self.cells, self._noise_in_shares(any_ones), number)
        return replace(choice, parts=tuple(self.single[k] for k in sorted(telling)) + pairs)

    def predicted(self, simplest: Choice, error: float) -> list[Change]:
        """Plans of one-way tables with the best share for the totals, by their predicted errors, the best first.

        With l_a the distance of column a's table from the truth that noise is predicted to leave, the table of columns
        a and b is taken to be off by sqrt(l_a^2 + l_b^2 + i^2). i, what pairs of columns do on their own, is such that
        the simplest choice has the `error` that a rehearsal found.
        """
        if simplest.total == 1 or not self.pairs:
            return []
        columns = self._left_of_columns(simplest)
        low, high = 0.0, WORST
        for _ in range(BISECTIONS):
            alone = (low + high) / 2
            low, high = (alone, high) if _of_pairs(columns, alone) < error else (low, alone)
        found: dict[int, tuple[float, Choice]] = {}
        for number in self._numbers():
            parts = self._with_one_way(simplest, number).parts
            for total in TOTALS[:-1]:
                choice = replace(simplest, parts=parts, total=total)
                plan = self.plan_of(choice)
                risk = float(np.mean([self.rehearsal.risk(plan, k) for k in range(len(self.rehearsal.stand_ins))]))
                expected = (1 - risk) * _of_pairs(self._left_of_columns(choice), alone) + WORST * risk
                if number not in found or expected < found[number][0]:
                    found[number] = expected, choice
        return [
            (f"{many(number, 'one-way table')}, {choice.total} for the totals, by prediction", choice)
            for number, (_, choice) in sorted(found.items(), key=lambda each: each[1][0])
        ]

    def _left_of_columns(self, choice: Choice) -> Floats:
        """For each column, the mean distance of its table from the truth that the answers of a choice leave."""
        asked = [self.single.index(part) for part in choice.parts if len(part) == 1]
        noise = self._noise_in_shares(choice)
        left = left_by_noise(self.apart, self.cells, noise, asked)
        left = left + left_by_noise(self.common, self.cells, noise / self.groups, asked)
        starts = [each.start for each in self.cells]
        return np.asarray(math.sqrt(2 / math.pi) * np.add.reduceat(np.sqrt(left), starts))

    def _two_way(self, best: Best) -> Iterator[Change]:
        single = tuple(part for part in best().parts if len(part) == 1)
        alone = self._variance(replace(best(), parts=self.single[:1]))
        noise = self._variance(best()) * self._per_row_squared(-1)
        gains = {pair: predicted_gain(self._off_by(-1, pair), noise) for pair in self._small_pairs(-1, alone)}
        for number in TWO_WAY:
            pairs = self._best_parts(gains, number)
            yield f"{len(pairs)} two-way tables", replace(best(), parts=single + pairs)

    def _raw_pairs(self, best: Best, shares: Sequence[Fraction]) -> Iterator[Change]:
        """Only pairs, and raw answers: for groups so large that most cells stand out from the noise."""
        rows = self._rows(-1)
        for share in shares:
            pairs = self.pairs[: math.ceil(share * len(self.pairs))]
            choice = replace(best(), parts=pairs, settings=replace(best().settings, smooth=False))
            cells = np.mean([self.schema.domain_size(pair) for pair in pairs])
            if rows / cells > STANDS_OUT * math.sqrt(self._variance(choice)):
                yield f"{len(pairs)} two-way tables, raw answers", choice

    def _joint_table(self, best: Best) -> Iterator[Change]:
        """The table of all columns at once, and raw answers: for domains that can be counted almost without noise."""
        groups, raw = len(self.plan_of(best()).groupings[-1]), replace(best().settings, smooth=False)
        cells = self.schema.domain_size(self.schema.coded)
        if not is_small(self.schema) or cells * groups > MOST_COUNTED:
            return
        joint = replace(best(), parts=(self.schema.coded,), settings=replace(raw, extra=EXTRA_OF_DOMAIN))
        pairs = replace(best(), parts=self.pairs, settings=raw)
        of_pair = float(np.mean([self.schema.domain_size(pair) for pair in self.pairs]))
        # Counts are whole numbers: the mean size of small noise is at most its variance. Empty cells keep its positive
        # part, so all of them together must get less than the cells of a pair would.
        variance = self._variance(joint)
        if cells * min(variance, math.sqrt(variance)) < of_pair * math.sqrt(self._variance(pairs)):
            yield "the table of all columns, raw answers", joint

    def out_of_reach(self, parts: Sequence[Columns]) -> float:
        """The mean, over parts and stand-ins, of the share of rows in cells that no remaining public row is in."""
        shares = []
        for level, columns in product(self.levels[-1], parts):
            part, stand_in = Marginal.of(self.schema, columns), level.stand_in
            seen = np.zeros(part.n_cells, np.bool_)
            seen[part.cells(self.schema, stand_in.public.prior.codes)] = True
            mine = ~np.isin(level.group, level.left_out)
            shares.append(float(np.mean(~seen[part.cells(self.schema, stand_in.codes)[mine]])) if mine.any() else 0.0)
        return float(np.mean(shares)) if shares else 0.0

    def _shares_above(self, best: Best, depth: int) -> Iterator[Change]:
        free = best().left_for(depth)
        for share in SHARES_ABOVE:
            yield _above(best(), depth, share * free, self._worth_asking(best(), depth, share * free))

    def _worth_asking(self, choice: Choice, depth: int, share: Fraction) -> tuple[Columns, ...]:
        """The parts that are worth most, given the sums of deeper levels' answers, which cost nothing more."""
        known = self._known(choice, depth)
        weight = {1: max(len(self.single) - 1, 1), 2: 1}  # a one-way part is in all of its column's pairs

        def variance(parts: tuple[Columns, ...]) -> float:
            return self._variance(choice.asking_above(depth, share, parts), depth)

        candidates = self.single + self._small_pairs(depth, variance(self.single[:1]))
        most = -1.0
        best: tuple[Columns, ...] = ()
        for number in NUMBERS_ABOVE:
            noise = variance(candidates[:number]) * self._per_row_squared(depth)
            gains = {
                part: weight[len(part)] * predicted_gain(self._off_by(depth, part), noise, known.get(part, np.inf))
                for part in candidates
            }
            parts = self._best_parts(gains, number)
            worth = sum(gains[part] for part in parts)
            if worth > most:
                most, best = worth, parts
        return best

    def _known(self, choice: Choice, depth: int) -> dict[Columns, float]:
        """Noise variances, in a level's shares, of the parts of deeper levels once their counts are added up."""
        precision: dict[Columns, float] = {}
        for question in self.plan_of(choice).questions:
            if question.level > depth and not question.is_total:
                below = sum(map(len, self.levels[question.level])) / sum(map(len, self.levels[depth]))
                for part in (each for each in question.parts if isinstance(each, Marginal)):
                    known = precision.get(part.columns, 0.0)
                    precision[part.columns] = known + 1 / (question.variance * below * self._per_row_squared(depth))
        return {columns: 1 / each for columns, each in precision.items()}

    def _small_pairs(self, depth: int, variance: float) -> tuple[Columns, ...]:
        """The pairs that tell most about each other, of those whose cells would stand out from the noise.

        If the pair were asked for alone, an average cell must have more rows than the standard deviation of its noise.
        """
        most = min(self._rows(depth) / max(math.sqrt(variance), FEWEST_ROWS), MOST_CELLS)
        return tuple(islice((pair for pair in self.pairs if self.schema.domain_size(pair) <= most), MOST_PAIRS))

    def _best_parts(self, gains: dict[Columns, float], number: int) -> tuple[Columns, ...]:
        """The parts with the largest gains, at most `number`; two-way tables have at most `MOST_CELLS` cells in all."""
        parts: list[Columns] = []
        room = MOST_CELLS
        for part in sorted(gains, key=lambda part: -gains[part]):
            size = self.schema.domain_size(part) if len(part) > 1 else 0
            if len(parts) < number and size <= room:
                parts.append(part)
                room -= size
        return tuple(parts)

    def _settings(self, best: Best, name: str, values: Sequence[float | str]) -> Iterator[Change]:
        for value in values:
            changed: dict[str, Any] = {name: value}
            words = value if isinstance(value, str) else f"{value:g}"
            yield f"{name} {words}", replace(best(), settings=replace(best().settings, **changed))

    def _rows(self, depth: int) -> float:
        return float(np.median(np.concatenate([level.rows for level in self.levels[depth]])))

    def _per_row_squared(self, depth: int) -> float:
        """The factor from the variance of a count to that of a share: the mean of 1 / rows^2."""
        return float(np.mean([np.mean(level.rows**-2.0) for level in self.levels[depth]]))

    def _variance(self, choice: Choice, depth: int = -1) -> float:
        """Variance of the noise in a count of a level's parts if all had equal shares: close enough for predictions."""
        depth %= len(self.levels)
        questions = self.plan_of(replace(choice, weighted=False)).questions
        return next(each.variance for each in questions if each.level == depth and not each.is_total)

    def _noise_in_shares(self, choice: Choice) -> float:
        """The same at the last level, as a variance of shares."""
        return self._variance(choice) * self._per_row_squared(-1)

    def _off_by(self, depth: int, columns: Columns) -> Floats:
        if (depth, columns) not in self._off:
            self._off[depth, columns] = off_by(self.levels[depth], self.schema, columns)
        return self._off[depth, columns]

    # ---------------------------------------------------------------- targets

    def _for_targets(self, best: Best) -> Iterator[Iterator[Change]]:
        """Changes of the best choice so far that spend on targets."""
        depth = len(self.levels) - 1
        if best().total < 1:
            for words, parts in self._sets_of_targets().items():
                yield self._more_often(best, words, parts)
        if best().total < 1 and best().favoured:
            yield self._nothing_else(best)
            if best().parts:
                yield self._other_times(best, TIMES)
                yield self._other_times(best, TIMES[::-1])
        for above in reversed(range(depth)):
            if own := self._targets_parts(above):
                yield self._targets_above(best, above, own)

    def _targets_parts(self, depth: int) -> tuple[Part, ...]:
        assert self.rehearsal.wanted is not None
        by = set(self.nest[depth])
        return tuple(dict.fromkeys(each.part for each in self.rehearsal.wanted.wanted if set(each.by) == by))

    def _sets_of_targets(self) -> dict[str, tuple[Part, ...]]:
        """Different sets of parts that tell what the targets name at the last level, without parts of many cells."""
        own = self._targets_parts(len(self.levels) - 1)
        names = dict.fromkeys(name for part in own for name in part.columns)
        single: tuple[Part, ...] = tuple(Marginal.of(self.schema, [name]) for name in names)
        small: list[Part] = []
        for part in sorted(own, key=lambda part: part.n_cells):
            if sum(each.n_cells for each in (*small, part)) <= MOST_CELLS:
                small.append(part)
        tables = tuple(part for part in own if part in small)
        words: dict[tuple[Part, ...], str] = {}
        for parts, what in ((tables, "tables"), (single, "columns"), ((*tables, *single), "tables and columns")):
            words.setdefault(tuple(dict.fromkeys(parts)), f"the targets' {what}")
        return {what: parts for parts, what in words.items() if parts}

    def _more_often(self, best: Best, words: str, parts: tuple[Part, ...]) -> Iterator[Change]:
        """A set of parts with larger shares: from a few times as large, or from as much as another set has now."""
        now = best().times if best().favoured else Fraction(1)
        for times in LONG_STEPS if now == 1 else (now,):
            changed = replace(best().favouring(len(self.levels) - 1, parts), times=times)
            yield f"{times} times the share for {words}", changed

    def _other_times(self, best: Best, steps: Sequence[Fraction]) -> Iterator[Change]:
        now, up = best().times, steps[0] < steps[-1]
        for times in steps:
            if times > now if up else times < now:
                yield f"{times} times the share for the targets", replace(best(), times=times)

    def _nothing_else(self, best: Best) -> Iterator[Change]:
        """Only what tells the targets, if that also tells the numbers of rows."""
        if best().total or any(part.covers for part in best().favoured):
            yield "nothing but the targets", replace(best(), parts=())

    def _targets_above(self, best: Best, depth: int, parts: tuple[Part, ...]) -> Iterator[Change]:
        """The targets of a level above the last, for a share of the budget that tells more than sums of deeper answers.

        Some part must have less noise than the sums of deeper levels' answers, which cost nothing more.
        """
        free = best().left_for(depth)
        for share in TARGETS_ABOVE:
            changed = best().asking_above(depth, share * free, best().above[depth][1]).favouring(depth, parts)
            known, factor = self._known(changed, depth), self._per_row_squared(depth)
            questions = self.plan_of(changed).questions
            asked = [each for each in questions if each.level == depth]
            noise = {part: question.variance * factor for question in asked for part in question.parts}
            if any(noise[part] < known.get(part.columns, math.inf) for part in parts):
                yield f"level {depth + 1}: {many(len(parts), 'target')} for {share * free} of the budget", changed


def _of_pairs(columns: Floats, alone: float) -> float:
    """The mean distance of two-way tables, from those of their columns and what pairs do on their own."""
    first, second = np.triu_indices(len(columns), 1)
    return float(np.mean(np.sqrt(columns[first] ** 2 + columns[second] ** 2 + alone**2)))


def _above(choice: Choice, depth: int, share: Fraction, parts: tuple[Columns, ...]) -> Change:
    words = f"{many(len(parts), 'table')} for {share} of the budget" if parts else "nothing"
    return f"level {depth + 1}: {words}", choice.asking_above(depth, share, parts)


def laws_within(budget: Budget) -> tuple[NoiseLaw | None, ...]:
    """The laws worth trying; None is the usual one. Under zCDP, Laplace noise only doubles the variance."""
    return (LAPLACE, None) if budget.kind == "approx" else (None,)


def with_least_noise(candidates: Candidates, choice: Choice) -> Choice:
    """The choice with the law under which the counts of its last question have the least variance."""
    choices = [replace(choice, law=law) for law in laws_within(candidates.plan_of(choice).budget)]
    return min(choices, key=lambda each: candidates.plan_of(each).questions[-1].variance)
