"""A database that goes away while `measure` counts: nothing is spent, no word of it gets out, and a rerun finishes."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prade import Budget, Ledger, Unit
from prade.core.errors import BudgetError, DataError
from prade.measuring.run import measure
from prade.planning.questions import Level
from worlds.people import AGES, EVERYBODY, SCHEMA
from worlds.plans import ledger_for, plan_of

PLAN = plan_of(
    SCHEMA, EVERYBODY, Level("TOWN", AGES), groups={"TOWN": ["a", "b"]}, unit=Unit(1, "ID"), dataset="people"
)


@pytest.fixture(scope="module")
def slow_url(postgres_url: str) -> str:
    """Address of a view that takes its time over every row, as long as the table `pace` says."""
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute('CREATE TABLE measured ("AGE" integer, "TOWN" text, "ID" bigint)')
        connection.execute("INSERT INTO measured SELECT n, 'a', n FROM generate_series(1, 60) AS n")
        connection.execute("CREATE TABLE pace AS SELECT 0.0::double precision AS seconds")
        connection.execute(
            "CREATE VIEW slow AS SELECT * FROM measured WHERE pg_sleep((SELECT seconds FROM pace))::text = ''"
        )
    return f"{postgres_url}/slow"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return ledger_for(PLAN, tmp_path / "budget.ledger")


@contextmanager
def slowly(url: str) -> Iterator[None]:
    """Within this, counting takes seconds."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE pace SET seconds = 0.1")
        try:
            yield
        finally:
            connection.execute("UPDATE pace SET seconds = 0")


@contextmanager
def in_mid_query(url: str, act: Callable[[int], None]) -> Iterator[list[int]]:
    """As soon as somebody reads the view, do something to the backend that does it; whom it was done to."""
    import psycopg

    backends: list[int] = []
    over = threading.Event()
    reading = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'PgSleep'"

    def watch() -> None:
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


def end(url: str, backend: int) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [backend])


class Line:
    """A line to the server that can be cut: connections through it break off, and new ones are refused."""

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.ends: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.server)
                self.ends += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self.carry, args=pair, daemon=True).start()

    @staticmethod
    def carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        for end in (self.listener, *self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


FAULTS = {  # what happens in mid query, and the kind of the error that is recorded
    "the backend is ended": "AdminShutdown",
    "the line is cut": "OperationalError",
    "interrupt": "KeyboardInterrupt",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_is_broken_off_in_mid_query(slow_url: str, postgres_url: str, ledger: Ledger, fault: str) -> None:
    """Nothing is released, the entry says no more than the kind of the error, and the next run goes on with it."""
    server = urlsplit(postgres_url)
    assert server.hostname is not None
    assert server.port is not None
    line, place = Line(server.hostname, server.port), ledger.path.with_name("release")
    through = slow_url.replace(f":{server.port}/", f":{line.port}/")

    def act(backend: int) -> None:
        if fault == "interrupt":
            signal.raise_signal(signal.SIGINT)
        elif fault == "the line is cut":
            line.cut()
        else:
            end(postgres_url, backend)

    with (
        slowly(postgres_url),
        in_mid_query(postgres_url, act) as backends,
        pytest.raises((DataError, KeyboardInterrupt)) as caught,
    ):
        measure(PLAN, through, place, ledger)
    assert backends, "the query was over before it could be broken off"
    silent = "its own message is not shown because it may quote private rows"
    message = "\n".join([str(caught.value), *caught.value.__notes__])
    assert (silent in message) == (fault != "interrupt")
    assert "goes on without paying again" in message
    for word in ("terminating", "administrator", "server closed", "COPY", "slow\n"):
        assert word not in message
        assert word.encode() not in ledger.path.read_bytes()
    if fault == "the line is cut":
        end(postgres_url, backends[0])  # which has not noticed
        with pytest.raises(DataError, match="connecting to the postgres table 'slow' failed"):  # no row is read
            measure(PLAN, through, place, ledger)
    if fault != "interrupt":
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
    line.cut()
    (entry,) = ledger.entries("people")
    assert (entry.state, entry.drawn) == ("failed", False)
    assert [(each.stage, each.kind) for each in entry.failures] == [("count", FAULTS[fault])]
    assert ledger.remaining("people") == Budget.pure(0)
    assert [path.name for path in ledger.path.parent.iterdir()] == ["budget.ledger"]
    assert measure(PLAN, slow_url, place, ledger).noisy[-1][0].shape == (2, 3)
    (entry,) = ledger.entries("people")
    assert (entry.state, len(entry.resumed)) == ("committed", 1)
    with pytest.raises(BudgetError):
        measure(PLAN, slow_url, place.with_name("second"), ledger, again=True)
