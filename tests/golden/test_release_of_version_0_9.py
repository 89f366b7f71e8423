"""A release that version 0.9 made still loads, is the same release, and gives the estimates and rows that it gave last.

The people are invented; version 0.9.0 (commit 12f3de0) made the folder. Its noise cannot be drawn again; everything
that follows from it is worked out again and compared with the folder `estimates`: rows exactly, numbers up to the
rounding of another processor. Version 0.11 estimates by another model, so that its estimates are not those that version
0.9 wrote. After a change that is meant, this writes what is expected anew:

    PYTHONPATH=src .venv/bin/python tests/golden/test_release_of_version_0_9.py
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.parquet as pq
import pytest

import prade
from prade import DataError, Ledger, Release

HERE = Path(__file__).parent
KEPT, EXPECTED = HERE / "release-0.9", HERE / "estimates"
MADE = ("estimates.parquet", "synthetic.parquet")
HASH = "c532b76043fe30d34ab21c1989cbb8e50e5c965e91905cf4b3eafc7440944fa7"
ROUNDING = {"rtol": 1e-3, "atol": 1e-4}  # another processor's linear algebra differs in the last bits, and fits in more


def estimated(world):
    """Estimates and synthetic rows made anew: a table of both."""
    prade.estimate(Release.load(world / "release"), world / "public.parquet", anew=True)
    rows = prade.sample(world / "release", world / "public.parquet", seed=1, like="pyarrow")
    return pq.read_table(world / "release" / MADE[0]), rows


@pytest.fixture
def world(tmp_path):
    return shutil.copytree(KEPT, tmp_path / "world")


def test_the_plan_has_the_same_hash(world):
    assert Release.load(world / "release").plan.hash == HASH


def test_estimates_of_version_0_9_are_refused_in_words(world):
    with pytest.raises(
        DataError, match="made by an earlier version of prade: run `prade estimate` again, which spends"
    ):
        prade.sample(world / "release", world / "public.parquet", seed=1)


def test_estimates_and_rows_are_the_same(world):
    estimates, rows = estimated(world)
    before = pq.read_table(EXPECTED / MADE[0])
    assert estimates.column_names == before.column_names
    for name in before.column_names:
        old, new = before[name].to_pylist(), estimates[name].to_pylist()
        assert [each is None for each in new] == [each is None for each in old]
        old, new = ([each for each in column if each is not None] for column in (old, new))
        if old and isinstance(old[0], float | list):
            np.testing.assert_allclose(np.hstack(new), np.hstack(old), **ROUNDING, err_msg=name)
        else:
            assert new == old, name
    assert rows.schema.equals(pq.read_table(KEPT / "release" / MADE[1]).schema)
    assert rows.equals(pq.read_table(EXPECTED / MADE[1]))


def test_its_ledger_is_read_and_knows_the_release(world):
    ledger = Ledger(world / "agency.ledger")
    assert [entry.plan_hash for entry in ledger.entries("census")] == [HASH]
    plan, public = Release.load(world / "release").plan, world / "public.parquet"
    release = prade.measure(plan, "no-such-file.parquet", world / "release", ledger, public=public)
    assert release.plan.hash == HASH  # found: nothing was read, nothing was spent
    assert len(ledger.entries("census")) == 1


if __name__ == "__main__":
    EXPECTED.mkdir(exist_ok=True)
    with TemporaryDirectory() as place:
        for name, made in zip(MADE, estimated(shutil.copytree(KEPT, Path(place) / "world")), strict=True):
            pq.write_table(made, EXPECTED / name)
