"""A real PostgreSQL for the tests: made in a temporary folder, on loopback, stopped and removed afterwards."""

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

ROLE = "prade"


def programs() -> Path | None:
    """The folder of the newest server that is installed."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not found and (here := shutil.which("postgres")):
        found = [Path(here).parent]
    return max(
        found, key=lambda path: [int(part) for part in path.parent.name.split(".") if part.isdigit()], default=None
    )


def account() -> dict[str, object] | None:
    """PostgreSQL refuses to run as root: for root, the user to start it as; None if there is none."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return None


def absent() -> str:
    """What PostgreSQL lacks here, in words; nothing if it can run."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is absent: the tests against PostgreSQL need it"
    if programs() is None:
        return "PostgreSQL is absent: install Debian's package postgresql to run these tests"
    if account() is None:
        return "PostgreSQL does not run as root, and there is neither a user postgres nor nobody to run it"
    return ""


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Address of an empty database of a server of our own, without a table's name."""
    if words := absent():
        pytest.skip(words)
    with server() as url:
        yield url


@contextmanager
def server() -> Iterator[str]:
    """A server for as long as the block lasts: the address of its database."""
    where, user = programs(), account()
    assert where is not None, absent()
    assert user is not None, absent()
    folder = Path(tempfile.mkdtemp(prefix="prade-postgres-"))
    word = secrets.token_hex(16)
    (folder / "word").write_text(word)
    if user:
        for path in (folder, folder / "word"):
            os.chown(path, user["user"], user["group"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}
    data = folder / "data"
    subprocess.run(
        [
            *[where / "initdb", "-D", data, "-U", ROLE, "-A", "password", "--pwfile", folder / "word"],
            *["-E", "UTF8", "--no-locale", "--no-sync"],
        ],
        check=True,
        timeout=120,
        **quiet,
    )
    running = subprocess.Popen(
        [
            *[where / "postgres", "-D", data, "-p", str(port), "-k", folder],
            # A zone of its own: what is counted must not depend on the session's.
            *["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "timezone=America/New_York"],
        ],
        **quiet,
    )
    try:
        url = f"postgres://{ROLE}:{quote(word)}@127.0.0.1:{port}/postgres"
        wait_for(url, running)
        yield url
    finally:
        running.terminate()
        try:
            running.wait(timeout=30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(url: str, running: subprocess.Popen) -> None:
    """Return when the server answers."""
    import psycopg

    for _ in range(300):
        assert running.poll() is None, "PostgreSQL ended while it was starting"
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("PostgreSQL did not answer within 30 seconds")
