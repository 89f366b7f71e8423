"""What the ledger does when things break: kills, races, full disks, read-only files, damage.

Nothing overspent, nothing half-written, a clear message, and a rerun that finishes. Where processes must die, a driver
runs in an interpreter of its own, forks them and looks at what they left; its assertions are the test.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prade.core.errors import BudgetError, DataError, PradeError
from prade.privacy.budget import Budget
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.file import Chain
from prade.privacy.protection import Unit
from worlds.processes import driven

UNIT = Unit(max_rows=2)

PRELUDE = """
import os, random, resource, signal, sys, time
from pathlib import Path
from prade.core.errors import BudgetError, DataError, PradeError
from prade.privacy.ledger import Ledger
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from worlds.processes import ended, forked, killed_at

UNIT = Unit(max_rows=2)
here = Path(sys.argv[1])

"""


def drive(code: str, folder: Path, *wrapper: str) -> list[int]:
    """Run a driver; the numbers that it prints."""
    return driven(PRELUDE + code, folder, *wrapper)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "budget.ledger", patience=0.1)
    ledger.open_dataset("d", UNIT, Budget.pure(1))
    ledger.commit(ledger.start_drawing(ledger.reserve("d", "p1", Budget.pure("1/3"), "first").id).id, "h1")
    ledger.start_drawing(ledger.reserve("d", "p2", Budget.pure("1/4"), "second").id)
    return ledger


@pytest.fixture
def eventful(ledger: Ledger) -> Ledger:
    """The same with two more entries: one failed, was resumed and failed again, and one was given back."""
    for stage in ("count", "draw"):
        entry = ledger.reserve("d", "p3", Budget.pure("1/12"), "third", folder="/r")
        ledger.fail(entry.id, stage, "DataError")
    ledger.give_back(ledger.reserve("d", "p4", Budget.pure("1/24"), "fourth").id, "asked for by mistake")
    return ledger


# ---------------------------------------------------------------- kills


def test_killed_at_every_step(tmp_path: Path) -> None:
    """SIGKILL at each named step: before COMMIT nothing is there, after it everything, and a rerun finishes."""
    (kills,) = drive(
        """
kills = 0
for round in range(5):
    for step in ("opened", "begun", "recorded", "durable"):
        done = step == "durable"
        ledger = Ledger(here / f"{round}-{step}")
        enter = lambda: ledger.open_dataset("d", UNIT, Budget.pure(1))
        killed_at(f"ledger.open_dataset.{step}", enter)
        try:
            found = [dataset.name for dataset in ledger.datasets()]
        except DataError:  # no file, or an empty one
            found = []
        assert found == ["d"] * done, (step, found)
        enter()
        other = lambda: ledger.open_dataset("e", UNIT, Budget.zcdp(1))
        killed_at(f"ledger.open_dataset.{step}", other)
        assert [dataset.name for dataset in ledger.datasets()] == ["d", "e"][: 1 + done], step
        other()

        reserve = lambda: ledger.reserve("d", "plan", Budget.pure("2/3"), "asked")
        killed_at(f"ledger.reserve.{step}", reserve)
        entry = ledger.find("d", "plan")
        assert (entry is not None) == done, step
        assert ledger.remaining("d") == Budget.pure("1/3" if done else 1), step
        if entry is None:
            entry = reserve()
        assert ledger.remaining("d") == Budget.pure("1/3")

        draw = lambda: ledger.start_drawing(entry.id)
        killed_at(f"ledger.start_drawing.{step}", draw)
        assert ledger.find("d", "plan").drawn == done, step
        if not done:
            draw()

        killed_at(f"ledger.commit.{step}", lambda: ledger.commit(entry.id, "hash"))
        assert ledger.find("d", "plan").state == ("committed" if done else "drawing"), step
        assert ledger.commit(entry.id, "hash").state == "committed"
        assert ledger.remaining("d") == Budget.pure("1/3")
        kills += 5
print(kills)
""",
        tmp_path,
    )
    assert kills >= 100


def test_killed_while_a_run_fails_is_resumed_or_given_back(tmp_path: Path) -> None:
    """Before COMMIT nothing has happened, after it all of it; what remains is exact, and the step can be repeated."""
    (kills,) = drive(
        """
kills = 0
for round in range(1):
    for step in ("opened", "begun", "recorded", "durable"):
        done = step == "durable"
        ledger = Ledger(here / f"{round}-{step}")
        ledger.open_dataset("d", UNIT, Budget.pure(1))
        reserve = lambda: ledger.reserve("d", "plan", Budget.pure("2/3"), folder=here / "r")
        entry = reserve()
        look = lambda: ledger.find("d", "plan")

        fail = lambda: ledger.fail(entry.id, "count", "DataError")
        killed_at(f"ledger.fail.{step}", fail)
        assert (look().state, len(look().failures)) == (("failed", 1) if done else ("reserved", 0)), step
        if not done:
            fail()

        killed_at(f"ledger.reserve.{step}", reserve)
        assert (look().state, len(look().resumed)) == (("reserved", 1) if done else ("failed", 0)), step
        assert ledger.remaining("d") == Budget.pure("1/3"), step
        assert reserve().id == entry.id

        back = lambda: ledger.give_back(entry.id, "why")
        killed_at(f"ledger.give_back.{step}", back)
        assert look().state == ("returned" if done else "reserved"), step
        assert ledger.remaining("d") == Budget.pure(1 if done else "1/3"), step
        if not done:
            back()
        try:
            back()
        except PradeError:
            assert ledger.remaining("d") == Budget.pure(1)
        else:
            raise AssertionError("given back twice")
        assert len(look().failures) == 1
        kills += 3
print(kills)
""",
        tmp_path,
    )
    assert kills == 12


def test_killed_while_a_data_set_is_entered_a_cap_raised_or_a_release_imported(tmp_path: Path) -> None:
    """Each is one step: all of it, or nothing."""
    (kills,) = drive(
        """
from prade import Level, Plan, Schema, Workload
from prade.measuring.run import measure
from prade.release.payment import import_release

schema = Schema.from_mbi({"age": 4})
plan = Plan("d", schema, Budget.pure("1/2"), UNIT, [Level((), Workload.all_marginals(schema, 1))])
other = Ledger(here / "other")
other.open_dataset("d", UNIT, Budget.pure(1))
measure(plan, {"age": [0, 1]}, here / "release", other)
kills = 0
for step in ("opened", "begun", "recorded", "durable"):
    done = step == "durable"
    ledger = Ledger(here / f"{step}-new")
    spend = lambda: ledger.reserve("d", "p", Budget.pure("1/3"), unit=UNIT, cap=Budget.pure(1))
    killed_at(f"ledger.reserve.{step}", spend)
    try:
        found = ledger.knows("d"), len(ledger.entries("d"))
    except PradeError:  # no file, an empty one, or no data set in it
        found = False, 0
    assert found == (done, int(done)), (step, found)
    if not done:
        spend()
    assert ledger.remaining("d") == Budget.pure("2/3")

    grow = lambda: ledger.raise_cap("d", Budget.pure(2), "why")
    killed_at(f"ledger.raise_cap.{step}", grow)
    assert ledger.dataset("d").cap == Budget.pure(2 if done else 1), step
    if not done:
        grow()

    add = lambda: import_release(ledger, here / "release")
    killed_at(f"ledger.import_release.{step}", add)
    assert ledger.remaining("d") == Budget.pure("7/6" if done else "5/3"), step
    add()
    add()
    assert ledger.remaining("d") == Budget.pure("7/6")
    kills += 3
print(kills)
""",
        tmp_path,
    )
    assert kills == 12


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """SIGKILL at moments that nobody chose, mostly in the middle of COMMIT: what was acknowledged is there."""
    kills, in_the_middle = drive(
        """
ledger = Ledger(here / "budget.ledger")
ledger.open_dataset("d", UNIT, Budget.pure(1000))
moments = random.Random(3)
acknowledged, kills, in_the_middle = set(), 0, 0
for round in range(60):
    reading, writing = os.pipe()
    def work():
        for number in range(10**6):
            entry = ledger.reserve("d", f"{round}-{number}", Budget.pure("1/7"), "n" * 200)
            os.write(writing, entry.id.to_bytes(4, "big"))
            ledger.start_drawing(entry.id)
            ledger.commit(entry.id, "hash")
    child = forked(work)
    os.close(writing)
    told = os.read(reading, 4)
    time.sleep(moments.uniform(0, 0.012))
    os.kill(child, signal.SIGKILL)
    assert ended(child) == -signal.SIGKILL
    kills += 1
    while more := os.read(reading, 4096):
        told += more
    os.close(reading)
    acknowledged |= {int.from_bytes(told[at : at + 4], "big") for at in range(0, len(told), 4)}
    in_the_middle += (here / "budget.ledger-journal").exists()
    entries = ledger.entries("d")
    recorded = {entry.id for entry in entries}
    assert acknowledged <= recorded, "an acknowledged reservation is lost"
    assert len(recorded - acknowledged) <= kills, "more entries than attempts"
    assert sum(entry.state != "committed" for entry in entries) <= kills
    assert ledger.remaining("d") == Budget.pure(1000) - Budget.pure("1/7") * len(entries)
print(kills, in_the_middle)
""",
        tmp_path,
    )
    assert kills == 60
    assert in_the_middle > 0, "no kill hit a transaction: the test shows nothing"


def test_a_transaction_cut_off_in_mid_write_is_undone(ledger: Ledger, tmp_path: Path) -> None:
    """The file and its journal as a kill during COMMIT leaves them: some pages new, some old."""
    before = ledger.statement("d")
    with half_written(ledger) as copy:
        assert copy.path.read_bytes() != ledger.path.read_bytes()
        assert copy.statement("d") == before
        copy.reserve("d", "p3", Budget.pure("1/12"))
        assert copy.remaining("d") == Budget.pure("1/3")


@contextmanager
def half_written(ledger: Ledger) -> Iterator[Ledger]:
    folder = Path(tempfile.mkdtemp())
    try:
        writer = sqlite3.connect(ledger.path, isolation_level=None)
        writer.execute("PRAGMA cache_size = 1")  # so small that pages are written before the end
        writer.execute("BEGIN IMMEDIATE")
        for number in range(8, 60):
            writer.execute(
                "INSERT INTO event SELECT ?, hash, content || ?, hash FROM event WHERE number = 7", (number, "n" * 999)
            )
        for end in ("", "-journal"):
            shutil.copy(f"{ledger.path}{end}", folder / f"copy{end}")
        writer.execute("ROLLBACK")
        writer.close()
        yield Ledger(folder / "copy", patience=0.1)
    finally:
        shutil.rmtree(folder)


# ---------------------------------------------------------------- races

RACE = """
def race(*acts):
    "Fork a process for each act and let all go at once; what each of them printed as its number."
    gate, opener = os.pipe()
    results, writing = os.pipe()
    def runner(act):
        def run():
            os.close(opener)
            os.read(gate, 1)  # ends when the parent closes the other side
            os.write(writing, bytes([act()]))
        return run
    children = [forked(runner(act)) for act in acts]
    os.close(opener)
    os.close(writing)
    codes = [ended(child) for child in children]
    numbers = list(os.read(results, 4096))
    os.close(gate)
    os.close(results)
    assert codes == [0] * len(acts), codes
    return numbers
"""


def test_processes_race_for_the_last_of_the_budget(tmp_path: Path) -> None:
    """Eight processes make the file together and ask for 80 twentieths: 20 are given, exactly."""
    given = drive(
        RACE
        + """
for round in range(4):
    ledger = Ledger(here / str(round))
    def ask(who):
        def act():
            ledger.open_dataset("d", UNIT, Budget.pure(1))
            given = 0
            for number in range(10):
                try:
                    ledger.reserve("d", f"{who}-{number}", Budget.pure("1/20"))
                    given += 1
                except BudgetError as refused:
                    assert refused.remaining == Budget.pure(0)
            return given
        return act
    given = race(*map(ask, range(8)))
    assert ledger.remaining("d") == Budget.pure(0)
    assert len(ledger.entries("d")) == 20
    print(sum(given))
""",
        tmp_path,
    )
    assert given == [20] * 4


def test_processes_race_for_one_plan_one_draw_and_one_commit(tmp_path: Path) -> None:
    """One of eight runs of a plan pays; one of eight that resume it draws; one of eight measurements is taken."""
    winners = drive(
        RACE
        + """
ledger = Ledger(here / "budget.ledger")
ledger.open_dataset("d", UNIT, Budget.pure(1))
def won(act):
    def run():
        try:
            act()
        except PradeError:
            return 0
        return 1
    return run
print(sum(race(*[won(lambda: ledger.reserve("d", "plan", Budget.pure("1/20")))] * 8)))
assert ledger.remaining("d") == Budget.pure("19/20")
print(sum(race(*[won(lambda: ledger.start_drawing(1))] * 8)))
print(sum(race(*[won(lambda n=n: ledger.commit(1, f"hash-{n}")) for n in range(8)])))
print(sum(race(*[won(lambda: ledger.reserve("d", "another", Budget.pure("1/20"), folder=here / "r"))] * 8)))
assert len(ledger.find("d", "another").resumed) == 7
assert ledger.remaining("d") == Budget.pure("18/20")
""",
        tmp_path,
    )
    assert winners == [1, 1, 1, 8]


def test_processes_race_to_draw_and_to_give_back(tmp_path: Path) -> None:
    """Noise is drawn and stays paid for, or the entry is given back and no noise is drawn: one of both, once."""
    outcomes = drive(
        RACE
        + """
ledger = Ledger(here / "budget.ledger")
ledger.open_dataset("d", UNIT, Budget.pure(1))
def won(act, number):
    def run():
        try:
            act()
        except PradeError:
            return 0
        return number
    return run
for round in range(20):
    entry = ledger.reserve("d", str(round), Budget.pure("1/100"))
    before = ledger.remaining("d")
    draw = won(lambda: ledger.start_drawing(entry.id), 1)
    back = won(lambda: ledger.give_back(entry.id, "why"), 10)
    result = sum(race(draw, back, draw, back))
    gained = Budget.pure("1/100") if result == 10 else Budget.pure(0)
    assert ledger.remaining("d") == before + gained
    print(result)
""",
        tmp_path,
    )
    assert set(outcomes) <= {1, 10}
    assert len(outcomes) == 20


def test_a_lock_that_stays_is_reported(ledger: Ledger) -> None:
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(PradeError, match=r"locked by another process for 0\.1 s, so nothing was recorded"):
        ledger.reserve("d", "p3", Budget.pure("0.1"))
    assert ledger.remaining("d") == Budget.pure("5/12")  # reading goes on
    holder.execute("ROLLBACK")
    holder.close()
    ledger.reserve("d", "p3", Budget.pure("0.1"))


# ---------------------------------------------------------------- full disks


def test_no_room_at_any_size(tmp_path: Path) -> None:
    """Files may not grow past a limit, from nothing to plenty: an error and the old state, or success."""
    failed, succeeded = drive(
        """
def limited(size, act):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        return act()
    except PradeError as failure:
        assert "could not be read or written" in str(failure), failure
        return None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

failed = succeeded = 0
for size in range(0, 48 * 1024, 1024):
    ledger = Ledger(here / str(size))
    enter = lambda: ledger.open_dataset("d", UNIT, Budget.pure(1))
    if limited(size, enter) is None:
        failed += 1
        enter()
    note = "n" * 9000
    reserve = lambda: ledger.reserve("d", "plan", Budget.pure("1/3"), note)
    if limited(size, reserve) is None:
        failed += 1
        assert ledger.entries("d") == []
        assert ledger.remaining("d") == Budget.pure(1)
        reserve()
    if limited(size, lambda: ledger.fail(1, "count", "DataError")) is None:
        failed += 1
        assert ledger.find("d", "plan").failures == ()
    if limited(size, lambda: ledger.start_drawing(1)) is None:
        failed += 1
        assert not ledger.find("d", "plan").drawn
        ledger.start_drawing(1)
    if limited(size, lambda: ledger.commit(1, "hash")) is None:
        failed += 1
        assert ledger.find("d", "plan").state == "drawing"
        ledger.commit(1, "hash")
    else:
        succeeded += 1
    (entry,) = ledger.entries("d")
    assert (entry.state, entry.note) == ("committed", note)
    assert ledger.remaining("d") == Budget.pure("2/3")
print(failed, succeeded)
""",
        tmp_path,
    )
    assert failed > 20
    assert succeeded > 10


def test_a_full_disk(tmp_path: Path) -> None:
    """A file system of 64 KiB runs full; what was given before stands, and with more room it goes on."""
    apart = ("unshare", "--map-root-user", "--mount")
    mount = f"mount -t tmpfs -o size=64k none {tmp_path}"
    try:
        subprocess.run([*apart, "sh", "-c", mount], capture_output=True, check=True, timeout=20)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system cannot be mounted here; test_no_room_at_any_size does without")
    (given,) = drive(
        f"""
def shell(command):
    assert os.system(command) == 0, command
shell("{mount}")
ledger = Ledger(here / "budget.ledger")
ledger.open_dataset("d", UNIT, Budget.pure(1))
given = 0
try:
    for number in range(100):
        ledger.reserve("d", str(number), Budget.pure("1/100"), "n" * 999)
        given += 1
except PradeError as failure:
    assert "could not be read or written (database or disk is full)" in str(failure), failure
entries = ledger.entries("d")
assert [entry.plan_hash for entry in entries] == [str(number) for number in range(given)]
assert ledger.remaining("d") == Budget.pure(1) - Budget.pure("1/100") * given
shell("mount -o remount,size=1m {tmp_path}")
ledger.reserve("d", str(given), Budget.pure("1/100"))
assert len(ledger.entries("d")) == given + 1
print(given)
""",
        tmp_path,
        *apart,
    )
    assert 0 < given < 100


# ---------------------------------------------------------------- what may not be written


@contextmanager
def not_writable(*paths: Path) -> Iterator[None]:
    """Take away the right to write; from the administrator too, who could ignore it."""
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    administrator = os.geteuid() == 0
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if administrator:
        os.seteuid(65534)
    try:
        yield
    finally:
        if administrator:
            os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_read_only_ledger_can_be_read(ledger: Ledger, open_folder: Path) -> None:
    copy = Ledger(shutil.copy(ledger.path, open_folder))
    content, statement = copy.path.read_bytes(), ledger.statement("d")
    with not_writable(copy.path, open_folder):
        assert copy.statement("d") == statement
        for write in (
            lambda: copy.reserve("d", "p3", Budget.pure("0.1")),
            lambda: copy.commit(2, "h2"),
            lambda: copy.fail(2, "write", "OSError"),
            lambda: copy.open_dataset("e", UNIT, Budget.pure(1)),
        ):
            with pytest.raises(PradeError, match="so nothing was recorded; get write access"):
                write()
    assert copy.path.read_bytes() == content
    copy.reserve("d", "p3", Budget.pure("0.1"))


def test_a_folder_that_takes_no_journal(ledger: Ledger, open_folder: Path) -> None:
    copy = Ledger(shutil.copy(ledger.path, open_folder))
    copy.path.chmod(0o666)
    with not_writable(open_folder), pytest.raises(PradeError, match="get write access to the file and its folder"):
        copy.reserve("d", "p3", Budget.pure("0.1"))
    assert copy.remaining("d") == ledger.remaining("d")


def test_a_half_written_ledger_that_cannot_be_mended_is_not_believed(ledger: Ledger) -> None:
    before = ledger.statement("d")
    with half_written(ledger) as copy:
        copy.path.parent.chmod(0o755)
        with not_writable(copy.path, copy.path.parent), pytest.raises(PradeError, match="write"):
            copy.account("d")
        assert copy.statement("d") == before


def test_a_ledger_that_may_not_even_be_looked_at(ledger: Ledger, open_folder: Path) -> None:
    copy = Ledger(shutil.copy(ledger.path, open_folder))
    open_folder.chmod(0o000)
    with not_writable(), pytest.raises(PradeError, match="cannot be opened"):
        copy.account("d")
    open_folder.chmod(0o755)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PradeError, match="cannot be opened"):
        Ledger(tmp_path / "nowhere" / "l").open_dataset("d", UNIT, Budget.pure(1))
    with pytest.raises(PradeError, match="cannot be opened"):
        Ledger(tmp_path).open_dataset("d", UNIT, Budget.pure(1))


# ---------------------------------------------------------------- damage


def refusals(ledger: Ledger, message: str) -> int:
    """How many of the six operations refuse the file with this message; all of them leave it unchanged."""
    content, refused = ledger.path.read_bytes(), 0
    for attempt in (
        lambda: ledger.open_dataset("d", UNIT, Budget.pure(1)),
        lambda: ledger.reserve("d", "p3", Budget.pure("1/12")),
        lambda: ledger.commit(2, "h2"),
        lambda: ledger.entries("d"),
        lambda: ledger.remaining("d"),
        lambda: ledger.account("d"),
    ):
        with pytest.raises(DataError) as caught:
            attempt()
        refused += re.search(message, str(caught.value)) is not None
        assert ledger.path.read_bytes() == content
    return refused


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("The budget is in the other file.\n" * 50)
    assert refusals(Ledger(text), "is damaged, or is not a ledger") == 6


def test_somebody_elses_sqlite_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY)")
    connection.close()
    assert refusals(Ledger(path), "is an SQLite file but not a ledger") == 6


@pytest.mark.parametrize("number", [1, 5])
def test_another_format(ledger: Ledger, number: int) -> None:
    connection = sqlite3.connect(ledger.path)
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    assert refusals(ledger, f"has ledger format {number}, but this version of prade reads formats 2 to 4") == 6


def test_an_emptied_file_has_no_budget(ledger: Ledger) -> None:
    ledger.path.write_bytes(b"")
    with pytest.raises(DataError, match="is empty: restore it from a copy"):
        ledger.remaining("d")
    with pytest.raises(DataError, match="is empty"):
        ledger.reserve("d", "p3", Budget.pure("0.1"))


def append(path: Path, **event: object) -> None:
    """An event at the end of the chain, hash and all, that no operation of the ledger would have written."""
    connection = sqlite3.connect(path)
    chain = Chain(connection)
    chain.read(connection.execute("SELECT * FROM event ORDER BY number").fetchall())
    chain.add(event)
    connection.commit()
    connection.close()


SPENT = {"time": "now", "dataset": "d", "plan": "q", "note": "", "cost": Budget.pure(3).to_dict()}


@pytest.mark.parametrize(
    "event",
    [
        {"event": "reserved", "entry": 5, **SPENT},
        {"event": "reserved", "entry": 6, **SPENT, "cost": Budget.pure("1/12").to_dict()},
        {"event": "reserved", "entry": 5, **SPENT, "cost": Budget.zcdp("1/12").to_dict()},
        {"event": "reserved", "entry": 5, **SPENT, "dataset": "e", "cost": Budget.pure("1/12").to_dict()},
        {"event": "committed", "entry": 1, "time": "now", "measurements": "other"},
        {"event": "committed", "entry": 0, "time": "now", "measurements": "other"},
        {"event": "raised", "dataset": "d", "time": "now", "cap": Budget.pure("1/2").to_dict(), "reason": "less"},
        {"event": "opened", "dataset": "d", "time": "now", "cap": Budget.pure(9).to_dict(), "unit": UNIT.to_dict()},
        {"event": "made", "ledger": "another", "time": "now"},
        {"event": "given back", "entry": 1},
        *(
            {"event": kind, "entry": entry, "time": "now", "reason": "why"}
            for kind in ("resumed", "drawing", "returned")
            for entry in (0, 1, 2, 4, 5, None)  # none, committed, drawing, returned, none, none
        ),
        {"event": "returned", "entry": 3, "time": "now"},
        {"event": "returned", "entry": 3, "time": "now", "reason": 7},
        {"event": "failed", "entry": 0, "time": "now", "stage": "count", "kind": "DataError"},
        {"event": "failed", "entry": 5, "time": "now", "stage": "count", "kind": "DataError"},
        {"event": "failed", "entry": 3, "time": "now", "stage": "count"},
        {"event": "failed", "entry": 3, "time": "now", "stage": "count", "kind": 17},
        {"event": "failed", "entry": 3, "time": "now", "stage": None, "kind": "DataError"},
        *({"event": "committed", "entry": entry, "time": "now", "measurements": "h"} for entry in (3, 4)),
        {"event": "reserved", "entry": 5, **SPENT, "cost": Budget.pure("1/12").to_dict(), "drawn": "no"},
    ],
)
def test_events_that_no_operation_writes(eventful: Ledger, event: dict[str, object]) -> None:
    """A sound chain with an event in it that cannot be, such as a cost beyond the cap, or one given back twice."""
    ledger = eventful
    append(ledger.path, **event)
    for attempt in (
        lambda: ledger.remaining("d"),
        lambda: ledger.account("d"),
        lambda: ledger.reserve("d", "p3", Budget.pure("1/12")),
    ):
        with pytest.raises(DataError, match="nothing more may be"):
            attempt()


@pytest.mark.parametrize("number", range(1, 13))
def test_a_lost_event_is_noticed(eventful: Ledger, number: int) -> None:
    """Every one but the last, which only a release can know."""
    ledger = eventful
    assert ledger.head().number == 13
    connection = sqlite3.connect(ledger.path)
    connection.execute("DROP TRIGGER event_is_kept")
    connection.execute("DELETE FROM event WHERE number = ?", (number,))
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match="is damaged"):
        ledger.remaining("d")


def test_a_changed_event_with_a_hash_that_fits_breaks_the_chain(ledger: Ledger) -> None:
    """Whoever works the hash out anew must do so for every later event, and then no release knows the new head."""
    connection = sqlite3.connect(ledger.path)
    connection.execute("DROP TRIGGER event_is_fixed")
    number, before, content, _ = connection.execute("SELECT * FROM event WHERE number = 3").fetchone()
    assert "1/3" in content
    content = content.replace("1/3", "1/9")
    text = json.dumps([number, before, content], separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    connection.execute("UPDATE event SET content = ?, hash = ? WHERE number = 3", (content, digest))
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match="is damaged"):
        ledger.remaining("d")


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (3, '"drawn":false', '"drawn":true'),
        (4, '"drawing"', '"resumed"'),
        (9, '"count"', '"write"'),
        (9, "DataError", "OSError"),
        (10, '"resumed"', '"drawing"'),
        (13, '"entry":4', '"entry":3'),
        (13, "by mistake", "by nobody"),
    ],
)
def test_what_happened_to_an_entry_cannot_be_rewritten(eventful: Ledger, number: int, old: str, new: str) -> None:
    connection = sqlite3.connect(eventful.path)
    connection.execute("DROP TRIGGER event_is_fixed")
    ((content,),) = connection.execute("SELECT content FROM event WHERE number = ?", (number,)).fetchall()
    assert content.count(old) == 1
    connection.execute("UPDATE event SET content = ? WHERE number = ?", (content.replace(old, new), number))
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match="is damaged"):
        eventful.remaining("d")


def test_no_changed_byte_changes_the_account(eventful: Ledger, tmp_path: Path) -> None:
    """One byte of the file is changed, at a thousand places: the account is refused, or is the same as ever."""
    ledger = eventful
    sound = ledger.path.read_bytes()
    statement = ledger.statement("d")
    places = [place for place, byte in enumerate(sound) if byte][::2]
    folder = tmp_path / "changed"
    refused = 0
    for number, place in enumerate(places):
        folder.mkdir()
        changed = bytearray(sound)
        changed[place] ^= (0x01, 0x02, 0x04, 0x08, 0x80)[number % 5]
        copy = Ledger(folder / "copy", patience=0.1)
        copy.path.write_bytes(changed)
        try:
            assert copy.statement("d") == statement, f"byte {place}"
        except PradeError:
            refused += 1
        shutil.rmtree(folder)
    assert len(places) > 900
    assert refused > len(places) // 4


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_truncated_file_is_refused(ledger: Ledger, share: float) -> None:
    sound = ledger.path.read_bytes()
    ledger.path.write_bytes(sound[: int(len(sound) * share)])
    assert refusals(ledger, "is damaged, or is not a ledger") == 6


def test_the_file_is_gone_between_two_steps(ledger: Ledger) -> None:
    entry = ledger.find("d", "p2")
    assert entry is not None
    ledger.path.unlink()
    with pytest.raises(DataError, match="there is no ledger at"):
        ledger.commit(entry.id, "h2")
    assert not ledger.path.exists()


def test_an_error_inside_a_step_leaves_nothing(ledger: Ledger) -> None:
    before = ledger.path.read_bytes()
    with pytest.raises(BudgetError):
        ledger.reserve("d", "p3", Budget.pure("1/2"))
    with pytest.raises(PradeError):
        ledger.open_dataset("d", UNIT, Budget.pure(2))
    assert ledger.path.read_bytes() == before
    assert [path.name for path in ledger.path.parent.iterdir()] == ["budget.ledger"]
