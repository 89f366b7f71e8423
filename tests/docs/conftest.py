"""Puts this folder on the path for `blocks`, and says whether there is a PostgreSQL."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from postgres_server import programs

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def start_postgres(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """What starts a server and gives its address, or None where there is no PostgreSQL."""
    return lambda: request.getfixturevalue("postgres_url") if programs() else None
