"""What one person can change in the true counts, by exhaustion: never more than the noise was scaled for.

All neighbours of a table are counted in one go: every neighbouring table is a "world", an outer group of one big
table, so that the difference of two worlds' counts is the difference of the two tables' counts.
"""

import itertools
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade import Schema, Workload
from prade.measure import count, open_source
from prade.measure.counts import LONG_LIST, PERSON, PLACE, bound_rows
from prade.parts import Cells, Marginal, Predicate
from prade.privacy import Unit
from prade.query import parse
from prade.schema import Column

SCHEMA = Schema([Column("A", "categorical", values=(0, 1)), Column("B", "numeric", edges=(5,), missing=True)])
PLACES = ["here", "there"]
ROWS = list(itertools.product([0, 1], [1, 7, None], [*PLACES, "elsewhere"]))  # every row there is, but for order

PARTS = {
    "A": Marginal.of(SCHEMA, ["A"]),
    "A x B": Marginal.of(SCHEMA, ["A", "B"]),
    "some cells": Cells(["B"], table=[0, 1, 1], n_cells=1),
    "young": Predicate(parse("B < 5", SCHEMA)),
    "old": Predicate(parse("B >= 5", SCHEMA)),
    "two": Predicate(parse("A == 0 and B < 5", SCHEMA), parse("A == 1", SCHEMA)),
}
law = settings(derandomize=True, deadline=None, max_examples=15)


@pytest.fixture(scope="module", params=[LONG_LIST, 0], ids=["compared", "joined"], autouse=True)
def way(request):
    """Every test twice: places in lists are found by comparing, and by joining."""
    with patch("prade.measure.counts.LONG_LIST", request.param):
        yield


def worlds_of(tables, parts, unit=None):
    """One vector of counts a table: all parts, both places."""
    rows = [(world, person, *row) for world, table in enumerate(tables) for person, row in table]
    names = ("WORLD", "PERSON", "A", "B", "PLACE")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    types = dict(zip(names, (pa.int64(), pa.string(), pa.int64(), pa.int64(), pa.string()), strict=True))
    table = pa.table({name: pa.array(list(columns[name]), types[name]) for name in names})
    groups = {"WORLD": np.repeat(np.arange(len(tables)), 2), "PLACE": PLACES * len(tables)}
    with open_source(table) as source:
        answers = count(source, SCHEMA, parts, groups, unit)
    return np.concatenate([answer.reshape(len(tables), -1) for answer in answers], axis=1)


def persons(most):
    """Every person with up to `most` rows."""
    return [rows for many in range(most + 1) for rows in itertools.combinations_with_replacement(ROWS, many)]


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize(
    "chosen", [("A",), ("A", "A x B"), ("young", "old"), ("A x B", "some cells", "young", "two")], ids=str
)
def test_every_neighbour_is_within_the_claim(most, chosen):
    parts = [PARTS[name] for name in chosen]
    workload = Workload(SCHEMA, parts)
    base = [("p", ROWS[0]), ("q", ROWS[4]), ("q", ROWS[4])]
    everybody = persons(most)
    vectors = worlds_of([base + [("new", row) for row in rows] for rows in everybody], parts)

    added = vectors - vectors[0]  # the first person has no rows: the table itself
    unit = Unit(most)
    assert np.abs(added).sum(axis=1).max() == workload.sensitivity(unit, norm=1)
    assert (added**2).sum(axis=1).max() <= workload.sensitivity(unit, norm=2) ** 2 + 1e-9

    exchanged = vectors[:, None, :] - vectors[None, :, :]
    unit = Unit(most, neighbours="replace")
    assert np.abs(exchanged).sum(axis=2).max() <= workload.sensitivity(unit, norm=1)
    assert (exchanged**2).sum(axis=2).max() <= workload.sensitivity(unit, norm=2) ** 2 + 1e-9


def identified(world, person):
    """Persons of different worlds are different persons."""
    return f"{world}:{person}"


@law
@given(
    others=st.lists(st.sampled_from(ROWS), max_size=4),
    crowd=st.lists(st.lists(st.sampled_from(ROWS), max_size=9), min_size=1, max_size=6),
    bound=st.sampled_from([(1, None), (2, None), (3, None), (1, 1), (2, 1), (3, 1), (3, 2)]),
)
def test_an_enforced_bound_holds_for_persons_with_any_number_of_rows(others, crowd, bound):
    """Other persons have one row each, so that nothing is random about them; the new person has any rows."""
    most, per_group = bound
    parts = [PARTS[name] for name in ("A", "A x B", "young", "old")]
    unit = Unit(most, person_id="PERSON", per_group=per_group)
    tables = []
    for world, rows in enumerate([[], *crowd]):
        kept = [(identified(world, number), row) for number, row in enumerate(others)]
        tables.append(kept + [(identified(world, "new"), row) for row in rows])
    vectors = worlds_of(tables, parts, unit)
    workload = Workload(SCHEMA, parts)
    change = vectors - vectors[0]
    assert (change >= 0).all()
    assert np.abs(change).sum(axis=1).max() <= workload.sensitivity(unit, norm=1)
    assert (change**2).sum(axis=1).max() <= workload.sensitivity(unit, norm=2) ** 2 + 1e-9
    # the bound takes no more than it must: exactly as many rows as are allowed
    for rows, vector in zip(crowd, change[1:], strict=True):
        here = [sum(place == each for *_, place in rows) for each in PLACES]
        allowed = min(most, sum(min(number, per_group or number) for number in here))
        assert vector[:4].sum() == allowed


@law
@given(
    table=st.lists(st.tuples(st.sampled_from("pqrs"), st.integers(0, 1)), max_size=14),
    order=st.randoms(use_true_random=False),
    bound=st.sampled_from([(1, None), (2, None), (3, None), (1, 1), (2, 1), (3, 1), (3, 2)]),
)
def test_a_person_coming_or_going_changes_nobody_elses_rows(table, order, bound):
    """With the random numbers held fixed, the rows kept of everybody else are the same with and without a person."""
    most, per_group = bound
    tickets = list(range(len(table)))
    order.shuffle(tickets)
    rows = [(person, group, ticket) for (person, group), ticket in zip(table, tickets, strict=True)]
    absent = [None, *"pqrs"]
    listed = [
        (f"{world}:{person}", 2 * world + group, ticket, world)
        for world, gone in enumerate(absent)
        for person, group, ticket in rows
        if person != gone
    ]
    names = (PERSON, PLACE, "ticket", "world")
    cells = zip(*listed, strict=True) if listed else ((),) * 4
    kinds = (pa.string(), pa.int64(), pa.int64(), pa.int64())
    arrow = pa.table([pa.array(list(column), kind) for column, kind in zip(cells, kinds, strict=True)], names=names)
    with open_source(arrow) as source:
        kept = bound_rows(source.table, Unit(most, person_id="id", per_group=per_group), ticket="ticket").to_pyarrow()
    columns = [kept[name].to_pylist() for name in (PERSON, "ticket", "world")]
    found = [set() for _ in absent]
    for person, ticket, world in zip(*columns, strict=True):
        found[world].add((person.partition(":")[2], ticket))
    for gone, others in zip(absent[1:], found[1:], strict=True):
        assert others == {(person, ticket) for person, ticket in found[0] if person != gone}
    places = {ticket: group for _, group, ticket in rows}
    for person in "pqrs":
        own = [places[ticket] for who, ticket in found[0] if who == person]
        assert len(own) <= most
        assert per_group is None or all(own.count(group) <= per_group for group in own)
    smallest = sorted(rows, key=lambda row: row[2])
    if per_group is None:
        for person in "pqrs":
            first = [ticket for who, _, ticket in smallest if who == person][:most]
            assert {ticket for who, ticket in found[0] if who == person} == set(first)


def test_an_unbounded_person_breaks_the_claim():
    """The checks above can fail: without the bound in the query, three rows of a person move the counts by three."""
    parts = [PARTS["A"]]
    tables = [[], [("new", ROWS[0])] * 3]
    change = worlds_of(tables, parts)[1]
    assert change.sum() == 3 > Workload(SCHEMA, parts).sensitivity(Unit(1))
    assert worlds_of(tables, parts, Unit(1, person_id="PERSON"))[1].sum() == 1
