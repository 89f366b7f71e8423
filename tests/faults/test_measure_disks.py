"""What `measure` does when the disk is full or may not be written: free before the reservation, kept after the seal.

In between, what is reserved is resumed as long as no noise is drawn, and lost from then on.

A driver (see `worlds/drivers.py`) runs in an interpreter of its own; its assertions are the test.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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


def test_a_full_disk(drive: Drive, tmp_path: Path) -> None:
    """A small file system runs full at a step; when there is room again, the next run finishes."""
    mounted = (
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=4m none {tmp_path} && "$@"',
    )
    try:
        subprocess.run([*mounted, "sh", "true"], capture_output=True, check=True, timeout=20)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system cannot be mounted here; test_no_room_for_a_file does without")
    steps = drive(
        """
def fill():
    with open(HERE / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass

def full(step):
    "What a run says when the disk runs full at a step; then there is room again."
    def work():
        at(step, fill)
        world.measure_and_tell()
    words = words_of(work)
    (HERE / "filler").unlink()
    return words

world = World("checked")
nothing_spent(world, full("measure.checked"), "In this run nothing was spent")
assert world.recover() == "free"
world = World("prepared")  # there was room for the plan, and there is none for the ledger
nothing_spent(world, full("measure.prepared"), "no noise may be drawn for this step; free some disk space")
assert world.recover() == "free"
for step in ("reserved", "counted"):
    world = World(step)
    reserved(world, full(f"measure.{step}"), "no noise may be drawn for this step; free some disk space")
    assert world.recover() == "reserved"
world = World("drawn")
message = full("measure.drawn")
spent(world, message)
assert "No space left on device" in message
world.measure(again=True)
world.entries(2)
world.clean()
world = World("sealed")
message = full("measure.sealed")
kept(world, message)
assert "database or disk is full" in message
world.measure()
world.entries(1)
world.clean()
print(6)  # the steps that were tried, if every assertion above held
""",
        *mounted,
        "sh",
    )
    assert steps == [6]


# ---------------------------------------------------------------- what may not be written


def test_folders_that_may_not_be_written(drive: Drive) -> None:
    """A parent folder, then a ledger, that only others may write: refused, and nothing spent.

    The folders belong to a stranger, and the process to the owner of the code, who can read it wherever it is; an
    administrator gives up all powers.
    """
    if os.geteuid() != 0:
        pytest.skip("only the administrator can give folders away, and everybody's own folders can be written")
    if not hasattr(ctypes.CDLL(None), "capset"):
        pytest.skip("only Linux has powers that an administrator can give up")
    refusals = drive(
        """
import ctypes
import prade

OWNER = os.stat(prade.__file__).st_uid
STRANGER = 65534 if OWNER != 65534 else 65533

def without_powers(act):
    "What the owner of the code, who owns nothing here and has no powers, is refused with."
    def work():
        os.setgroups([])
        os.setresuid(OWNER, OWNER, OWNER)
        if ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) != 0:
            raise OSError("the powers could not be given up")
        act()
    return words_of(work)

def given_away(*paths):
    for path in paths:
        os.chown(path, STRANGER, STRANGER)

tempfile.tempdir = None
here = Path(tempfile.mkdtemp())  # where all users may enter, which they may not into pytest's folders
try:
    os.chown(here, OWNER, -1)
    world = World("parent", within=here)
    apart = Path(shutil.move(world.ledger.path, here))
    os.chown(apart, OWNER, -1)
    given_away(world.home)
    refused = without_powers(lambda: measure(TOWN_PLAN, IN_TOWNS, world.place, Ledger(apart)))
    assert "that you can write to; make it first" in refused, refused
    assert not list(world.home.iterdir()) and not Ledger(apart).entries("people")

    world = World("ledger", within=here)
    world.ledger.path.chmod(0o644)
    given_away(world.home, world.ledger.path)
    outside = here / "open"
    outside.mkdir()
    os.chown(outside, OWNER, -1)
    refused = without_powers(lambda: measure(TOWN_PLAN, IN_TOWNS, outside / "release", world.ledger))
    nothing_spent(world, refused, "so nothing was recorded; get write access")
    assert not list(outside.iterdir())
    measure(TOWN_PLAN, IN_TOWNS, outside / "release", world.ledger)
    world.entries(1)

    (outside / "release").chmod(0o700)
    given_away(outside / "release")
    refused = without_powers(lambda: measure(TOWN_PLAN, IN_TOWNS, outside / "release", world.ledger))
    assert "cannot be read (Permission denied): ask for permission to read it" in refused, refused
    print(3)  # the refusals that were seen, if every assertion above held
finally:
    shutil.rmtree(here)
"""
    )
    assert refusals == [3]
