"""The public rows that satisfy a query in each group of the last level; a query may also use the groups' columns.

The values of the groups' columns are known from the list of groups, so what is left of the query for one group is a
query over the other columns: "STATE == 36 and AGEP >= 65" is "AGEP >= 65" in the groups of state 36 and nobody
elsewhere. Groups for which the same is left are taken together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.core.errors import WorkloadError, names_of
from prade.data.declare.kinds import OffEdge
from prade.data.declare.schema import Schema
from prade.estimating.levels.cell_counts import CellCounts, cell_counts, need_known
from prade.estimating.levels.public_cells import Cells
from prade.planning.invariants import possible_cells
from prade.queries.asked import asked_query, bracketing
from prade.queries.parts import Marginal, Predicate
from prade.queries.query import Expression, Query, possible, simplified

if TYPE_CHECKING:
    from prade.estimating.levels.distributions import Distributions
    from prade.planning.plan import Plan
    from prade.queries.parts import Part


@dataclass(frozen=True, eq=False)
class Piece:
    """Some groups of the last level (None for all); for each query, what is left of it there and who satisfies it."""

    groups: Flags | None
    left: tuple[Expression | bool, ...]
    rows: tuple[Flags, ...]  # of the public table


def asked_schema(plan: Plan) -> Schema:
    """The schema with the columns of the list of groups, whose values are those in the list."""
    listed = {column.name: column for column in plan.groups.columns if column.name not in plan.schema.coded}
    own = [listed.pop(column.name, column).labelled_like(column) for column in plan.schema]
    return Schema([*own, *listed.values()])


def read_query(estimates: Distributions, text: str) -> Query:
    """Read a query; at a number inside a bin, the error has the answers at the edges around it."""
    schema = asked_schema(estimates.plan)
    try:
        return asked_query(text, schema)
    except OffEdge as off:
        answers = []
        for query in bracketing(text, schema):
            rows = counted(estimates, (), pieces_of(estimates, [query]))
            low, count, high = rows.low[0, 0], rows.counts[0, 0], rows.high[0, 0]
            answers.append(f"{query.text}: {count:,.0f} rows in all ({low:,.0f} to {high:,.0f})")
        if not answers:
            raise
        raise WorkloadError(f"{off.args[0]}. The answers there are: {'; '.join(answers)}") from None


def pieces_of(estimates: Distributions, queries: Sequence[Query]) -> list[Piece]:
    """The rows that satisfy each query, for groups of the last level in which the same is left of all queries.

    Groups in which nobody satisfies any of them are left out, unless there are no others.
    """
    plan, codes = estimates.plan, estimates.public.prior.codes
    coded = plan.schema.coded
    used = [name for name in dict.fromkeys(name for query in queries for name in query.columns) if name not in coded]
    if not used:
        left = tuple(query.expression for query in queries)
        return [Piece(None, left, tuple(query.mask(codes) for query in queries))]
    need_known(plan, used)
    last = plan.groupings[-1]
    first = np.unique(last.number, return_index=True)[1]  # a row of the list for each group
    columns = [plan.groups.names.index(name) for name in used]
    alike: dict[tuple[Expression | bool, ...], list[int]] = {}
    for group, row in enumerate(plan.groups.codes[first][:, columns].tolist()):
        known = dict(zip(used, row, strict=True))
        alike.setdefault(tuple(simplified(query.expression, known) for query in queries), []).append(group)

    def rows_of(each: Expression | bool) -> Flags:
        return np.full(len(estimates.public), each) if isinstance(each, bool) else Query(each).mask(codes)

    nobody = tuple(False for _ in queries)
    if len(alike) > 1:
        alike.pop(nobody, None)
    return [
        Piece(np.isin(np.arange(len(last)), groups), each, tuple(map(rows_of, each))) for each, groups in alike.items()
    ]


def counted(
    estimates: Distributions,
    by: str | Sequence[str],
    pieces: Sequence[Piece],
    asked: Sequence[Cells] | None = None,
    *,
    combined: Floats | None = None,
    threads: int = 1,
) -> CellCounts:
    """The counts of cells, added up over pieces: `asked` has the cells of each piece, by default those of its query.

    The errors of different pieces are taken to be the same error, which is the safe side.
    """
    each = []
    for piece, cells in zip(pieces, asked or [(np.where(each.rows[0], 0, 1), 1) for each in pieces], strict=True):
        counts = cell_counts(estimates, by, cells, chosen=piece.groups, combined=combined, threads=threads)
        each.append(counts if asked is not None else counts.limited_to(_possible(piece.left[0], estimates.plan)))
    return reduce(_together, each)


def _possible(left: Expression | bool, plan: Plan) -> Flags:
    """Whether any row can satisfy what is left of a query: SEX == 1 and SEX == 2 is satisfied by none."""
    if isinstance(left, bool):
        return np.array([left])
    if not all(codes.any() for codes in possible(left).values()):
        return np.array([False])
    return possible_cells(Predicate(Query(left)), plan.invariants, plan.schema)


def _together(one: CellCounts, other: CellCounts) -> CellCounts:
    return replace(
        one,
        counts=one.counts + other.counts,
        variance=(np.sqrt(one.variance) + np.sqrt(other.variance)) ** 2,
        variance_by_rows=one.variance_by_rows + other.variance_by_rows,
        share_variance_by_rows=(np.sqrt(one.share_variance_by_rows) + np.sqrt(other.share_variance_by_rows)) ** 2,
    )


def basis_of(plan: Plan, by: str | Sequence[str], pieces: Sequence[Piece]) -> Basis:
    """The basis of the piece that was counted least directly; the number of all rows of a group is always counted."""
    some = any(piece.groups is not None for piece in pieces)
    left = [each for piece in pieces for each in piece.left]
    words = [basis(plan, by, Query(each), some_groups=some) for each in left if not isinstance(each, bool)]
    return max(words or ["summed" if some else "measured"], key=("measured", "summed", "model").index)


# ---------------------------------------------------------------------- what an interval is based on, in one word

# measured    the cells were counted, with noise, in these groups themselves: they are cells of a measured table, or
#             unions of such cells
# summed      the same, in smaller groups that make up these
# model       not counted as such: the answer follows from other tables and from the public rows


Basis = Literal["measured", "summed", "model"]

MOST_CELLS = 2**20  # of the domain of a part's columns: a larger one is not looked at


def basis(plan: Plan, by: str | Sequence[str], asked: Query | Part, *, some_groups: bool = False) -> Basis:
    """The basis of a query's count, or of the counts of all cells of a part, in the groups `by`.

    With `some_groups`, the rows that are counted are those of some groups of the last level, as in "STATE == 36".
    """
    level, summed = plan.groups.level(names_of(by)), False
    for number, grouping in enumerate(plan.groupings):
        parts = [part for question in plan.questions if question.level == number for part in question.parts]
        if any(_decides(plan, part, asked) for part in parts) and _refines(grouping.number, level.number):
            if not some_groups and _refines(level.number, grouping.number):
                return "measured"
            summed |= not some_groups or number == len(plan.groupings) - 1
    return "summed" if summed else "model"


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


def _refines(finer: Ints, coarser: Ints) -> bool:
    """Whether every group of the finer grouping is within one of the coarser."""
    pairs = np.unique(np.stack([finer, coarser]), axis=1)
    return int(pairs.shape[1]) == len(np.unique(finer))
