"""Puts this folder on the path for `blocks`, and borrows the integration tests' PostgreSQL."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

spec = importlib.util.spec_from_file_location("postgres_server", HERE.parent / "integration" / "conftest.py")
postgres_server = importlib.util.module_from_spec(spec)
spec.loader.exec_module(postgres_server)
postgres_url = postgres_server.postgres_url


@pytest.fixture
def start_postgres(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """What starts a server and gives its address, or None where there is no PostgreSQL."""
    return lambda: request.getfixturevalue("postgres_url") if postgres_server.programs() else None
