"""A real Spark for the tests: one Java machine in local mode, small and quick, ended and removed afterwards.

It also serves Spark Connect on loopback, so that other processes reach the same tables without a Java machine.
"""

import importlib.util
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

DEFAULTS = """
spark.driver.memory 600m
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m
spark.sql.shuffle.partitions 2
spark.default.parallelism 2
spark.ui.enabled false
spark.ui.showConsoleProgress false
spark.sql.parquet.datetimeRebaseModeInRead EXCEPTION
"""  # the last is the default before version 4


class Spark(NamedTuple):
    """The session, the port of its Connect server, and the folder of its settings, for processes with their own."""

    session: Any
    port: int
    settings: Path

    def save(self, name, rows):
        """Rows as a table ``default.name``, which all sessions see."""
        folder = self.settings.parent / "tables" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "rows.parquet")
        self.session.sql(f"DROP TABLE IF EXISTS default.{name}")
        self.session.sql(f"CREATE TABLE default.{name} USING parquet LOCATION '{folder}'")

    def address(self, name):
        return f"spark://session/default.{name}"


def absent():
    """What Spark lacks here, in words; nothing if it can run."""
    if importlib.util.find_spec("pyspark") is None:
        return 'pyspark is absent: pip install "prade[spark]" to run the tests of Spark'
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return "Java is absent: install Debian's package default-jre-headless to run the tests of Spark"
    return ""


@pytest.fixture(scope="session")
def spark_settings():
    """A folder with spark-defaults.conf, which all sessions read that start while the tests run."""
    if words := absent():
        pytest.skip(words)
    folder = Path(tempfile.mkdtemp(prefix="prade-spark-test-"))
    settings = folder / "conf"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(DEFAULTS + f"spark.sql.warehouse.dir {folder}/warehouse\n")
    # This Python without Spark's archives, whose contents a worker would read again for each task.
    program, path = folder / "python", shlex.quote(os.environ.get("PYTHONPATH", ""))
    program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(settings))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", str(program))  # of workers, also of those that serve Spark Connect
        yield settings
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(spark_settings):
    """Spark in local mode, with two threads."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Spark's about pandas
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is not None:  # of a page of the documentation
            SparkContext._active_spark_context.stop()
        builder = SparkSession.builder.master("local[2]").appName("tests")
        builder = builder.config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        builder = builder.config("spark.connect.grpc.binding.address", "127.0.0.1")
        on_interrupt = signal.getsignal(signal.SIGINT)
        session = builder.config("spark.connect.grpc.binding.port", str(port)).getOrCreate()
        signal.signal(signal.SIGINT, on_interrupt)  # Spark sets one of its own
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield Spark(session, port, spark_settings)
    finally:
        end(session)


def end(session):
    """Stop a session and its Java machine."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None
