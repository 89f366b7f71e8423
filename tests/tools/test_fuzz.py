"""The fuzzer of readers (`make fuzz`) itself: a few inputs for each reader, and that it notices what it looks for."""

import random
import time

import pytest

from fuzz import run
from fuzz.world import Reader, World
from prade.core.errors import DataError

INPUTS = 100  # for each reader; `make fuzz` reads millions


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", run.ALL, ids=lambda make: make.__name__)
def test_every_input_is_read_or_refused(world, make, monkeypatch):
    monkeypatch.chdir(world.folder)
    reader, rng = make(world), random.Random(1)
    ends = [run.one(reader, reader.mutate(rng)) for _ in range(INPUTS)]
    assert {where for _, where in ends} == {""}
    kinds = [kind for kind, _ in ends]
    assert 0 < kinds.count("accepted") < INPUTS  # neither all nonsense nor all sound


def ends(action, **limits):
    return run.one(Reader("any", lambda rng: None, action), None, **limits)


def test_what_it_looks_for_is_noticed(monkeypatch):
    def refused(given):
        raise DataError("no")

    assert ends(lambda given: 1) == ("accepted", "")
    assert ends(refused) == ("DataError", "")
    kind, where = ends(lambda given: {}["x"])
    assert (kind, where.split()[0]) == ("UNCAUGHT", "KeyError")
    assert ends(lambda given: time.sleep(0.05), slow=0.01) == ("UNCAUGHT", "slow any")
    most = run._most_memory()
    monkeypatch.setattr(run, "_most_memory", iter([most, most + 11 * 2**20]).__next__)
    assert ends(lambda given: 1, slow=60, large=10 * 2**20) == ("UNCAUGHT", "memory any")
