"""A real PostgreSQL for the tests: made in a temporary folder, on loopback, stopped and removed afterwards."""

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

ROLE = "prade"


def programs():
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    here = found[-1] if found else shutil.which("postgres")
    return None if here is None else Path(here).parent


def account():
    """PostgreSQL refuses to run as root: for root, the user to start it as; None if there is none."""
    if os.geteuid() != 0:
        return {}
    known = {user.pw_name: user for user in pwd.getpwall()}
    user = known.get("postgres") or known.get("nobody")
    return None if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def absent():
    """What PostgreSQL lacks here, in words; nothing if it can run."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is absent: the tests against PostgreSQL need it"
    if programs() is None:
        return "PostgreSQL is absent: install Debian's package postgresql to run these tests"
    if account() is None:
        return "PostgreSQL does not run as root, and there is neither a user postgres nor nobody to run it"
    return ""


@pytest.fixture(scope="session")
def postgres_url():
    """Address of an empty database of a server of our own, without a table's name."""
    if words := absent():
        pytest.skip(words)
    with server() as url:
        yield url


@contextmanager
def server():
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
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True, "timeout": 120}

    def run(program, *arguments):
        subprocess.run([where / program, "-D", folder / "data", *arguments], **quiet, **user)

    secret = ["-A", "password", "--pwfile", folder / "word"]
    run("initdb", "-U", ROLE, *secret, "-E", "UTF8", "--no-locale", "--no-sync")
    # A zone of its own: what is counted must not depend on the session's.
    settings = "-c listen_addresses=127.0.0.1 -c fsync=off -c timezone=America/New_York"
    run("pg_ctl", "start", "-w", "-l", folder / "log", "-o", f"-p {port} -k {folder} {settings}")
    try:
        yield f"postgres://{ROLE}:{quote(word)}@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "stop", "-w", "-m", "immediate")
        shutil.rmtree(folder, ignore_errors=True)
