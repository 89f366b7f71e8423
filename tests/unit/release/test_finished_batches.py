"""Finished batches: kept until the run is complete, for one key, undamaged, and one run at a time."""

import errno
import os

import pytest

from prade import DataError
from prade.release.derived_files import JOB, FinishedBatches, keep_batch


def keep(finished, batch, text):
    with keep_batch(finished.folder, batch, ".txt") as temporary:
        temporary.write_text(text)


def found(batches, name):
    """The file of a finished batch; None if there is none, or if it is damaged."""
    return next((path for path in batches.paths(".txt") if path.name.split(".")[0] == name), None)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "unfinished"


def test_what_is_finished_is_found_by_the_next_run_with_the_same_key(folder):
    with FinishedBatches.open(folder, "key") as finished:
        assert found(finished, "0-1") is None
        keep(finished, "0-1", "one")
        keep(finished, "0-10", "ten")
    with FinishedBatches.open(folder, "key") as finished:
        assert found(finished, "0-1").read_text() == "one"
        assert found(finished, "0-10").read_text() == "ten"
        assert found(finished, "0-2") is None
        finished.remove()
    assert not folder.exists()


@pytest.mark.parametrize(("key", "record"), [("other", None), ("key", ""), ("key", '{"format": 1, "key": "key"}')])
def test_batches_of_another_key_or_with_a_damaged_record_are_removed(folder, key, record):
    with FinishedBatches.open(folder, "key") as finished:
        keep(finished, "0-1", "one")
    if record is not None:
        (folder / JOB).write_text(record)
    with FinishedBatches.open(folder, key) as finished:
        assert found(finished, "0-1") is None
        assert [each.name for each in folder.iterdir()] == [JOB]


def test_a_damaged_batch_counts_as_not_finished(folder):
    with FinishedBatches.open(folder, "key") as finished:
        keep(finished, "0-1", "one")
        found(finished, "0-1").write_text("two")
        assert found(finished, "0-1") is None
        keep(finished, "0-1", "one")
        assert found(finished, "0-1").read_text() == "one"


def test_a_batch_that_fails_leaves_nothing(folder):
    with FinishedBatches.open(folder, "key") as finished:
        with pytest.raises(ZeroDivisionError), keep_batch(folder, "0-1", ".txt") as temporary:
            temporary.write_text(str(1 // 0))
        assert found(finished, "0-1") is None
        assert [each.name for each in folder.iterdir()] == [JOB]


def test_what_a_killed_run_left_half_written_is_removed(folder):
    with FinishedBatches.open(folder, "key"):
        (folder / ".0-1.txt.abc").write_text("half")
    with FinishedBatches.open(folder, "key"):
        assert [each.name for each in folder.iterdir()] == [JOB]


def test_a_second_run_at_the_same_time_has_its_own_folder(folder):
    with FinishedBatches.open(folder, "key") as first, FinishedBatches.open(folder, "key") as second:
        assert first.folder == folder
        assert second.folder == folder.with_name("unfinished-2")
        keep(second, "0-1", "one")
        assert found(first, "0-1") is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_is_a_clear_error_and_what_is_finished_is_kept(folder, number):
    with FinishedBatches.open(folder, "key") as finished:
        keep(finished, "0-1", "one")
        with (
            pytest.raises(DataError, match=f"{os.strerror(number)}.*make room.*what is finished is kept"),
            keep_batch(folder, "0-2", ".txt"),
        ):
            raise OSError(number, os.strerror(number))
        assert found(finished, "0-1") is not None
