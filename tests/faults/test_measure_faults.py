"""What `measure` does when its process is killed, at every step and moment, and when several run at once.

Nothing overspent, nothing half-written, a clear message, and a rerun that finishes. A driver (see `worlds/drivers.py`)
runs in an interpreter of its own, forks processes that die, and looks at what they left; its assertions are the test.
"""

from __future__ import annotations

from collections.abc import Callable

Drive = Callable[..., list[int]]


# ---------------------------------------------------------------- kills


def test_killed_at_every_step(drive: Drive) -> None:
    """SIGKILL at each announced step, of `measure` and of the ledger within it: what is lost is what must be."""
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
print(kills)
"""
    )
    assert kills == 36


def test_killed_again_and_again_before_noise_is_drawn(drive: Drive) -> None:
    """Each run resumes the entry and gets one step further; all of them pay once, and one set of noise is drawn."""
    kills, resumed = drive(
        """
steps = ["measure.reserved", "measure.counted"]
steps += [f"ledger.start_drawing.{step}" for step in ("opened", "begun", "recorded")]
world = World("w")
for kills, step in enumerate(steps):
    killed_at(step, world.measure_and_tell)
    (entry,) = world.entries(1)
    assert (entry.state, entry.drawn, len(entry.resumed)) == ("reserved", False, kills), entry
    assert not world.drawn.exists() and not world.place.exists() and not world.sealed()
assert world.recover() == "reserved"
(entry,) = world.entries(1)
assert (entry.state, entry.failures) == ("committed", ()), entry
print(len(steps), len(entry.resumed))
"""
    )
    assert (kills, resumed) == (5, 5)


def test_killed_while_a_failure_is_recorded(drive: Drive) -> None:
    """It is on record or not; the entry is, and the next run resumes it."""
    recorded = drive(
        """
def fail():
    raise OSError("no such disk")

def work():
    at("measure.counted", fail)
    at(step, die)
    world.measure_and_tell()

recorded = []
for step in [f"ledger.fail.{name}" for name in ("opened", "begun", "recorded", "durable")]:
    world = World(step)
    assert ended(forked(work)) == -signal.SIGKILL, f"{step} was never reached"
    (entry,) = world.entries(1)
    assert entry.state == ("failed" if entry.failures else "reserved")
    recorded.append(len(entry.failures))
    assert world.recover() == "reserved"
print(*recorded)
"""
    )
    assert recorded == [0, 0, 0, 1]


def test_killed_at_every_touch_of_the_disk(drive: Drive) -> None:
    """SIGKILL before each opening, renaming and removing of a file, one after the other, until a run gets through."""
    kinds = drive(
        """
kinds = {"free": 0, "reserved": 0, "lost": 0, "kept": 0}
fresh = lambda number: World(f"{number}")
for world, killed in killed_at_touches(fresh, lambda world: world.home, World.measure_and_tell):
    if killed:
        kinds[world.recover()] += 1
world.clean()
print(*kinds.values())
"""
    )
    assert sum(kinds) >= 45
    free, reserved, lost, kept = kinds
    assert min(free, lost, kept) >= 5, kinds
    assert reserved >= 1, kinds  # while rows are counted, only the ledger is touched


# ---------------------------------------------------------------- races


def test_one_plan_and_one_folder(drive: Drive) -> None:
    """Of six runs at once one pays and one draws; who returns has its numbers, and the others say why they do not."""
    overtaken = drive(
        """
REASONS = "has already been paid for", "its noise was drawn, or may have been, so it may not draw noise"
steps = "checked", "prepared", "reserved", "counted"
ledger = "reserve.opened", "start_drawing.opened"
overtaken = []
for meet in (None, *(f"measure.{step}" for step in steps), *(f"ledger.{step}" for step in ledger)):
    world = World(str(meet))
    returned, refused = race(*[world.measure_and_tell] * 6, meet=meet)
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


def test_a_run_is_overtaken_while_it_finishes(drive: Drive) -> None:
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


def test_again_does_not_harm_a_run_that_is_alive(drive: Drive) -> None:
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
