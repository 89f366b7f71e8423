"""The same counts from Spark and from memory; Spark says nothing about rows, and leaves nothing behind."""

import datetime
import logging
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Column, Unit
from prade.core.errors import DataError
from prade.measuring import spark as spark_rows
from prade.measuring.source import open_source
from worlds.counting import counted
from worlds.plans import ledger_for
from worlds.private_tables import LEDGER, PLAN, TABLES, counts_of
from worlds.secret_rows import HONEST, HUGE
from worlds.secret_rows import SECRETS as SECRET_ROWS

SECRET = "hush-4711"
ROWS = TABLES["thousands"]
# Spark leaves the sockets of statements that fail to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def people(spark):
    """Address of the table `people`."""
    spark.save("people", ROWS)
    return spark.address("people")


def test_the_same_counts_as_from_memory(spark, people):
    """Also where several partitions have rows of one cell, and through this process, as `check` reads them."""
    expected = counts_of(ROWS)
    spark.session.table("default.people").repartition(3).createOrReplaceTempView("scattered")
    for private in (people, "spark://session/scattered"):
        assert counts_of(private) == expected
    with open_source(people) as source:
        assert counts_of(replace(source, elsewhere=None)) == expected


@pytest.mark.parametrize("unit", [Unit(1, "ID"), Unit(4, "ID", per_group=1)])
def test_a_person_is_bounded(people, unit):
    assert [np.sum(each) for each in counts_of(people, unit)] == [np.sum(each) for each in counts_of(ROWS, unit)]


def test_which_rows_of_a_person_count_is_the_same_elsewhere(people):
    """The tickets follow from the same ids, contents and secret, wherever they are computed."""
    with patch("prade.measuring.tally.secrets.token_hex", lambda size: "00" * size):
        assert counts_of(people, Unit(2, "ID")) == counts_of(ROWS, Unit(2, "ID"))


def test_workers_without_prade_are_refused(people):
    with (
        patch.object(spark_rows, "version", lambda name: "9.9"),
        pytest.raises(DataError, match=r"Spark's workers do not have prade 9\.9.*No row was read"),
    ):
        open_source(people)


def test_a_char_counts_without_the_spaces_that_fill_it_up(spark):
    spark.session.sql("DROP TABLE IF EXISTS default.padded")
    spark.session.sql("CREATE TABLE default.padded (x CHAR(5)) USING parquet")
    spark.session.sql("INSERT INTO default.padded VALUES ('ab'), ('abcde'), (NULL)")
    column = Column("x", "categorical", values=("ab", "abcde"), missing=True)
    assert counted(spark.address("padded"), column).tolist() == [[1, 1, 1]]


def test_ancient_dates_of_files_by_other_writers_fail_no_run(spark):
    """Spark before version 4, and one that is told so, refuses a date before 1582 in a file of an unknown writer."""
    date, moment = datetime.date, datetime.datetime
    rows = pa.table(
        {
            "day": pa.array([date(1, 1, 1), date(2020, 1, 1)]),
            "moment": pa.array([moment(1, 1, 1), moment(2020, 1, 1)], pa.timestamp("us", "UTC")),
        }
    )
    spark.save("ancient", rows)
    for name in ("day", "moment"):
        column = Column(name, "numeric", edges=(date(2000, 1, 1),))
        assert counted(spark.address("ancient"), column).tolist() == [[1, 1]]


def broken(spark):
    spark.save("raw", pa.table({"AGE": ["1", SECRET], "ID": [1, 2]}))
    spark.session.conf.set("spark.sql.ansi.enabled", "true")
    spark.session.sql("CREATE OR REPLACE VIEW broken AS SELECT CAST(AGE AS INT) AS AGE, ID FROM raw")


def test_a_spark_that_fails_on_a_row_does_not_quote_it(spark, caplog):
    broken(spark)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(DataError, match="its own message") as error:
        counted(spark.address("broken"), Column("AGE", "numeric", edges=(2,)))
    assert SECRET not in repr(error.value)
    assert error.value.__context__ is None
    assert error.value.__cause__ is None
    assert SECRET not in caplog.text
    logging.getLogger("after").warning("heard again")
    assert "heard again" in caplog.text


def test_the_session_is_as_it_was(spark, people):
    """Its settings and its loggers' levels, after success and after failure, and as they should be in between."""
    session = spark.session
    broken(spark)
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    log4j = session._jvm.org.apache.logging.log4j
    levels = [str(log4j.LogManager.getRootLogger().getLevel())]
    seen: list[tuple[str, str]] = []

    batches = spark_rows._batches

    def watched(names, given):  # is asked for each batch
        seen.append((session.conf.get("spark.sql.ansi.enabled"), str(log4j.LogManager.getRootLogger().getLevel())))
        return batches(names, given)

    with patch.object(spark_rows, "_batches", watched):
        for name in ("people", "broken"):
            source = open_source(f"spark://session/default.{name}")
            session.conf.set("spark.sql.session.timeZone", "America/New_York")
            try:
                list(source.read(["AGE"]))
            except Exception:
                assert name == "broken"
            assert session.conf.get("spark.sql.session.timeZone") == "America/New_York"
            assert session.conf.get("spark.sql.ansi.enabled") == "true"
            levels.append(str(log4j.LogManager.getRootLogger().getLevel()))
    assert set(seen) == {("false", "OFF")}
    assert set(levels) == {"ERROR"}


SECRETS = """
import logging, os, traceback
from pyspark.sql import SparkSession
from prade import Budget, Column, Ledger, Level, Plan, PradeError, Schema, Unit, Workload, measure

logging.basicConfig(level=logging.DEBUG)
logging.getLogger("py4j").setLevel(logging.INFO)  # of what is said before and after rows are counted
session = SparkSession.builder.master("local[1]").config("spark.sql.ansi.enabled", "true").getOrCreate()
path = os.path.abspath("rows.parquet")
session.sql(f"CREATE TABLE people USING parquet OPTIONS (path '{path}')")
session.sql("CREATE VIEW broken AS SELECT CAST(CODE AS BIGINT) AS AGE, SEX, CODE, PLACE, ID FROM people")
session.read.parquet("rows.parquet").createOrReplaceTempView("view")
listed = Column("SEX", "categorical", values=("f", "m"), missing=True)
for name, other in (("session/view", "AGE"), ("session/default.people", "AGE"), ("session/default.broken", "AGE"),
                    ("session/default.people", "HEIGHT")):
    schema = Schema([Column(other, "numeric", edges=(18, 65), missing=True), listed])
    ones, dataset = Workload.all_marginals(schema, 1), f"{name.split('.')[-1].split('/')[-1]} {other}"
    levels = [Level((), ones, total=1), Level("PLACE", ones)]
    plan = Plan(dataset, schema, Budget.pure(1), Unit(1, "ID"), levels, {"PLACE": ["a", "b", "empty"]})
    try:
        print(dataset, measure(plan, f"spark://{name}", f"release-{dataset}", "ledger", cap=Budget.pure(1)))
    except PradeError as error:
        while error is not None:
            traceback.print_exception(error)
            print(dataset, type(error).__name__, error, vars(error))
            error = error.__cause__ or error.__context__
session.stop()
"""


def test_secrets_are_in_nothing_that_is_said_or_written(spark_settings, tmp_path):
    """Nor in what Spark's own Java machine says, or leaves in its folders, in a session that the caller made."""
    (tmp_path / "temporary").mkdir()
    columns = zip(*HONEST, *SECRET_ROWS, strict=True)
    kinds = (pa.int64(), *[pa.string()] * 3, pa.int64())
    cells = [pa.array(list(each), kind) for each, kind in zip(columns, kinds, strict=True)]
    pq.write_table(pa.table(cells, names=["AGE", "SEX", "CODE", "PLACE", "ID"]), tmp_path / "rows.parquet")
    folders = dict.fromkeys(("TMPDIR", "SPARK_LOCAL_DIRS"), str(tmp_path / "temporary"))
    command = [sys.executable, "-W", "always", "-X", "faulthandler", "-c", SECRETS]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **folders}, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert b"view AGE Release" in done.stdout
    assert b"people AGE Release" in done.stdout
    assert b"broken AGE EngineError counting the spark table 'default.broken' failed in the engine" in done.stdout
    assert b"people HEIGHT DataError" in done.stdout
    assert b"Spark" in done.stderr  # it speaks, but not of rows
    (tmp_path / "rows.parquet").unlink()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    counts = [str(pq.read_table(path).to_pylist()).encode() for path in files if path.suffix == ".parquet"]
    written = [bytes(path.relative_to(tmp_path)) + path.read_bytes() for path in files]
    traces = b"hush", b"zulu", b"8675309", b"8.675309", HUGE.to_bytes(8, "little"), HUGE.to_bytes(8, "big")
    assert not [trace for trace in traces for each in (done.stdout, done.stderr, *counts, *written) if trace in each]
    kept = {path.name for path in tmp_path.iterdir()} - {"metastore_db", "derby.log"}
    assert kept <= {"ledger", "release-view AGE", "release-people AGE", "spark-warehouse", "temporary"}
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_is_not_there_is_said(spark):
    with pytest.raises(DataError, match=r"no table 'defaults\.people' in Spark"):
        open_source("spark://session/defaults.people")


def test_a_server_that_is_not_there_is_given_up_soon():
    began = time.monotonic()
    with pytest.raises(DataError, match=r"connecting to the sc table 'default\.people' failed: ") as caught:
        open_source("sc://127.0.0.1:1/default.people?token=hush-hush")
    assert time.monotonic() - began < 60
    assert "hush" not in str(caught.value)


def test_the_command_line_through_spark_connect(spark, tmp_path):
    """A process of its own, without a Java machine, and the promise on its lips."""
    spark.save("measured", TABLES["thousands"])
    PLAN.save(tmp_path / "plan.toml")
    ledger_for(PLAN, tmp_path / LEDGER)
    private = f"sc://127.0.0.1:{spark.port}/default.measured"
    command = [sys.executable, "-m", "prade", "measure", "plan.toml", private, "-o", "release", "--ledger", LEDGER]
    given = {**os.environ, "PATH": "/nowhere"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=given)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "release" / "release.json").is_file()
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [LEDGER, "plan.toml", "release"]


def test_a_java_machine_that_dies_leaves_a_trace(spark_settings, tmp_path):
    """Workers that die again and again, then the driver: what the driver's process finds and says is in the script."""
    script = Path(__file__).parents[1] / "worlds" / "spark_faults.py"
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(script.parents[1])])
    command, given = [sys.executable, str(script), str(tmp_path)], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr
