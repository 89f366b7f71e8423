"""The same counts from Spark, from memory and from numpy; Spark says nothing about rows, and leaves nothing behind."""

from __future__ import annotations

import datetime
import logging
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from prade import Column, Unit
from prade.core.errors import DataError
from prade.measuring import spark as spark_rows
from prade.measuring.source import open_source
from prade.queries.parts import Marginal
from worlds import secret_rows
from worlds.all_types import GROUPS, by_numpy, parts, rows_kept, schema, table
from worlds.counting import count, counted
from worlds.plans import ledger_for
from worlds.private_tables import TABLES
from worlds.small_plan import LEDGER, PLAN
from worlds.spark_session import Spark

SECRET = "hush-4711"
# Spark leaves the sockets of statements that fail to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def people(spark: Spark) -> str:
    """Address of the table `people`."""
    spark.save("people", table())
    return spark.address("people")


# ---------------------------------------------------------------------- counts


def test_the_same_counts_from_three(spark: Spark, people: str) -> None:
    """From Spark also where several partitions have rows of one cell."""
    rows, declared = table(), schema()
    expected = by_numpy(rows, GROUPS)
    spark.session.table("default.people").repartition(3).createOrReplaceTempView("scattered")
    for private in (people, "spark://session/scattered", rows):
        with open_source(private) as source:
            found = count(source, declared, parts(declared), GROUPS)
            for part, answer, right in zip(parts(declared), found, expected, strict=True):
                assert answer.tolist() == right.tolist(), (source.engine, part.name)


@pytest.mark.parametrize("unit", [Unit(1, "ID"), Unit(4, "ID", per_group=1)])
def test_a_person_is_bounded(people: str, unit: Unit) -> None:
    declared = schema()
    covering = [part for part in parts(declared) if part.covers][:3]
    with open_source(people) as source:
        for answer in count(source, declared, covering, {"STATE": [36, 42]}, unit):
            assert answer.sum() == rows_kept(table(), unit)


def test_which_rows_of_a_person_count_is_the_same_elsewhere(people: str) -> None:
    """The tickets follow from the same ids, contents and secret, wherever they are computed."""
    rows, declared = table(), schema()
    some = [Marginal.of(declared, [name]) for name in ("AGE", "RACE")]
    with patch("prade.measuring.tally.secrets.token_hex", lambda size: "00" * size):
        found = []
        for private in (people, rows):
            with open_source(private) as source:
                found.append([each.tolist() for each in count(source, declared, some, {"STATE": [36]}, Unit(2, "ID"))])
    assert found[0] == found[1]


def test_workers_without_prade_are_refused(people: str) -> None:
    with (
        patch.object(spark_rows, "version", lambda name: "9.9"),
        pytest.raises(DataError, match=r"Spark's workers do not have prade 9\.9.*No row was read"),
    ):
        open_source(people)


def test_rows_through_this_process_are_the_same(people: str) -> None:
    """As `check` reads them."""
    declared = schema()
    with open_source(people) as source:
        there = count(source, declared, parts(declared), GROUPS)
        here = count(replace(source, elsewhere=None), declared, parts(declared), GROUPS)
    for one, other in zip(there, here, strict=True):
        assert one.tolist() == other.tolist()


def test_a_char_counts_without_the_spaces_that_fill_it_up(spark: Spark) -> None:
    spark.session.sql("DROP TABLE IF EXISTS default.padded")
    spark.session.sql("CREATE TABLE default.padded (x CHAR(5)) USING parquet")
    spark.session.sql("INSERT INTO default.padded VALUES ('ab'), ('abcde'), (NULL)")
    column = Column("x", "categorical", values=("ab", "abcde"), missing=True)
    assert counted(spark.address("padded"), column).tolist() == [[1, 1, 1]]


# ---------------------------------------------------------------------- no cell decides


def test_ancient_dates_of_files_by_other_writers_fail_no_run(spark: Spark) -> None:
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


# ---------------------------------------------------------------------- silence


def broken(spark: Spark) -> None:
    spark.save("raw", pa.table({"AGE": ["1", SECRET], "ID": [1, 2]}))
    spark.session.conf.set("spark.sql.ansi.enabled", "true")
    spark.session.sql("CREATE OR REPLACE VIEW broken AS SELECT CAST(AGE AS INT) AS AGE, ID FROM raw")


def test_a_spark_that_fails_on_a_row_does_not_quote_it(spark: Spark, caplog: pytest.LogCaptureFixture) -> None:
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


def test_the_session_is_as_it_was(spark: Spark, people: str) -> None:
    """Its settings and its loggers' levels, after success and after failure, and as they should be in between."""
    session = spark.session
    broken(spark)
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    log4j = session._jvm.org.apache.logging.log4j
    levels = [str(log4j.LogManager.getRootLogger().getLevel())]
    seen: list[tuple[str, str]] = []

    batches = spark_rows._batches

    def watched(names: Any, given: Any) -> Any:  # is asked for each batch
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
import os
from pyspark.sql import SparkSession
from prade.measuring.run import measure
from prade.planning.plan import Level, Plan

logging.getLogger("py4j").setLevel(logging.INFO)  # of what is said before and after rows are counted
session = SparkSession.builder.master("local[1]").config("spark.sql.ansi.enabled", "true").getOrCreate()
path = os.path.abspath("rows.parquet")
session.sql(f"CREATE TABLE people USING parquet OPTIONS (path '{path}')")
session.sql("CREATE VIEW broken AS SELECT CAST(CODE AS BIGINT) AS AGE, SEX, CODE, PLACE, ID FROM people")

def attempt(name, private, names=("AGE", "SEX", "CODE")):
    schema = Schema([columns[each] for each in names])
    levels = [Level((), Workload.all_marginals(schema, 1), total=1), Level("PLACE", Workload.all_marginals(schema, 1))]
    plan = Plan(name, schema, Budget.pure(1), Unit(1, "ID"), levels, {"PLACE": ["a", "b", "empty"]})
    ledger = Ledger("ledger")
    ledger.open_dataset(name, plan.unit, Budget.pure(1))
    print(name, measure(plan, private, f"release-{name}", ledger), ledger.remaining(name))

def attempts():
    session.read.parquet("rows.parquet").createOrReplaceTempView("view")
    yield "view", {"private": "spark://session/view"}
    yield "address", {"private": "spark://session/default.people"}
    yield "broken", {"private": "spark://session/default.broken"}
    yield "no column", {"private": "spark://session/default.people", "names": ("AGE", "HEIGHT")}
    session.stop()
"""


def test_secrets_are_in_nothing_that_is_said_or_written(
    spark_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor in what Spark's own Java machine says, or leaves in its folders, in a session that the caller made."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "with" / "temporary"))
    code, said, written = secret_rows.run(tmp_path / "with", True, SECRETS)
    assert code == 0, said
    assert secret_rows.traces(said, written) == []
    assert b"view Release" in said[0]
    assert b"address Release" in said[0]
    assert b"broken EngineError counting the spark table 'default.broken' failed in the engine" in said[0]
    assert b"Spark" in said[1]  # it speaks, but not of rows
    assert {name.split("/")[0] for name in written} <= {"ledger", "release-view", "release-address", "spark-warehouse"}


# ---------------------------------------------------------------------- addresses


def test_what_is_not_there_is_said(spark: Spark) -> None:
    with pytest.raises(DataError, match=r"no table 'defaults\.people' in Spark"):
        open_source("spark://session/defaults.people")


def test_a_server_that_is_not_there_is_given_up_soon() -> None:
    began = time.monotonic()
    with pytest.raises(DataError, match=r"connecting to the sc table 'default\.people' failed: ") as caught:
        open_source("sc://127.0.0.1:1/default.people?token=hush-hush")
    assert time.monotonic() - began < 60
    assert "hush" not in str(caught.value)


def test_the_command_line_through_spark_connect(spark: Spark, tmp_path: Path) -> None:
    """A process of its own, without a Java machine, and the promise on its lips."""
    spark.save("measured", TABLES["thousands"])
    PLAN.save(tmp_path / "plan.toml")
    ledger_for(PLAN, tmp_path / LEDGER)
    private = f"sc://127.0.0.1:{spark.port}/default.measured"
    command = [sys.executable, "-m", "prade", "measure", "plan.toml", private, "-o", "release", "--ledger", LEDGER]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": "/nowhere"}
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "release" / "release.json").is_file()
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [LEDGER, "plan.toml", "release"]


# ---------------------------------------------------------------------- faults


def test_a_java_machine_that_dies_leaves_a_trace(spark_settings: Path, tmp_path: Path) -> None:
    """Workers that die again and again, then the driver: what the driver's process finds and says is in the script."""
    script = Path(__file__).parents[1] / "worlds" / "spark_faults.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(script.parents[1])])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr
