"""Sessions of Spark at an address, and what holds while one counts private rows.

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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from prade.core.errors import DataError
from prade.core.files import spill_folder
from prade.measuring.connections import without_secrets
from prade.measuring.streams import ROWS_PER_BATCH

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
    before = context.pythonExec
    context.pythonExec = sys.executable
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

    def connect() -> Session:
        if scheme == CONNECT:
            return _remote(host, query)
        if host == OWN:
            return _session_here(), lambda: None
        return _with_driver_here("local[*]" if host == LOCAL else f"spark://{_with_port(host, PORTS[scheme])}")

    return _opened(name, f"{scheme}://{host}/?{query}", connect)


def _session_here() -> Any:
    """The session that this process has already."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        with suppress(Exception):  # without the packages of Spark Connect there is none of its sessions
            from pyspark.sql.connect.session import SparkSession as ConnectSession

            session = ConnectSession.getActiveSession()
    if session is None:
        raise DataError("this process has no Spark session; make one, or name the host in the address")
    return session


def _opened(name: str, address: str, connect: Callable[[], Session]) -> Session:
    """What `connect` returns; a failure shows the beginning of Spark's message, which is before its stack."""
    failure = ""
    try:
        with warnings.catch_warnings(), without_logs():
            warnings.simplefilter("ignore")
            return connect()
    except DataError:
        raise
    except Exception as error:
        words = without_secrets(str(error).split("\n\tat ")[0], address)[:MOST_OF_A_MESSAGE]
        failure = f"{type(error).__name__}: {words}"
    raise DataError(
        f"connecting to {name} failed: {failure}. No row was read; correct the address or Spark's settings. A driver "
        "on this machine needs Java 17 or newer"
    )


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
        with suppress(Exception):
            session.stop()
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
    opened.callback(_stop, context)
    return SparkSession(context)


def _stop(context: Any) -> None:
    with suppress(Exception):  # its Java machine may have died
        context.stop()


def _end(gateway: Any) -> None:
    """End a Java machine, so that it lets go of its files; the next session starts another."""
    from pyspark import SparkContext

    with suppress(Exception):
        gateway.shutdown()
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
