"""Diagnosis: is the public table right about every column, in every group, at every level?

*The null.* The public table is right about a column of a group if the group's private rows are a random sample from
the same population as the public rows that predict them: the same shares, within sampling.

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
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from prade.core.arrays import Flags, Floats
from prade.core.errors import PradeError, many
from prade.core.execution import several
from prade.data.public.public import Public
from prade.diagnosis.null import LevelAnswers, Moments, Noisy, noise_of, of_the_family, predictions, smallest
from prade.planning.invariants import obeying
from prade.planning.plan import Plan

NOTHING = "Nothing can be said about the public table: no table of a column was measured with its number of rows."
# The types of the tables' columns; all others are numbers.
OF_COLUMNS = {"level": "string", "column": "string", "groups": "int64", "wrong": "int64"}
OF_GROUPS = {"level": "string", "group": "string", "column": "string", "wrong": "bool"}
OF_COLUMNS |= dict.fromkeys(("distance", "at_least"), "float64")
OF_GROUPS |= dict.fromkeys(("chance", "distance", "at_least", "rows"), "float64")

RATE = 0.05  # of any false alarm, and of any wrong bound
MOST_DRAWS, FEWEST_DRAWS = 99, 39  # of the null; half as many more give the moments
MOST_NUMBERS = 2e7  # to draw in all, as far as the fewest draws allow
CLEARLY = 3.0  # standard deviations of its noise: a group with fewer rows may be empty, and its distance is not known


@dataclass(frozen=True, eq=False)
class LevelFindings:
    """What was found at one level; arrays are [groups, columns], or have one number per group or per column.

    `wrong` says where the public table is wrong, by the family's `chance` of a false alarm. Distances are
    total-variation distances with the noise removed, `at_least` their lower bounds, all of which hold at once.
    `column_distance` is the mean over the groups' rows. NaN is unknown.
    """

    name: str
    by: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Floats
    chance: Floats
    distance: Floats
    at_least: Floats
    column_distance: Floats

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def wrong(self) -> Flags:
        return self.chance <= RATE + 1e-9

    def column_rows(self) -> Iterator[dict[str, Any]]:
        """One row per column, those with most alarms and the largest distances first."""
        wrong, at_least = self.wrong.sum(axis=0), self.at_least.max(axis=0)
        for k in np.lexsort((-np.nan_to_num(self.column_distance), -at_least, -wrong)).tolist():
            found = {"level": self.name, "column": self.columns[k], "groups": len(self), "wrong": int(wrong[k])}
            yield {**found, "distance": _number(self.column_distance[k]), "at_least": _number(at_least[k])}

    def group_rows(self) -> Iterator[dict[str, Any]]:
        """One row per group and column, in their order."""
        for (g, label), (k, column) in itertools.product(enumerate(self.labels), enumerate(self.columns)):
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
        columns = f"{many(len(self.columns), 'column')} {f'by {self.by[-1]}' if self.by else 'in the whole table'}"
        if not number:
            return f"The public table is not shown to be wrong about any of {columns}."
        most = f", in {first['wrong']:,} of {many(len(self), self.by[-1])}" if self.by else ""
        return f"The public table is wrong about {number:,} of {columns}; most about {first['column']}{most}."


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How far the public table is from the private one, by column and level, from noisy answers alone.

    `untested` are columns whose tables were not measured. The chance that any alarm is false, or any bound wrong, is at
    most 5 %.
    """

    levels: tuple[LevelFindings, ...]
    untested: tuple[str, ...]
    design_effect: float

    def __repr__(self) -> str:
        alarms = ", ".join(f"{level.name} {int(level.wrong.sum()):,} of {level.wrong.size:,}" for level in self.levels)
        return f"Diagnosis(wrong: {alarms})"

    def __str__(self) -> str:
        return "\n".join([*self.headlines(), *self.remarks()])

    def headlines(self) -> list[str]:
        return [level.headline() for level in self.levels] or [NOTHING]

    def remarks(self) -> list[str]:
        """What the headlines mean and what they do not cover."""
        said = [
            "A group counts as wrong where noise and random sampling do not explain the difference. The chance that "
            f"any of these alarms is false is at most {100 * RATE:.0f} %; no alarm does not mean no difference.",
            "Groups are compared with their own public rows, or where they have none with those of the group above.",
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
        return _table((row for level in self.levels for row in level.column_rows()), OF_COLUMNS)

    def groups(self) -> pa.Table:
        return _table((row for level in self.levels for row in level.group_rows()), OF_GROUPS)

    def to_dict(self) -> dict[str, Any]:
        """Plain values: what was asked, sentences, and one entry per level and column."""
        return {
            "rate": RATE,
            "design_effect": self.design_effect,
            "headlines": self.headlines(),
            "remarks": self.remarks(),
            "untested": list(self.untested),
            "columns": [row for level in self.levels for row in level.column_rows()],
        }


def _number(value: Any) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


def _table(rows: Iterable[dict[str, Any]], types: dict[str, str]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema(list(types.items())))


# ---------------------------------------------------------------------- the test


def diagnosed(
    plan: Plan, noisy: Noisy, public: Public, *, design_effect: float = 1.0, seed: int = 0, threads: int = 1
) -> Diagnosis:
    """Compare a release's noisy counts with the public rows."""
    if not design_effect >= 1:
        raise PradeError(f"design_effect is {design_effect!r}; give 1 for independent rows, or a larger number")
    levels = [(grouping, k, plan.levels[k].name) for k, grouping in enumerate(plan.groupings)]
    if plan.levels[0].by:  # the whole table comes first
        levels.insert(0, (plan.groups.level(()), 0, "all"))
    predicted = predictions(obeying(public, plan.invariants), [grouping for grouping, _, _ in levels])
    counts = [np.concatenate(answers, axis=1) for answers in noisy]  # of each question, all parts side by side
    compared = [
        (name, LevelAnswers(plan, grouping, number, each, counts, design_effect))
        for (grouping, number, name), each in zip(levels, predicted, strict=True)
    ]
    compared = [each for each in compared if each[1].answered]
    findings = _findings(plan, compared, seed, threads) if compared else []
    tested = {name for each in findings for name in each.columns}
    return Diagnosis(tuple(findings), tuple(n for n in plan.schema.coded if n not in tested), design_effect)


def _drawn(plan: Plan, levels: Sequence[LevelAnswers], seed: int, number: int) -> tuple[list[Floats], ...]:
    """One draw: for each level the statistics of the test, lengths, and squares of the noise in its differences.

    Lengths are sums of absolute noise by column, in standard deviations of a cell's noise, and after the columns the
    absolute noise of the number of rows, in its own.
    """
    generator = np.random.default_rng([seed, number])
    counts = noise_of(plan, generator)
    alarms, all_lengths, squares = list[Floats](), list[Floats](), list[Floats]()
    for level in levels:
        noise, rows = level.differences(counts)
        sampled, variance = level.sampling_of(generator)
        alarms.append(level.statistics(noise + sampled, variance))
        lengths = level.columns.sums(np.abs(noise)) / np.sqrt(level.variance)
        of_rows = np.abs(rows) / np.sqrt(level.rows_variance)
        all_lengths.append(np.concatenate([lengths, of_rows[:, None]], axis=1))
        squares.append(noise**2)
    return alarms, all_lengths, squares


def _findings(plan: Plan, named: Sequence[tuple[str, LevelAnswers]], seed: int, threads: int) -> list[LevelFindings]:
    levels = [level for _, level in named]
    numbers = sum(question.cells * len(plan.groupings[question.level]) for question in plan.questions)
    draws = int(np.clip(MOST_NUMBERS / (1.5 * numbers), FEWEST_DRAWS, MOST_DRAWS))
    pilot, draw = (draws + 1) // 2, partial(_drawn, plan, levels, seed)
    moments, lengths, squares = sums = [Moments() for _ in range(3)]
    for values in several(draw, range(pilot), threads):
        for each, value in zip(sums, values, strict=True):
            each.add(value)
    tails, of_lengths = moments.tails(), lengths.tails()
    drawn = [
        (smallest(tails, values[0]), smallest(of_lengths, values[1]))
        for values in several(draw, range(pilot, pilot + draws), threads)
    ]
    of_alarms, of_bounds = np.array(drawn).T
    place = int(RATE * (1 + draws) + 1e-9)
    least = float(np.sort(of_bounds)[place - 1])  # that of one more draw is below with at most this rate
    findings = []
    for k, (name, level) in enumerate(named):
        differences, rows = level.differences(level.counts)
        statistics = level.statistics(differences, level.sampling_variance(level.predicted.shares))
        chances, limits = of_the_family(tails[k].chances(statistics), of_alarms), of_lengths[k].limits(least)
        findings.append(_level_findings(name, level, differences, rows, chances, limits, squares.sums[k] / pilot))
    return findings


def _level_findings(
    name: str, level: LevelAnswers, differences: Floats, rows: Floats, chances: Floats, limits: Floats, of_noise: Floats
) -> LevelFindings:
    """The alarms and distances of a level; `limits` are those of lengths, `of_noise` the expected squares of noise."""
    columns = level.columns
    lengths, squares = columns.sums(np.abs(differences)), differences**2
    deviation = np.sqrt(level.rows_variance)
    known = rows > CLEARLY * deviation
    whole = np.where(known, rows, 0.0)[:, None]
    most = (rows + limits[:, -1] * deviation)[:, None]
    beyond = (lengths - limits[:, :-1] * np.sqrt(level.variance)) / (2 * np.maximum(most, 1.0))

    def distance(part: Floats, rows: Floats) -> Floats:
        shape = np.broadcast(part, rows).shape
        return np.asarray(np.minimum(np.divide(part, 2 * rows, out=np.full(shape, np.nan), where=rows > 0), 1.0))

    left = _left(columns.sums(squares), columns.sums(of_noise))
    left_of_cells = _left(squares[known].sum(axis=0), of_noise[known].sum(axis=0))
    of_cells = np.abs(differences[known]).sum(axis=0, keepdims=True) * left_of_cells
    return LevelFindings(
        name=name,
        by=level.grouping.by,
        labels=tuple(level.grouping.labels()),
        columns=columns.names,
        rows=rows,
        chance=chances,
        distance=distance(lengths * left, whole),
        at_least=np.clip(beyond, 0.0, 1.0),
        column_distance=distance(columns.sums(of_cells)[0], whole.sum(axis=0)),
    )


def _left(squares: Floats, of_noise: Floats) -> Floats:
    """The part of absolute differences that noise does not explain: sqrt(1 - squares of noise / squares)."""
    explained = np.divide(of_noise, squares, out=np.ones_like(squares), where=squares > 0)
    return np.asarray(np.sqrt(np.maximum(0.0, 1 - explained)))
