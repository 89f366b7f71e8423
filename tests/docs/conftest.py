"""Says whether there is a PostgreSQL, and a Spark."""

import signal
from collections.abc import Callable, Iterator

import pytest

from worlds.postgres_server import programs
from worlds.spark_session import absent


@pytest.fixture
def start_postgres(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """What starts a server and gives its address, or None where there is no PostgreSQL."""
    return lambda: request.getfixturevalue("postgres_url") if programs() else None


@pytest.fixture
def start_spark(request: pytest.FixtureRequest) -> Iterator[Callable[[], bool]]:
    """What makes a page's own Spark small and quick; False where there is none."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    yield lambda: not absent() and bool(request.getfixturevalue("spark_settings"))
    signal.signal(signal.SIGINT, on_interrupt)  # Spark sets one of its own
