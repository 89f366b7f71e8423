"""As `test_noninterference.py`, in databases: with the noise held fixed, any two tables make the same run.

The same words, files and events in the ledger, also where a run breaks off, and where the engine fails on a cell.
"""

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from worlds.observation import differences
from worlds.private_tables import EMPTY, NAMES, TABLES, Runs, duckdb, succeeded, typed

# Spark leaves the sockets of statements that fail to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
Kind = Callable[[pa.Table, Path], str]
CELLS = ("hush", "zulu")


def postgres_kind(url, kinds, *, broken=False):
    """Tables of these types; a broken one is a view that fails on a cell, in a message that quotes it."""
    import psycopg

    columns = [f'"{name}" {kind}' for name, kind in zip(NAMES, kinds.split(), strict=True)]
    own = [f'"{name}"' for name in NAMES]
    cast = ", ".join(['("SEX"::bigint) AS "AGE"', *own[1:]])

    def postgres(table, folder):
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE IF EXISTS observed CASCADE")
            connection.execute(f"CREATE TABLE observed ({', '.join(columns)})")
            connection.execute(f"CREATE VIEW failing AS SELECT {cast} FROM observed")
            cells = zip(*(table[name].to_pylist() for name in NAMES), strict=True)
            rows = [[cell.replace("\0", "") if isinstance(cell, str) else cell for cell in row] for row in cells]
            with connection.cursor() as cursor, cursor.copy("COPY observed FROM STDIN") as copy:
                for row in rows:  # no text of PostgreSQL has a NUL in it
                    copy.write_row(row)
        return f"{url}/{'failing' if broken else 'observed'}"

    return postgres


def duckdb_kind(*, broken=False):
    def file(table, folder):
        import duckdb as engine

        address = duckdb(table, folder)
        if not broken:
            return address
        with engine.connect(folder / "rows.duckdb") as connection:
            connection.execute("CREATE VIEW failing AS SELECT * REPLACE (CAST(SEX AS BIGINT) AS AGE) FROM people")
        return address.replace("/people", "/failing")

    return file


def spark_kind(spark, *, broken=False):
    def saved(table, folder):
        spark.save("observed", table)
        if not broken:
            return str(spark.address("observed"))
        others = ", ".join(NAMES[1:])
        failing = f"SELECT CAST(raise_error(SEX) AS BIGINT) AS AGE, {others} FROM default.observed"
        spark.session.sql(f"CREATE OR REPLACE VIEW default.failing AS {failing}")
        return str(spark.address("failing"))

    return saved


def the_same(kind, folder, names=("thousands", "all missing", "wild")):
    runs = Runs(folder)
    nobody = succeeded(runs.measured(kind, EMPTY))
    for name in names:
        assert differences(runs.measured(kind, TABLES[name]), nobody) == [], name


def breaks_off_alike(kind, folder):
    """When rows have been counted, and when noise has been drawn: what is said, and what the ledger has."""
    runs = Runs(folder)
    for step in ("measure.counted", "measure.drawn"):
        nobody, everybody = (runs.measured(kind, TABLES[name], broken=step) for name in ("empty", "thousands"))
        assert nobody["outcome"] != "returned"
        assert [each for each in nobody["steps"] if not each.startswith("ledger.fail")][-1] == step
        assert any('"failed"' in event for event in nobody["ledger budget.ledger"])
        assert differences(everybody, nobody) == [], step


def fails_alike(kind, folder):
    """Its error quotes the cell; the run's may not, nor lead back to it, nor may the ledger have more than its kind."""
    runs = Runs(folder)
    found = [runs.measured(kind, typed([(3, cell, 20.0, "a", 1)] * len(cell))) for cell in CELLS]
    assert "failed in the engine" in found[0]["outcome"][0]
    assert any('"failed"' in event for event in found[0]["ledger budget.ledger"])
    assert differences(*found) == []
    assert not any(cell in str(each) for cell in CELLS for each in found)


USUAL = "bigint text float8 text bigint"


@pytest.mark.parametrize("kinds", [USUAL, "numeric varchar numeric text numeric", "text text text text text"])
def test_any_two_tables_of_postgres(kinds, postgres_url, tmp_path):
    the_same(postgres_kind(postgres_url, kinds), tmp_path)


def test_runs_that_break_off_in_postgres(postgres_url, tmp_path):
    breaks_off_alike(postgres_kind(postgres_url, USUAL), tmp_path)


def test_cells_on_which_postgres_fails(postgres_url, tmp_path):
    fails_alike(postgres_kind(postgres_url, USUAL, broken=True), tmp_path)


def test_any_two_tables_of_duckdb(tmp_path):
    the_same(duckdb_kind(), tmp_path, tuple(name for name in TABLES if name != "empty"))


def test_runs_that_break_off_in_duckdb(tmp_path):
    breaks_off_alike(duckdb_kind(), tmp_path)


def test_cells_on_which_duckdb_fails(tmp_path):
    fails_alike(duckdb_kind(broken=True), tmp_path)


@pytest.fixture
def quiet_spark(spark, monkeypatch):
    monkeypatch.setattr(logging.getLogger("py4j"), "level", logging.INFO)  # it tells when garbage is collected
    return spark


def test_any_two_tables_of_spark(quiet_spark, tmp_path):
    the_same(spark_kind(quiet_spark), tmp_path)


def test_runs_that_break_off_in_spark(quiet_spark, tmp_path):
    breaks_off_alike(spark_kind(quiet_spark), tmp_path)


def test_cells_on_which_spark_fails(quiet_spark, tmp_path):
    fails_alike(spark_kind(quiet_spark, broken=True), tmp_path)
