"""Rows of Spark tables, coded and counted where they are.

The codec runs in Spark's workers, which need prade; only counts come back. Spark evaluates nothing on a cell but
conversions that exist for every value of a type.

    natively    Boolean, integers, floats, decimals, dates, times, bytes; text, without its collation
    as text     arrays, maps, structs and intervals

The host of an address says which Spark:

    local          Spark in this process's own Java machine, with all cores
    host:7077      the master of a standalone cluster; the driver is here
    sc, host       a Spark Connect server; nothing but this Python is here
    session        the session that this process has already, of whatever cluster

A session that is opened here has no web page and no event log. What it must write on this machine, shuffled codes and
its Java machine's own words among them, goes to a locked folder that is removed at the end.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from prade.core.errors import DataError
from prade.core.files import spill_folder
from prade.data.read.frames import DeclaredType, Kind
from prade.measuring.streams import ROWS_PER_BATCH, Batch, Stream, no_table, without_secrets
from prade.measuring.tally import Counts, Tally

LOCAL, OWN, CONNECT = "local", "session", "sc"
PORTS = {"spark": 7077, CONNECT: 15002}
SECONDS_TO_A_WORKER = 60.0  # for a cluster that is to give its first worker
SECONDS_TO_END = 20.0  # for a Java machine that has been told to
MOST_OF_A_MESSAGE = 300  # letters; Spark appends its own stack to messages

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
OWN_SESSION = {
    "spark.app.name": "prade",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
}
Session = tuple[Any, Callable[[], None]]  # a session of Spark, and what ends it


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
            _run_this_python(session.sparkContext, before)
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
    """Turn off all that Java logs."""
    bar = session.sparkContext._jsc.sc().progressBar()
    if bar.isDefined():  # it would tell how many tasks there are; it cannot be started again
        bar.get().stop()
    log4j = session._jvm.org.apache.logging.log4j
    configure = log4j.core.config.Configurator
    loggers = log4j.LogManager.getContext(False).getConfiguration().getLoggers().values()
    for name, level in [(logger.getName(), logger.getLevel()) for logger in loggers]:
        before.callback(_quietly, configure.setLevel, name, level)
        configure.setLevel(name, log4j.Level.OFF)


def _run_this_python(context: Any, before: ExitStack) -> None:
    """Workers on this machine run this Python, which has prade, unless PYSPARK_PYTHON names another."""
    if str(context.master).startswith(LOCAL) and "PYSPARK_PYTHON" not in os.environ:
        before.callback(setattr, context, "pythonExec", context.pythonExec)
        context.pythonExec = sys.executable


# ---------------------------------------------------------------------- sessions


def open_session(scheme: str, host: str, query: str, name: str) -> Session:
    """A session of the Spark at a host, for a table that messages call `name`. `query` has options of Spark Connect."""
    try:
        import pyspark  # noqa: F401 - only whether it is there
    except ImportError:
        raise DataError(f'{name} needs the packages of Spark: pip install "prade[spark]"') from None
    where = host if ":" in host.rpartition("]")[2] else f"{host}:{PORTS[scheme]}"
    failure = ""
    try:
        with warnings.catch_warnings(), without_logs():
            warnings.simplefilter("ignore")
            if scheme == CONNECT:
                return _remote(where, query)
            if host == OWN:
                return _session_here(), lambda: None
            return _with_driver_here("local[*]" if host == LOCAL else f"spark://{where}")
    except DataError:
        raise
    except Exception as error:  # the beginning of Spark's message, which is before its stack
        words = without_secrets(str(error).split("\n\tat ")[0], f"{scheme}://{host}/?{query}")[:MOST_OF_A_MESSAGE]
        failure = f"{type(error).__name__}: {words}"
    raise DataError(
        f"connecting to {name} failed: {failure}. No row was read; correct the address or Spark's settings. A driver "
        "on this machine needs Java 17 or newer (Debian's package default-jre-headless)"
    )


def _session_here() -> Any:
    """The session that this process has already."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    with suppress(ImportError):  # without the packages of Spark Connect there is none of its sessions
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        session = session or ConnectSession.getActiveSession()
    if session is None:
        raise DataError("this process has no Spark session; make one, or name the host in the address")
    return session


def _remote(where: str, query: str) -> Session:
    """A session of a Spark Connect server."""
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    options = "".join(f";{key}={value}" for key, value in parse_qsl(query))
    session = SparkSession.builder.remote(f"sc://{where}/{options}").create()
    with ExitStack() as opened:
        opened.callback(_quietly, session.stop)
        # Spark would try for ten minutes; what answers as a server does so within seconds.
        session.client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=4000)])
        session.version  # noqa: B018 - asks the server, which may be none
        return session, opened.pop_all().close


def _with_driver_here(master: str) -> Session:
    """A session whose driver is a Java machine of this process. There can be one only, so a caller's is used."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if (active := SparkContext._active_spark_context) is not None:
        there = str(active.master)
        if there != master and not (master.startswith(LOCAL) and there.startswith(LOCAL)):
            raise DataError(
                f"this process has a Spark session of the master {there!r} already, and there can be only one: "
                "stop it, or use it with spark://session/database.table"
            )
        return SparkSession(active).newSession(), lambda: None
    with ExitStack() as opened:
        folder = opened.enter_context(spill_folder())
        conf = SparkConf().setMaster(master).setAll(list(OWN_SESSION.items())).set("spark.local.dir", str(folder))
        words = opened.enter_context((folder / "words").open("wb"))
        gateway = launch_gateway(conf, popen_kwargs={"stdout": words, "stderr": words})
        opened.callback(_end, gateway)
        if threading.current_thread() is threading.main_thread():
            opened.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))  # Spark sets one of its own
        context = SparkContext(conf=conf, gateway=gateway)
        opened.callback(_quietly, context.stop)
        if not master.startswith(LOCAL):
            _need_worker(context)
        return SparkSession(context), opened.pop_all().close


def _end(gateway: Any) -> None:
    """End a Java machine, so that it lets go of its files; the next session starts another."""
    from pyspark import SparkContext

    _quietly(gateway.shutdown)
    if gateway.proc is not None:  # not under spark-submit, which has started it and ends it
        gateway.proc.stdin.close()
        _quietly(gateway.proc.wait, SECONDS_TO_END)
        gateway.proc.kill()
        gateway.proc.wait(SECONDS_TO_END)
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def _need_worker(context: Any) -> None:
    """Wait for a first worker; without one a statement would wait for ever, in silence."""
    until = time.monotonic() + SECONDS_TO_A_WORKER
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver is in it, too
        if time.monotonic() > until:
            raise DataError(
                f"the cluster gave no worker within {SECONDS_TO_A_WORKER:.0f} seconds: it cannot be reached, or it has "
                "none that is free, reaches this machine, and has what spark-defaults.conf asks for"
            )
        time.sleep(0.2)


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


class SparkTable:
    """A table of a session. `tallied` counts its rows where they are, `stream` reads them through this process."""

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        with counting_in(session):
            self._table = _table(session, name)
            fields = self._table.schema.fields
            self._types = {each.name: each.dataType for each in fields}
            self._padded = {each.name for each in fields if str(each.metadata.get(CHAR, "")).startswith("char(")}
            if len({each.name.casefold() for each in fields}) < len(fields):
                raise DataError(f"{name} has two columns whose names differ only in case; give a view with other names")
            _need_prade(session)
        declared = {column: _declared(kind) for column, kind in self._types.items()}
        self.stream = Stream(tuple(declared), self._read, declared)

    def tallied(self, tally: Tally) -> Counts:
        """Count the rows in the workers."""
        names = tally.names or list(self._types)[:1]
        with counting_in(self._session):
            rows = self._rows(names)
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

    def _rows(self, names: Sequence[str]) -> Any:
        """The columns as workers get them, under names of ours."""
        return self._table.select(*(self._native(name).alias(f"c{number}") for number, name in enumerate(names)))

    def _native(self, name: str) -> Any:
        import pyspark.sql.functions as F

        kind, column = _kind_name(self._types[name]), self._table["`" + name.replace("`", "``") + "`"]
        if kind not in WRITTEN and KINDS.get(kind) != "text":  # a text may have a collation, and void has no type
            return column
        text = column.cast("string")
        return F.rtrim(text) if name in self._padded else text  # a CHAR without the spaces that fill it up

    def _read(self, names: Sequence[str]) -> Iterator[Batch]:
        """Rows through this process: the same Arrow batches, as bytes."""
        import pyarrow as pa

        with counting_in(self._session):
            for row in self._rows(names).mapInArrow(_packed, "batch binary").toLocalIterator():
                yield from _batches(names, pa.ipc.open_stream(row[0]))


def _kind_name(kind: Any) -> str:
    """Spark's name of a type, without its details, such as "decimal" for decimal(10,2)."""
    name = str(kind.typeName()).partition("(")[0].partition(" ")[0]
    return "interval" if "interval" in str(kind.typeName()) else name


def _declared(kind: Any) -> DeclaredType:
    name = _kind_name(kind)
    return DeclaredType(str(kind.simpleString()), KINDS.get(name, "other" if name in WRITTEN else "unreadable"))


def _table(session: Any, name: str) -> Any:
    """The table ``[[catalog.]database.]table``, or a temporary view."""
    if session.catalog.tableExists(name):
        return session.table(name)
    database, known = name.rpartition(".")[0], []
    with suppress(Exception):  # where there is no such database
        known = [f"{database}.{each.name}".strip(".") for each in session.catalog.listTables(database or None)]
    raise no_table(name, known, "Spark")


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
            f'"prade=={own}", and with this version of Python. No row was read'
        )


def _batches(names: Sequence[str], batches: Iterable[Any]) -> Iterator[Batch]:
    return (dict(zip(names, batch.columns, strict=True)) for batch in batches)


def _packed(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


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
