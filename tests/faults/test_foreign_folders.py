"""Things in the way that have the name of one of our folders: nothing waits for them, nothing of others is removed.

The work is done by a process of its own with a limit on its time: a pipe that is waited for would hang it.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

from prade import DataError
from prade.core.files import MARK, locked, remove_locked
from prade.measuring.run import measure
from worlds.plans import IN_TOWNS, TOWN_PLAN
from worlds.processes import started

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there nothing is held, and nothing swept")
SECONDS = 60

SPILL = """
import sys
from pathlib import Path
from prade.core.files import spill_folder

with spill_folder() as own:
    (own / "rows.tmp").write_text("private")
    (own / "deeper").mkdir()
    (own / "deeper" / "rows.tmp").write_text("private")
    if sys.argv[1:] == ["wait"]:
        print(own.name, flush=True)
        sys.stdin.read()
"""

MEASURE = """
from prade import Ledger, PradeError, measure
from worlds.plans import IN_TOWNS, TOWN_PLAN

try:
    Ledger("piped.ledger").open_dataset("people", TOWN_PLAN.unit, TOWN_PLAN.budget)
except PradeError:
    print("refused")
measure(TOWN_PLAN, IN_TOWNS, "release", "ledger", cap=TOWN_PLAN.budget)
"""


def process(folder, code, *arguments):
    return started(code, *arguments, folder=folder, TMPDIR=str(folder))


def run(code, folder):
    with process(folder, code) as working:
        try:
            said, _ = working.communicate(timeout=SECONDS)
        finally:
            working.kill()
    assert working.returncode == 0
    return said


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The spill folder of a run that was killed."""
    folder = tmp_path_factory.mktemp("temporary")
    working = process(folder, SPILL, "wait")
    left = folder / working.stdout.readline().strip()
    working.kill()
    working.communicate(timeout=SECONDS)
    assert (left / "deeper" / "rows.tmp").exists()
    return left


@pytest.fixture
def dead(killed, tmp_path):
    """A copy of it, in the temporary folder of a test."""
    return Path(shutil.copytree(killed, tmp_path / "prade-spill-dead"))


def marked(killed, place):
    """A copy of the killed run's folder, and its mark, which is gone."""
    shutil.copytree(killed, place)
    (place / ".prade-spill").unlink()
    return place / ".prade-spill"


FOREIGN = {  # called like a spill folder, and not ours, or not for sure
    "pipe": lambda killed, place: os.mkfifo(place),
    "file": lambda killed, place: place.write_text("notes"),
    "folder": lambda killed, place: (place.mkdir(mode=0o700), (place / "notes").write_text("notes")),
    "link": lambda killed, place: place.symlink_to(shutil.copytree(killed, place.with_name("aside"))),
    "dangling link": lambda killed, place: place.symlink_to(place.with_name("nothing")),
    "open to others": lambda killed, place: Path(shutil.copytree(killed, place)).chmod(0o755),
    "no mark": marked,
    "mark is a pipe": lambda killed, place: os.mkfifo(marked(killed, place)),
    "mark is a link": lambda killed, place: marked(killed, place).symlink_to(place / "rows.tmp"),
    "mark is a folder": lambda killed, place: marked(killed, place).mkdir(),
}


def seen(folder):
    return sorted((str(path), path.lstat().st_mode, path.lstat().st_ino) for path in folder.rglob("*"))


def test_what_is_not_ours_is_neither_waited_for_nor_removed(killed, tmp_path):
    for name, make in FOREIGN.items():
        make(killed, tmp_path / f"prade-spill-{name}")
    before = seen(tmp_path)
    shutil.copytree(killed, tmp_path / "prade-spill-zz")  # a dead run's own goes, whatever else is there
    run(SPILL, tmp_path)
    assert seen(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("whose", ["folder", "mark"])
def test_another_users_folder_is_left_alone(whose, dead, tmp_path):
    os.chown(dead if whose == "folder" else dead / ".prade-spill", 12345, -1)
    run(SPILL, tmp_path)
    assert (dead / "rows.tmp").exists()


def test_a_dead_runs_folder_is_removed_and_a_living_ones_is_not(dead, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes").write_text("notes")
    (dead / "link").symlink_to(outside)
    os.mkfifo(dead / "pipe")
    living = process(tmp_path, SPILL, "wait")
    own = tmp_path / living.stdout.readline().strip()
    assert not dead.exists()
    assert (outside / "notes").exists()
    run(SPILL, tmp_path)
    assert (own / "rows.tmp").exists()
    living.communicate(timeout=SECONDS)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]


def test_a_folder_that_is_swapped_for_a_link_is_not_followed(dead, tmp_path):
    """The name is given to a link after the folder was looked at: what is behind the link stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes").write_text("notes")
    with locked(dead) as handle:
        dead.rename(tmp_path / "elsewhere")
        dead.symlink_to(outside)
        assert handle is not None
        with pytest.raises(NotADirectoryError):
            remove_locked(dead, handle)
    assert (outside / "notes").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_mark_goes_last(dead, tmp_path, monkeypatch):
    """A removal that breaks off leaves a folder that the next run removes."""

    def broken(*arguments, **named):
        raise OSError("the disk is gone")

    with monkeypatch.context() as failing, locked(dead) as handle:
        failing.setattr("shutil.rmtree", broken)
        assert handle is not None
        with pytest.raises(OSError, match="the disk is gone"):
            remove_locked(dead, handle)
    assert (dead / MARK).exists()
    run(SPILL, tmp_path)
    assert not dead.exists()


def folder(place, **texts):
    """A folder with these files."""
    place.mkdir()
    for name, text in texts.items():
        (place / name.replace("_", ".")).write_text(text)
    return place


def link(place, **texts):
    place.symlink_to(folder(place.with_name(f"aside{place.name}"), **texts))


MAKE = [
    os.mkfifo,
    lambda place: link(place, plan_toml="mine"),  # as a run leaves it that was about to seal
    lambda place: link(place, release_json="{}"),  # of another program, which has a file of that name
    lambda place: os.mkfifo(folder(place) / "release.json"),
    lambda place: folder(place, plan_toml="mine", notes="notes"),
]


def test_a_link_to_a_damaged_release_stops_the_run_and_is_left_alone(tmp_path):
    """It may be of the same data set, and not on the ledger's record: whoever knows it has to move it away."""
    link(tmp_path / f".release.{0:016x}.unfinished", plan_toml="mine", release_json="{}")
    before = seen(tmp_path)
    with pytest.raises(DataError, match="spends nothing beside it"):
        measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", tmp_path / "ledger", cap=TOWN_PLAN.budget)
    assert seen(tmp_path) == before


def test_what_is_called_like_a_staging_folder_is_left_alone(tmp_path):
    """A dead run's own, which comes after it in the alphabet, is removed all the same."""
    for number, make in enumerate(MAKE):
        make(tmp_path / f".release.{number:016x}.unfinished")
    before = seen(tmp_path)
    dead = folder(tmp_path / f".release.{'f' * 16}.unfinished", plan_toml="a dead run's")
    (dead / ".measurements.parquet.0abc").write_text("a dead run's")
    os.mkfifo(tmp_path / "piped.ledger")
    assert run(MEASURE, tmp_path) == "refused\n"
    (tmp_path / "piped.ledger").unlink()
    assert (tmp_path / "release" / "release.json").is_file()
    made = (str(tmp_path / "release"), str(tmp_path / "ledger"))
    assert [each for each in seen(tmp_path) if not each[0].startswith(made)] == before
