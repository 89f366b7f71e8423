"""The paper's exact problem against linear programming and an interior-point method."""

from functools import cache

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating.base import smallest_radius
from prade.estimating.estimate import Status
from prade.estimating.layout import Layout
from prade.estimating.paper_estimators import TwoStage
from prade.queries.parts import Marginal
from prade.release.release import Measurement
from worlds.reference import add_noise, kl, oracle_two_stage, random_case

PROBLEMS = range(40)


@cache
def problem(seed):
    print("problem number", seed)  # said where it fails
    rng = np.random.default_rng([21, seed])
    case = random_case(rng, complete=bool(seed % 2))
    if seed % 5 == 0:
        # consistent, with exact zeros: the radius is zero and the face may be a small one
        z = np.where(rng.random(len(case.p)) < 0.5, 0.0, rng.dirichlet(np.ones(len(case.p)))) * (case.p > 0)
        z = case.p if z.sum() == 0 else z / z.sum()
        case.counts = [case.total * matrix @ z for matrix in case.matrices]
    else:
        add_noise(rng, case, case.total * rng.choice([0.01, 0.1, 0.3]))
    return case, *oracle_two_stage(case)


def test_two_stage_is_the_oracles_optimum():
    for case, radius, least, _ in map(problem, PROBLEMS):
        got = TwoStage().fit(case.prior, case.measurements(), case.total)
        q, report = got.weights, got.report
        assert got.status in (Status.CONVERGED, Status.HOPELESS)
        assert q.sum() == pytest.approx(1.0, abs=1e-12)
        assert (q >= 0).all()
        assert (q[case.p == 0] == 0).all()
        assert np.abs(case.W @ q - case.y).sum() <= radius + 1e-7
        assert (report.objective, kl(q, case.p)) == pytest.approx((least, least), abs=1e-6)
        assert report.kl == pytest.approx(kl(q, case.p), abs=1e-8)
        assert report.certificate["radius_lower"] - 1e-9 <= radius <= report.certificate["radius"] + 1e-9
        assert report.certificate["radius"] - report.certificate["radius_lower"] <= 1e-8
        assert 0 <= report.gap <= 1e-6
        assert report.certificate["dual"] <= least + 1e-6


def test_the_random_problems_are_not_all_of_one_kind():
    radii, cases = [problem(seed)[1] for seed in PROBLEMS], [problem(seed)[0] for seed in PROBLEMS]
    assert sum(r < 1e-9 for r in radii) >= 4
    assert sum(r > 0.05 for r in radii) >= 10
    assert sum((np.concatenate(c.counts) < 0).any() for c in cases) >= 7
    assert sum((c.W[:, c.p > 0].sum(axis=1) == 0).any() for c in cases) >= 3
    assert sum(len(set(c.parts)) < len(c.parts) for c in cases) >= 7
    assert sum(any((m.sum(axis=0) == 0).any() for m in c.matrices) for c in cases) >= 10


@pytest.mark.parametrize(
    ("prior", "expected"),
    [([0.9, 0.1], [0.7, 0.3]), ([0.1, 0.9], [0.3, 0.7]), ([0.6, 0.4], [0.6, 0.4]), ([0.5, 0.5], [0.5, 0.5])],
)
def test_only_the_radius_is_fixed_by_stage_1(prior, expected):
    """y = (0.7, 0.7): everything from (0.3, 0.7) to (0.7, 0.3) is nearest; stage 2 must choose among all of it."""
    schema = Schema.from_mbi({"a": 2})
    public = Prior(schema, {"a": np.arange(2)}, np.array(prior))
    got = TwoStage().fit(public, [Measurement(Marginal.of(schema, ["a"]), [70, 70], 1.0)], 100.0)
    np.testing.assert_allclose(got.weights, expected, atol=1e-6)
    assert got.report.certificate["radius"] == pytest.approx(0.4, abs=1e-9)
    # with Wq = y* for another of the optimal y*, as the paper writes it, the KL is strictly larger
    for fixed in ([0.3, 0.7], [0.7, 0.3], [0.4, 0.6]):
        assert np.abs(np.array(fixed) - 0.7).sum() == pytest.approx(0.4)
        if np.abs(np.array(fixed) - expected).max() > 0.01:
            assert kl(np.array(fixed), public.weights) > got.report.kl + 1e-3


def test_column_generation_proves_the_same_radius():
    rounds = []
    for case, radius, _, _ in map(problem, PROBLEMS):
        # the first rows are one for every bundle cell: with all parts in one bundle nothing would be left to generate
        layout = Layout(case.prior, Workload(case.schema, case.parts), largest_bundle=1)
        for at_once, per_round in ((1, 1), (3, 2), (1, 5)):
            cost = np.ones(layout.n_cells)
            proof = smallest_radius(layout, case.y, cost, at_once=at_once, per_round=per_round)
            assert (proof.upper, proof.lower) == pytest.approx((radius, radius), abs=1e-8)
            potential = layout.bundles.row_logits(proof.prices)[layout.base > 0].max()
            assert np.abs(proof.prices).max() <= 1
            assert proof.prices @ case.y - potential == pytest.approx(radius, abs=1e-8)  # the prices prove it
            assert proof.reduced[layout.base > 0].min() == pytest.approx(0.0, abs=1e-12)
            rounds.append(proof.rounds)
    assert max(rounds) >= 3
