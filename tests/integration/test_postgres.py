"""The same counts from PostgreSQL, from DuckDB and from numpy; a failing database says nothing about its rows."""

import datetime
from urllib.parse import urlsplit

import numpy as np
import pytest

from prade import Column, Schema
from prade.core.errors import DataError
from prade.measuring.engines import postgres_stream
from prade.measuring.source import Source, count, open_source
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal
from worlds.all_types import GROUPS, by_numpy, parts, rows_kept, schema, table

TYPES = {
    "AGE": "integer",
    "HOURS": "smallint",
    "INCOME": "double precision",
    "RENT": "numeric(12, 2)",
    "SEX": "text",
    "RACE": "varchar(10)",
    "CODE": "char(2)",
    "WORKS": "boolean",
    "BORN": "date",
    "SEEN": "timestamp",
    "KNOWN": "timestamptz",
    "STATE": "text",
    "TOWN": "bigint",
    "ID": "bigint",
}
SECRET = "hush-4711"


@pytest.fixture(scope="module")
def people_url(postgres_url):
    """Address of the table `people` in PostgreSQL."""
    import psycopg

    rows = table()
    with psycopg.connect(postgres_url) as connection, connection.cursor() as cursor:
        declared = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
        cursor.execute(f"CREATE TABLE people ({declared})")
        with cursor.copy("COPY people FROM STDIN") as copy:
            for row in zip(*(rows[name].to_pylist() for name in TYPES), strict=True):
                copy.write_row(row)
    return f"{postgres_url}/people"


def test_the_same_counts_from_three(people_url):
    rows = table()
    expected = by_numpy(rows, GROUPS)
    declared = schema()
    assert sum(answer.sum() for answer in expected) > 0
    for address in (people_url, rows):
        with open_source(address) as source:
            found = count(source, declared, parts(declared), GROUPS)
            for part, answer, right in zip(parts(declared), found, expected, strict=True):
                assert answer.tolist() == right.tolist(), (source.engine, part.name)


@pytest.mark.parametrize("engine", ["postgres", "arrow"])
@pytest.mark.parametrize("unit", [Unit(1, "ID"), Unit(3, "ID"), Unit(4, "ID", per_group=1)])
def test_a_person_is_bounded(people_url, engine, unit):
    rows = table()
    declared = schema()
    groups = {"STATE": [36, 42]}
    with open_source(people_url if engine == "postgres" else rows) as source:
        assert source.engine == engine
        found = count(source, declared, parts(declared), groups, unit)
    for part, answer in zip(parts(declared), found, strict=True):
        if part.covers:
            assert answer.sum() == rows_kept(rows, unit), part.name


def test_an_unreachable_table_names_no_password(postgres_url):
    word = postgres_url.split(":")[2].split("@")[0]
    with pytest.raises(DataError) as error:
        open_source(f"{postgres_url}/nothing_here")
    assert word not in str(error.value)
    assert "nothing_here" in str(error.value)
    with pytest.raises(DataError) as error:
        open_source(f"{postgres_url.replace(word, word[::-1])}/people")
    assert word[::-1] not in str(error.value)
    assert error.value.__context__ is None


def test_a_database_that_fails_on_a_row_does_not_quote_it(postgres_url):
    """A view whose casts fail while rows are read: the server's message would quote the cell."""
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE raw (x text)")
        connection.execute("INSERT INTO raw VALUES ('1'), (%s)", [SECRET])
        connection.execute("CREATE VIEW broken AS SELECT x::integer AS x FROM raw")
    declared = Schema([Column("x", "categorical", values=(1, 2))])
    with open_source(f"{postgres_url}/broken") as source, pytest.raises(DataError, match="its own message") as error:
        count(source, declared, [Marginal.of(declared, ["x"])])
    assert SECRET not in repr(error.value)
    assert error.value.__context__ is None
    assert error.value.__cause__ is None


def test_a_table_that_changes_its_type_meanwhile_is_a_plain_error(postgres_url):
    """Its cells are read as the type that was declared when the source was opened."""
    import psycopg

    declared = Schema([Column("x", "categorical", values=(1, 2))])
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE changing AS SELECT 1::integer AS x")
        with open_source(f"{postgres_url}/changing") as source:
            connection.execute("ALTER TABLE changing ALTER x TYPE bigint")
            with pytest.raises(DataError, match="the columns of the postgres table 'changing' have changed"):
                count(source, declared, [Marginal.of(declared, ["x"])])
            connection.execute("DROP TABLE changing")
            with pytest.raises(DataError, match="there is no table 'changing'"):
                count(source, declared, [Marginal.of(declared, ["x"])])


# ---------------------------------------------------------------------- what PostgreSQL has and others have not

LONG = [f"w{place}" for place in range(100)] + ["va", "VA", "Va", "vA", "vb"]


def counted(postgres_url, name, column, groups=None):
    declared = Schema([column])
    with open_source(f"{postgres_url}/{name}") as source:
        (found,) = count(source, declared, [Marginal.of(declared, [column.name])], groups)
    return found


@pytest.mark.parametrize("made", ["text COLLATE anycase", "citext", "varchar(9) COLLATE anycase", "char(9)"])
def test_a_row_counts_once_whatever_the_collation_takes_for_equal(postgres_url, made):
    import psycopg

    name = f"cased_{len(made)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS citext")
            connection.execute(
                "CREATE COLLATION IF NOT EXISTS anycase "
                "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.errors.FeatureNotSupported as absent:
            pytest.skip(f"this PostgreSQL is without it: {absent}")
        connection.execute(f"CREATE TABLE {name} (x {made}, y integer)")
        connection.cursor().executemany(
            f"INSERT INTO {name} VALUES (%s, 1)", [[cell] for cell in ("va", "VA", "vb", "VB", "w\u00e9", None)]
        )
    found = counted(postgres_url, name, Column("x", "categorical", values=LONG, missing=True))
    assert {LONG[place] if place < 105 else None: int(found[0, place]) for place in np.flatnonzero(found[0])} == {
        "va": 1,
        "VA": 1,
        "vb": 1,
        None: 3,  # VB and w\u00e9 are not listed
    }
    by_group = counted(postgres_url, name, Column("y", "categorical", values=(0, 1)), {"x": LONG})
    assert by_group.sum() == 3


def test_no_number_is_too_much_for_the_engine(postgres_url):
    import psycopg

    cells = ["1", "5", "9.99", "10", "-7.5", "1e400", "-1e400", "1e-400", "-1e-400", "1e300", "NaN", None]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name, kind in (("numbers", "numeric"), ("long_numbers", "numeric(900, 450)")):
            connection.execute(f"CREATE TABLE {name} (x {kind})")
            connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s)", [[cell] for cell in cells])
    binned = Column("x", "numeric", edges=(0, 3, 10), missing=True)
    listed = Column("x", "categorical", values=(1, 5, 10), missing=True)
    words = Column("x", "categorical", values=("1", "5", "x"), missing=True)
    for name in ("numbers", "long_numbers"):
        assert counted(postgres_url, name, binned).tolist() == [[2, 3, 2, 3, 2]]
        assert counted(postgres_url, name, listed).tolist() == [[1, 1, 1, 9]]
    assert counted(postgres_url, "numbers", words).tolist() == [[1, 1, 0, 10]]
    assert counted(postgres_url, "long_numbers", words).tolist() == [[1, 1, 0, 10]]  # without its 450 zeros


def test_no_cast_of_the_databases_own_is_used(postgres_url):
    """Anybody may define how a type is cast to text, so that it fails on one cell; its output function stays."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TYPE pair AS (one integer, two integer)")
        connection.execute(
            "CREATE FUNCTION pair_text(pair) RETURNS text LANGUAGE plpgsql AS "
            "$$ BEGIN IF ($1).one = 4711 THEN RAISE EXCEPTION 'hush'; END IF; RETURN 'x'; END $$"
        )
        connection.execute("CREATE CAST (pair AS text) WITH FUNCTION pair_text(pair)")
        connection.execute("CREATE TABLE pairs (x pair)")
        connection.execute("INSERT INTO pairs VALUES (ROW(1, 2)), (ROW(4711, 2)), (NULL)")
    column = Column("x", "categorical", values=("(1,2)", "(4711,2)", "x"), missing=True)
    assert counted(postgres_url, "pairs", column).tolist() == [[1, 1, 0, 1]]


def test_infinite_dates_and_times_are_far_away(postgres_url):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for kind in ("date", "timestamp", "timestamptz"):
            connection.execute(f"CREATE TABLE far_{kind} (x {kind})")
            last = "5874897-12-31" if kind == "date" else "294276-12-31"
            cells = ["infinity", "-infinity", "4713-01-01 BC", "2020-01-01", last]
            connection.cursor().executemany(f"INSERT INTO far_{kind} VALUES (%s)", [[cell] for cell in cells])
    column = Column("x", "numeric", edges=(datetime.date(2000, 1, 1), datetime.date(2100, 1, 1)), missing=True)
    for kind in ("date", "timestamp", "timestamptz"):
        assert counted(postgres_url, f"far_{kind}", column).tolist() == [[2, 1, 2, 0]], kind


def test_a_type_of_the_databases_own_may_have_the_name_of_another(postgres_url):
    """A composite named int8 is not sent as a number, whether or not there is a row."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA own")
        connection.execute("CREATE TYPE own.int8 AS (x text)")
        for name, rows in (("filled", "VALUES (ROW('a')::own.int8), (ROW(NULL)::own.int8), (NULL)"), ("empty", None)):
            connection.execute(f"CREATE TABLE own.{name} (x own.int8)")
            if rows:
                connection.execute(f"INSERT INTO own.{name} {rows}")
    column = Column("x", "categorical", values=("(a)", "()"), missing=True)
    assert counted(postgres_url, "own.filled", column).tolist() == [[1, 1, 1]]
    assert counted(postgres_url, "own.empty", column).tolist() == [[0, 0, 0]]
    for name in ("own.filled", "own.empty"):
        with pytest.raises(DataError, match=r"the schema has numbers, but the table has the type own\.int8"):
            counted(postgres_url, name, Column("x", "numeric", edges=(1,)))


def test_a_name_that_means_two_tables_is_refused(postgres_url):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA hr")
        connection.execute("CREATE TABLE hr.staff AS SELECT 1 AS x")
        connection.execute('CREATE TABLE "hr.staff" AS SELECT 2 AS x')
    with pytest.raises(DataError, match=r"'hr\.staff' means 2 tables"):
        open_source(f"{postgres_url}/hr.staff")


@pytest.mark.parametrize(("rows", "bytes_per_batch"), [(13, 2**26), (2**16, 1000)], ids=["rows", "bytes"])
def test_rows_in_batches_of_any_size(people_url, rows, bytes_per_batch):
    declared = schema()
    with open_source(people_url) as source:
        whole = count(source, declared, parts(declared), GROUPS)
    database, _, table = people_url.rpartition("/")
    stream = postgres_stream("people", people_url, database, table, rows, bytes_per_batch)
    found = count(Source(stream, "postgres", "people"), declared, parts(declared), GROUPS)
    for one, other in zip(found, whole, strict=True):
        assert one.tolist() == other.tolist()


def test_a_table_of_another_schema_and_an_enumeration(postgres_url):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
        connection.execute("CREATE TABLE other.moods (x mood, y integer)")
        connection.execute('CREATE TABLE "other.dotted" (x mood, y integer)')
        for name in ("other.moods", '"other.dotted"'):
            connection.execute(f"INSERT INTO {name} VALUES ('good', 1), ('bad', 2), ('bad', 3), (NULL, 1)")
    some = Column("x", "categorical", values=("bad", "ugly"), missing=True)
    many = Column("x", "categorical", values=["bad", *LONG], missing=True)
    for name in ("other.moods", "other.dotted"):
        assert counted(postgres_url, name, some).tolist() == [[2, 0, 2]]
        assert counted(postgres_url, name, many)[0, [0, -1]].tolist() == [2, 2]
        assert counted(postgres_url, name, Column("y", "numeric", edges=(2,)), {"x": ["ugly", "bad"]}).tolist() == [
            [0, 0],
            [0, 2],
        ]
    with pytest.raises(DataError, match=r"there is no table 'another\.moods' in the database.*it has"):
        open_source(f"{postgres_url}/another.moods")


def test_a_table_that_does_not_exist_is_answered_with_those_that_do(people_url):
    with pytest.raises(DataError, match=r"no table 'peoples' in the database; did you mean 'people'.*it has .*people"):
        open_source(f"{people_url}s")


def test_a_database_that_refuses_says_why_without_the_password(postgres_url):
    server = urlsplit(postgres_url)
    address = f"postgres://nobody:hush-4711@{server.hostname}:{server.port}{server.path}/people"
    with pytest.raises(DataError, match=r"connecting to the postgres table 'people' failed: .*nobody") as error:
        open_source(address)
    assert "hush" not in str(error.value)
