"""What `measure` does when its process is killed, when several run at once, and when the disk is full or locked.

Nothing overspent, nothing half-written, a clear message, and a rerun that finishes. A driver (see `worlds/drivers.py`)
runs in an interpreter of its own, forks processes that die, and looks at what they left; its assertions are the test.
"""

import shutil
import tempfile
from pathlib import Path

import pytest

from prade.core.errors import DataError, PradeError
from prade.measuring.run import measure
from worlds.plans import IN_TOWNS, TOWN_PLAN, ledger_for, town_plan
from worlds.processes import not_writable


def test_killed_at_every_step(drive):
    """SIGKILL at each announced step, of `measure` and of the ledger within it: what is lost is what must be.

    What is between two steps is looked at by `test_power_cuts.py`, whose states include those that a kill leaves.
    """
    (kills,) = drive(
        """
ledger = [f"ledger.{{}}.{step}" for step in ("opened", "begun", "recorded", "durable")]
operations = "reserve", "start_drawing", "commit"
reserve, drawing, commit = ([step.format(name) for step in ledger] for name in operations)
steps = {
    "free": ["measure.checked", "measure.prepared", *reserve[:3]],
    "reserved": [reserve[3], "measure.reserved", "measure.counted", *drawing[:3]],
    "lost": [drawing[3], "measure.drawn", "measure.written"],
    "kept": ["measure.sealed", *commit, "measure.committed", "measure.extracted", "measure.renamed"],
}
kills = 0
for kind, names in steps.items():
    for step in names:
        world = World(step)
        killed_at(step, world.measure_and_tell)
        assert world.recover() == kind, step
        kills += 1
for second in steps["kept"][1:]:  # the run that finishes is killed too
    world = World(f"sealed-{second}")
    killed_at("measure.sealed", world.measure_and_tell)
    killed_at(second, world.measure)
    assert world.recover() == "kept", second
    kills += 2
world = World("again")  # one entry, which run after run resumes
for resumed, step in enumerate(steps["reserved"]):
    killed_at(step, world.measure_and_tell)
    (entry,) = world.entries(1)
    assert (entry.state, entry.drawn, len(entry.resumed)) == ("reserved", False, resumed), entry
    assert not world.drawn.exists() and not world.place.exists() and not world.sealed()
    kills += 1
assert world.recover() == "reserved"
print(kills)
"""
    )
    assert kills == 42


def test_one_plan_and_one_folder(drive):
    """Of six runs at once one pays and one draws; who returns has its numbers, and the others say why they do not."""
    overtaken = drive(
        """
REASONS = "has already been paid for", "its noise was drawn, or may have been, so it may not draw noise"
steps = "checked", "prepared", "reserved", "counted"
ledger = "reserve.opened", "start_drawing.opened"
overtaken = []
for meet in (None, *(f"measure.{step}" for step in steps), *(f"ledger.{step}" for step in ledger)):
    world = World(str(meet))
    returned, refused = race(*[lambda: numbers(world.measure_and_tell().noisy)] * 6, meet=meet)
    assert returned and all(each == world.told() for each in returned), returned
    assert all(any(reason in text for reason in REASONS) for text in refused), refused
    (entry,) = world.entries(1)
    assert entry.failures == (), "of those that were overtaken there is nothing to tell"
    world.clean()
    assert numbers(world.measure().noisy) == returned[0]
    overtaken.append(len(entry.resumed))
print(*overtaken)
"""
    )
    assert overtaken[3:5] == [5, 5]
    assert overtaken[6] == 5, "all of them met after the reservation, which one paid and five resumed"


def test_a_run_is_overtaken_while_it_finishes(drive):
    """A run stands still after its counts are saved; a second one finishes them; both give the same numbers."""
    paid = drive(
        """
def stop_in_mid_extract():
    def listen(event, values):
        if event == "os.rename" and ".ledger.json." in str(values[0]):
            stop()
    sys.addaudithook(listen)

counted = []
for step in ("measure.sealed", "ledger.commit.opened", "measure.committed", "mid-extract", "measure.extracted"):
    world = World(step)
    def work():
        stop_in_mid_extract() if step == "mid-extract" else at(step, stop)
        assert numbers(world.measure_and_tell().noisy) == world.told()
    child = forked(work)
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]), step
    assert numbers(world.measure(again=True).noisy) == world.told()  # `again` pays only for what is lost
    os.kill(child, signal.SIGCONT)
    assert ended(child) == 0, step
    counted.append(len(world.entries(1)))
    world.clean()
print(*counted)
"""
    )
    assert paid == [1] * 5, "once at each of the five steps"


def test_again_does_not_harm_a_run_that_is_alive(drive):
    """A slow run is taken for dead, and paid for again: both get whole releases, of their own numbers."""
    own, others, paid = drive(
        """
def work():
    at("measure.drawn", stop)
    refused = said(world.measure_and_tell)
    assert "release came into use in the meantime: the complete release is in" in refused, refused
    assert "rename that folder" in refused, refused

world = World("w")
child = forked(work)
assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
assert "its run is in progress or was interrupted" in said(world.measure)
second = numbers(world.measure(again=True).noisy)
os.kill(child, signal.SIGCONT)
assert ended(child) == 0
assert [entry.state for entry in world.entries(2)] == ["committed"] * 2
(first,) = world.sealed()
first.rename(world.home / "first")
own = numbers(Release.load(world.home / "first").noisy) == world.told()
others = numbers(world.measure().noisy) == second
print(int(own), int(others), len(world.entries(2)))
"""
    )
    assert (own, others, paid) == (1, 1, 2)


def test_no_room_for_a_file(drive):
    """From a step on, files may not grow past a size: free before the reservation, reserved, then spent, then kept."""
    failed = drive(
        """
def limited(step, size):
    "Measure, while files may not grow past a size from a step on."
    at(step, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)))
    world.measure_and_tell()

failed = 0
steps = [f"measure.{step}" for step in ("checked", "prepared", "reserved", "counted", "drawn", "written", "sealed")]
for size in (0, 500, 5000):
    for step in (*steps, "ledger.start_drawing.durable"):
        world = World(f"{step}-{size}")
        message = words_of(lambda: limited(step, size))
        if not message:
            world.clean()
            continue
        failed += 1
        if step in ("measure.checked", "measure.prepared"):
            assert "unfinished" in message or "no noise may be drawn" in message, message
            nothing_spent(world, message, "In this run nothing was spent")
            assert world.recover() == "free"
        elif step in ("measure.reserved", "measure.counted"):
            reserved(world, message, "no noise may be drawn")
            assert world.recover() == "reserved"
        elif step == "measure.sealed" or size == 5000:  # which is enough for all files but the ledger
            kept(world, message)
            assert world.recover() == "kept"
        else:
            spent(world, message)
            assert "File too large" in message
            assert world.recover() == "lost"
print(failed)
"""
    )
    assert failed[0] >= 12


@pytest.fixture
def here():
    """A folder that every user may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_folders_that_may_not_be_written(here):
    """The folder of the release, then the ledger: refused, and nothing spent; then a release that may not be read."""
    home, ledgers = here / "home", here / "ledgers"
    home.mkdir()
    ledgers.mkdir()
    ledger = ledger_for(TOWN_PLAN, ledgers / "budget.ledger", 2)
    measure(town_plan("a"), IN_TOWNS, here / "warm", ledger)  # all modules are loaded as the administrator
    with not_writable(home), pytest.raises(DataError, match="permission to write to"):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger)
    home.chmod(0o777)
    ledger.path.chmod(0o644)
    with not_writable(ledger.path, ledgers), pytest.raises(PradeError, match="nothing was recorded; get write access"):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger)
    assert len(ledger.entries("people")) == 1
    assert list(home.iterdir()) == []
    release = measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger)
    release.path.chmod(0o000)
    with not_writable(), pytest.raises(DataError, match=r"cannot be read \(Permission denied\): ask for permission"):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger)
    assert len(ledger.entries("people")) == 2
