"""True counts of parts by group, computed by the engine that has the rows: one statement, one scan; only counts return.

For every row and part k the engine computes one number

    key = g * T + o_k + c

        g: the row's group    c: its cell in part k    o_k: where part k begins    T: cells of all parts together

and counts the rows of each key. The engine drops rows in no listed group; listed groups without rows get zeros. The
results are exact counts: they are private until noise is added.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError, WorkloadError
from prade.data.column import LARGEST_WHOLE, Column
from prade.data.groups import Groups, KeyedGroups
from prade.measuring.codes import code_of, joined_position, only_listed, position_of
from prade.measuring.dialects import SPARK, Dialect
from prade.measuring.source import Source, guarded
from prade.measuring.spark import cached, counting_in
from prade.measuring.streams import Coding, Stream, coded
from prade.privacy.unit import Unit
from prade.queries.expression import Condition, Expression
from prade.queries.marginal import Marginal
from prade.queries.parts import Cells, Part, Predicate

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from prade.data.schema import Schema

Counts = NDArray[np.int64]
MOST_COUNTS = 2**31  # each of them is kept in memory and gets noise
PARTS_PER_STATEMENT = 500
LONG_LIST = 100  # values; cells are joined with a longer list instead of compared with its values one by one
GROUP, FINEST_GROUP, PERSON, TICKET = "prade_group", "prade_finest_group", "prade_person", "prade_ticket"
STREAM = "prade_stream"


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
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> with open_source(pyarrow.table({"AGE": [3, 70, 80], "TOWN": ["a", "b", "elsewhere"]})) as source:
    ...     count(source, schema, [Marginal.of(schema, ["AGE"])], {"TOWN": ["a", "b", "c"]})
    [array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 0]])]
    """
    everything = Groups.of(groups)
    level = everything.level(everything.names if by is None else by)
    listed = everything.keyed(source.columns, level.number)
    plans = _plans(schema, parts, listed)
    person = None if unit is None else unit.person_id
    rows = coded_rows(source, schema, parts, listed, person)
    if unit is not None and person is not None:
        rows = bound_rows(source, rows, unit)
    return guarded(f"counting {source.name}", lambda: _answers(source, rows, plans, listed, unit))


# ---------------------------------------------------------------------- rows


def coded_rows(
    source: Source, schema: Schema, parts: Sequence[Part], listed: KeyedGroups, person_id: str | None = None
) -> ir.Table:
    """The rows of listed groups as an expression: group, finest group, codes of the columns in the parts, person.

    The finest group is the smallest one that the list and the table can distinguish, whatever level is counted.
    """
    codes = _code_names(parts)
    needed = list(dict.fromkeys([*listed.columns, *(schema[name] for name in codes)]))
    people = [] if person_id is None else [person_id]
    source.need([*(column.name for column in needed), *people])
    if source.stream is not None:
        columns = {own: schema[name] for name, own in codes.items()}
        person = None if person_id is None else (person_id, PERSON)
        return _streamed_rows(source, source.stream, Coding(columns, listed, GROUP, FINEST_GROUP, person))
    # Select only what is needed and rename it: a table's names may be anything, even the names used here.
    raw = {name: f"prade_raw_{number}" for number, name in enumerate([*(each.name for each in needed), *people])}
    table = source.table.select(**{own: source.column(name) for name, own in raw.items()})
    dialect = source.dialect
    joined = dict[Column, str]()
    for column in needed:
        if len(column.values) > LONG_LIST and dialect.has_arrays:
            joined[column] = f"prade_position_{len(joined)}"
            table = joined_position(table, column, raw[column.name], joined[column], dialect)
    positions = {column: table[name] for column, name in joined.items()}
    group_key = _group_key(table, listed, raw, positions, dialect)
    columns = {GROUP: group_key, FINEST_GROUP: group_key}
    for name, code_name in codes.items():
        columns[code_name] = code_of(schema[name], table[raw[name]], dialect, positions.get(schema[name]))
    if person_id is not None:
        columns[PERSON] = table[raw[person_id]]
    rows = table.select(**columns)
    if listed.trivial:
        return rows.filter(rows[GROUP].notnull())
    return only_listed(rows, GROUP, listed.joint.tolist(), listed.number.tolist(), dialect.has_arrays)


def _streamed_rows(source: Source, stream: Stream, coding: Coding) -> ir.Table:
    """A file's rows in the embedded engine, coded as it reads them; they can be read only once."""
    for column in (*coding.listed.columns, *coding.codes.values()):
        if column.value_type == "int" and max(abs(int(value)) for value in column.values) >= LARGEST_WHOLE:
            raise DataError(
                f"column {column.name!r} lists whole numbers beyond 2**53, which files and tables in memory may store "
                "as floats that cannot distinguish them: list them as text, and store the column as text"
            )

    def register() -> ir.Table:
        source.connection.con.register(STREAM, coded(stream, coding))
        return source.connection.table(STREAM)

    return guarded(f"reading {source.name}", register)


def _group_key(
    table: ir.Table,
    listed: KeyedGroups,
    raw: Mapping[str, str],
    positions: Mapping[Column, ir.Value],
    dialect: Dialect,
) -> ir.Value:
    """The row's combination of group values as one number; NULL if one of its values is not listed."""
    import ibis

    joint: Any = None
    for column in listed.columns:
        position: Any = positions.get(column)
        if position is None:
            position = position_of(column, table[raw[column.name]], None, dialect)
        position = position.cast("int64")
        joint = position if joint is None else joint * column.present + position
    return ibis.literal(0, "int64") if joint is None else joint


def bound_rows(source: Source, rows: ir.Table, unit: Unit) -> ir.Table:
    """At most ``unit.max_rows`` rows of each person, chosen at random.

    The rows of a person are numbered in the order of their contents, and each gets a ticket

        ticket = SHA-256(secret, number, person)        secret: 256 random bits of the operating system, new each time

    The rows with the smallest tickets are kept. Which rows are kept therefore depends only on that person's rows and
    the secret, whatever random generator the engine has: adding or removing a person changes nobody else's rows, and
    the counted tables differ by at most max_rows rows. With ``unit.per_group`` a person first keeps at most that many
    rows in each finest group of the list. Rows without an id are dropped: treated as one person they would displace
    each other, and treated as many their number would be unbounded.
    """
    import ibis

    person: Any = rows[PERSON]
    missing = (
        person.isnull() | person.isnan() if source.dialect.has_nan and person.type().is_floating() else person.isnull()
    )
    rows = rows.filter(~missing)
    contents = [rows[name] for name in rows.columns if name != PERSON]
    rows = rows.mutate(prade_rank=ibis.row_number().over(group_by=rows[PERSON], order_by=contents))
    text = (
        ibis.literal(f"{secrets.token_hex(32)} ") + rows.prade_rank.cast("string") + " " + rows[PERSON].cast("string")
    )
    rows = rows.mutate(**{TICKET: source.dialect.sha256(text)}).drop("prade_rank")
    bounds = [] if unit.per_group is None else [([PERSON, FINEST_GROUP], unit.per_group)]
    for keys, most in [*bounds, ([PERSON], unit.max_rows)]:
        rank = ibis.row_number().over(group_by=[rows[key] for key in keys], order_by=rows[TICKET])
        rows = rows.mutate(prade_rank=rank)
        rows = rows.filter(rows.prade_rank < most).drop("prade_rank")
    return rows


def _code_names(parts: Sequence[Part]) -> dict[str, str]:
    """For every column of a part, a name for its codes: a table's own names may be anything."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    return {name: f"prade_code_{number}" for number, name in enumerate(names)}


# ---------------------------------------------------------------------- parts


@dataclass(frozen=True)
class _Plan:
    """How a part is counted: rows get numbers below `width`, which `lookup` maps to cells (None: unchanged)."""

    part: Part
    width: int
    sizes: dict[str, int]
    names: dict[str, str]
    lookup: NDArray[Any] | None = None

    def expression(self, rows: Any) -> Any:
        """The number of each row, 0 to width - 1."""
        import ibis

        if isinstance(self.part, Predicate):
            satisfied = [
                (self._satisfies(rows, query.expression), cell) for cell, query in enumerate(self.part.queries)
            ]
            return ibis.cases(*satisfied, else_=self.part.n_cells).cast("int64")
        joint: Any = None
        for name, size in self.sizes.items():
            code = rows[self.names[name]].cast("int64")
            joint = code if joint is None else joint * size + code
        return joint

    def _satisfies(self, rows: Any, expression: Expression) -> Any:
        import ibis

        if isinstance(expression, Condition):
            chosen = [code for code, inside in enumerate(expression.table) if inside]
            return rows[self.names[expression.column]].isin(chosen) if chosen else ibis.literal(False)
        terms = [self._satisfies(rows, term) for term in expression.terms]
        if expression.operator == "not":
            return ~terms[0]
        return reduce(lambda left, right: left & right if expression.operator == "and" else left | right, terms)

    def cells(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of each number; n_cells for a row in no cell."""
        return numbers if self.lookup is None else self.lookup[numbers].astype(np.int64)


def _plans(schema: Schema, parts: Sequence[Part], listed: KeyedGroups) -> list[_Plan]:
    if not parts:
        raise WorkloadError("there is no part to count; give at least one")
    names = _code_names(parts)
    plans = []
    for part in parts:
        part.check(schema)
        sizes = {name: schema.size(name) for name in part.columns}
        match part:
            case Marginal():
                plans.append(_Plan(part, part.n_cells, sizes, names))
            case Cells():
                plans.append(_Plan(part, len(part.table), sizes, names, part.table))
            case Predicate():
                plans.append(_Plan(part, part.n_cells + 1, sizes, names))
            case _:
                raise WorkloadError(
                    f"part {part.name!r} is bound to the rows of one support, so private rows have no cell in it; "
                    "use a marginal, cells or a query instead"
                )
    width = sum(plan.width for plan in plans)
    if width * listed.size > MOST_COUNTS:
        raise WorkloadError(
            f"{listed.size:,} groups times {width:,} cells are {width * listed.size:,} counts, more than the "
            f"{MOST_COUNTS:,} that fit in memory; ask for fewer parts or coarser bins"
        )
    return plans


def _answers(source: Source, rows: Any, plans: list[_Plan], listed: KeyedGroups, unit: Unit | None) -> list[Counts]:
    """The counts of all parts, in as few statements as the engine allows."""
    chunks = [plans[start : start + PARTS_PER_STATEMENT] for start in range(0, len(plans), PARTS_PER_STATEMENT)]
    one_scan = source.dialect.has_arrays
    # A stream is read once, and the choice of a person's rows must be the same in every statement.
    once = source.stream is not None or (unit is not None and unit.enforced)
    with ExitStack() as stack:
        stack.enter_context(counting_in(source.connection))
        if once and (len(chunks) > 1 or not one_scan):
            rows = stack.enter_context(_kept(source, rows.select(GROUP, *plans[0].names.values())))
        return [answer for chunk in chunks for answer in _count_keys(rows, chunk, listed, one_scan)]


@contextmanager
def _kept(source: Source, rows: Any) -> Iterator[Any]:
    """The rows as a table that the engine keeps until this block ends."""
    if source.engine == SPARK:  # which has no temporary tables
        with cached(rows) as kept:
            yield kept
        return
    name = f"prade_{secrets.token_hex(8)}"
    kept = source.connection.create_table(name, rows, temp=True)
    try:
        yield kept
    finally:
        source.connection.raw_sql(f"DROP TABLE {name}")


def _count_keys(rows: Any, plans: list[_Plan], listed: KeyedGroups, one_scan: bool) -> list[Counts]:
    """Count the keys of some parts in one statement, and sort the counts into arrays."""
    import ibis

    ends = np.cumsum([plan.width for plan in plans])
    total, starts = int(ends[-1]), ends - [plan.width for plan in plans]
    keys = [
        rows[GROUP] * total + (plan.expression(rows) + int(start)) for plan, start in zip(plans, starts, strict=True)
    ]
    if one_scan:
        numbered = rows.select(key=ibis.array(keys).unnest())
    else:
        numbered = ibis.union(*[rows.select(key=key) for key in keys]) if len(keys) > 1 else rows.select(key=keys[0])
    counted = numbered.group_by("key").aggregate(rows=numbered.count()).to_pyarrow()
    key = counted["key"].to_numpy().astype(np.int64)
    times = counted["rows"].to_numpy().astype(np.int64)

    group = key // total
    which = np.searchsorted(ends, key % total, side="right")
    answers = []
    for k, plan in enumerate(plans):
        mine = which == k
        cell = plan.cells(key[mine] % total - starts[k])
        counts = np.zeros((listed.size, plan.part.n_cells + 1), dtype=np.int64)
        np.add.at(counts, (group[mine], cell), times[mine])
        answers.append(np.ascontiguousarray(counts[:, : plan.part.n_cells]))
    return answers
