"""A release that version 0.9 made still loads, is the same release, and gives the same estimates and rows.

The people are invented; version 0.9.0 (commit 12f3de0) made the folder. Its noise cannot be drawn again; everything
that follows from it is worked out again and compared with what version 0.9 wrote: rows exactly, numbers up to the
rounding of another processor.
"""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import prade
from prade import Ledger, Release

KEPT = Path(__file__).parent / "release-0.9"
HASH = "c532b76043fe30d34ab21c1989cbb8e50e5c965e91905cf4b3eafc7440944fa7"
DROPPED = {"resemblance"}  # columns of the estimate file that later versions do not write
ROUNDING = {"rtol": 1e-9, "atol": 1e-12}  # another processor's linear algebra differs in the last bits


@pytest.fixture
def world(tmp_path):
    return shutil.copytree(KEPT, tmp_path / "world")


def test_the_plan_has_the_same_hash(world):
    assert Release.load(world / "release").plan.hash == HASH


def test_estimates_are_the_same(world):
    prade.estimate(Release.load(world / "release"), world / "public.parquet", anew=True)
    before, after = (pq.read_table(folder / "release" / "estimates.parquet") for folder in (KEPT, world))
    assert set(before.column_names) - DROPPED <= set(after.column_names)
    for name in (name for name in before.column_names if name not in DROPPED):
        old, new = before[name].to_pylist(), after[name].to_pylist()
        if isinstance(old[0], float):
            np.testing.assert_allclose(new, old, **ROUNDING)
        elif isinstance(old[0], list):
            assert [len(each) for each in new] == [len(each) for each in old]
            np.testing.assert_allclose(np.concatenate(new), np.concatenate(old), **ROUNDING)
        else:
            assert new == old, name


def test_rows_are_the_same(world):
    rows = prade.sample(world / "release", world / "public.parquet", seed=1, like="pyarrow")
    kept = pq.read_table(KEPT / "release" / "synthetic.parquet")
    assert rows.schema.equals(kept.schema)
    assert rows.equals(kept)


def test_its_ledger_is_read_and_knows_the_release(world):
    ledger = Ledger(world / "agency.ledger")
    assert [entry.plan_hash for entry in ledger.entries("census")] == [HASH]
    plan, public = Release.load(world / "release").plan, world / "public.parquet"
    release = prade.measure(plan, "no-such-file.parquet", world / "release", ledger, public=public)
    assert release.plan.hash == HASH  # found: nothing was read, nothing was spent
    assert len(ledger.entries("census")) == 1
