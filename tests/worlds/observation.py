"""Everything that a run writes or says, with the noise replaced by a stream that sees no count.

What is left to chance in a run is replaced as well: noise and choices by fixed streams, the clock by one that stands
still, random names by counted ones. Whatever differs between two observed runs then comes from what they were given.
"""

import gc
import itertools
import logging
import os
import secrets
import shutil
import sqlite3
import sys
import tempfile
import threading
import traceback
import warnings
from collections import defaultdict
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from io import StringIO

import numpy as np
import opendp.measurements
import pytest

import prade.core.execution

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOWEST, HIGHEST = -60, 900  # of the fixed stream: below, among and far above the counts of the tables that are tried


class StoppedClock(datetime):
    """It is always noon."""

    @classmethod
    def now(cls, tz=None):
        """Noon."""
        return NOON.astimezone(tz)


class Steps:
    """The steps that runs announce to audit hooks; `broken` names one at which the disk is full."""

    def __init__(self):
        self.heard = None
        self.broken = ""
        sys.addaudithook(self._hear)  # which stays for good, so there is one for all runs

    def _hear(self, event, values):
        if event == "prade.step" and self.heard is not None:
            self.heard.append(values[0])
            if values[0] == self.broken:
                raise OSError(28, "no space")


STEPS = Steps()


@contextmanager
def observing(home, *, broken=""):
    """Observe the block, whose current folder is `home`, new and empty; afterwards all is in the dict, `home` is gone.

    Every run is given the same `home`: its name is in messages. `broken` is a step at which the disk is full.
    """
    found = {"progress": []}
    home.mkdir()
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.chdir(home)
        (home / "temporary").mkdir()
        patch.setattr(tempfile, "tempdir", str(home / "temporary"))  # what is left there is seen as well
        _replace_chance(patch)
        _record_progress(patch, found["progress"])
        records = stack.enter_context(_logs())
        said = stack.enter_context(_captured())
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        STEPS.heard, STEPS.broken = found.setdefault("steps", []), broken
        try:
            found["outcome"] = "returned"
            yield found
        except (Exception, SystemExit) as error:
            found["outcome"] = [words for each in _with_contexts(error) for words in _words(each)]
        finally:
            STEPS.heard = None
    found["logs"] = [(each.name, each.levelno, each.getMessage()) for each in records]
    told = [(each.category.__name__, str(each.message)) for each in warned]
    # Spark leaves the sockets of its answers to the garbage collector, which comes when it comes.
    found["warnings"] = [each for each in told if not each[1].startswith("unclosed <socket.socket")]
    found.update(said)
    for path in sorted(home.rglob("*.ledger")):
        found[f"ledger {path.relative_to(home)}"] = events_of(path)
    for path in sorted(home.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        found[f"file {path.relative_to(home)}"] = (path.stat().st_mode, len(content), content)
    shutil.rmtree(home)


def differences(first, second):
    """Where two runs differ, each with both sides in short."""
    names = sorted(first.keys() | second.keys())
    return [
        f"{name}: {str(first.get(name))[:500]} | {str(second.get(name))[:500]}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def events_of(ledger):
    """All rows of a ledger's file, its events in their order; what is random in a run is counted here, so it stays."""
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return [f"{name}: {row}" for name in tables for row in file.execute(f'SELECT * FROM "{name}" ORDER BY 1')]


def run_command(*arguments):
    """A command, as the shell would run it; it ends in SystemExit with the exit code."""
    from prade.cli.main import main

    main([str(each) for each in arguments])


class FixedNoise:
    """Stands in for the noise library: answers from a stream of its own, whatever the counts."""

    def __init__(self):
        self.call = 0

    def noise(self, *_, scale):
        """In place of make_laplace and make_gaussian."""
        return self._drawn

    def _drawn(self, counts):
        self.call += 1
        return np.random.default_rng([11, self.call]).integers(LOWEST, HIGHEST, len(counts)).tolist()


def _replace_chance(patch):
    fixed = FixedNoise()
    patch.setattr(opendp.measurements, "make_laplace", fixed.noise)
    patch.setattr(opendp.measurements, "make_gaussian", fixed.noise)
    for module in [module for name, module in sys.modules.items() if name.startswith("prade.")]:
        if vars(module).get("datetime") is datetime:
            patch.setattr(module, "datetime", StoppedClock)
    numbers = defaultdict(itertools.count)

    def token(size=None):
        # Numbered for each caller: how often an engine needs a name must not show in a folder's name.
        return f"{next(numbers[sys._getframe(1).f_code.co_qualname]):0{2 * (size or 32)}x}"

    patch.setattr(secrets, "token_hex", token)
    names = iter(f"temporary{number}" for number in itertools.count())
    patch.setattr(tempfile, "_get_candidate_names", lambda: names)


def _record_progress(patch, told):
    """Commands tell a bar; here it is a list."""

    @contextmanager
    def bar(**_):
        yield lambda *arguments: told.append(arguments)

    patch.setattr(prade.core.execution, "progress_bar", bar)


@contextmanager
def _logs():
    """All records of all libraries, except two that know nothing of rows.

    The compiler is told of kernels, and compiles once. Spark's finalizer forgets objects that earlier tests left, a
    second or more after they were collected.
    """
    gc.collect()
    found = []

    def keep(record):
        of_finalizer = type(threading.current_thread()).__name__ == "FinalizerWorker"
        if not (of_finalizer and record.name.startswith("py4j")):
            found.append(record)

    root, compiler = logging.getLogger(), logging.getLogger("numba")
    levels = root.level, compiler.level
    handler = logging.Handler()
    handler.addFilter(keep)  # what it returns, None, lets the record go no further
    root.addHandler(handler)
    root.setLevel(1)
    compiler.setLevel(logging.WARNING)
    try:
        yield found
    finally:
        root.removeHandler(handler)
        root.setLevel(levels[0])
        compiler.setLevel(levels[1])


@contextmanager
def _captured():
    """Both outputs, what Python writes and what libraries write past it; they are in the dict after the block."""
    said = {}
    with ExitStack() as stack:
        for number, name, redirect in ((1, "stdout", redirect_stdout), (2, "stderr", redirect_stderr)):
            stack.enter_context(_output(number, name, redirect, said))
        yield said


@contextmanager
def _output(number, name, redirect, said):
    with tempfile.TemporaryFile() as below:
        saved = os.dup(number)
        os.dup2(below.fileno(), number)
        try:
            with redirect(StringIO()) as above:
                yield
        finally:
            os.dup2(saved, number)
            os.close(saved)
        below.seek(0)
        said[name] = above.getvalue() + below.read().decode(errors="replace")


def _with_contexts(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _words(error):
    """What an error shows: itself, its attributes, and where it was raised."""
    shown = [f"{type(error).__name__}: {error}", str(sorted(vars(error).items(), key=str))]
    return shown + [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
