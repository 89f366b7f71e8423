"""At most so many rows of each person: against a plain Python model, and ids that are never confused or split."""

import datetime
import secrets
import uuid
from collections import Counter
from contextlib import ExitStack
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from prade import Column
from prade.data.read.cells import object_cells
from prade.data.read.coding import exact_ids
from prade.measuring.person_bound import PersonRows, bounded, hashed, record_type
from prade.privacy.protection import Unit
from worlds.counting import counted

RECORD = record_type({"AGE": np.dtype(np.int16), "SEX": np.dtype(np.int16)})


def records(rows):
    """Rows of (person, place, age, sex); the second half of a person is another number."""
    return np.array([(person, 7 * person + 1, place, age, sex) for person, place, age, sex in rows], RECORD)


def contents(rows):
    return Counter(tuple(map(int, row)) for row in rows.tolist())


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), max_size=25)


@settings(max_examples=100)
@given(rows=ROWS, most=st.integers(1, 5), per_group=st.none() | st.integers(1, 3))
def test_each_person_keeps_as_many_rows_as_allowed(rows, most, per_group):
    unit = Unit(most, person_id="ID", per_group=None if per_group is None else min(per_group, most))
    kept = bounded(records(rows), unit)
    assert contents(kept) <= contents(records(rows))
    for person in {row[0] for row in rows}:
        places = Counter(place for each, place, *_ in rows if each == person)
        allowed = sum(min(number, unit.per_group or most) for number in places.values())
        assert int((kept["person"] == person).sum()) == min(allowed, most)
        for place in places:
            chosen = (kept["person"] == person) & (kept["place"] == place)
            assert int(chosen.sum()) <= (unit.per_group or most)


@settings(max_examples=100)
@given(rows=ROWS, seed=st.integers(0, 9), most=st.integers(1, 3), per_group=st.booleans())
def test_what_is_kept_of_a_person_depends_on_that_persons_rows_alone(rows, seed, most, per_group):
    """Not on the others, nor on the order in which rows come."""
    unit = Unit(most, person_id="ID", per_group=1 if per_group else None)
    together = bounded(records(rows), unit)
    order = np.random.default_rng(seed).permutation(len(rows))
    assert contents(bounded(records(rows)[order], unit)) == contents(together)
    for person in {row[0] for row in rows}:
        alone = bounded(records([row for row in rows if row[0] == person]), unit)
        assert contents(alone) == contents(together[together["person"] == person])


def test_rows_are_chosen_at_random():
    """Of 4,000 persons with two rows each, about half keep the first: beyond these bounds once in 10^15."""
    people = np.arange(1, 4001)
    ids = pa.array(np.repeat(people, 2).astype(str)).cast(pa.large_binary())
    halves, _ = hashed(ids, secrets.token_bytes(32))
    rows = np.empty(8000, RECORD)
    rows["person"], rows["person_too"] = halves.T
    rows["place"], rows["code AGE"], rows["code SEX"] = 0, np.tile([0, 1], 4000), 0
    kept = bounded(rows, Unit(1, person_id="ID"))
    assert len(kept) == 4000
    assert 1750 < int((kept["code AGE"] == 0).sum()) < 2250


@pytest.mark.parametrize("memory", [2**30, 2000, 0], ids=["in memory", "spilled in part", "all spilled"])
def test_rows_beyond_the_memory_go_to_disk_and_come_back(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    generator = np.random.default_rng(1)
    rows = np.empty(3000, RECORD)
    person = generator.integers(0, 900, 3000)
    rows["person"], rows["person_too"] = person, person
    for name in ("place", "code AGE", "code SEX"):
        rows[name] = generator.integers(0, 5, 3000)
    unit = Unit(2, person_id="ID")
    with ExitStack() as folders:
        people = PersonRows(RECORD, unit, folders, memory)
        for start in range(0, 3000, 100):
            people.add(rows[start : start + 100])
        spilled = [(oct(each.stat().st_mode)[-3:], len(list(each.iterdir()))) for each in tmp_path.iterdir()]
        assert spilled == ([] if memory == 2**30 else [("700", 257)])  # a file for each pile of persons, and the mark
        found = np.concatenate(list(people.within_bounds()))
    assert contents(found) == contents(bounded(rows, unit))
    assert list(tmp_path.iterdir()) == []


LARGE = 900_000_000_000_000_000


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(range(LARGE, LARGE + 1000)),
        pa.array([str(number) for number in range(LARGE, LARGE + 1000)]),
        pa.array([Decimal(number) for number in range(LARGE, LARGE + 1000)], pa.decimal128(38, 0)),
        pa.array([2**63 + number for number in range(1000)], pa.uint64()),
        object_cells([2**70 + number for number in range(1000)]),
        object_cells([LARGE + number for number in range(1000)]),
        pa.array([bytes([255, number // 256, number % 256]) for number in range(1000)]),
        pa.array(range(1000), pa.timestamp("ns")),
        pa.array(range(LARGE, LARGE + 1000)).dictionary_encode(),
    ],
    ids=["int64", "text", "decimal", "uint64", "objects of 71 bits", "objects", "bytes", "nanoseconds", "dictionary"],
)
def test_different_ids_are_different_persons(cells):
    ids = exact_ids(cells)
    assert ids.null_count == 0
    assert len(ids.unique()) == 1000
    halves, known = hashed(ids, bytes(32))
    assert known.all()
    assert len(np.unique(halves, axis=0)) == 1000


@pytest.mark.parametrize(
    "alike",
    [
        [7, 7.0, "7", Decimal("7.00"), np.int8(7), np.float32(7)],
        [LARGE + 1, str(LARGE + 1), Decimal(LARGE + 1)],
        [-3, -3.0, "-3"],
        [1.5, "1.5", Decimal("1.50")],
        [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), "2020-01-01"],
        [datetime.date(2020, 1, 1), "2020-01-01"],
        [7, "7.0", "7.000"],
        [uuid.UUID(int=7), str(uuid.UUID(int=7))],
    ],
)
def test_one_id_is_one_person_in_every_type(alike):
    """Files of one table may have different types: one missing id turns whole numbers into floats."""
    assert len(set(exact_ids(object_cells(alike)).to_pylist())) == 1
    plain = [value for value in alike if not isinstance(value, (np.generic, uuid.UUID))]
    each = [exact_ids(pa.array([value], from_pandas=True)) for value in plain]
    assert len({ids[0].as_py() for ids in each}) == 1


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([None, float("nan"), float("inf"), 2.0**53, -(2.0**60), 1e300], from_pandas=False),
        pa.array(["", None]),
        pa.array([b"", None]),
        pa.nulls(3),
        pa.array([[1], [2]]),
        pa.array([2**62, -(2**62)], pa.timestamp("s")),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([2.0**24, 2.0**24 + 2, -(2.0**30)], pa.float32()),
        pa.array([2.0**11, 4000], pa.float16()),
    ],
    ids=lambda cells: str(cells.type),
)
def test_what_cannot_be_an_id_is_none(cells):
    assert exact_ids(cells).null_count == len(cells)


@pytest.mark.parametrize("most", [1, 3, 10])
def test_a_person_is_the_same_in_every_batch(most):
    """Two persons with a row in each of ten batches."""
    rows = pa.table({"AGE": [age for number in range(10) for age in (number, 70)], "ID": [1, 2] * 10})
    column = Column("AGE", "numeric", edges=[18, 65])
    found = counted(rows, column, None, Unit(most, person_id="ID"), rows_per_batch=2)
    assert found.tolist() == [[most, 0, most]]


def test_ids_of_different_kinds_are_not_confused():
    cells = object_cells([0, datetime.date(1970, 1, 1), "1970", 1970, datetime.date(9999, 12, 31), "a", "a.0", ".0"])
    assert len(exact_ids(cells).unique()) == 7  # "1970" and 1970 are one
    days = pa.array([-719_163, -719_162, 2_932_896, 2_932_897, 10**7], pa.int32()).cast(pa.date32())
    ids = exact_ids(days)
    assert (ids.null_count, len(ids.unique())) == (0, 5)
    stored = pa.array([uuid.UUID(int=7).bytes], pa.binary(16))
    assert exact_ids(pa.ExtensionArray.from_storage(pa.uuid(), stored)).to_pylist() == [str(uuid.UUID(int=7)).encode()]


def test_the_hash_depends_on_the_secret():
    ids = exact_ids(pa.array(["a", "b", "a", None]))
    (first, known), (second, _) = hashed(ids, bytes(32)), hashed(ids, bytes(31) + b"1")
    assert known.tolist() == [True, True, True, False]
    assert (first[0] == first[2]).all()
    assert (first[0] != first[1]).any()
    assert (first[:2] != second[:2]).all()
