"""What the drivers of the tests of `measure` have in common: a small world to measure, and processes that die in it.

Not imported by tests: drivers do, in interpreters of their own, which get the folder to work in as their argument.
"""

import itertools
import os
import pickle
import signal
import sys
import tempfile
from pathlib import Path

import pyarrow

from prade import Budget, Column, Ledger, Schema, Unit, Workload
from prade.core.errors import PradeError
from prade.measuring import run
from prade.measuring.run import measure
from prade.planning.plan import Plan
from prade.planning.questions import Level
from prade.release.release import Release

__all__ = [
    *["Ledger", "Path", "Release", "measure"],
    *["HERE", "PLAN", "ROWS", "World", "plan_of", "numbers", "at", "die", "stop", "forked", "ended", "killed_at"],
    *["killed_at_touches", "race", "said", "words_of", "nothing_spent", "spent", "kept"],
]

HERE = Path(sys.argv[1])
tempfile.tempdir = str(HERE)  # killed processes leave their engine's folders
SCHEMA = Schema([Column("AGE", "numeric", edges=[18, 65])])
AGES = Workload.all_marginals(SCHEMA, 1)
ROWS = pyarrow.table({"AGE": [3, 70, 80, 41], "TOWN": ["a", "b", "elsewhere", "b"]})
TOUCHES = ("open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "tempfile.mkstemp", "sqlite3.connect")
FILES = {"plan.toml", "measurements.parquet", "release.json", "ledger.json"}


def plan_of(*towns):
    return Plan("people", SCHEMA, Budget.pure(1), Unit(1), [Level("TOWN", AGES)], groups={"TOWN": list(towns)})


PLAN = plan_of("a", "b")


class World:
    """A folder with a ledger in it, and a place for a release."""

    def __init__(self, name, *, cap=3, within=HERE):
        self.home = within / name
        self.home.mkdir()
        self.place = self.home / "release"
        self.drawn = within / f"{name}.drawn"
        self.cap = Budget.pure(cap)
        self.ledger = Ledger(self.home / "budget.ledger")
        self.ledger.open_dataset("people", Unit(1), self.cap)

    def measure(self, **more):
        return measure(PLAN, ROWS, self.place, self.ledger, threads=1, **more)

    def measure_and_tell(self):
        """Measure, and keep what was drawn where a kill does not reach it. For forked processes."""
        draw = run._draw

        def told(*arguments):
            noisy = draw(*arguments)
            self.drawn.write_bytes(pickle.dumps(numbers(noisy)))
            return noisy

        run._draw = told
        return self.measure()

    def told(self):
        return pickle.loads(self.drawn.read_bytes())

    def entries(self, number):
        """The ledger is sound and has so many entries; more were never paid."""
        entries = self.ledger.entries("people")
        assert len(entries) == number, entries
        assert self.ledger.remaining("people") == self.cap - Budget.pure(1) * number
        return entries

    def clean(self):
        """There is nothing but the ledger and a whole release."""
        assert {path.name for path in self.home.iterdir()} == {"budget.ledger", "release"}, list(self.home.iterdir())
        assert {path.name for path in self.place.iterdir()} == FILES, list(self.place.iterdir())
        assert self.ledger.find("people", PLAN.hash).state == "committed"

    def sealed(self):
        return [path.parent for path in self.home.glob(".release.*.unfinished/release.json")]

    def recover(self):
        """Look at what a kill left, and run again: it was "free", the noisy counts are "kept", or they are "lost"."""
        paid = len(self.ledger.entries("people"))
        assert paid <= 1
        before = self.entries(paid)
        if self.place.exists():
            Release.load(self.place)  # whole, before anybody mends it
        if not paid:
            assert not self.drawn.exists(), "noise was drawn that nobody paid for"
            assert not self.place.exists()
            assert not self.sealed()
            kind, release, after = "free", self.measure(), 1
        elif self.place.exists() or self.sealed():
            kind, release, after = "kept", self.measure(), 1
            assert numbers(release.noisy) == self.told(), "not the numbers that were drawn"
        else:
            refused = said(self.measure)
            assert "is paid for already" in refused, refused
            assert "say again=True" in refused, refused
            assert self.entries(1) == before
            assert not self.place.exists()
            kind, release, after = "lost", self.measure(again=True), 2
        self.entries(after)
        self.clean()
        assert numbers(self.measure().noisy) == numbers(release.noisy)
        self.entries(after)
        return kind


def numbers(noisy):
    return [[part.tolist() for part in parts] for parts in noisy]


# ---------------------------------------------------------------- processes


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
            os.write(writing, str(error).encode())

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


def killed_at_touches(fresh, path_of, act):
    """Kill `act(place)` before it touches a path with `path_of(place)` in it, one touch later in each fresh(number).

    Each place, and whether the run there was killed: the last one gets through.
    """

    def work(place, number):
        touched = 0

        def listen(event, values):
            nonlocal touched
            if event in TOUCHES:
                touched += any(str(path_of(place)) in str(value) for value in values)
                if touched == number:
                    die()

        sys.addaudithook(listen)
        act(place)

    for kills in itertools.count():
        place = fresh(kills)
        code = ended(forked(lambda place=place, kills=kills: work(place, kills + 1)))
        assert code in (0, -signal.SIGKILL), code
        yield place, code != 0
        if code == 0:
            return


def race(*acts, meet=None):
    """Fork a process for each act; all go on at once from the step where they meet. Numbers, and words of refusal."""
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
                result = numbers(act().noisy)
            except PradeError as error:
                result = f"{type(error).__name__}: {error}"
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
    return [each for each in found if not isinstance(each, str)], [each for each in found if isinstance(each, str)]


# ---------------------------------------------------------------- what a run that failed says and leaves


def said(act):
    try:
        act()
    except PradeError as error:
        return str(error)
    raise AssertionError("that should have been refused")


def nothing_spent(world, message, words):
    assert words in message, message
    world.entries(0)
    assert [path.name for path in world.home.iterdir()] == ["budget.ledger"], "something is left"


def spent(world, message):
    for words in ("is spent", "entry 1 of data set 'people'", "measuring again spends epsilon = 1", "pass again=True"):
        assert words in message, message
    world.entries(1)
    assert [path.name for path in world.home.iterdir()] == ["budget.ledger"], "something is left"


def kept(world, message):
    assert "are paid for, but could not be moved to" in message, message
    assert "measure again, which spends nothing" in message, message
    world.entries(1)
    assert not world.place.exists()
    assert world.sealed()


World("warm").measure()  # engines are loaded once, here, and not by every process again
