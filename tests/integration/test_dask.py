"""A real Dask cluster of several processes: the same bits as on threads, and every fault in words."""

import os
import shutil
import signal
import sys
from contextlib import contextmanager

import pytest

from prade.core.execution import Execution, WorkersError, cluster
from prade.data.read.tables import read_table, write_table
from prade.estimating.levels.estimates import Estimates, estimates_of, kept_estimates
from prade.release.derived_files import SYNTHETIC, UNFINISHED_ESTIMATES, WEIGHTS
from worlds.commands import call
from worlds.many_places import PLACES, STATES, bits, public, public_table, release

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install prade[cluster]")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of sockets that Dask has not closed yet
    pytest.mark.filterwarnings("ignore:.*Port .* is already in use.*:UserWarning"),
]
PUBLIC = public()


@contextmanager
def running(workers):
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=workers, **options) as made:
        yield made


@pytest.fixture(scope="module")
def address():
    with running(3) as made:
        yield made.scheduler_address


@pytest.fixture
def made(tmp_path):
    return release(tmp_path / "release")


@pytest.fixture(scope="module")
def expected():
    return bits(Estimates.of(release(), PUBLIC))


def test_the_cluster_gives_the_bits_of_threads(address, made, expected):
    with cluster(address) as executor:
        workers = Execution(1, executor)
        assert workers.number == 3
        assert bits(estimates_of(made, PUBLIC, execution=workers)) == expected
    assert not (made.path / UNFINISHED_ESTIMATES).exists()


def test_a_worker_that_is_killed_in_the_middle_is_survived(made, expected):
    """In a cluster of its own: Dask may lose a task that it gives to a worker which is just being replaced."""
    killed = []

    def told(what, done, number):
        if done > 30 and not killed:
            with distributed.Client(one.scheduler_address, set_as_default=False) as client:
                killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with running(3) as one, cluster(one.scheduler_address) as executor:
        assert bits(estimates_of(made, PUBLIC, execution=Execution(1, executor, progress=told))) == expected
    assert killed


def test_all_stages_on_the_command_line(address, made, tmp_path, monkeypatch):
    """Without kept weights, so that the report works groups out on the cluster; the files are those of threads."""
    monkeypatch.setattr("prade.estimating.levels.estimates.weights_in_folder", lambda *_: None)
    write_table(public_table(), tmp_path / "public.parquet")
    alone, on_the_cluster, real = tmp_path / "alone", set(), Execution.map
    shutil.copytree(made.path, alone)

    def watched(self, work, *more, **named):
        if self.executor is not None:
            on_the_cluster.add(work.func.__name__)
        return real(self, work, *more, **named)

    monkeypatch.setattr(Execution, "map", watched)
    for folder, where in ((made.path, ["--cluster", address]), (alone, [])):
        given = [folder, "--public", tmp_path / "public.parquet", *where]
        assert f"PLACE: {STATES * PLACES} groups" in call("estimate", *given).output
        call("sample", *given, "--seed", 3)
        call("report", folder, *where)
        assert not (folder / WEIGHTS).exists()
    assert on_the_cluster == {"estimated", "_drawn", "_tables_of"}
    assert bits(kept_estimates(made)) == bits(Estimates.of(made, PUBLIC))
    one, other = (read_table(folder / SYNTHETIC) for folder in (made.path, alone))
    assert one.equals(other)
    pages = [(folder / "report.html").read_text() for folder in (made.path, alone)]
    assert pages[0].replace(str(made.path), "") == pages[1].replace(str(alone), "")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("tcp://127.0.0.1:1", "no scheduler answers at .* within 0.5 seconds: start one with"),
        ("nonsense", "is not the address of a scheduler .*give one such as tcp://"),
        ("carrier-pigeon://x:1", "is not the address of a scheduler .*give one such as tcp://"),
    ],
)
def test_what_is_no_scheduler(where, words):
    with pytest.raises(WorkersError, match=words):
        cluster(where, 0.5).__enter__()


def test_a_cluster_without_workers():
    with running(0) as made, pytest.raises(WorkersError, match="has no workers: start some with `dask worker tcp://"):
        cluster(made.scheduler_address, 0.5).__enter__()


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkersError, match=r'not installed: run pip install "prade\[cluster\]"'):
        cluster("tcp://127.0.0.1:1").__enter__()
