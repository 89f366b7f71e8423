"""Java machines that die while `measure` counts in them. A script: tests run it in a process of its own.

Its argument is a folder to work in. It ends with an error where something is not as it should be.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from prade import Budget, Unit
from prade.core.errors import DataError
from prade.measuring.run import measure
from prade.measuring.source import open_source
from prade.planning.questions import Level
from prade.queries.parts import Marginal
from worlds.counting import count
from worlds.plans import AGES, EVERYBODY, SCHEMA, ledger_for, plan_of

HERE = Path(sys.argv[1])
SECRET = "hush-4711"
PLAN = plan_of(
    SCHEMA, EVERYBODY, Level("TOWN", AGES), groups={"TOWN": ["a", "b"]}, unit=Unit(1, "ID"), dataset="people"
)
ROWS = pa.table({"AGE": list(range(1, 61)), "TOWN": ["a"] * 60, "ID": list(range(60)), "NOTE": [SECRET] * 60})
DEATH = "java_method('java.lang.System', 'exit', 3)"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PAUSE = "java_method('java.lang.Thread', 'sleep', 50L)"


def tables(session):
    """People, and views of them: one on which the machine that reads it dies, and one that takes its time."""
    session.sql(f"CREATE TABLE IF NOT EXISTS people USING parquet LOCATION '{HERE / 'people'}'")
    for name, act in (("dying", DEATH), ("slow", PAUSE)):
        session.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM people WHERE {act} = 'null'")


def left_a_trace(private, name):
    """Counting fails with a plain error, nothing is released, and the ledger has the failure."""
    home = HERE / name
    home.mkdir()
    ledger = ledger_for(PLAN, home / "budget.ledger")
    failure = None
    try:
        measure(PLAN, private, home / "release", ledger)
    except DataError as error:
        failure = error
    assert failure is not None, "it was counted"
    words = "\n".join([str(failure), *failure.__notes__])
    assert "its own message is not shown because it may quote private rows" in words, words
    assert "was reserved in" in words, words
    assert SECRET not in words
    assert failure.__context__ is None
    (entry,) = ledger.entries("people")
    assert (entry.state, [each.stage for each in entry.failures]) == ("failed", ["count"]), entry
    assert SECRET.encode() not in ledger.path.read_bytes()
    assert ledger.remaining("people") == Budget.pure(0)
    assert [path.name for path in home.iterdir()] == ["budget.ledger"]


def children(word):
    """The ids of this process's descendants whose command has the word."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (path / "cmdline").read_bytes()
            if word in command and f"PRADE_FAULTS={HERE}".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def driver():
    """When the Java machine of this process dies, the run fails with a plain error."""
    from pyspark.sql import SparkSession

    tables(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate())
    left_a_trace("spark://session/dying", "driver")


def workers_of_a_cluster():
    """One that is killed is replaced, and the counts are right; when all die, again and again, the run fails."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[1,2,600]").config("spark.task.maxFailures", "2")
    builder = builder.config("spark.executor.extraJavaOptions", QUICK)  # five of them start, and live for seconds
    session = builder.config("spark.executor.memory", "500m").config("spark.ui.enabled", "false").getOrCreate()
    tables(session)
    killed = []

    def kill():
        time.sleep(0.7)
        for process in children(b"CoarseGrainedExecutorBackend"):
            os.kill(process, signal.SIGKILL)
            killed.append(process)

    with open_source("spark://session/slow") as source:
        killer = threading.Thread(target=kill)
        killer.start()
        (found,) = count(source, SCHEMA, [Marginal.of(SCHEMA, ["AGE"])], None)
        killer.join()
    assert killed
    assert found.sum() == 60, found
    left_a_trace("spark://session/dying", "workers")
    session.stop()


if __name__ == "__main__":
    os.environ["PRADE_FAULTS"] = str(HERE)
    tempfile.tempdir = str(HERE)
    os.chdir(HERE)
    (HERE / "people").mkdir()
    for part in range(2):
        pq.write_table(ROWS.slice(part * 30, 30), HERE / "people" / f"part-{part}.parquet")
    workers_of_a_cluster()
    driver()
