"""Says whether there is a PostgreSQL."""

from collections.abc import Callable

import pytest

from worlds.postgres_server import programs


@pytest.fixture
def start_postgres(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """What starts a server and gives its address, or None where there is no PostgreSQL."""
    return lambda: request.getfixturevalue("postgres_url") if programs() else None
