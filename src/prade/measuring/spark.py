"""Rows of Spark tables, coded and counted where they are.

The codec runs in Spark's workers, which need prade; only counts come back. Where the workers lack it, rows are streamed
through this process. Spark evaluates nothing on a cell but conversions that exist for every value of a type.

    natively    Boolean, integers, floats, decimals, dates, times, bytes; text, without its collation
    as text     arrays, maps, structs and intervals

The host of an address says which Spark:

    local          Spark in this process's own Java machine, with all cores
    host:7077      the master of a standalone cluster; the driver is here
    sc, host       a Spark Connect server; nothing but this Python is here
    session        the session that this process has already, of whatever cluster

A session that is opened here writes what it must write on this machine, shuffled codes among them, to a locked folder
that is removed at the end, has no web page and no event log, and its Java machine's own words go to a file in that
folder.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from prade.core.errors import DataError, closest
from prade.core.files import spill_folder
from prade.data.read.frames import DeclaredType, Kind
from prade.measuring.streams import ROWS_PER_BATCH, Batch, Stream, no_table, without_secrets
from prade.measuring.tally import Counts, Tally

LOCAL, OWN, CONNECT = "local", "session", "sc"
PORTS = {"spark": 7077, CONNECT: 15002}
SECONDS_TO_ANSWER = 10.0  # for a host that is to accept a connection
SECONDS_TO_A_WORKER = 60.0  # for a cluster that is to give its first worker
SECONDS_TO_END = 20.0  # for a Java machine that has been told to
MOST_OF_A_MESSAGE = 300  # letters; Spark appends its own stack to messages
JAVA = "install Java 17 (Debian's package default-jre-headless), or set JAVA_HOME"

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
    with without_logs(), _settings(session), _silent_java(session), _this_python(session):
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


@contextmanager
def _this_python(session: Any) -> Iterator[None]:
    """Workers on this machine run this Python, which has prade, unless PYSPARK_PYTHON names another."""
    context = getattr(session, "sparkContext", None) if hasattr(session, "_jsparkSession") else None
    if context is None or not str(context.master).startswith(LOCAL) or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    before, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


@contextmanager
def _settings(session: Any) -> Iterator[None]:
    before = {name: session.conf.get(name, None) for name in WHILE_COUNTING}
    try:
        for name, value in WHILE_COUNTING.items():
            session.conf.set(name, value)
        yield
    finally:
        with suppress(Exception):  # a session that has ended has no settings
            for name, value in before.items():
                session.conf.unset(name) if value is None else session.conf.set(name, value)


@contextmanager
def _silent_java(session: Any) -> Iterator[None]:
    """Turn off what the driver's Java machine logs, where there is one in reach, and turn it on again."""
    machine = getattr(session, "_jvm", None) if hasattr(session, "_jsparkSession") else None
    if machine is None:
        yield
        return
    bar = session.sparkContext._jsc.sc().progressBar()
    if bar.isDefined():  # it would tell how many tasks there are; it cannot be started again
        bar.get().stop()
    log4j = machine.org.apache.logging.log4j
    loggers = log4j.LogManager.getContext(False).getConfiguration().getLoggers().values()
    levels = {logger.getName(): logger.getLevel() for logger in loggers}
    configure = log4j.core.config.Configurator
    try:
        for name in levels:
            configure.setLevel(name, log4j.Level.OFF)
        yield
    finally:
        with suppress(Exception):  # the Java machine may have died
            for name, level in levels.items():
                configure.setLevel(name, level)


# ---------------------------------------------------------------------- sessions


def open_session(scheme: str, host: str, query: str, name: str) -> Session:
    """A session of the Spark at a host, for a table that messages call `name`. `query` has options of Spark Connect."""
    try:
        import pyspark  # noqa: F401 - only whether it is there
    except ImportError:
        raise DataError(f'{name} needs the packages of Spark: pip install "prade[spark]"') from None
    if host not in (LOCAL, OWN):
        _need_answer(host, PORTS[scheme], name)

    failure = ""
    try:
        with warnings.catch_warnings(), without_logs():
            warnings.simplefilter("ignore")
            if scheme == CONNECT:
                return _remote(host, query)
            if host == OWN:
                return _session_here(), lambda: None
            return _with_driver_here("local[*]" if host == LOCAL else f"spark://{_with_port(host, PORTS[scheme])}")
    except DataError:
        raise
    except Exception as error:  # the beginning of Spark's message, which is before its stack
        words = without_secrets(str(error).split("\n\tat ")[0], f"{scheme}://{host}/?{query}")[:MOST_OF_A_MESSAGE]
        failure = f"{type(error).__name__}: {words}"
    raise DataError(
        f"connecting to {name} failed: {failure}. No row was read; correct the address or Spark's settings. A driver "
        "on this machine needs Java 17 or newer"
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


def _remote(host: str, query: str) -> Session:
    """A session of a Spark Connect server."""
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    options = "".join(f";{key}={value}" for key, value in parse_qsl(query))
    session = SparkSession.builder.remote(f"sc://{_with_port(host, PORTS[CONNECT])}/{options}").create()
    try:
        # Spark would try for ten minutes; what answers as a server does so within seconds.
        session.client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=4000)])
        session.version  # noqa: B018 - asks the server, which may be none
        return session, session.stop
    except BaseException:
        _quietly(session.stop)
        raise


def _with_driver_here(master: str) -> Session:
    """A session whose driver is a Java machine of this process. There can be one only, so a caller's is used."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkContext._active_spark_context
    if active is not None:
        there = str(active.master)
        if there != master and not (master.startswith(LOCAL) and there.startswith(LOCAL)):
            raise DataError(
                f"this process has a Spark session of the master {there!r} already, and there can be only one: "
                "stop it, or use it with spark://session/database.table"
            )
        return SparkSession(active).newSession(), lambda: None
    if not (shutil.which("java") or (Path(os.environ.get("JAVA_HOME", "")) / "bin" / "java").is_file()):
        raise DataError(f"Spark needs Java: {JAVA}")
    with ExitStack() as opening:
        session = _new_session(opening, master)
        if not master.startswith(LOCAL):
            _need_worker(session)
        return session, opening.pop_all().close


def _new_session(opened: ExitStack, master: str) -> Any:
    """A session and its Java machine, which end when `opened` closes."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    folder = opened.enter_context(spill_folder())
    conf = SparkConf().setMaster(master).setAll(list(OWN_SESSION.items())).set("spark.local.dir", str(folder))
    words = opened.enter_context((folder / "words").open("wb"))
    gateway = launch_gateway(conf, popen_kwargs={"stdout": words, "stderr": words})
    opened.callback(_end, gateway)
    if threading.current_thread() is threading.main_thread():
        opened.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))  # Spark sets one of its own
    context = SparkContext(conf=conf, gateway=gateway)
    opened.callback(_quietly, context.stop)
    return SparkSession(context)


def _quietly(end: Callable[[], Any]) -> None:
    with suppress(Exception):  # the Java machine may have died
        end()


def _end(gateway: Any) -> None:
    """End a Java machine, so that it lets go of its files; the next session starts another."""
    from pyspark import SparkContext

    _quietly(gateway.shutdown)
    if gateway.proc is not None:  # not under spark-submit, which has started it and ends it
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait(SECONDS_TO_END)
    if SparkContext._gateway is gateway:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def _need_answer(host: str, port: int, name: str) -> None:
    """Refuse a host that accepts no connection; Spark itself would try for minutes."""
    where, _, given = _with_port(host, port).rpartition(":")
    if not given.isdigit() or int(given) > 65535:
        raise DataError(f"connecting to {name} failed: {given!r} is not a port; write spark://HOST:PORT/DATABASE.TABLE")
    try:
        socket.create_connection((where.strip("[]"), int(given)), timeout=SECONDS_TO_ANSWER).close()
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise DataError(
            f"connecting to {name} failed: {where}, port {given}, does not answer ({reason}). No row was read; correct "
            "the address, or start Spark there"
        ) from None


def _need_worker(session: Any) -> None:
    """Wait for a first worker; without one a statement would wait for ever, in silence."""
    status = session.sparkContext._jsc.sc().getExecutorMemoryStatus
    until = time.monotonic() + SECONDS_TO_A_WORKER
    while status().size() < 2:  # the driver is in it, too
        if time.monotonic() > until:
            raise DataError(
                f"the cluster gave no worker within {SECONDS_TO_A_WORKER:.0f} seconds: it has none that is free and "
                "has the cores and the memory that spark-defaults.conf asks for, or they cannot reach this machine"
            )
        time.sleep(0.2)


def _with_port(host: str, port: int) -> str:
    return host if ":" in host.rpartition("]")[2] else f"{host}:{port}"


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

        def packed(batches: Iterable[Any]) -> Iterator[Any]:  # sent by value, because a worker may lack this module
            import pyarrow as pa

            for batch in batches:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as stream:
                    stream.write_batch(batch)
                yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

        import pyarrow as pa

        with counting_in(self._session):
            for row in self._rows(names).mapInArrow(packed, "batch binary").toLocalIterator():
                yield from _batches(names, pa.ipc.open_stream(row[0]))


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
            import prade.measuring.spark

            found = version("prade") if prade.measuring.spark else ""
        except Exception:
            found = ""
        for batch in batches:
            yield pyarrow.record_batch({"version": [found] * batch.num_rows})

    try:
        answers = session.range(0, ASKED, 1, ASKED).mapInArrow(ask, "version string").collect()
        return {answer["version"] for answer in answers} == {version("prade")}
    except Exception as error:
        failure = type(error).__name__
    raise DataError(
        f"Spark's workers cannot run a Python function ({failure}), which reads the rows: install prade there, or "
        "pyarrow and this version of Python. No row was read"
    )


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
