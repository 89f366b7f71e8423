"""The fuzzer of readers (`make fuzz`) itself: a few inputs for each reader, and that it notices what it looks for."""

import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

import fuzz_readers
from readers import ALL, Reader, World

from prade.core.errors import DataError

INPUTS = 60  # for each reader; `make fuzz` reads millions


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_every_input_is_read_or_refused(world, make, monkeypatch):
    monkeypatch.chdir(world.folder)
    reader, rng = make(world), random.Random(1)
    ends = [fuzz_readers.one(reader, reader.mutate(rng)) for _ in range(INPUTS)]
    assert {where for _, where in ends} == {""}
    kinds = [kind for kind, _ in ends]
    assert 0 < kinds.count("accepted") < INPUTS  # neither all nonsense nor all sound


def ends(action):
    return fuzz_readers.one(Reader("any", lambda rng: None, action), None)


def test_what_it_looks_for_is_noticed(monkeypatch):
    def refused(given):
        raise DataError("no")

    assert ends(lambda given: 1) == ("accepted", "")
    assert ends(refused) == ("DataError", "")
    kind, where = ends(lambda given: {}["x"])
    assert (kind, where.split()[0]) == ("UNCAUGHT", "KeyError")
    monkeypatch.setattr(fuzz_readers, "SLOW", 0.01)
    assert ends(lambda given: time.sleep(0.05)) == ("UNCAUGHT", "slow any")
    monkeypatch.setattr(fuzz_readers, "LARGE", 10 * 2**20)
    monkeypatch.setattr(fuzz_readers, "SLOW", 60)
    most = fuzz_readers._most_memory()
    monkeypatch.setattr(fuzz_readers, "_most_memory", iter([most, most + 11 * 2**20]).__next__)
    assert ends(lambda given: 1) == ("UNCAUGHT", "memory any")
