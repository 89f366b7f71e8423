"""The comparison's rivals: what they ask and spend, how far a row moves a score, and models of each place."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from compare import asking, systems
from compare.asking import STEPS_PER_ROW, Table, dependence, gain, misfit
from compare.gem import GEMPub
from compare.methods import MWEM, Histogram, PrivBayes
from compare.rehearsal import low_marginals
from compare.systems import Task
from jobs import Job
from prade import Column, Schema, Unit
from prade.data.public.joint import Coded, Prior
from prade.data.read.tables import write_table
from prade.queries.parts import Marginal

SCHEMA = Schema.from_mbi({"a": 20, "b": 20, "c": 3})
LOW = low_marginals(SCHEMA)


def people(rows, seed, strength, share):
    """b follows a with this probability; c is 0 with this share."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 20, rows)
    b = np.where(generator.random(rows) < strength, a, generator.integers(0, 20, rows))
    return {"a": a, "b": b, "c": np.where(generator.random(rows) < share, 0, generator.integers(1, 3, rows))}


def table_of(rows, epsilon, unit=None):
    return Table(pa.table(rows), SCHEMA, unit or Unit(1), epsilon)


def tables(cells, most):
    """Every table of up to `most` rows, as counts of its cells."""
    for rows in range(most + 1):
        for chosen in itertools.combinations_with_replacement(range(cells), rows):
            yield np.bincount(np.array(chosen, int), minlength=cells)


PAIR = Marginal.of(Schema.from_mbi({"a": 2, "b": 2}), ["a", "b"])


@pytest.mark.parametrize(
    ("score", "reached"),
    [
        (misfit(PAIR, np.array([1, 0, 2, 0]), 5), True),
        (gain(PAIR, np.array([0, 0, 0, 0]), np.array([4, 4, 4, 4]), 5), True),
        (gain(PAIR, np.array([3, 3, 3, 3])), False),
        (dependence(PAIR), False),
    ],
    ids=["misfit", "gain", "answer", "dependence"],
)
def test_no_row_moves_a_score_further_than_declared(score, reached):
    """By exhaustion; a smaller bound would not do where it is reached."""
    moved = max(
        abs(score.of(table + row) - score.of(table)) for table in tables(4, 6) for row in np.eye(4, dtype=np.int64)
    )
    assert moved <= score.per_row + score.extra
    assert not reached or moved == score.per_row


def test_the_dependence_is_half_of_what_the_table_is_from_independent_columns():
    schema = Schema.from_mbi({"a": 2, "b": 2, "c": 3})
    table = np.array([[8, 0, 0], [0, 8, 0], [0, 8, 0], [0, 0, 8]])  # c is known from a and b together
    off = 2 * (6 + 4 + 2) + 2 * (2 + 4 + 2)  # independent, a row of the table would be 2, 4, 2
    assert dependence(Marginal.of(schema, ["a", "b", "c"])).of(table.ravel()) == STEPS_PER_ROW * off / 2


@pytest.mark.parametrize(("unit", "rows"), [(Unit(1), 1), (Unit(3), 3), (Unit(3, neighbours="replace"), 6)])
def test_choices_and_answers_have_noise_for_all_rows_of_a_person(unit, rows, monkeypatch):
    chosen = []
    monkeypatch.setattr(asking, "_noisy_max", lambda scores, scale: chosen.append(scale) or 0)
    table = table_of(people(50, 0, 0.5, 0.5), 1, unit)
    table.choose([misfit(LOW[0], np.zeros(20)), misfit(LOW[2], np.zeros(3))], Fraction(1, 4))
    table.choose([dependence(LOW[3])], Fraction(1, 4))
    assert (table.answer(LOW[2], Fraction(1, 2)).scale == 2 * rows).all()
    assert chosen == [8 * rows, 8 * (128 * rows + 2)]
    with pytest.raises(ValueError, match="0 is left"):
        table.answer(LOW[2], Fraction(1, 8))


NETWORK = {"products": 60, "inputs": 8, "hidden": 16, "public_steps": 150, "public_rate": 5e-3, "draws": 50}


@pytest.mark.parametrize(
    "method",
    [
        MWEM(LOW, rounds=6, passes=100, last=True),
        MWEM(LOW, rounds=6, passes=100, public=True, last=True),
        GEMPub(LOW, rounds=6, steps=60, rate=1e-2, average=False, **NETWORK),
        Histogram(),
        PrivBayes(seed=1),
    ],
    ids=["mwem", "pmw-pub", "gem-pub", "histogram", "privbayes"],
)
def test_a_method_comes_near_the_truth_and_spends_all_it_has(method):
    truth = Prior.from_joint(Coded(SCHEMA, people(5000, 1, 0.8, 0.7)))
    prior = Prior.from_joint(Coded(SCHEMA, people(5000, 2, 0.2, 0.3)))
    table = table_of(people(5000, 1, 0.8, 0.7), 10**6)
    found, total = method.ask(prior, table)

    def off(joint):
        return float(np.mean([np.abs(joint.project(p.columns) - truth.project(p.columns)).sum() for p in LOW]))

    assert off(prior) > 0.5
    assert off(found) < off(prior) / 2
    assert total == pytest.approx(5000, abs=1)
    assert (table.left, sum(cost for _, cost, _ in table.record)) == (0, 10**6)


@pytest.fixture
def places(tmp_path):
    """Three places of 500 people, who differ from place to place in one column."""
    schema = Schema([Column("PLACE", "group"), *(Column(name, "categorical", values=[0, 1, 2]) for name in "AB")])
    place, generator = np.repeat([0, 1, 2], 500), np.random.default_rng(0)
    table = pa.table({"PLACE": place, "A": place, "B": generator.integers(0, 3, 1500)})
    file = tmp_path / "people.parquet"
    write_table(table, file)
    return Job("job", schema, file, file, {"PLACE": [0, 1, 2]}, ("PLACE",), Unit(1))


def test_a_baseline_of_each_place_has_the_whole_epsilon_in_each(places):
    drawn = systems.each_place(PrivBayes(seed=1), Task(places, "100", 0, 60.0))
    rows, group = drawn.rows
    assert np.array_equal(rows.codes["A"], group)  # learnt place by place
    assert np.bincount(group) == pytest.approx([500] * 3, abs=20)
    assert drawn.done is None
