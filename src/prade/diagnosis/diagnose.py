"""Diagnosis: is the public table right about every column, in every group, at every level?

*The null.* The public table is right about a column of a group if the group's private rows are a random sample from
the same population as the public rows that predict them: the same shares, within sampling. A `sharp` diagnosis asks for
the same shares exactly, so that only noise explains a difference.

*The statistic.* With r the answer minus the noisy number of rows times the predicted share, s its standard deviation
under the null, and b the scale of the exponential tail of its errors (that of the largest draw of Laplace noise in it,
or that of a sample's rare cells, if this is larger),

    sum over cells of h(r / s),      h(z) = z^2 if |z| <= c, otherwise 2 c |z| - c^2,      c = s / b

which is about the likelihood ratio. Its law is simulated (`prade.diagnosis.null`), with one family of all columns,
groups and levels: 5 % is the chance of any false alarm.

*Distances.* The total-variation distance is half the sum of |private share - public share|. Noise makes it larger, so
it is multiplied by sqrt(1 - expected squares of noise / squares of r). Its lower bound is

    (sum over cells of |r| - c) / (2 * most rows)

where c bounds the sum of |noise|, and *most rows* the number of rows of the group; in 95 % of the draws all such bounds
hold at once. The bound is about the private rows themselves, without any assumption on how they were sampled.

All of this is post-processing of answers that were paid for: it spends nothing, and may be published with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats
from prade.core.errors import PradeError, many
from prade.core.execution import several
from prade.data.declare.groups import Grouping
from prade.data.public.public import Public
from prade.diagnosis.null import (
    Compared,
    LevelAnswers,
    Moments,
    Predictions,
    lowest_allowed,
    noise_of,
    of_the_family,
    predictions,
    sampling_of,
    sampling_scale,
    sampling_variance,
    side_by_side,
    smallest,
)
from prade.planning.invariants import obeying
from prade.planning.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE = "in the whole table"
NOTHING = "Nothing can be said about the public table: no table of a column was measured with its number of rows."
# The types of the tables' columns; all others are numbers.
OF_COLUMNS = {"level": "string", "column": "string", "groups": "int64", "wrong": "int64"}
OF_GROUPS = {"level": "string", "group": "string", "column": "string", "wrong": "bool"}
OF_COLUMNS |= dict.fromkeys(("distance", "at_least", "sampling", "noise_units"), "float64")
OF_GROUPS |= dict.fromkeys(("chance", "distance", "at_least", "rows"), "float64")

RATE = 0.05  # of any false alarm, and of any wrong bound
MOST_DRAWS, FEWEST_DRAWS = 99, 39  # of the null; half as many more give the moments
MOST_NUMBERS = 2e7  # to draw in all, as far as the fewest draws allow
NO_SCALE = 1e-6  # of a standard deviation: a smaller scale changes nothing
CLEARLY = 3.0  # standard deviations of its noise: a group with fewer rows may be empty, and its distance is not known

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LevelFindings:
    """What was found at one level; arrays are [groups, columns], or have one number per group or per column.

    `wrong` says where the public table is wrong, by the family's `chance` of a false alarm. Distances are
    total-variation distances with the noise removed, `at_least` their lower bounds, all of which hold at once.
    `column_distance` is the mean over the groups' rows, `column_sampling` that of random samples of an unchanged
    population, and `noise_units` the differences in units of what noise alone leads to. NaN is unknown.
    """

    name: str
    by: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    own: int  # groups with public rows of their own
    rows: Floats
    chance: Floats
    wrong: Flags
    distance: Floats
    at_least: Floats
    column_distance: Floats
    column_sampling: Floats
    noise_units: Floats

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def noun(self) -> str:
        return self.by[-1] if self.by else "table"

    @property
    def predicted_from(self) -> str:
        if not self.by:
            return "all public rows"
        if not self.own:
            return "public rows of the group above"
        return "their own public rows" if self.own == len(self) else "own public rows, or those of the group above"

    def column_rows(self) -> Iterator[dict[str, Any]]:
        """One row per column, those with most alarms and the largest distances first."""
        wrong = self.wrong.sum(axis=0)
        at_least = self.at_least.max(axis=0)
        order = np.lexsort((-np.nan_to_num(self.column_distance), -at_least, -wrong))
        for k in order.tolist():
            yield {
                "level": self.name,
                "column": self.columns[k],
                "groups": len(self),
                "wrong": int(wrong[k]),
                "distance": _number(self.column_distance[k]),
                "at_least": _number(at_least[k]),
                "sampling": _number(self.column_sampling[k]),
                "noise_units": _number(self.noise_units[k]),
            }

    def group_rows(self) -> Iterator[dict[str, Any]]:
        """One row per group and column, in their order."""
        for g, label in enumerate(self.labels):
            for k, column in enumerate(self.columns):
                yield {
                    "level": self.name,
                    "group": label,
                    "column": column,
                    "wrong": bool(self.wrong[g, k]),
                    "chance": float(self.chance[g, k]),
                    "distance": _number(self.distance[g, k]),
                    "at_least": _number(self.at_least[g, k]),
                    "rows": float(round(self.rows[g], 1)),
                }

    def headline(self) -> str:
        first = next(self.column_rows())
        number = int(self.wrong.any(axis=0).sum())
        where = f"by {self.noun}" if self.by else WHOLE
        columns = f"{many(len(self.columns), 'column')} {where}"
        if not number:
            return f"The public table is not shown to be wrong about any of {columns}."
        most = f", in {first['wrong']:,} of {many(len(self), self.noun)}" if self.by else ""
        return f"The public table is wrong about {number:,} of {columns}; most about {first['column']}{most}."

    def sentences(self) -> Iterator[str]:
        """A sentence for each column that the public table is wrong about."""
        for row in self.column_rows():
            if row["wrong"]:
                where = f"in {row['wrong']:,} of {many(len(self), self.noun)}" if self.by else WHOLE
                most = self.labels[int(np.argmax(self.at_least[:, self.columns.index(row["column"])]))]
                in_group = f" in {most}" if self.by else ""
                bound = f", at least {row['at_least']:.3f}{in_group}" if row["at_least"] else ""
                about = "" if row["distance"] is None else f" (distance about {row['distance']:.3f}{bound})"
                yield f"The public table is wrong about {row['column']} {where}{about}."


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How far the public table is from the private one, by column and level, from noisy answers alone.

    `untested` are columns whose tables were not measured. The chance that any alarm is false, or any bound wrong, is at
    most `rate`. `sharp` says that the same shares were asked for exactly, rather than within random sampling with the
    `design_effect`. `simulations` is how many draws of the null decided.
    """

    levels: tuple[LevelFindings, ...]
    untested: tuple[str, ...]
    rate: float
    simulations: int
    sharp: bool
    design_effect: float

    def __repr__(self) -> str:
        alarms = ", ".join(f"{level.name} {int(level.wrong.sum()):,} of {level.wrong.size:,}" for level in self.levels)
        return f"Diagnosis(wrong: {alarms})"

    def __str__(self) -> str:
        return "\n".join([*self.headlines(), *self.sentences(), *self.remarks()])

    def headlines(self) -> list[str]:
        return [level.headline() for level in self.levels] or [NOTHING]

    def sentences(self) -> list[str]:
        """One sentence for each column that the public table is wrong about, level by level."""
        return [sentence for level in self.levels for sentence in level.sentences()]

    def remarks(self) -> list[str]:
        """What the sentences mean and what they do not cover."""
        sampling = "noise" if self.sharp else "noise and random sampling"
        said = [
            f"A group counts as wrong where {sampling} do{'es' if self.sharp else ''} not explain the difference. The "
            f"chance that any of these alarms is false is at most {100 * self.rate:.0f} %; no alarm does not mean no "
            "difference."
        ]
        said += [
            f"{level.name}: {many(len(level), level.noun) if level.by else 'the whole table'}, compared with "
            f"{level.predicted_from}."
            for level in self.levels
        ]
        if self.untested:
            number = many(len(self.untested), "column")
            said.append(f"Not measured as tables, so nothing is known about {number}: {', '.join(self.untested)}.")
        return said

    def wrong_somewhere(self) -> list[str]:
        """The columns that the public table is wrong about at any level."""
        somewhere = [np.array(level.columns)[level.wrong.any(axis=0)].tolist() for level in self.levels]
        return list(dict.fromkeys(itertools.chain(*somewhere)))

    def columns(self) -> pa.Table:
        return _table(self._column_rows(), OF_COLUMNS)

    def groups(self) -> pa.Table:
        return _table((row for level in self.levels for row in level.group_rows()), OF_GROUPS)

    def _column_rows(self) -> Iterator[dict[str, Any]]:
        return (row for level in self.levels for row in level.column_rows())

    def to_dict(self) -> dict[str, Any]:
        """Plain values: what was asked, sentences, and one entry per level and column."""
        return {
            "rate": self.rate,
            "null": "same shares" if self.sharp else "same shares, within random sampling",
            "design_effect": None if self.sharp else self.design_effect,
            "simulations": self.simulations,
            "headlines": self.headlines(),
            "sentences": self.sentences(),
            "remarks": self.remarks(),
            "untested": list(self.untested),
            "columns": list(self._column_rows()),
        }


def _number(value: Any) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


def _table(rows: Iterable[dict[str, Any]], types: dict[str, str]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), pa.schema(list(types.items())))


# ---------------------------------------------------------------------- the test


def diagnosed(
    plan: Plan,
    noisy: Sequence[Sequence[Counts]],
    public: Public,
    *,
    sharp: bool = False,
    design_effect: float = 1.0,
    seed: int = 0,
    threads: int = 1,
) -> Diagnosis:
    """Compare a release's noisy counts with the public rows."""
    if not design_effect >= 1:
        raise PradeError(f"design_effect is {design_effect!r}; give 1 for independent rows, or a larger number")
    levels = [(grouping, k, plan.levels[k].name) for k, grouping in enumerate(plan.groupings)]
    if plan.levels[0].by:  # the whole table comes first
        levels.insert(0, (plan.groups.level(()), 0, "all"))
    predicted = predictions(obeying(public, plan.invariants), [grouping for grouping, _, _ in levels])
    counts = side_by_side(noisy)
    compared = [_compared(plan, *each, counts) for each in zip(levels, predicted, strict=True)]
    answered = {name: each for (_, _, name), each in zip(levels, compared, strict=True) if each is not None}
    if not answered:
        return Diagnosis((), plan.schema.coded, RATE, 0, sharp, design_effect)
    null = _Null(plan, list(answered.values()), None if sharp else design_effect, seed, threads)
    findings = null.findings(counts, list(answered))
    tested = {name for each in findings for name in each.columns}
    untested = tuple(name for name in plan.schema.coded if name not in tested)
    return Diagnosis(tuple(findings), untested, RATE, null.draws, sharp, design_effect)


def _compared(
    plan: Plan, level: tuple[Grouping, int, str], predicted: Predictions, counts: Sequence[Counts]
) -> Compared | None:
    """A level's answers beside its predictions; None if it has no answers."""
    grouping, number, _ = level
    answers = LevelAnswers(plan, grouping, number)
    if not answers.answered:
        return None
    sizes = [plan.schema.size(name) for name in plan.schema.coded]
    own = np.repeat([name in answers.columns.names for name in plan.schema.coded], sizes)
    rows = np.maximum(answers.of(counts)[1], 0.0)
    return Compared(answers, predicted.of_columns(np.flatnonzero(own)), rows)


class _Draw(NamedTuple):
    """The statistics of all levels, of answers or of one draw of the null.

    `alarms` are those of the test. `lengths` are sums of absolute noise by column, in standard deviations of a cell's
    noise, and after the columns the absolute noise of the number of rows, in its own. `squares` are the squares of the
    noise in the differences of all cells, `sampled` sums by column of absolute sampling errors.
    """

    alarms: list[Floats]
    lengths: list[Floats]
    squares: list[Floats]
    sampled: list[Floats]


class _Null:
    """The null of a release; `effect` is the design effect of its sampling, None for a sharp one."""

    def __init__(self, plan: Plan, levels: Sequence[Compared], effect: float | None, seed: int, threads: int) -> None:
        self.plan, self.levels, self.effect, self.seed, self.threads = plan, levels, effect, seed, threads
        numbers = sum(question.cells * len(plan.groupings[question.level]) for question in plan.questions)
        self.draws = int(np.clip(MOST_NUMBERS / (1.5 * numbers), FEWEST_DRAWS, MOST_DRAWS))
        self.of_noise = [_noise_variance(each) for each in levels]
        self.scales = [self._scale(each) for each in levels]

    def _scale(self, level: Compared) -> Floats:
        """b of the statistic: [groups, cells]."""
        laplace = level.columns.spread(level.answers.scale)
        return laplace if self.effect is None else np.maximum(laplace, sampling_scale(level, self.effect)[:, None])

    def alarms(self, number: int, differences: Floats, of_sampling: Floats | float) -> Floats:
        """The statistic of every column and group of a level, given the variance that sampling is taken to have."""
        level = self.levels[number]
        deviation = np.sqrt(self.of_noise[number] + of_sampling)
        bend = deviation / np.maximum(self.scales[number], NO_SCALE * deviation)
        scaled = np.abs(differences) / deviation
        return level.columns.sums(np.where(scaled <= bend, scaled**2, bend * (2 * scaled - bend)))

    def drawn(self, number: int) -> _Draw:
        generator = np.random.default_rng([self.seed, number])
        counts = noise_of(self.plan, generator)
        draw = _Draw([], [], [], [])
        for k, level in enumerate(self.levels):
            noise, rows = level.differences(counts)
            sampled, variance = np.zeros_like(noise), np.zeros_like(noise)
            if self.effect is not None:
                sampled, variance = sampling_of(level, self.effect, generator)
            draw.alarms.append(self.alarms(k, noise + sampled, variance))
            lengths = level.columns.sums(np.abs(noise)) / np.sqrt(level.answers.variance)
            of_rows = np.abs(rows) / np.sqrt(level.answers.rows_variance)
            draw.lengths.append(np.concatenate([lengths, of_rows[:, None]], axis=1))
            draw.squares.append(noise**2)
            draw.sampled.append(level.columns.sums(np.abs(sampled)))
        return draw

    def findings(self, counts: Sequence[Counts], names: Sequence[str]) -> list[LevelFindings]:
        pilot = (self.draws + 1) // 2
        moments, lengths, squares, sampled = sums = [Moments() for _ in _Draw._fields]
        for draw in several(self.drawn, range(pilot), self.threads):
            for each, values in zip(sums, draw, strict=True):
                each.add(values)
        tails, of_lengths = moments.tails(), lengths.tails()
        drawn = [
            (smallest(tails, draw.alarms), smallest(of_lengths, draw.lengths))
            for draw in several(self.drawn, range(pilot, pilot + self.draws), self.threads)
        ]
        of_alarms, of_bounds = np.array(drawn).T
        least = lowest_allowed(of_bounds, RATE)
        findings = []
        for k, (name, level) in enumerate(zip(names, self.levels, strict=True)):
            differences, rows = level.differences(counts)
            shares = level.predicted.shares
            of_sampling = 0.0 if self.effect is None else sampling_variance(level, shares, self.effect)
            chances = of_the_family(tails[k].chances(self.alarms(k, differences, of_sampling)), of_alarms)
            expected = squares.sums[k] / pilot, sampled.sums[k] / pilot
            findings.append(_findings(name, level, differences, rows, chances, of_lengths[k].limits(least), expected))
        return findings


def _noise_variance(level: Compared) -> Floats:
    """The variance of the noise in a difference, as if the table and the number of rows had noise of their own."""
    answers, shares = level.answers, level.predicted.of_groups()
    return np.asarray(level.columns.spread(answers.variance) + shares**2 * answers.rows_variance[:, None])


def _findings(
    name: str,
    level: Compared,
    differences: Floats,
    rows: Floats,
    chances: Floats,
    limits: Floats,
    expected: tuple[Floats, Floats],
) -> LevelFindings:
    """The alarms and distances of a level; `limits` are those of lengths, `expected` squares of noise and sampling."""
    answers, columns = level.answers, level.columns
    of_noise, of_sampling = expected
    lengths, squares = columns.sums(np.abs(differences)), differences**2
    deviation = np.sqrt(answers.rows_variance)
    known = rows > CLEARLY * deviation
    whole = np.where(known, rows, 0.0)[:, None]
    most = (rows + limits[:, -1] * deviation)[:, None]
    beyond = (lengths - limits[:, :-1] * np.sqrt(answers.variance)) / (2 * np.maximum(most, 1.0))

    def half_per_row(part: Floats, rows: Floats) -> Floats:
        shape = np.broadcast(part, rows).shape
        return np.asarray(np.divide(part, 2 * rows, out=np.full(shape, np.nan), where=rows > 0))

    left = _left(columns.sums(squares), columns.sums(of_noise))
    left_of_cells = _left(squares[known].sum(axis=0), of_noise[known].sum(axis=0))
    of_cells = np.abs(differences[known]).sum(axis=0, keepdims=True) * left_of_cells
    every = whole.sum(axis=0)
    return LevelFindings(
        name=name,
        by=answers.grouping.by,
        labels=tuple(answers.grouping.labels()),
        columns=columns.names,
        own=level.predicted.own,
        rows=rows,
        chance=chances,
        wrong=chances <= RATE + 1e-9,
        distance=np.minimum(half_per_row(lengths * left, whole), 1.0),
        at_least=np.clip(beyond, 0.0, 1.0),
        column_distance=np.minimum(half_per_row(columns.sums(of_cells)[0], every), 1.0),
        column_sampling=half_per_row(of_sampling[known].sum(axis=0), every),
        noise_units=np.sqrt(columns.sums(squares).sum(axis=0) / _at_least_some(columns.sums(of_noise), level)),
    )


def _left(squares: Floats, of_noise: Floats) -> Floats:
    """The part of absolute differences that noise does not explain: sqrt(1 - squares of noise / squares)."""
    explained = np.divide(of_noise, squares, out=np.ones_like(squares), where=squares > 0)
    return np.asarray(np.sqrt(np.maximum(0.0, 1 - explained)))


def _at_least_some(of_noise: Floats, level: Compared) -> Floats:
    """Squares of noise by column, from the draws or, if these have hardly any, by the variances of the noise."""
    by_variance = level.columns.sizes * level.answers.variance.sum(axis=0)
    return np.asarray(np.maximum(of_noise.sum(axis=0), 1e-3 * by_variance))
