"""The same counts from PostgreSQL and from memory; what PostgreSQL has and others have not."""

import datetime
from urllib.parse import urlsplit

import numpy as np
import pytest

from prade import Column, Schema
from prade.core.errors import DataError
from prade.measuring.engines import postgres_stream
from prade.measuring.source import open_source
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal
from worlds.counting import count, counted
from worlds.private_tables import NAMES, TABLES, counts_of

ROWS = TABLES["thousands"]
LONG = [f"w{place}" for place in range(100)] + ["va", "VA", "Va", "vA", "vb"]


@pytest.fixture(scope="module")
def database(postgres_url):
    """A connection to the server, for tables of all kinds."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def filled(database, name, columns, cells):
    """A table of these columns, of which the first has these cells; the others are 1."""
    database.execute(f"CREATE TABLE {name} ({columns})")
    others = ", 1" * columns.count(", y")
    database.cursor().executemany(f"INSERT INTO {name} VALUES (%s{others})", [[cell] for cell in cells])


@pytest.fixture(scope="module")
def people_url(postgres_url, database):
    """Address of the table `people` in PostgreSQL."""
    with database.cursor() as cursor:
        cursor.execute('CREATE TABLE people ("AGE" integer, "SEX" text, "HOURS" float8, "PLACE" varchar, "ID" bigint)')
        with cursor.copy("COPY people FROM STDIN") as copy:
            for row in zip(*(ROWS[name].to_pylist() for name in NAMES), strict=True):
                copy.write_row(row)
    return f"{postgres_url}/people"


@pytest.mark.parametrize(("rows", "bytes_per_batch"), [(2**16, 2**26), (13, 2**26), (2**16, 1000)])
def test_the_counts_are_those_of_a_table_in_memory_in_batches_of_any_size(people_url, rows, bytes_per_batch):
    place, _, name = people_url.rpartition("/")
    stream = postgres_stream("people", people_url, place, name, rows, bytes_per_batch)
    assert counts_of(stream) == counts_of(ROWS)


@pytest.mark.parametrize("unit", [Unit(1, "ID"), Unit(4, "ID", per_group=1)])
def test_a_person_is_bounded(people_url, unit):
    assert [np.sum(each) for each in counts_of(people_url, unit)] == [np.sum(each) for each in counts_of(ROWS, unit)]


def test_what_is_not_there_is_said_without_the_password(people_url, postgres_url):
    word, server = postgres_url.split(":")[2].split("@")[0], urlsplit(postgres_url)
    nobody = f"postgres://nobody:hush-4711@{server.hostname}:{server.port}{server.path}/people"
    for address, message in (
        (f"{postgres_url}/nothing_here", "nothing_here"),
        (f"{people_url}s", r"no table 'peoples' in the database; did you mean 'people'.*it has .*people"),
        (f"{postgres_url.replace(word, word[::-1])}/people", "failed"),
        (nobody, r"connecting to the postgres table 'people' failed: .*nobody"),
    ):
        with pytest.raises(DataError, match=message) as error:
            open_source(address)
        assert not any(secret in str(error.value) for secret in (word, word[::-1], "hush"))
        assert error.value.__context__ is None


def test_a_table_that_changes_its_type_meanwhile_is_a_plain_error(postgres_url, database):
    """Its cells are read as the type that was declared when the source was opened."""
    column = Column("x", "categorical", values=(1, 2))
    database.execute("CREATE TABLE changing AS SELECT 1::integer AS x")
    with open_source(f"{postgres_url}/changing") as source:
        for change, message in (
            ("ALTER TABLE changing ALTER x TYPE bigint", "the columns of the postgres table 'changing' have changed"),
            ("DROP TABLE changing", "there is no table 'changing'"),
        ):
            database.execute(change)
            with pytest.raises(DataError, match=message):
                count(source, Schema([column]), [Marginal.of(Schema([column]), ["x"])])


@pytest.mark.parametrize("made", ["text COLLATE anycase", "citext", "varchar(9) COLLATE anycase", "char(9)"])
def test_a_row_counts_once_whatever_the_collation_takes_for_equal(postgres_url, database, made):
    """Where texts are equal that are not the same, and on which PostgreSQL's regular expressions fail."""
    import psycopg

    name = f"cased_{len(made)}"
    try:
        database.execute("CREATE EXTENSION IF NOT EXISTS citext")
        database.execute(
            "CREATE COLLATION IF NOT EXISTS anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
    except psycopg.errors.FeatureNotSupported as absent:
        pytest.skip(f"this PostgreSQL is without it: {absent}")
    filled(database, name, f"x {made}, y integer", ("va", "VA", "vb", "VB", "w\u00e9", None))
    found = counted(f"{postgres_url}/{name}", Column("x", "categorical", values=LONG, missing=True))
    assert {LONG[place] if place < 105 else None: int(found[0, place]) for place in np.flatnonzero(found[0])} == {
        "va": 1,
        "VA": 1,
        "vb": 1,
        None: 3,  # VB and w\u00e9 are not listed
    }
    by_group = counted(f"{postgres_url}/{name}", Column("y", "categorical", values=(0, 1)), {"x": LONG})
    assert by_group.sum() == 3


@pytest.mark.parametrize(("name", "kind"), [("numbers", "numeric"), ("long_numbers", "numeric(900, 450)")])
def test_no_number_is_too_much_for_the_engine(postgres_url, database, name, kind):
    cells = ["1", "5", "9.99", "10", "-7.5", "1e400", "-1e400", "1e-400", "-1e-400", "1e300", "NaN", None]
    filled(database, name, f"x {kind}", cells)
    for column, expected in (
        (Column("x", "numeric", edges=(0, 3, 10), missing=True), [2, 3, 2, 3, 2]),
        (Column("x", "categorical", values=(1, 5, 10), missing=True), [1, 1, 1, 9]),
        (Column("x", "categorical", values=("1", "5", "x"), missing=True), [1, 1, 0, 10]),  # without its 450 zeros
    ):
        assert counted(f"{postgres_url}/{name}", column).tolist() == [expected]


def test_no_cast_of_the_databases_own_is_used(postgres_url, database):
    """Anybody may define how a type is cast to text, so that it fails on one cell; its output function stays."""
    for statement in (
        "CREATE TYPE pair AS (one integer, two integer)",
        "CREATE FUNCTION pair_text(pair) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN IF ($1).one = 4711 THEN RAISE EXCEPTION 'hush'; END IF; RETURN 'x'; END $$",
        "CREATE CAST (pair AS text) WITH FUNCTION pair_text(pair)",
        "CREATE TABLE pairs (x pair)",
        "INSERT INTO pairs VALUES (ROW(1, 2)), (ROW(4711, 2)), (NULL)",
    ):
        database.execute(statement)
    column = Column("x", "categorical", values=("(1,2)", "(4711,2)", "x"), missing=True)
    assert counted(f"{postgres_url}/pairs", column).tolist() == [[1, 1, 0, 1]]


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_infinite_dates_and_times_are_far_away(postgres_url, database, kind):
    last = "5874897-12-31" if kind == "date" else "294276-12-31"
    filled(database, f"far_{kind}", f"x {kind}", ["infinity", "-infinity", "4713-01-01 BC", "2020-01-01", last])
    column = Column("x", "numeric", edges=(datetime.date(2000, 1, 1), datetime.date(2100, 1, 1)), missing=True)
    assert counted(f"{postgres_url}/far_{kind}", column).tolist() == [[2, 1, 2, 0]]


def test_a_type_of_the_databases_own_may_have_the_name_of_another(postgres_url, database):
    """A composite named int8 is not sent as a number, whether or not there is a row."""
    database.execute("CREATE SCHEMA own")
    database.execute("CREATE TYPE own.int8 AS (x text)")
    rows = "VALUES (ROW('a')::own.int8), (ROW(NULL)::own.int8), (NULL)"
    database.execute(f"CREATE TABLE own.filled AS SELECT * FROM ({rows}) AS rows(x)")
    database.execute("CREATE TABLE own.empty AS SELECT * FROM own.filled LIMIT 0")
    column = Column("x", "categorical", values=("(a)", "()"), missing=True)
    for name, expected in (("own.filled", [1, 1, 1]), ("own.empty", [0, 0, 0])):
        assert counted(f"{postgres_url}/{name}", column).tolist() == [expected]
        with pytest.raises(DataError, match=r"the schema has numbers, but the table has the type own\.int8"):
            counted(f"{postgres_url}/{name}", Column("x", "numeric", edges=(1,)))
