"""What one person can change in the true counts, by exhaustion, and whose rows count where a bound is enforced."""

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from prade import Schema, Workload
from prade.data.declare.schema import Column
from prade.measuring.source import open_source
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal
from worlds.counting import count
from worlds.every_row import PARTS, ROWS, SCHEMA, one_table, persons


@pytest.mark.parametrize("names", [("A",), ("A", "A x B"), ("young", "old"), tuple(PARTS)], ids=" ".join)
@pytest.mark.parametrize("by", [["WORLD"], ["WORLD", "PLACE"]], ids=["upper level", "lower level"])
@pytest.mark.parametrize(
    "bound", [(1,), (2,), (1, "PERSON"), (2, "PERSON"), (1, "PERSON", 1), (2, "PERSON", 1)], ids=str
)
def test_every_neighbour_is_within_the_claim(bound, by, names):
    """Beside a table, each person there can be: with one row more than allowed, where the bound is enforced."""
    parts, unit = [PARTS[name] for name in names], Unit(*bound)
    exchanged, workload = Unit(*bound, neighbours="replace"), Workload(SCHEMA, parts)
    everybody = persons(unit.max_rows + (unit.person_id is not None))
    base = [("p", ROWS[0]), ("q", ROWS[4]), ("r", ROWS[4])]
    table, groups = one_table([base + [("new", row) for row in rows] for rows in everybody])
    with open_source(table) as source:
        answers = count(source, SCHEMA, parts, groups, unit, by)
    vectors = np.concatenate([answer.reshape(len(everybody), -1) for answer in answers], axis=1)
    added = vectors - vectors[0]  # the first person has no rows: the table itself
    assert added.min() == 0
    assert added.sum(axis=1).max() == workload.sensitivity(unit)
    assert (added**2).sum(axis=1).max() <= workload.sensitivity(unit, norm=2) ** 2 + 1e-9
    distinct = np.unique(vectors, axis=0)
    furthest, claim = pdist(distinct, "cityblock").max(), workload.sensitivity(exchanged)
    assert furthest == claim if len(names) < 3 else furthest <= claim  # no two rows differ in every part there
    assert pdist(distinct, "sqeuclidean").max() <= workload.sensitivity(exchanged, norm=2) ** 2 + 1e-9


law = settings(max_examples=15)
PEOPLE = Schema([Column("ROW", "categorical", values=tuple(range(20))), Column("PLACE", "group")])


def kept_rows(rows, unit, secret):
    """Which rows count, by their numbers, under a fixed secret."""
    columns = zip(*rows, strict=True) if rows else ((),) * 3
    kinds = (pa.string(), pa.int64(), pa.int64())
    names = ("PERSON", "PLACE", "ROW")
    arrow = pa.table([pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)], names=names)
    part = Marginal.of(PEOPLE, ["ROW"])
    with patch("secrets.token_hex", lambda size: secret), open_source(arrow) as source:
        (found,) = count(source, PEOPLE, [part], {"PLACE": [0, 1]}, unit, [])
    assert found.max(initial=0) <= 1
    return set(np.flatnonzero(found[0]).tolist())


@law
@given(
    table=st.lists(st.tuples(st.sampled_from("pqrs"), st.integers(0, 1)), max_size=14),
    bound=st.sampled_from([(1, None), (2, None), (3, None), (1, 1), (2, 1), (3, 1), (3, 2)]),
    secret=st.binary(min_size=32, max_size=32).map(bytes.hex),
)
def test_a_person_coming_or_going_changes_nobody_elses_rows(table, bound, secret):
    """With the secret held fixed, the rows kept of everybody else are the same with and without a person."""
    most, per_group = bound
    unit = Unit(most, person_id="PERSON", per_group=per_group)
    rows = [(person, place, number) for number, (person, place) in enumerate(table)]
    everybody = kept_rows(rows, unit, secret)
    present = {person for person, _, _ in rows}
    for gone in [*sorted(present), *sorted(set("pqrs") - present)[:1]]:  # and the same rows in another order, once
        own = {number for person, _, number in rows if person == gone}
        others = [row for row in rows if row[0] != gone]
        assert kept_rows(others[::-1], unit, secret) == everybody - own
        places = [place for _, place, number in rows if number in own & everybody]
        allowed = sum(min(table.count((gone, place)), per_group or len(table)) for place in (0, 1))
        assert len(places) == min(most, allowed)
        assert per_group is None or all(places.count(place) <= per_group for place in (0, 1))


def test_neither_the_order_of_rows_nor_another_person_decides():
    """As above, for ten persons with two rows each: quick, and it says at once which of the two decided."""
    rows = [(f"p{number // 2}", 0, number) for number in range(20)]
    unit = Unit(1, person_id="PERSON")
    for secret in ("aa" * 32, "bb" * 32, "cc" * 32):
        kept = kept_rows(rows, unit, secret)
        assert kept_rows(rows[::-1], unit, secret) == kept
        assert kept_rows(rows[2:], unit, secret) == kept - {0, 1}


def test_only_the_secret_decides():
    """Two hundred persons of two rows, one row each: the same person in front moves nobody, the secret moves many."""
    rows = [(f"p{number // 2}", 0, number % 2) for number in range(400)]
    unit = Unit(1, person_id="PERSON")

    def first_rows(table):
        arrow = pa.table(dict(zip(("PERSON", "PLACE", "ROW"), zip(*table, strict=True), strict=True)))
        with open_source(arrow) as source:
            return count(source, PEOPLE, [Marginal.of(PEOPLE, ["ROW"])], {"PLACE": [0]}, unit)[0][0, :2]

    with patch("secrets.token_hex", lambda size: "ab" * size):
        before, after = first_rows(rows), first_rows([("new", 0, 5), *rows])
    assert np.array_equal(before, after)
    drawn = [int(first_rows(rows)[0]) for _ in range(8)]
    assert len(set(drawn)) > 1  # eight equal ones of binomial (200, 1/2) come once in 10^8 times
    assert all(40 < each < 160 for each in drawn)  # beyond these bounds once in 10^16
