"""A database that goes away while `measure` counts: nothing is spent, no word of it gets out, and a rerun finishes."""

import signal
import threading
from contextlib import contextmanager

import pytest

from prade import Budget, Unit
from prade.core.errors import BudgetError, DataError
from prade.measuring.run import measure
from prade.planning.questions import Level
from worlds.plans import AGES, EVERYBODY, SCHEMA, ledger_for, plan_of

PLAN = plan_of(
    SCHEMA, EVERYBODY, Level("TOWN", AGES), groups={"TOWN": ["a", "b"]}, unit=Unit(1, "ID"), dataset="people"
)


@pytest.fixture(scope="module")
def slow_url(postgres_url):
    """Address of a view that takes its time over every row."""
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute('CREATE TABLE measured ("AGE" integer, "TOWN" text, "ID" bigint)')
        connection.execute("INSERT INTO measured SELECT n, 'a', n FROM generate_series(1, 60) AS n")
        connection.execute("CREATE VIEW slow AS SELECT * FROM measured WHERE pg_sleep(0.05)::text = ''")
    return f"{postgres_url}/slow"


@pytest.fixture
def ledger(tmp_path):
    return ledger_for(PLAN, tmp_path / "budget.ledger")


@contextmanager
def in_mid_query(url, act):
    """As soon as somebody reads the view, do something to the backend that does it; whom it was done to."""
    import psycopg

    backends: list[int] = []
    over = threading.Event()
    reading = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'PgSleep'"

    def watch():
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.wait(0.01):
                if found := connection.execute(reading).fetchone():
                    backends.append(found[0])
                    act(found[0])
                    return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield backends
    finally:
        over.set()
        watcher.join()


def end(url, backend):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [backend])


@pytest.mark.parametrize("kind", ["AdminShutdown", "KeyboardInterrupt"])
def test_a_run_that_is_broken_off_in_mid_query(slow_url, postgres_url, ledger, kind):
    """Nothing is released, the entry says no more than the kind of the error, and the next run goes on with it."""
    place, ended = ledger.path.with_name("release"), kind == "AdminShutdown"

    def act(backend):
        end(postgres_url, backend) if ended else signal.raise_signal(signal.SIGINT)

    with in_mid_query(postgres_url, act) as backends, pytest.raises((DataError, KeyboardInterrupt)) as caught:
        measure(PLAN, slow_url, place, ledger)
    assert backends, "the query was over before it could be broken off"
    message = "\n".join([str(caught.value), *caught.value.__notes__])
    assert ("its own message is not shown because it may quote private rows" in message) == ended
    assert "goes on without paying again" in message
    for word in ("terminating", "administrator", "server closed", "COPY", "slow\n"):
        assert word not in message
        assert word.encode() not in ledger.path.read_bytes()
    if ended:
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
    (entry,) = ledger.entries("people")
    assert (entry.state, entry.drawn) == ("failed", False)
    assert [(each.stage, each.kind) for each in entry.failures] == [("count", kind)]
    assert ledger.remaining("people") == Budget.pure(0)
    assert [path.name for path in ledger.path.parent.iterdir()] == ["budget.ledger"]
    assert measure(PLAN, slow_url, place, ledger).noisy[-1][0].shape == (2, 3)
    (entry,) = ledger.entries("people")
    assert (entry.state, len(entry.resumed)) == ("committed", 1)
    with pytest.raises(BudgetError):
        measure(PLAN, slow_url, place.with_name("second"), ledger, again=True)
