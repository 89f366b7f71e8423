"""Processes that are forked and killed, and interpreters of their own for the code that does so."""

import os
import pickle
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from prade.core.errors import PradeError

# what a driver gets by `from worlds.processes import *`
__all__ = ["at", "die", "ended", "forked", "killed_at", "race", "said", "stop", "words_of"]

TESTS = Path(__file__).parents[1]


def _environment(**more):
    """One in which an interpreter can import `worlds`."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def driven(code, folder):
    """Run a driver in an interpreter of its own; the numbers that it prints.

    A driver can import `worlds`; its argument is the folder to work in, and its assertions are the test.
    """
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        timeout=180,
        # every forked process would start the threads of linear algebra anew, each time that their number is set
        env=_environment(OPENBLAS_NUM_THREADS="1"),
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@contextmanager
def not_writable(*paths):
    """Take away the right to write; from the administrator too, who could ignore it."""
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    administrator = os.geteuid() == 0
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if administrator:
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        if administrator:
            os.setresuid(0, 0, 0)
        for path, mode in modes.items():
            path.chmod(mode)


def at(step, act):
    """Do something when a step is reached. Audit hooks stay: for forked processes."""

    def listen(event, values):
        if event == "prade.step" and values[0] == step:
            act()

    sys.addaudithook(listen)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def forked(act):
    child = os.fork()
    if child == 0:
        signal.alarm(50)  # a process that hangs fails the test instead of stopping it
        code = 1
        try:
            act()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return child


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def words_of(act):
    """What a forked process is refused with; an empty text when it got through."""
    reading, writing = os.pipe()

    def work():
        try:
            act()
        except PradeError as error:
            os.write(writing, "\n".join([str(error), *getattr(error, "__notes__", [])]).encode())

    child = forked(work)
    os.close(writing)
    assert ended(child) == 0
    with os.fdopen(reading) as file:
        return file.read()


def killed_at(step, act):
    def work():
        at(step, die)
        act()

    assert ended(forked(work)) == -signal.SIGKILL, f"{step} was never reached"


def race(*acts, meet=None):
    """Fork a process for each act; all go on at once from the step where they meet. What they return, and refusals."""
    arrived, here_am_i = os.pipe()
    gate, opener = os.pipe()
    results, writing = os.pipe()

    def wait():
        os.write(here_am_i, b"x")
        os.close(opener)
        os.read(gate, 1)  # ends when the parent closes the other side

    def runner(act):
        def run():
            at(meet, wait) if meet else wait()
            try:
                result = True, act()
            except PradeError as error:
                result = False, f"{type(error).__name__}: {error}"
            os.write(writing, pickle.dumps(result))

        return run

    children = [forked(runner(act)) for act in acts]
    for _ in acts:
        os.read(arrived, 1)
    os.close(opener)
    os.close(writing)
    codes = [ended(child) for child in children]
    assert codes == [0] * len(acts), codes
    with os.fdopen(results, "rb") as file:
        found = [pickle.load(file) for _ in acts]
    for handle in (arrived, here_am_i, gate):
        os.close(handle)
    return [result for returned, result in found if returned], [words for returned, words in found if not returned]


def said(act):
    try:
        act()
    except PradeError as error:
        return str(error)
    raise AssertionError("that should have been refused")


def started(code, *arguments, folder=None, **more):
    """An interpreter of its own that runs this code, with all pipes open and more in its environment."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, env=_environment(**more), text=True, **pipes)


def killed_when_done(code, after, *arguments):
    """Run code that prints how much is done, and kill it when it prints this number."""
    with started(code, *arguments) as run:
        for line in run.stdout:
            if int(line) == after:
                break
        run.send_signal(signal.SIGKILL)
    assert run.returncode == -signal.SIGKILL
