"""What the noisy counts say about each column by itself, at every level: a linear function of the counts.

A column's table is a sum over the cells of every marginal that has the column, in the groups of the level and in those
below them. All such sums are averaged with their inverse variances as weights, and so are all sums that equal the
number of rows. Being linear, the function also tells what pure noise becomes: `prade.diagnosis.null_draws` uses it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.data.groups import Grouping
from prade.planning.plan import Plan
from prade.planning.questions import Question
from prade.queries.parts import Marginal

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Counts = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns side by side: their names, and where the cells of each start; the last entry is the number of cells."""

    names: tuple[str, ...]
    starts: Ints

    @classmethod
    def of(cls, names: Iterable[str], sizes: Iterable[int]) -> Columns:
        """Columns with these names and numbers of cells."""
        return cls(tuple(names), np.cumsum([0, *sizes]))

    @property
    def sizes(self) -> Ints:
        """The number of cells of each column."""
        return np.diff(self.starts)

    def sums(self, cells: Floats) -> Floats:
        """Sums over the cells of each column: [groups, columns]."""
        return np.add.reduceat(cells, self.starts[:-1], axis=1)

    def spread(self, values: Floats) -> Floats:
        """A value of each column, for each of its cells: [groups, cells]."""
        return np.repeat(values, self.sizes, axis=1)


@dataclass(frozen=True, eq=False)
class _Source:
    """The answers to one question as a level uses them.

    `above` is the level's group of each group of the question; `cells` takes its counts to the cells of the level's
    columns, `rows` to the number of rows, both divided by the variances of what they make.
    """

    question: int
    above: Ints
    cells: csr_array
    rows: Floats


class LevelAnswers:
    """How the columns of a level's groups are answered: `columns` are those that were measured there or below."""

    def __init__(self, plan: Plan, grouping: Grouping, level: int) -> None:
        """The answers about the groups of `grouping`, from the questions of a level and of those below it."""
        self.grouping = grouping
        wanted = [(k, each) for k, each in enumerate(plan.questions) if each.level >= level]
        asked = {name for _, question in wanted for name in _columns(question)}
        names = [name for name in plan.schema.coded if name in asked and plan.schema.size(name) > 1]
        self.columns = Columns.of(names, [plan.schema.size(name) for name in names])
        self._sources = []
        precision, of_rows = np.zeros((len(grouping), len(names))), np.zeros(len(grouping))
        scales = np.zeros_like(precision)
        for number, question in wanted:
            above = plan.groupings[question.level].above(grouping)
            each = 1 / (question.variance * np.bincount(above, minlength=len(grouping)))
            cells, shares, largest = _onto(question, self.columns)
            rows = np.concatenate([np.full(part.n_cells, part.covers / part.n_cells) for part in question.parts])
            self._sources.append(_Source(number, above, cells / question.variance, rows / question.variance))
            precision += each[:, None] * shares
            if question.law == "laplace":
                scales = np.maximum(scales, float(question.scale) * each[:, None] * largest)
            of_rows += each * sum(1 / part.n_cells for part in question.parts if part.covers)
        self._below = {source.question: np.bincount(source.above, minlength=len(grouping)) for source in self._sources}
        self.variance = 1 / precision  # of the noise in a cell: [groups, columns]
        self.scale = scales / precision  # the largest scale of a draw of Laplace noise in a cell, 0 without any
        self.rows_variance = np.divide(1.0, of_rows, out=np.full(len(grouping), np.inf), where=of_rows > 0)

    def __len__(self) -> int:
        return len(self.grouping)

    @property
    def answered(self) -> bool:
        """Whether there is anything to compare: a column, and numbers of rows to divide by."""
        return bool(self.columns.names) and bool(np.isfinite(self.rows_variance).all())

    def of(self, counts: Sequence[Counts]) -> tuple[Floats, Floats]:
        """The tables of all columns, [groups, cells], and the numbers of rows; `counts` has an array per question."""
        tables = np.zeros((len(self), int(self.columns.starts[-1])))
        rows = np.zeros(len(self))
        for source in self._sources:
            summed = added_up(counts[source.question], source.above, len(self)) / self._below[source.question][:, None]
            tables += (source.cells.T @ summed.T).T
            rows += summed @ source.rows
        return tables * self.columns.spread(self.variance), rows * self.rows_variance


def added_up(counts: Counts, above: Ints, size: int) -> Floats:
    """Counts of groups, [groups, cells], added up to those of the groups that contain them: [size, cells].

    >>> added_up(np.array([[1, 2], [3, 4], [5, 6]]), np.array([1, 0, 1]), 2)
    array([[3., 4.],
           [6., 8.]])
    """
    if np.array_equal(above, np.arange(size)):
        return np.asarray(counts, np.float64)
    order = np.argsort(above, kind="stable")
    return np.add.reduceat(counts[order], np.searchsorted(above[order], np.arange(size)), axis=0).astype(np.float64)


def side_by_side(noisy: Sequence[Sequence[Counts]]) -> list[Counts]:
    """The counts of each question, all parts side by side: [groups, cells]."""
    return [np.concatenate(answers, axis=1) for answers in noisy]


def _columns(question: Question) -> set[str]:
    """The columns whose tables a question tells."""
    if question.is_total:
        return set()
    return {name for part in question.parts if isinstance(part, Marginal) for name in part.columns}


def _onto(question: Question, columns: Columns) -> tuple[csr_array, Floats, Floats]:
    """The matrix from a question's cells to those of the columns; the sum and the maximum of the weights of its parts.

    A part with f cells for each cell of a column tells the column's cells with f times the variance: its weight is 1/f.
    """
    from scipy.sparse import coo_array

    place, target, value = list[Ints](), list[Ints](), list[Floats]()
    (summed, largest), first = np.zeros((2, len(columns.names))), 0
    for part in question.parts:
        if isinstance(part, Marginal) and not question.is_total:
            codes = np.unravel_index(np.arange(part.n_cells), part.sizes)
            for name, size, code in zip(part.columns, part.sizes, codes, strict=True):
                if name in columns.names:
                    number = columns.names.index(name)
                    place.append(first + np.arange(part.n_cells))
                    target.append(columns.starts[number] + code)
                    value.append(np.full(part.n_cells, size / part.n_cells))
                    summed[number] += size / part.n_cells
                    largest[number] = max(largest[number], size / part.n_cells)
        first += part.n_cells
    shape = (first, int(columns.starts[-1]))
    if not place:
        return coo_array(shape).tocsr(), summed, largest
    entries = (np.concatenate(value), (np.concatenate(place), np.concatenate(target)))
    return coo_array(entries, shape).tocsr(), summed, largest
