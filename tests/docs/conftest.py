"""Says whether there is a PostgreSQL, and a Spark; runs the commands of pages."""

import signal

import pytest

from worlds.postgres_server import programs
from worlds.quick_commands import quick_commands
from worlds.spark_session import absent


@pytest.fixture
def start_postgres(request):
    """What starts a server and gives its address, or None where there is no PostgreSQL."""
    return lambda: request.getfixturevalue("postgres_url") if programs() else None


@pytest.fixture
def start_spark(request):
    """What makes a page's own Spark small and quick; False where there is none."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    yield lambda: not absent() and bool(request.getfixturevalue("spark_settings"))
    signal.signal(signal.SIGINT, on_interrupt)  # Spark sets one of its own


@pytest.fixture(scope="session")
def commands_of_pages():
    """The folder of the program `prade` that pages use."""
    with quick_commands() as folder:
        yield folder
