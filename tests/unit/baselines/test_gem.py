"""GEM^Pub: its derivatives, what it learns from public rows and from answers, what it spends, and what it refuses."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from prade import Budget, EstimationError, Ledger, Schema, Unit, Workload
from prade.baselines import GEMPub, run
from prade.baselines.gem import _Network, _Tables
from prade.data.public.joint import Coded, Prior
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 2, "b": 3, "c": 4})
LOW = Workload(SCHEMA, [*Workload.all_marginals(SCHEMA, 1), *Workload.all_marginals(SCHEMA, 2)])
SMALL = {"products": 60, "inputs": 8, "hidden": 16, "public_steps": 150, "public_rate": 5e-3, "draws": 50}


def world(seed: int, strength: float) -> dict[str, np.ndarray]:
    """a -> b -> c, each following the one before it with this probability."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 2, 4000)
    b = np.where(generator.random(4000) < strength, a + 1, generator.integers(0, 3, 4000))
    c = np.where(generator.random(4000) < strength, b, generator.integers(0, 4, 4000))
    return {"a": a, "b": b, "c": c}


@pytest.fixture(scope="module")
def truth() -> dict[str, np.ndarray]:
    return world(1, 0.9)


@pytest.fixture(scope="module")
def prior() -> Prior:
    return Prior.from_joint(Coded(SCHEMA, world(2, 0.4)))


def terms(folder, epsilon) -> dict[str, object]:
    ledger = Ledger(folder / "ledger")
    ledger.open_dataset("people", Unit(1), Budget.pure(10**9))
    budget = {"budget": Budget.pure(epsilon), "unit": Unit(1), "weak_protection": True}
    return {"path": folder / "answers.json", "ledger": ledger, "dataset": "people", **budget}


def distance(found, wanted) -> float:
    pairs = zip(LOW.answer(found), LOW.answer(wanted), strict=True)
    return float(np.mean([np.abs(one - other).sum() for one, other in pairs]))


@pytest.mark.parametrize("place", range(10))
def test_the_derivatives_are_those_of_the_differences(place):
    generator = np.random.default_rng(place)
    tables = _Tables(Prior.uniform(SCHEMA))
    network = _Network(GEMPub(LOW, products=7, inputs=5, hidden=6), tables)
    network.inputs = network.inputs.astype(np.float64)
    network.weights = [each.astype(np.float64) for each in network.weights]
    signs = np.zeros(tables.size**2)
    for part in LOW:
        signs[tables.cells(part)] = generator.normal(size=part.n_cells)

    def value() -> float:
        return float(signs @ tables.of(network.products()))

    weight, step = network.weights[place], 1e-5
    where = tuple(generator.integers(0, size) for size in weight.shape)
    found = network.slopes(tables.slope(network.products(), signs))[place][where]
    weight[where] += step
    above = value()
    weight[where] -= 2 * step
    assert found == pytest.approx((above - value()) / (2 * step), abs=1e-8)


def test_the_matrix_has_the_tables_of_the_mixture():
    tables, generator = _Tables(Prior.uniform(SCHEMA)), np.random.default_rng(3)
    columns = {name: generator.dirichlet(np.ones(SCHEMA.size(name)), 5).astype(np.float32) for name in "abc"}
    masses = tables.of(np.concatenate(list(columns.values()), axis=1))
    assert masses[tables.cells(LOW[1])] == pytest.approx(columns["b"].mean(axis=0))
    both = np.mean([np.outer(a, c) for a, c in zip(columns["a"], columns["c"], strict=True)], axis=0)
    assert LOW[4].columns == ("a", "c")
    assert masses[tables.cells(LOW[4])] == pytest.approx(both.ravel())


def test_it_starts_from_the_public_rows_and_ends_near_the_private_ones(truth, prior, tmp_path):
    wanted = Prior.from_joint(Coded(SCHEMA, truth))
    baseline = GEMPub(LOW, rounds=6, steps=60, rate=1e-2, **SMALL)
    before = distance(prior, wanted)
    noise = Measurement(LOW[0], prior.project(["a"]) * 4000, 1.0)  # an answer that says what is known already
    assert distance(GEMPub(LOW, rate=1e-9, **SMALL).fit(prior, [noise], 4000.0), prior) < before / 4
    found = run(baseline, prior, pa.table(truth), **terms(tmp_path, 10**6))
    assert before > 0.3
    assert distance(found, wanted) < before / 3
    assert found.report.total == pytest.approx(4000)


def test_the_average_is_over_the_last_half_of_the_rounds(prior):
    """Of two rounds, the second only: the average and the last weights are the same. Of three, two rounds count."""
    answers = [Measurement(part, np.full(part.n_cells, 4000 / part.n_cells), 1.0) for part in LOW][:3]
    for rounds, same in ((2, True), (3, False)):
        average, last = (
            GEMPub(LOW, steps=5, rate=1e-2, average=kept, **SMALL).fit(prior, answers[:rounds], 4000.0)
            for kept in (True, False)
        )
        assert (distance(average, last) < 1e-12) == same


def test_the_epsilons_add_up_and_nothing_is_asked_twice(truth, prior, tmp_path):
    given = terms(tmp_path, "7/3")
    baseline = GEMPub(LOW, rounds=100, steps=2, **SMALL)
    first = run(baseline, prior, pa.table(truth), **given)
    record = json.loads(given["path"].read_text())["record"]
    (entry,) = given["ledger"].entries("people")
    assert sum(Fraction(each["epsilon"]) for each in record) == entry.cost.epsilon == Fraction(7, 3)
    asked = [each["part"] for each in record[1:] if "counts" in each]
    assert sorted(asked) == sorted(part.name for part in LOW)  # 100 rounds are more than there are tables
    choices = [Fraction(each["epsilon"]) for each in record if "chosen" in each]
    assert sum(choices) == Fraction(7, 3) * Fraction("0.95") * Fraction("0.67")
    again = run(baseline, prior, "no such table", **given)
    assert np.array_equal(first.weights, again.weights)
    assert len(given["ledger"].entries("people")) == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"rounds": 0}, "rounds is 0"),
        ({"choosing_share": 1.0}, "choosing_share is 1.0"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"workload": Workload(SCHEMA, [])}, "no parts"),
        ({"workload": Workload.all_marginals(SCHEMA, 3)}, "one- and two-way tables only"),
    ],
)
def test_settings_that_cannot_be(more, words):
    with pytest.raises(EstimationError, match=words):
        GEMPub(**{"workload": LOW, **more})


def test_answers_that_cannot_be_learnt(prior):
    three = Workload.all_marginals(SCHEMA, 3)[0]
    with pytest.raises(EstimationError, match="one- and two-way tables only"):
        GEMPub(LOW, **SMALL).fit(prior, [Measurement(three, np.ones(24), 1.0)], 24.0)
    with pytest.raises(EstimationError, match="total is"):
        GEMPub(LOW, **SMALL).fit(prior, [Measurement(LOW[0], [1, 1], 1.0)], -1.0)
