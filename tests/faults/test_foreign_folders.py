"""Things in the way that have the name of one of our folders: nothing waits for them, nothing of others is removed.

The work is done by a process of its own with a limit on its time: a pipe that is waited for would hang it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from prade import Budget, DataError, Level, Plan, Schema, Unit, Workload
from prade.measuring.run import measure

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
import pyarrow
from prade import Budget, Ledger, Level, Plan, PradeError, Schema, Unit, Workload
from prade.measuring.run import measure

schema = Schema.from_mbi({"a": 2})
plan = Plan("people", schema, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(schema, 1))])
try:
    Ledger("piped.ledger").open_dataset("people", Unit(1), Budget.pure(1))
except PradeError:
    print("refused")
ledger = Ledger("ledger")
ledger.open_dataset("people", Unit(1), Budget.pure(1))
measure(plan, pyarrow.table({"a": [0, 1, 1]}), "release", ledger)
"""


def process(code: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    settings = {"cwd": folder, "env": {**os.environ, "TMPDIR": str(folder)}, "text": True}
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code, *arguments], **pipes, **settings)


def run(code: str, folder: Path) -> str:
    working = process(code, folder)
    try:
        said, _ = working.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        working.kill()
        working.communicate()
        raise
    assert working.returncode == 0
    return said


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The spill folder of a run that was killed."""
    folder = tmp_path_factory.mktemp("temporary")
    working = process(SPILL, folder, "wait")
    left = folder / working.stdout.readline().strip()
    working.kill()
    working.communicate(timeout=SECONDS)
    assert (left / "deeper" / "rows.tmp").exists()
    return left


@pytest.fixture
def dead(killed: Path, tmp_path: Path) -> Path:
    """A copy of it, in the temporary folder of a test."""
    return Path(shutil.copytree(killed, tmp_path / "prade-spill-dead"))


# ---------------------------------------------------------------------- spill folders


def foreign(name: str, killed: Path, place: Path) -> None:
    """Something called like a spill folder that is not ours, or not for sure."""
    aside = place.with_name(f"aside {name}")
    if name == "pipe":
        os.mkfifo(place)
    elif name == "file":
        place.write_text("notes")
    elif name == "folder":
        place.mkdir(mode=0o700)
        (place / "notes").write_text("notes")
    elif name == "link":
        shutil.copytree(killed, aside)
        place.symlink_to(aside)
    elif name == "dangling link":
        place.symlink_to(aside)
    elif name == "open to others":
        shutil.copytree(killed, place)
        place.chmod(0o755)
    else:
        shutil.copytree(killed, place)
        mark = place / ".prade-spill"
        mark.unlink(missing_ok=True)
        if name == "mark is a pipe":
            os.mkfifo(mark)
        elif name == "mark is a link":
            mark.symlink_to(place / "rows.tmp")
        elif name == "mark is a folder":
            mark.mkdir()


FOREIGN = ["pipe", "file", "folder", "link", "dangling link", "open to others"]
MARKS = ["no mark", "mark is a pipe", "mark is a link", "mark is a folder"]


def seen(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(path), path.lstat().st_mode, path.lstat().st_ino) for path in folder.rglob("*"))


def test_what_is_not_ours_is_neither_waited_for_nor_removed(killed: Path, tmp_path: Path) -> None:
    for name in FOREIGN + MARKS:
        foreign(name, killed, tmp_path / f"prade-spill-{name}")
    before = seen(tmp_path)
    shutil.copytree(killed, tmp_path / "prade-spill-zz")  # a dead run's own goes, whatever else is there
    run(SPILL, tmp_path)
    assert seen(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("whose", ["folder", "mark"])
def test_another_users_folder_is_left_alone(whose: str, dead: Path, tmp_path: Path) -> None:
    os.chown(dead if whose == "folder" else dead / ".prade-spill", 12345, -1)
    run(SPILL, tmp_path)
    assert (dead / "rows.tmp").exists()


def test_a_dead_runs_folder_is_removed_and_a_living_ones_is_not(dead: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes").write_text("notes")
    (dead / "link").symlink_to(outside)
    os.mkfifo(dead / "pipe")
    living = process(SPILL, tmp_path, "wait")
    own = tmp_path / living.stdout.readline().strip()
    assert not dead.exists()
    assert (outside / "notes").exists()
    run(SPILL, tmp_path)
    assert (own / "rows.tmp").exists()
    living.communicate(timeout=SECONDS)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]


def test_a_folder_that_is_swapped_for_a_link_is_not_followed(dead: Path, tmp_path: Path) -> None:
    """The name is given to a link after the folder was looked at: what is behind the link stays."""
    from prade.core.files import locked, remove_locked

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


def test_the_mark_goes_last(dead: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that breaks off leaves a folder that the next run removes."""
    from prade.core import files as locked_folders

    def broken(*arguments: object, **named: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as failing, locked_folders.locked(dead) as handle:
        failing.setattr("shutil.rmtree", broken)
        assert handle is not None
        with pytest.raises(OSError, match="the disk is gone"):
            locked_folders.remove_locked(dead, handle)
    assert (dead / locked_folders.MARK).exists()
    run(SPILL, tmp_path)
    assert not dead.exists()


# ---------------------------------------------------------------------- staging folders and ledgers


def pipe(place: Path) -> None:
    os.mkfifo(place)


def link(place: Path) -> None:
    """To a folder that looks like one that a run was about to seal."""
    aside = place.with_name(f"aside{place.name}")
    aside.mkdir()
    (aside / "plan.toml").write_text("mine")
    place.symlink_to(aside)


def sealed_link(place: Path) -> None:
    """To a folder of another program, which has a file of that name: beside a damaged release nothing is spent."""
    link(place)
    (place / "plan.toml").unlink()
    (place / "release.json").write_text("{}")


def sealed_by_a_pipe(place: Path) -> None:
    place.mkdir()
    os.mkfifo(place / "release.json")


def folder_of_notes(place: Path) -> None:
    place.mkdir()
    (place / "plan.toml").write_text("mine")
    (place / "notes").write_text("notes")


MAKE: list[Callable[[Path], None]] = [pipe, link, sealed_link, sealed_by_a_pipe, folder_of_notes]


def test_a_link_to_a_damaged_release_stops_the_run_and_is_left_alone(tmp_path: Path) -> None:
    """It may be of the same data set, and not on the ledger's record: whoever knows it has to move it away."""
    place = tmp_path / f".release.{0:016x}.unfinished"
    link(place)
    (place / "release.json").write_text("{}")
    before = seen(tmp_path)
    schema = Schema.from_mbi({"a": 2})
    plan = Plan("people", schema, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(schema, 1))])
    with pytest.raises(DataError, match="spends nothing next to a release that it cannot read"):
        measure(plan, pa.table({"a": [0, 1, 1]}), tmp_path / "release", tmp_path / "ledger", cap=Budget.pure(1))
    assert seen(tmp_path) == before


def test_what_is_called_like_a_staging_folder_is_left_alone(tmp_path: Path) -> None:
    """A dead run's own, which comes after it in the alphabet, is removed all the same."""
    for number, make in enumerate(MAKE):
        make(tmp_path / f".release.{number:016x}.unfinished")
    before = seen(tmp_path)
    dead = tmp_path / f".release.{'f' * 16}.unfinished"
    dead.mkdir()
    (dead / "plan.toml").write_text("a dead run's")
    (dead / ".measurements.parquet.0abc").write_text("a dead run's")
    os.mkfifo(tmp_path / "piped.ledger")
    assert run(MEASURE, tmp_path) == "refused\n"
    (tmp_path / "piped.ledger").unlink()
    assert (tmp_path / "release" / "release.json").is_file()
    made = (str(tmp_path / "release"), str(tmp_path / "ledger"))
    assert [each for each in seen(tmp_path) if not each[0].startswith(made)] == before
