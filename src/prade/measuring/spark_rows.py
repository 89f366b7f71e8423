"""Rows of Spark tables, coded and counted where they are.

The codec runs in Spark's workers, which need prade; only counts come back. Where the workers lack it, rows are streamed
through this process. Spark evaluates nothing on a cell but conversions that exist for every value of a type.

    natively    Boolean, integers, floats, decimals, dates, times, bytes; text, without its collation
    as text     arrays, maps, structs and intervals
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import DataError, closest
from prade.data.cells import decimal_cells, plain_array
from prade.data.read.frames import DeclaredType, Kind
from prade.measuring import streams
from prade.measuring.connections import no_table
from prade.measuring.spark_sessions import counting_in
from prade.measuring.streams import Batch, Stream

if TYPE_CHECKING:
    from prade.measuring.tally import Counts, Tally

KINDS: dict[str, Kind] = {
    **dict.fromkeys(("byte", "short", "integer", "long", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "date"),
    **dict.fromkeys(("string", "char", "varchar", "void"), "text"),
    "boolean": "boolean",
    "binary": "other",
}
CHAR = "__CHAR_VARCHAR_TYPE_STRING"  # Spark's note about a column of text that was declared as CHAR
ASKED = 32  # partitions, so that all workers of a small cluster get one
WRITTEN = ("array", "map", "struct", "daytimeinterval", "yearmonthinterval", "interval", "time")


# ---------------------------------------------------------------------- tables


class SparkTable:
    """A table of a session. `stream` reads its rows through this process, `tallied` counts them where they are.

    `codes_there` says whether the workers have prade.
    """

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        with counting_in(session):
            self._table = _found(session, name)
            fields = self._table.schema.fields
            self._types = {each.name: each.dataType for each in fields}
            self._padded = {each.name for each in fields if str(each.metadata.get(CHAR, "")).startswith("char(")}
            if len({each.name.casefold() for each in fields}) < len(fields):
                raise DataError(f"{name} has two columns whose names differ only in case; give a view with other names")
            self.codes_there = _have_prade(session)
        declared = {column: _declared(kind) for column, kind in self._types.items()}
        self.stream = Stream(tuple(declared), self._read, declared)

    def tallied(self, tally: Tally) -> Counts:
        """Count the rows, in the workers if they have prade."""
        names = tally.names or list(self._types)[:1]
        if not self.codes_there:
            return tally.run(self.stream.read(names))
        with counting_in(self._session):
            rows = self._table.select(*(self._native(number, name) for number, name in enumerate(names)))
            if tally.person is None:
                counted = rows.mapInArrow(partial(_count, tally, names), "key long, rows long")
            else:
                people = rows.mapInArrow(partial(_code, tally, names), "person binary, codes binary")
                bounded = people.repartition("person").select("codes")
                counted = bounded.mapInArrow(partial(_bound_and_count, tally), "key long, rows long")
            added = counted.groupBy("key").sum("rows").toArrow()
        counts = tally.zeros()
        counts[added.column(0).to_numpy()] = added.column(1).to_numpy()
        return counts

    def _column(self, name: str) -> Any:
        return self._table["`" + name.replace("`", "``") + "`"]

    def _native(self, number: int, name: str) -> Any:
        """A column as workers get it, under a name of ours."""
        kind = _kind_name(self._types[name])
        column = self._column(name)
        text = kind in WRITTEN or KINDS.get(kind) == "text"  # a text may have a collation, and void has no type
        return (self._text(name) if text else column).alias(f"c{number}")

    def _text(self, name: str) -> Any:
        """Cells as text, of a CHAR without the spaces that fill it up."""
        import pyspark.sql.functions as F

        text = self._column(name).cast("string")
        return F.rtrim(text) if name in self._padded else text

    def _read(self, names: Sequence[str]) -> Iterator[Batch]:
        """Rows through this process: numbers, or bytes."""
        with counting_in(self._session):
            forms = [self._plain(name) for name in names]
            rows = self._table.select(*(column.alias(f"c{n}") for n, (column, _) in enumerate(forms)))
            remaining = rows.toLocalIterator()
            for chunk in iter(lambda: list(islice(remaining, streams.ROWS_PER_BATCH)), []):
                columns = zip(*chunk, strict=True)
                yield {name: made(cells) for name, (_, made), cells in zip(names, forms, columns, strict=True)}

    def _plain(self, name: str) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
        """A column in a form that Python has for every value, and how to make Arrow cells of it."""
        import pyarrow as pa
        import pyspark.sql.functions as F

        kind, column = _kind_name(self._types[name]), self._column(name)
        if kind == "boolean":
            return column, partial(pa.array, type=pa.bool_())
        if kind == "date":
            return F.unix_date(column), lambda cells: pa.array(cells, pa.int32()).cast(pa.date32())
        if kind in ("timestamp", "timestamp_ntz"):
            since = F.unix_micros(column.cast("timestamp"))
            return since, lambda cells: pa.array(cells, pa.int64()).cast(pa.timestamp("us"))
        if kind in ("float", "double"):
            return column, partial(pa.array, type=pa.float32() if kind == "float" else pa.float64())
        if KINDS.get(kind) == "number" and kind != "decimal":
            return column.cast("long"), partial(pa.array, type=pa.int64())
        raw = column if kind == "binary" else self._text(name).cast("binary")

        def made(cells: Sequence[Any]) -> Any:
            texts = pa.array([None if cell is None else bytes(cell) for cell in cells], pa.large_binary())
            return decimal_cells(plain_array(texts)) if kind == "decimal" else texts

        return raw, made


def _kind_name(kind: Any) -> str:
    """Spark's name of a type, without its details, such as "decimal" for decimal(10,2)."""
    name = str(kind.typeName()).partition("(")[0].partition(" ")[0]
    return "interval" if "interval" in str(kind.typeName()) else name


def _declared(kind: Any) -> DeclaredType:
    name = _kind_name(kind)
    return DeclaredType(str(kind.simpleString()), KINDS.get(name, "other" if name in WRITTEN else "unreadable"))


def _found(session: Any, name: str) -> Any:
    """The table ``[[catalog.]database.]table``, or a temporary view; an error lists what there is."""
    database, _, _ = name.rpartition(".")
    catalog = session.catalog
    if catalog.tableExists(name):
        return session.table(name)
    if database and not catalog.databaseExists(database):
        known = [each.name for each in catalog.listDatabases()]
        hint = closest(database, known) or "; check its name"
        raise DataError(f"there is no database {database!r} in Spark{hint}: it has {', '.join(sorted(known))}")
    tables = [each.name for each in catalog.listTables(database or None)]
    raise no_table(name, [f"{database}.{each}" if database else each for each in tables])


# ---------------------------------------------------------------------- in the workers


def _have_prade(session: Any) -> bool:
    """Whether the workers have this version of prade; they are asked with a row of our own."""

    def ask(batches: Iterable[Any]) -> Iterator[Any]:  # sent by value, because a worker may not know this module
        from importlib.metadata import version

        import pyarrow

        try:
            import prade.measuring.spark_rows

            found = version("prade") if prade.measuring.spark_rows else ""
        except Exception:
            found = ""
        for batch in batches:
            yield pyarrow.record_batch({"version": [found] * batch.num_rows})

    try:
        answers = session.range(0, ASKED, 1, ASKED).mapInArrow(ask, "version string").collect()
        there = {answer["version"] for answer in answers}
    except Exception:  # workers without pyarrow, for instance
        there = set()
    return there == {version("prade")}


def _batches(names: Sequence[str], batches: Iterable[Any]) -> Iterator[Batch]:
    return (dict(zip(names, batch.columns, strict=True)) for batch in batches)


def _count(tally: Tally, names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    """The counts of one partition's rows."""
    yield _other_than_zero(tally.run(_batches(names, batches), threads=1))


def _code(tally: Tally, names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    """Rows in codes, each with its person, by which they are brought together."""
    import pyarrow as pa

    for cells in _batches(names, batches):
        rows = [record.tobytes() for record in tally.coded(cells).records(tally.record)]
        people = [row[:16] for row in rows]
        yield pa.record_batch({"person": pa.array(people, pa.binary()), "codes": pa.array(rows, pa.binary())})


def _bound_and_count(tally: Tally, batches: Iterable[Any]) -> Iterator[Any]:
    """The counts of one partition's persons, each of whom has all rows here."""
    records = (np.frombuffer(b"".join(batch.column(0).to_pylist()), tally.record) for batch in batches)
    yield _other_than_zero(tally.bounded(records))


def _other_than_zero(counts: Counts) -> Any:
    """The counts other than zero, and their places among all."""
    import pyarrow as pa

    places = np.flatnonzero(counts)
    return pa.record_batch({"key": pa.array(places, pa.int64()), "rows": pa.array(counts[places], pa.int64())})
