"""True counts of parts by group: what to count follows from declarations alone, and all rows are read once.

Counting.of     checks the parts, the source's columns and their declared types: nothing here reads a row
Counting.run    reads all rows, once for all levels (`prade.measuring.tally`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import DataError
from prade.data.column import LARGEST_WHOLE, Column
from prade.data.groups import Groups
from prade.measuring.source import Source, guarded
from prade.measuring.tally import Counts, Tally
from prade.planning.plan import Plan
from prade.privacy.protection import Unit
from prade.queries.parts import Part

if TYPE_CHECKING:
    from prade.data.schema import Schema


def count(
    source: Source,
    schema: Schema,
    parts: Sequence[Part],
    groups: Any = None,
    unit: Unit | None = None,
    by: Sequence[str] | None = None,
) -> list[Counts]:
    """The number of rows in each cell of each part, by group: one array of shape [groups, cells] per part.

    `groups` is the public list of groups, a table with one row per group (None: all rows are one group); `by` names the
    columns of that list whose groups are counted (None: all columns). Rows in no listed group are left out, at every
    level. A column of the list that the rows lack is derived from the columns that they have. With a `unit` that names
    a person id, at most ``unit.max_rows`` rows of each person are counted, the same rows in all parts, and at most
    ``unit.per_group`` of them in one group of the whole list, at every level; rows without a person id are not counted.

    >>> import pyarrow
    >>> from prade import Column, Schema
    >>> from prade.measuring.source import open_source
    >>> from prade.queries.parts import Marginal
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> with open_source(pyarrow.table({"AGE": [3, 70, 80], "TOWN": ["a", "b", "elsewhere"]})) as source:
    ...     count(source, schema, [Marginal.of(schema, ["AGE"])], {"TOWN": ["a", "b", "c"]})
    [array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 0]])]
    """
    listed = Groups.of(groups)
    (counts,) = Counting.of(source, schema, [(listed.names if by is None else by, parts)], listed, unit).run()
    return counts


@dataclass(frozen=True)
class Counting:
    """What to count in the rows of a source: for each level its groups and its parts."""

    source: Source
    tally: Tally

    @classmethod
    def of_plan(cls, source: Source, plan: Plan) -> Counting:
        """What a plan asks."""
        levels = [
            (level.by, [part for question in plan.questions if question.level == number for part in question.parts])
            for number, level in enumerate(plan.levels)
        ]
        return cls.of(source, plan.schema, levels, plan.groups, plan.unit)

    @classmethod
    def of(
        cls,
        source: Source,
        schema: Schema,
        levels: Sequence[tuple[Sequence[str], Sequence[Part]]],
        groups: Any = None,
        unit: Unit | None = None,
    ) -> Counting:
        """Check everything that follows from declarations: the parts, the source's columns and their declared types."""
        everything = Groups.of(groups)
        try:
            listed = tuple(everything.keyed(source.columns, everything.level(by).number) for by, _ in levels)
        except DataError as error:
            raise error.within(source.name) from None
        tally = Tally(schema, listed, tuple(tuple(parts) for _, parts in levels), unit)
        tally.check()
        source.stream.need(tally.names, source.name)
        if tally.person is not None:
            source.stream.need_fit(tally.person, None)
        for column in tally.columns:
            source.stream.need_fit(column.name, column)
            if source.stream.declared is None and column.value_type == "int" and _beyond_doubles(column):
                raise DataError(
                    f"column {column.name!r} lists whole numbers beyond 2**53, which files and tables in memory may "
                    "store as floats that cannot distinguish them: list them as text, and store the column as text"
                )
        return cls(source, tally)

    def run(self) -> list[list[Counts]]:
        """The counts of each level's parts."""
        counts = guarded(f"counting {self.source.name}", lambda: self.source.tallied(self.tally))
        tables = self.tally.tables(counts)
        return [[np.ascontiguousarray(each[:, :-1]) for each in of_level] for of_level in tables]


def _beyond_doubles(column: Column) -> bool:
    return max(abs(int(value)) for value in column.values) >= LARGEST_WHOLE
