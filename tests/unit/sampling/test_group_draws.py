"""Rows drawn by workers and in batches: the same rows wherever and however often, and runs that go on after a kill."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

from prade import Release
from prade.core.execution import Execution, WorkersError
from prade.data.public.table import PublicTable
from prade.estimating.levels.estimates import estimates_of, kept_estimates
from prade.pipeline import sample
from prade.release.derived_files import UNFINISHED_ROWS
from prade.sampling.row_files import Output, write_drawn_rows
from prade.sampling.table import Drawer, drawn_batches, drawn_table
from worlds.many_places import PLACES, STATES, public, public_table, release
from worlds.processes import killed_when_done

TABLE = public_table()
TENTH = 2_000  # rows of a batch: the groups have about 20,000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Estimates that are kept in a release's folder."""
    return estimates_of(release(tmp_path_factory.mktemp("made") / "release"), public())


@pytest.fixture(scope="module")
def expected(made):
    return sample(made, TABLE, seed=4, execution=Execution(1))


def in_batches(estimates, rows_of_batch=TENTH, seed=4, table=TABLE):
    """The table of synthetic rows, drawn in batches of this size."""
    with patch("prade.sampling.table.drawn_batches", partial(drawn_batches, rows_of_batch=rows_of_batch)):
        return drawn_table(estimates, PublicTable(table), seed, "pyarrow", Execution(1))


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


@pytest.mark.parametrize(("size", "number"), [(1, STATES * PLACES), (TENTH, 10), (10**9, 1)])
def test_the_size_of_batches_changes_nothing(made, expected, size, number):
    assert abs(len(list(drawn_batches(made, 4, rows_of_batch=size, execution=Execution(1)))) - number) <= 1
    assert in_batches(made, size).equals(expected)


def test_values_that_are_drawn_do_not_depend_on_the_batch(made):
    """A public table in another order: donors are found by their codes and drawn with each row's own numbers."""
    turned = TABLE.take(np.random.default_rng(0).permutation(TABLE.num_rows))
    whole = in_batches(made, 10**9, table=turned)
    assert in_batches(made, 300, table=turned).equals(whole)
    assert not in_batches(made, 300, 5, turned).equals(whole)


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


def files_of(folder, name):
    inside = sorted((folder / name).rglob("*")) if (folder / name).is_dir() else [folder / name]
    return {path.relative_to(folder): path.read_bytes() for path in inside if path.is_file()}


@pytest.mark.parametrize(("form", "name"), [("file", "synthetic.parquet"), ("parts", "synthetic")])
def test_a_killed_run_goes_on_and_writes_the_same_files(made, tmp_path, monkeypatch, form, name):
    """Batches of another seed, and one that was damaged since, are drawn again."""
    folder = shutil.copytree(made.release.path, tmp_path / "release")
    estimates = kept_estimates(Release.load(folder))
    written(estimates, form)
    expected = files_of(folder, name)
    (folder / "synthetic.json").unlink()
    shutil.rmtree(folder / name) if form == "parts" else (folder / name).unlink()

    killed_when_done(RUN, 100, folder, 100, 4, form)
    assert not (folder / name).exists()  # no half file
    finished = sorted((folder / UNFINISHED_ROWS).glob("*.npy"))
    assert len(finished) >= 5
    finished[0].write_bytes(finished[0].read_bytes()[:-8] + bytes(8))
    asked = []
    real = Drawer.rows
    monkeypatch.setattr(Drawer, "rows", lambda self, group, number: asked.append(group) or real(self, group, number))
    written(estimates, form)
    assert 0 < len(asked) < STATES * PLACES - 60
    assert files_of(folder, name) == expected
    assert not (folder / UNFINISHED_ROWS).exists()

    killed_when_done(RUN, 100, folder, 100, 5, form)
    written(estimates, form)
    assert files_of(folder, name) == expected
