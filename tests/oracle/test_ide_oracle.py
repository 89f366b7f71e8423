"""Algorithm 1 step by step against its definition, and by hand."""

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating.estimate import Status
from prade.estimating.kernels import LARGEST_BUNDLE
from prade.estimating.layout import Layout
from prade.estimating.paper_estimators import IDE
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse
from prade.release.release import Measurement
from worlds.reference import add_noise, algorithm_1, grid, kl, random_case

SEEDS = range(16)


def noisy_case(seed, complete):
    rng = np.random.default_rng([seed, complete])
    case = random_case(rng, complete=complete)
    # from nearly consistent answers to mostly noise: sums far over and under 1, negative answers
    add_noise(rng, case, case.total * rng.choice([0.0, 0.01, 0.1, 0.3]))
    return case, [int(k) for k in rng.integers(0, len(case.parts), size=9)]


# Parts of small problems all fit into one bundle; kept apart, the passes from bundle to bundle are tested too.
@pytest.mark.parametrize("largest", [LARGEST_BUNDLE, 1], ids=["bundled", "apart"])
@pytest.mark.parametrize("complete", [True, False], ids=["full domain", "support"])
@pytest.mark.parametrize("projection", ["least-kl", "euclidean"])
def test_every_step_is_that_of_the_definition(projection, complete, largest):
    for seed in SEEDS:
        case, order = noisy_case(seed, complete)
        workload = Workload(case.schema, case.parts)
        layout = Layout(case.prior, workload, collapse=not complete, largest_bundle=largest)
        for steps in (0, 1, 2, 9):
            ide = IDE(steps=steps, order=order, projection=projection)
            got = ide.fit(case.prior, case.measurements(), case.total, layout=layout)
            want = algorithm_1(case, order, steps, projection, complete=complete)
            np.testing.assert_allclose(got.weights, want, rtol=1e-10, atol=1e-13, err_msg=f"problem {seed}")
            assert got.report.settings["steps"] == steps
            if not complete:
                assert got.report.kl == pytest.approx(kl(got.weights, case.p), abs=1e-12)


SCHEMA = Schema.from_mbi({"a": 2, "b": 3})
# rows (a, b) = 00 01 02 10 11 12


@pytest.mark.parametrize(
    ("prior", "part", "shares", "expected"),
    [
        pytest.param([0.1, 0.2, 0.1, 0.3, 0.3, 0], Marginal.of(SCHEMA, ["a"]), [0.8, 0.2], [0.2, 0.4, 0.2, 0.1, 0.1, 0],
            id="1: a cell with mass is scaled"),
        pytest.param([0.5, 0.25, 0.25, 0, 0, 0], Marginal.of(SCHEMA, ["a"]), [0.4, 0.6], [0.2, 0.1, 0.1, 0.2, 0.2, 0.2],
            id="2: a cell without mass is filled evenly"),
        pytest.param([0.1, 0.3, 0.2, 0.1, 0.1, 0.2], Predicate(parse("a == 0 and b <= 1", SCHEMA)), [0.7],
            [0.175, 0.525, 0.1, 0.05, 0.05, 0.1], id="3: the uncovered rest is scaled"),
        pytest.param([0.2, 0.3, 0, 0.1, 0.4, 0], Cells(["b"], [0, 1, 2], 2), [0.6, 0.2],
            [0.4, 0.6 / 7, 0.1, 0.2, 0.8 / 7, 0.1], id="4: an uncovered rest without mass is filled evenly"),
    ],
)  # fmt: skip
def test_the_four_cases_of_the_update(prior, part, shares, expected):
    codes = grid((2, 3))
    public = Prior(SCHEMA, {"a": codes[:, 0], "b": codes[:, 1]}, np.array(prior), complete=True)
    got = IDE(steps=1, order=[0]).fit(public, [Measurement(part, 100 * np.array(shares), 1.0)], 100.0)
    np.testing.assert_allclose(got.weights, expected, atol=1e-15)
    assert got.report.unreachable == 0.0  # on a full domain every cell can be reached


def test_contradicting_answers_are_called_cycling():
    schema = Schema.from_mbi({"a": 2})
    public, part = Prior(schema, {"a": np.arange(2)}, np.array([0.5, 0.5])), Marginal.of(schema, ["a"])
    answers = [Measurement(part, counts, 1.0) for counts in ([90, 10], [10, 90])]
    got = IDE(steps=40, order=[0, 1]).fit(public, answers, 100.0)
    assert got.status is Status.CYCLING
    np.testing.assert_allclose(got.weights, [0.1, 0.9], atol=1e-14)  # whoever came last is right


def test_unreachable_mass_is_reported_and_shared_out():
    # rows 00 01 10: b = 2 has no row
    public = Prior(SCHEMA, {"a": np.array([0, 0, 1]), "b": np.array([0, 1, 0])}, np.array([0.2, 0.5, 0.3]))
    answers = [
        Measurement(Marginal.of(SCHEMA, ["b"]), [30, 20, 50], 1.0),
        Measurement(Marginal.of(SCHEMA, ["a"]), [60, 40], 1.0),
    ]
    got = IDE(steps=1, order=[0]).fit(public, answers, 100.0)
    # reachable: y = (0.3, 0.2), r = (0.5, 0.5): both raised to c r = 0.5
    np.testing.assert_allclose(got.project("b"), [0.5, 0.5, 0.0], atol=1e-15)
    assert [fit.unreachable for fit in got.report.parts] == pytest.approx([0.5, 0.0])
    assert got.report.unreachable == pytest.approx(0.5)
    euclidean = IDE(steps=1, order=[0], projection="euclidean").fit(public, answers, 100.0)
    np.testing.assert_allclose(euclidean.project("b"), [0.55, 0.45, 0.0], atol=1e-15)
