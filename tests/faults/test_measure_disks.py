"""What `measure` does when the disk is full or may not be written: free before the reservation, kept after the seal.

In between, what is reserved is resumed as long as no noise is drawn, and lost from then on.

A driver (see `worlds/drivers.py`) runs in an interpreter of its own; its assertions are the test.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prade.core.errors import DataError, PradeError
from prade.measuring.run import measure
from worlds.people import IN_TOWNS, TOWN_PLAN, town_plan
from worlds.plans import ledger_for
from worlds.processes import not_writable

Drive = Callable[..., list[int]]


# ---------------------------------------------------------------- full disks


def test_no_room_for_a_file(drive: Drive) -> None:
    """From a step on, files may not grow past a size: free before the reservation, reserved, then spent, then kept."""
    failed = drive(
        """
def limited(step, size):
    "Measure, while files may not grow past a size from a step on."
    at(step, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)))
    world.measure_and_tell()

failed = 0
steps = [f"measure.{step}" for step in ("checked", "prepared", "reserved", "counted", "drawn", "written", "sealed")]
for size in (0, 10, 500, 5000, 100_000):
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
    assert failed[0] >= 20


# ---------------------------------------------------------------- what may not be written


@pytest.fixture
def here() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_folders_that_may_not_be_written(here: Path) -> None:
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
    with (
        not_writable(ledger.path, ledgers),
        pytest.raises(PradeError, match="nothing was recorded; get write access"),
    ):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger)
    assert len(ledger.entries("people")) == 1
    assert list(home.iterdir()) == []
    release = measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger)
    release.path.chmod(0o000)
    with not_writable(), pytest.raises(DataError, match=r"cannot be read \(Permission denied\): ask for permission"):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger)
    assert len(ledger.entries("people")) == 2
