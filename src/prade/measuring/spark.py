"""Rows of Spark tables, coded and counted where they are.

The codec runs in Spark's workers, which need prade; only counts come back. Spark evaluates nothing on a cell but
conversions that exist for every value of a type: arrays, maps, structs and intervals come as text, and text without its
collation. A session is that of this process, of whatever cluster, or one of a Spark Connect server.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pyarrow as pa

from prade.core.errors import DataError
from prade.data.read.frames import DeclaredType, Kind
from prade.measuring.streams import ROWS_PER_BATCH, Batch, Stream, connected
from prade.measuring.tally import Counts, Tally

CONNECT_PORT = 15002

# No cell may fail a run: dates before 1582 are read unchanged, whatever wrote the file, and casts give NULL.
# Batches are as large as those of other sources, and as long texts as there are fit into them.
WHILE_COUNTING = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_BATCH),
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
}


# ---------------------------------------------------------------------- while rows are counted


@contextmanager
def counting_in(session: Any) -> Iterator[None]:
    """The settings that no cell can break, and silence: Spark's own words, here and in its logs, may quote a cell."""
    with without_logs(), ExitStack() as before:
        for name, value in WHILE_COUNTING.items():
            before.callback(_quietly, _set, session, name, session.conf.get(name, None))
            session.conf.set(name, value)
        if hasattr(session, "_jsparkSession"):  # the driver's Java machine is in reach
            _silence_java(session, before)
        yield


@contextmanager
def without_logs() -> Iterator[None]:
    """Nothing is logged in Python: the bridge to Java logs all of its answers, and Spark's errors log themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _set(session: Any, name: str, value: str | None) -> None:
    session.conf.unset(name) if value is None else session.conf.set(name, value)


def _quietly(act: Callable[..., Any], *arguments: Any) -> None:
    with suppress(Exception):  # the session may have ended, and the Java machine may have died
        act(*arguments)


def _silence_java(session: Any, before: ExitStack) -> None:
    bar = session.sparkContext._jsc.sc().progressBar()
    if bar.isDefined():  # it would tell how many tasks there are; it cannot be started again
        bar.get().stop()
    log4j = session._jvm.org.apache.logging.log4j
    configure = log4j.core.config.Configurator
    loggers = log4j.LogManager.getContext(False).getConfiguration().getLoggers().values()
    for name, level in [(logger.getName(), logger.getLevel()) for logger in loggers]:
        before.callback(_quietly, configure.setLevel, name, level)
        configure.setLevel(name, log4j.Level.OFF)


# ---------------------------------------------------------------------- sessions


def open_session(opened: ExitStack, scheme: str, host: str, query: str, name: str) -> Any:
    """A session of Spark for a table that messages call `name`; one that is made here ends when `opened` closes."""
    try:
        import pyspark  # noqa: F401 - only whether it is there
    except ImportError:
        raise DataError(f'{name} needs the packages of Spark: pip install "prade[spark]"') from None
    if scheme == "spark":
        if host != "session":
            raise DataError(
                f"spark://{host} is not an address: make a session of that Spark in this process and write "
                "spark://session/database.table, or use its Spark Connect server with sc://host:port/database.table"
            )
        return _session_here()
    where = host if ":" in host.rpartition("]")[2] else f"{host}:{CONNECT_PORT}"
    with warnings.catch_warnings(), without_logs():
        warnings.simplefilter("ignore")
        return connected(name, f"{scheme}://{host}/?{query}", partial(_remote, opened, where, query))


def _session_here() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    with suppress(ImportError):  # without the packages of Spark Connect there is none of its sessions
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        session = session or ConnectSession.getActiveSession()
    if session is None:
        raise DataError("this process has no Spark session; make one, or give the address of a Spark Connect server")
    return session


def _remote(opened: ExitStack, where: str, query: str) -> Any:
    """A session of a Spark Connect server; `query` has its options."""
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    options = "".join(f";{key}={value}" for key, value in parse_qsl(query))
    session = SparkSession.builder.remote(f"sc://{where}/{options}").create()
    opened.callback(_quietly, session.stop)
    # Spark would try for ten minutes; what answers as a server does so within seconds.
    session.client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=4000)])
    session.version  # noqa: B018 - asks the server, which may be none
    return session


# ---------------------------------------------------------------------- tables

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


def spark_stream(session: Any, name: str) -> Stream:
    """A table of a session: counted where its rows are, or read through this process."""
    with counting_in(session):
        if not session.catalog.tableExists(name):
            raise DataError(f"there is no table {name!r} in Spark; check its name")
        table = session.table(name)
        fields = {each.name: each for each in table.schema.fields}
        if len(set(map(str.casefold, fields))) < len(table.schema.fields):
            raise DataError(f"{name} has two columns whose names differ only in case; give a view with other names")
        _need_prade(session)

    def rows(names: Sequence[str]) -> Any:
        """The columns as workers get them, under names of ours."""
        cells = (_delivered(table, fields[name]) for name in names)
        return table.select(*(each.alias(f"c{number}") for number, each in enumerate(cells)))

    def read(names: Sequence[str]) -> Iterator[Batch]:
        """Rows through this process: the same Arrow batches, as bytes."""
        with counting_in(session):
            for row in rows(names).mapInArrow(_packed, "batch binary").toLocalIterator():
                yield from _batches(names, pa.ipc.open_stream(row[0]))

    def tallied(tally: Tally) -> Counts:
        names = tally.names or list(fields)[:1]
        with counting_in(session):
            if tally.person is None:
                counted = rows(names).mapInArrow(partial(_count, tally, names), "key long, rows long")
            else:
                people = rows(names).mapInArrow(partial(_code, tally, names), "person binary, codes binary")
                bounded = people.repartition("person").select("codes")
                counted = bounded.mapInArrow(partial(_bound_and_count, tally), "key long, rows long")
            added = counted.groupBy("key").sum("rows").toArrow()
        counts = tally.zeros()
        counts[added.column(0).to_numpy()] = added.column(1).to_numpy()
        return counts

    declared = {column: _declared(each.dataType) for column, each in fields.items()}
    return Stream(tuple(fields), read, declared, elsewhere=tallied)


def _delivered(table: Any, field: Any) -> Any:
    """What is selected of a column: its cells, or their texts."""
    import pyspark.sql.functions as F

    kind, column = _kind_name(field.dataType), table["`" + field.name.replace("`", "``") + "`"]
    if kind not in WRITTEN and KINDS.get(kind) != "text":  # a text may have a collation, and void has no type
        return column
    text = column.cast("string")
    padded = str(field.metadata.get(CHAR, "")).startswith("char(")
    return F.rtrim(text) if padded else text  # a CHAR without the spaces that fill it up


def _kind_name(kind: Any) -> str:
    """Spark's name of a type, without its details, such as "decimal" for decimal(10,2)."""
    name = str(kind.typeName()).partition("(")[0].partition(" ")[0]
    return "interval" if "interval" in str(kind.typeName()) else name


def _declared(kind: Any) -> DeclaredType:
    name = _kind_name(kind)
    return DeclaredType(str(kind.simpleString()), KINDS.get(name, "other" if name in WRITTEN else "unreadable"))


# ---------------------------------------------------------------------- in the workers


def _need_prade(session: Any) -> None:
    """Refuse workers without this version of prade; they are asked with rows of our own."""

    def ask(batches: Iterable[Any]) -> Iterator[Any]:  # sent by value, because a worker may not know this module
        from importlib.metadata import version

        import pyarrow

        try:
            import prade.measuring.spark

            found = version("prade") if prade.measuring.spark else ""
        except Exception:
            found = ""
        for batch in batches:
            yield pyarrow.record_batch({"version": [found] * batch.num_rows})

    own, found = version("prade"), set()
    with suppress(Exception):
        answers = session.range(0, ASKED, 1, ASKED).mapInArrow(ask, "version string").collect()
        found = {answer["version"] for answer in answers}
    if found != {own}:
        raise DataError(
            f"Spark's workers do not have prade {own}, which reads the rows there: install it there with pip install "
            f'"prade=={own}", with this version of Python (PYSPARK_PYTHON names it). No row was read'
        )


def _batches(names: Sequence[str], batches: Iterable[Any]) -> Iterator[Batch]:
    return (dict(zip(names, batch.columns, strict=True)) for batch in batches)


def _packed(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def _count(tally: Tally, names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    yield _other_than_zero(tally.run(_batches(names, batches), threads=1))


def _code(tally: Tally, names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    """Rows in codes, each with its person, by which they are brought together."""
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
    places = np.flatnonzero(counts)
    return pa.record_batch({"key": pa.array(places, pa.int64()), "rows": pa.array(counts[places], pa.int64())})
