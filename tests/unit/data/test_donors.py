"""Donors: the values of a row come from one public row, as far as one has the row's codes."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade import Column, Schema
from prade.core.arrays import Chances
from prade.data.public.decode import NONE, Decoder, Donors
from prade.data.public.joint import Coded, RowIndex, encode

ROWS = 3000


def numeric(name, edges=(10, 20, 30), **more):
    return Column(name, "numeric", edges=edges, integer=True, min=0, max=99, **more)


A, B, C, D = (numeric(name) for name in "ABCD")
SEX = Column("SEX", "categorical", values=[1, 2])


def people(seed=0, rows=ROWS):
    """B is A + 1, C is B + 1 and D is independent: within bins, drawing alone would lose all of that."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 38, rows)
    return pa.table(
        {"A": a, "B": a + 1, "C": a + 2, "D": generator.integers(0, 40, rows), "SEX": generator.integers(1, 3, rows)}
    )


PUBLIC = people()


def as_rows(table, names=None):
    return list(zip(*(table[name].to_pylist() for name in names or table.column_names), strict=True))


def test_every_row_has_the_values_of_one_public_row_with_its_codes():
    schema = Schema([A, B, C, D, SEX])
    coded, decoder = encode(schema, PUBLIC), Decoder.fit(schema, PUBLIC)
    found = decoder.decode(coded, seed=3)
    assert found.equals(decoder.decode(coded, seed=3))
    assert set(as_rows(found)) <= set(as_rows(PUBLIC))
    assert all(np.array_equal(encode(schema, found).codes[name], coded.codes[name]) for name in schema.names)
    assert as_rows(found) != as_rows(PUBLIC)  # any of the people with these codes, not always the same
    drawn = np.arange(ROWS)  # the donors, where they have the codes
    assert as_rows(decoder.decode(coded, seed=3, drawn=drawn)) == as_rows(PUBLIC)
    wrong = np.where(drawn % 2 == 0, drawn, [-1, 10**9] * (ROWS // 2))  # rows that do not exist
    found = as_rows(decoder.decode(coded, seed=3, drawn=wrong))
    assert found[::2] == as_rows(PUBLIC)[::2]
    assert set(found) <= set(as_rows(PUBLIC))


def test_donors_are_drawn_by_weight_and_never_without_it():
    """Of three people with the same codes, one has no weight and one weighs three times the other.

    The share of 3,000 rows is within 4.5 standard errors of 3/4 but once in 150,000 seeds.
    """
    schema = Schema([A, B])
    public = pa.table({"A": [1, 2, 3], "B": [11, 12, 13], "W": [3.0, 0.0, 1.0]})
    coded = Coded(schema, {"A": np.zeros(3000, np.int64), "B": np.ones(3000, np.int64)})
    found = as_rows(Decoder.fit(schema, public, weight="W").decode(coded, seed=5))
    assert set(found) == {(1, 11), (3, 13)}
    drawn = np.tile([1, 0], 1500)  # numbers of the rows with weight
    assert as_rows(Decoder.fit(schema, public, weight="W").decode(coded, seed=5, drawn=drawn))[:2] == [(3, 13), (1, 11)]
    assert abs(np.mean([row == (1, 11) for row in found]) - 0.75) < 4.5 * np.sqrt(0.75 * 0.25 / 3000)


def test_missing_stays_missing_and_a_value_outside_the_domain_is_not_copied():
    schema = Schema([numeric("A", missing=True), numeric("B")])
    public = pa.table({"A": [5, None, 7, 8], "B": [1, 2, 300, -4]})  # 300 and -4 are beyond the schema's bounds
    found = Decoder.fit(schema, public).decode(encode(schema, public), seed=0, drawn=np.arange(4))
    assert found["A"].to_pylist() == [5, None, 7, 8]
    assert found["B"].to_pylist()[:2] == [1, 2]
    assert 30 <= found["B"].to_pylist()[2] <= 99
    assert found["B"].to_pylist()[3] in (1, 2)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_donors_have_the_bins_and_stretches_are_as_long_as_they_can_be(data):
    """Against a search through all public rows, one row and one column after the other."""
    names = "ABC"
    linked = data.draw(st.sampled_from([[], [["A", "B"]], [["B", "C"]], [["C", "A", "B"]]]))
    schema = Schema([numeric(name) for name in names], linked=linked)
    table = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=8)
    public, wanted = (np.array(data.draw(table)) for _ in range(2))
    codes = {name: wanted[:, k] for k, name in enumerate(names)}
    donors = Donors(schema, {name: public[:, k] for k, name in enumerate(names)}, np.ones(len(public)))
    found = donors.find(codes, Chances.of_groups(0, [0], [len(next(iter(codes.values())))]))
    together = [name for each in linked for name in each]
    line = together + [name for name in names if name not in together]

    def has(row, columns):
        return any(all(person[names.index(c)] == row[names.index(c)] for c in columns) for person in public)

    for number, row in enumerate(wanted):
        mine = [found[name][number] for name in names]
        for k, donor in enumerate(mine):
            assert donor == NONE or public[donor][k] == row[k]
        if has(row, names):
            assert len(set(mine)) == 1
            assert NONE not in mine
        for each in [*linked, line[:2]]:
            of_set = {found[name][number] for name in each}
            assert (len(of_set) == 1 and NONE not in of_set) == has(row, each)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_wanted_or_no_public_rows(rows):
    schema = Schema([A, SEX])
    empty = PUBLIC.slice(0, 0)
    coded = Coded(schema, {"A": np.ones(rows, np.int64), "SEX": np.zeros(rows, np.int64)})
    for public in (PUBLIC, empty):
        assert Decoder.fit(schema, public).decode(coded, seed=0).num_rows == rows


@pytest.mark.parametrize("seed", range(5))
def test_runs_are_the_equal_rows_in_their_order(seed):
    generator = np.random.default_rng(seed)
    sizes = [3, 4, 2]
    rows = [generator.integers(0, size, 200).astype(np.uint8) for size in sizes]
    wanted = [generator.integers(-1, size + 2, 50) for size in sizes]  # some codes that no row has
    index = RowIndex(rows, sizes)
    first, stop = index.runs(wanted)
    for k in range(50):
        equal = np.flatnonzero(np.all([rows[c] == wanted[c][k] for c in range(3)], axis=0))
        assert index.order[first[k] : stop[k]].tolist() == equal.tolist()


def test_sums_that_collide_are_drawn_again(monkeypatch):
    """All sums are equal at first: the index must not take different rows for equal ones."""
    real, calls = np.random.default_rng, []

    class Poor:
        def __init__(self, seed):
            self.generator = real(seed)

        def integers(self, *arguments, size, dtype):
            calls.append(size)
            good = self.generator.integers(*arguments, size=size, dtype=dtype)
            return good if len(calls) > 2 else np.zeros(size, dtype)

    monkeypatch.setattr(np.random, "default_rng", Poor)
    index = RowIndex([np.array([0, 1]), np.array([0, 1])], [2, 2])
    first, stop = index.runs([np.array([1]), np.array([1])])
    assert index.order[first[0] : stop[0]].tolist() == [1]
    assert len(calls) == 4
