"""Estimates made by workers: the same bits on threads and processes, small tasks, and runs that go on after a kill."""

import itertools
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from prade import DataError, Release
from prade.core.execution import Execution, WorkersError
from prade.estimating.levels import descent, group_fits
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.estimates import Estimates, estimates_of, kept_estimates
from prade.estimating.levels.foundation import shared_foundation
from prade.planning.settings import Settings
from prade.release.derived_files import ESTIMATES, SUPPORT_FOR_WORKERS, UNFINISHED_ESTIMATES
from worlds.many_places import PLACES, STATES, bits, public, release
from worlds.processes import killed_when_done

SETTINGS = {
    "usual": Settings(),
    "raw answers": Settings(smooth=False),
    "rows emptied": Settings(estimator="two-stage"),
    "added rows": Settings(extra=0.02),
    "some rows": Settings(support=400),
}
PUBLIC = public()
RELEASE = release()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_threads_and_processes_give_the_same_bits(settings, processes):
    expected = bits(Estimates.of(RELEASE, PUBLIC, settings))
    assert bits(Estimates.of(RELEASE, PUBLIC, settings, execution=Execution(1, processes))) == expected
    with ThreadPoolExecutor(3) as threads:
        assert bits(Estimates.of(RELEASE, PUBLIC, settings, execution=Execution(2, threads))) == expected


RUN = """
import sys
from pathlib import Path
from prade import Release
from prade.core.execution import Execution
from prade.estimating.levels import group_fits
from prade.estimating.levels.estimates import estimates_of
from worlds.many_places import public

group_fits.KEEP_EVERY = group_fits.SHARE_OF_TIME = 0.0

def told(what, done, number):
    print(done, flush=True)
    if done == int(sys.argv[2]):
        sys.stdin.read()  # until it is killed

estimates_of(Release.load(sys.argv[1]), public(), execution=Execution(2, progress=told))
"""


def test_a_killed_run_goes_on_where_it_was_and_gives_the_same_bits(tmp_path, monkeypatch):
    made = release(tmp_path / "release")
    killed_when_done(RUN, 50, made.path, 50)  # a real process
    unfinished = made.path / UNFINISHED_ESTIMATES
    assert unfinished.is_dir()
    assert not (made.path / ESTIMATES).exists()
    told, worked_on = [], []
    real = Descent.made

    def watched(self, known=()):
        for batch in real(self, known):
            worked_on.extend(each.tilt.group for each in batch)
            yield batch

    monkeypatch.setattr(Descent, "made", watched)
    estimates = estimates_of(made, PUBLIC, execution=Execution(progress=lambda what, done, number: told.append(done)))
    assert told[-1] == STATES * PLACES
    assert 0 not in worked_on
    assert 0 < len(worked_on) <= STATES * PLACES - 48  # those of the batch that was being kept may be lost
    assert bits(estimates) == bits(Estimates.of(made, PUBLIC)) == bits(kept_estimates(made))
    assert not unfinished.exists()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A release whose estimates were killed when 30 groups were done."""
    folder = tmp_path_factory.mktemp("killed") / "release"
    killed_when_done(RUN, 30, release(folder).path, 30)
    return folder


@pytest.fixture
def unfinished(killed, tmp_path):
    """The same in a folder of its own."""
    shutil.copytree(killed, tmp_path / "release")
    return Release.load(tmp_path / "release")


def test_groups_of_other_settings_are_not_used(unfinished):
    settings = Settings(n0=50.0)
    assert bits(estimates_of(unfinished, PUBLIC, settings)) == bits(Estimates.of(unfinished, PUBLIC, settings))


def test_a_damaged_file_of_groups_is_not_used(unfinished):
    files = sorted((unfinished.path / UNFINISHED_ESTIMATES).glob("*.msgpack"))
    content = files[-1].read_bytes()
    files[-1].write_bytes(content[:-8] + bytes(8))
    assert bits(estimates_of(unfinished, PUBLIC)) == bits(Estimates.of(unfinished, PUBLIC))


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(tmp_path, monkeypatch):
    made = release(tmp_path / "release")
    monkeypatch.setattr(group_fits, "monotonic", itertools.count(0.0, 10.0).__next__)  # it is always time to keep some
    kept = []

    def full(folder, batch, suffix):
        kept.append(batch)
        if len(kept) > 10:
            raise DataError("the disk is full")
        return real(folder, batch, suffix)

    real = group_fits.keep_batch
    with monkeypatch.context() as patched:
        patched.setattr(group_fits, "keep_batch", full)
        with pytest.raises(DataError, match="the disk is full"):
            estimates_of(made, PUBLIC)
    assert len(list((made.path / UNFINISHED_ESTIMATES).glob("*.msgpack"))) == 10
    assert bits(estimates_of(made, PUBLIC)) == bits(Estimates.of(made, PUBLIC))


def test_processes_find_what_they_need_in_the_release_folder_and_nothing_is_left(tmp_path, processes):
    made = release(tmp_path / "release")
    seen = []

    def told(*_):
        seen.append((made.path / UNFINISHED_ESTIMATES / SUPPORT_FOR_WORKERS).exists())

    estimates = estimates_of(made, PUBLIC, execution=Execution(1, processes, progress=told))
    assert all(seen)
    assert bits(estimates) == bits(Estimates.of(made, PUBLIC))
    assert not (made.path / UNFINISHED_ESTIMATES).exists()


def test_a_worker_without_the_release_folder_says_so(tmp_path, monkeypatch, processes):
    made = release(tmp_path / "release")

    def elsewhere(foundation, folder, key):
        shared = shared_foundation(foundation, folder, key)
        os.rename(folder / SUPPORT_FOR_WORKERS, tmp_path / "on another machine")
        return shared

    monkeypatch.setattr(descent, "shared_foundation", elsewhere)
    with pytest.raises(WorkersError, match=r"cannot find /.*support\.arrow: all workers must see the folder"):
        estimates_of(made, PUBLIC, execution=Execution(1, processes))
