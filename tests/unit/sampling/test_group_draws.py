"""Rows drawn by workers and in batches: the same rows wherever and however often, and runs that go on after a kill."""

import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from prade import DataError, Release
from prade.core.execution import Execution, WorkersError
from prade.data.public.table import PublicTable
from prade.estimating.levels.estimates import estimates_of, kept_estimates
from prade.pipeline import sample
from prade.release.derived_files import UNFINISHED_ROWS
from prade.sampling.row_files import Output, write_drawn_rows
from prade.sampling.table import Drawer, drawn_batches, drawn_table
from worlds.many_places import PLACES, STATES, people, public, release
from worlds.processes import killed_when_done

TABLE = pa.table(people(2_000, [1, 8, 9], 1, places=8))
TENTH = 2_000  # rows of a batch: the groups have about 20,000


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Estimates that are kept in a release's folder."""
    return estimates_of(release(tmp_path_factory.mktemp("made") / "release"), public())


@pytest.fixture(scope="module")
def expected(made):
    return sample(made, TABLE, seed=4, execution=Execution(1))


def rows_of(estimates, execution=Execution(1), **settings):
    return [batch.rows for batch in drawn_batches(estimates, 4, execution=execution, **settings)]


def in_batches(estimates, rows_of_batch=TENTH, seed=4, table=TABLE):
    """The table of synthetic rows, drawn in batches of this size."""
    settings = {"rows_of_batch": rows_of_batch, "execution": Execution(1)}
    return drawn_table(estimates, PublicTable(table), seed, like="pyarrow", **settings)


# ---------------------------------------------------------------- wherever they are drawn


def test_threads_processes_and_any_number_of_them_draw_the_same_rows(made, expected, processes):
    assert sample(made, TABLE, seed=4, execution=Execution(executor=processes)).equals(expected)
    assert sample(made, TABLE, seed=4, execution=Execution(3)).equals(expected)
    with ThreadPoolExecutor(2) as threads:
        assert sample(made, TABLE, seed=4, execution=Execution(executor=threads)).equals(expected)


def test_a_worker_that_does_not_see_the_folder_says_so(made, processes, tmp_path):
    away = estimates_of(release(tmp_path / "away"), public())
    shutil.move(tmp_path / "away", tmp_path / "gone")
    with pytest.raises(WorkersError, match=r"cannot find .*away: all workers must see the folder"):
        list(drawn_batches(away, 0, execution=Execution(1, processes)))


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize(("size", "number"), [(1, STATES * PLACES), (TENTH, 10), (10**9, 1)])
def test_the_size_of_batches_changes_nothing(made, expected, size, number):
    assert abs(len(rows_of(made, rows_of_batch=size)) - number) <= 1
    assert in_batches(made, size).equals(expected)


def test_values_that_are_drawn_do_not_depend_on_the_batch(made):
    """A public table in another order: donors are found by their codes and drawn with each row's own numbers."""
    turned = TABLE.take(np.random.default_rng(0).permutation(TABLE.num_rows))
    whole = in_batches(made, 10**9, table=turned)
    assert in_batches(made, 300, table=turned).equals(whole)
    assert not in_batches(made, 300, 5, turned).equals(whole)


# ---------------------------------------------------------------- going on after a kill


RUN = """
import sys
from prade import Execution, Release
from prade.estimating.levels.estimates import kept_estimates
from unit.sampling.test_group_draws import written

def told(what, done, number):
    print(done, flush=True)
    if done == int(sys.argv[2]):
        sys.stdin.read()  # until it is killed

estimates = kept_estimates(Release.load(sys.argv[1]))
written(estimates, sys.argv[4], int(sys.argv[3]), Execution(1, progress=told))
"""


def written(estimates, form, seed=4, execution=Execution(1)):
    """Write rows to the release's folder, as a file or as parts, in small batches."""
    output = Output.of(estimates.release, partitioned=form == "parts")
    write_drawn_rows(estimates, PublicTable(TABLE), seed, output, rows_of_batch=TENTH, execution=execution)


def killed_run(folder, after, seed=4, form="file"):
    """A real process that draws rows, and is killed when this many groups are done."""
    killed_when_done(RUN, after, folder, after, seed, form)


@pytest.fixture
def folder(made, tmp_path):
    """A release's folder of its own, with the same estimates."""
    return shutil.copytree(made.release.path, tmp_path / "release")


def files_of(folder, name):
    found = folder / name
    inside = sorted(found.rglob("*")) if found.is_dir() else [found]
    return {path.relative_to(folder): path.read_bytes() for path in inside if path.is_file()}


@pytest.mark.parametrize(("form", "name"), [("file", "synthetic.parquet"), ("parts", "synthetic")])
def test_a_killed_run_goes_on_and_writes_the_same_files(folder, monkeypatch, form, name):
    estimates = kept_estimates(Release.load(folder))
    written(estimates, form)
    expected = files_of(folder, name)
    (folder / "synthetic.json").unlink()
    shutil.rmtree(folder / name) if form == "parts" else (folder / name).unlink()

    killed_run(folder, 100, form=form)
    assert not (folder / name).exists()  # no half file
    assert not (folder / "synthetic.json").exists()
    finished = list((folder / UNFINISHED_ROWS).glob("*.npy"))
    assert len(finished) >= 5
    asked = []
    real = Drawer.rows
    monkeypatch.setattr(Drawer, "rows", lambda self, group, number: asked.append(group) or real(self, group, number))
    written(estimates, form)
    assert 0 < len(asked) <= 85
    assert files_of(folder, name) == expected
    assert not (folder / UNFINISHED_ROWS).exists()
    assert not list(folder.glob(".synthetic.unfinished"))


def test_batches_of_another_seed_or_damaged_ones_are_not_used(made, folder, tmp_path, expected):
    killed_run(folder, 60)
    other = kept_estimates(Release.load(shutil.copytree(folder, tmp_path / "other")))
    assert in_batches(other, seed=5).equals(in_batches(made, seed=5))
    damaged = sorted((folder / UNFINISHED_ROWS).glob("*.npy"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-8] + bytes(8))
    assert in_batches(kept_estimates(Release.load(folder))).equals(expected)


def test_a_full_disk_is_a_clear_error_and_what_is_finished_is_kept(folder, monkeypatch, expected):
    estimates, kept = kept_estimates(Release.load(folder)), []
    real = np.save

    def full(file, rows):
        kept.append(rows)
        if len(kept) > 3:
            raise OSError(28, "No space left on device")
        real(file, rows)

    with monkeypatch.context() as patched:
        patched.setattr(np, "save", full)
        with pytest.raises(DataError, match=r"No space left on device.: make room there.*what is finished is kept"):
            in_batches(estimates)
    assert len(list((folder / UNFINISHED_ROWS).glob("*.npy"))) == 3
    assert in_batches(estimates).equals(expected)
