"""What an answer's interval is based on, in one word.

measured    the cells were counted, with noise, in these groups themselves: they are cells of a measured table, or
            unions of such cells
summed      the same, in smaller groups that make up these
model       not counted as such: the answer follows from other tables and from the public rows
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from prade.core.arrays import Flags, Ints
from prade.core.errors import names_of
from prade.queries.parts import Marginal
from prade.queries.query import Query

if TYPE_CHECKING:
    from prade.planning.plan import Plan
    from prade.queries.parts import Part

Basis = Literal["measured", "summed", "model"]

MOST_CELLS = 2**20  # of the domain of a part's columns: a larger one is not looked at


def basis(plan: Plan, by: str | Sequence[str], asked: Query | Part, *, some_groups: bool = False) -> Basis:
    """The basis of a query's count, or of the counts of all cells of a part, in the groups `by`.

    With `some_groups`, the rows that are counted are those of some groups of the last level, as in "STATE == 36".
    """
    level = plan.groups.level(names_of(by))
    found: Basis = "model"
    for number, grouping in enumerate(plan.groupings):
        parts = [part for question in plan.questions if question.level == number for part in question.parts]
        if not any(_decides(plan, part, asked) for part in parts):
            continue
        if _same(grouping.number, level.number) and not some_groups:
            return "measured"
        if _refines(grouping.number, level.number) and (not some_groups or number == len(plan.groupings) - 1):
            found = "summed"
    return found


def worst(words: Sequence[Basis]) -> Basis:
    """The basis of what is made of several answers: that of the one that was counted least directly."""
    order: tuple[Basis, ...] = ("measured", "summed", "model")
    return max(words, key=order.index)


def _decides(plan: Plan, part: Part, asked: Query | Part) -> bool:
    """Whether the cells that are asked for are unions of the part's cells, whatever the rows."""
    if not {*asked.columns} <= {*part.columns}:
        return False
    if isinstance(part, Marginal):
        return True
    shape = plan.schema.shape(part.columns)
    if math.prod(shape) > MOST_CELLS:
        return False
    codes = dict(zip(part.columns, np.indices(shape).reshape(len(shape), -1), strict=True))
    cells = part.cells(plan.schema, codes).astype(np.int64)
    if isinstance(asked, Query):
        return _constant_in(asked.mask(codes), cells, part.n_cells)
    wanted = asked.cells(plan.schema, codes)
    return all(_constant_in(wanted == cell, cells, part.n_cells) for cell in range(asked.n_cells))


def _constant_in(inside: Flags, cells: Ints, size: int) -> bool:
    """Whether each of the part's cells is wholly inside or wholly outside; what is in none of them must be outside."""
    all_of, some_of = np.bincount(cells, minlength=size + 1), np.bincount(cells[inside], minlength=size + 1)
    whole = ((some_of == 0) | (some_of == all_of))[:size]
    return bool(whole.all()) and int(some_of[size]) == 0


def _same(one: Ints, other: Ints) -> bool:
    return _refines(one, other) and _refines(other, one)


def _refines(finer: Ints, coarser: Ints) -> bool:
    """Whether every group of the finer grouping is within one of the coarser."""
    pairs = np.unique(np.stack([finer, coarser]), axis=1)
    return int(pairs.shape[1]) == len(np.unique(finer))
