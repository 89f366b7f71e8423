"""MAP's objective against an interior-point method, and whether its certificates tell the truth."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating.estimate import Status
from prade.estimating.kernels import LARGEST_BUNDLE
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import MAP
from prade.release.release import Measurement
from worlds.reference import add_noise, costs, map_objective, oracle_map, random_case

KINDS = ("laplace", "gaussian", "mixed", "exact")
SOLVERS = ("newton", "block", "lbfgs")
# Parts of small problems all fit into one bundle; kept apart, the passes from bundle to bundle are tested too.
bundled_or_not = pytest.mark.parametrize("largest", [LARGEST_BUNDLE, 1], ids=["bundled", "apart"])
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def problem(kind, seed, stiff):
    """A random problem, its n0, and the oracle's optimum.

    `stiff`: the answers may outweigh the prior by any factor. Otherwise n0 is raised until no multiplier needs to be
    large, which is where first-order methods can be held to the last digit too.
    """
    print("problem", kind, seed)  # said where it fails
    rng = np.random.default_rng([31, KINDS.index(kind), seed])
    case = random_case(rng, complete=bool(rng.random() < 0.3))
    noise = case.total * rng.choice([0.003, 0.03, 0.1, 0.3])
    add_noise(rng, case, noise)
    laws = {"laplace": ["laplace"], "gaussian": ["gaussian"]}.get(kind, ["laplace", "gaussian"])
    case.laws = [str(rng.choice(laws)) for _ in case.parts]
    case.scales = [
        noise * np.exp(rng.normal(size=part.n_cells)) if rng.random() < 0.5 else noise for part in case.parts
    ]
    if kind == "exact":
        # exact answers of one distribution on the support, so that they can hold together; half the time with zeros
        z = rng.dirichlet(np.full(len(case.p), 0.7)) * (case.p > 0)
        if rng.random() < 0.5:
            z = z * (rng.random(len(z)) < 0.6)
        z = case.p if z.sum() == 0 else z / z.sum()
        for k in range(len(case.parts)):
            if k == 0 or rng.random() < 0.5:
                case.scales[k], case.counts[k] = 0.0, case.total * case.matrices[k] @ z
    n0 = float(np.exp(rng.uniform(np.log(0.5), np.log(500))))
    if not stiff:
        linear, square = costs(case, n0)
        n0 *= max(1.0, linear[np.isfinite(linear)].max(initial=0.0) / 10, 2 * square.max() / 10)
    best, q = oracle_map(case, n0)
    # rows that exact answers of several parts empty together, though no answer is zero: multipliers go to infinity
    rigid = np.isinf(costs(case, n0)[0])
    emptied = case.W[rigid & (case.y == 0)].sum(axis=0) > 0
    case.hidden_zeros = bool(((q == 0) & (case.p > 0) & ~emptied).any())
    return case, n0, best


def fit(solver, largest, case, n0, max_steps=500):
    layout = Layout(case.prior, Workload(case.schema, case.parts), largest_bundle=largest)
    estimator = MAP(n0=n0, solver=solver, tolerance=1e-8, max_steps=max_steps)
    return estimator.fit(case.prior, case.measurements(), case.total, layout=layout)


def check_certificate(got, case, n0, best):
    """Whatever a solver stops at: the report is about the weights, and the bounds are bounds."""
    q, report = got.weights, got.report
    rigid = np.isinf(costs(case, n0)[0])
    miss = np.abs(case.W @ q - case.y)[rigid].sum()
    # the oracle is good to about 1e-10 in units of KL, that is n0 times as much in units of the objective
    slack = 1e-6 * best + 3e-9 * n0
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert (q[case.p == 0] == 0).all()
    assert report.certificate["dual"] <= best + slack
    assert report.certificate["misfit"] == pytest.approx(miss, rel=1e-6, abs=1e-9)
    if miss <= 1e-9:
        assert map_objective(case, q, n0) - best <= report.gap + slack
        assert report.objective == pytest.approx(map_objective(case, q, n0), rel=1e-6, abs=3e-9 * n0)


def check_optimum(got, case, n0, best, misfit=1e-8):
    rigid = np.isinf(costs(case, n0)[0])
    assert np.abs(case.W @ got.weights - case.y)[rigid].sum() <= misfit
    assert map_objective(case, got.weights, n0) == pytest.approx(best, rel=1e-6, abs=3e-9 * n0)


@bundled_or_not
@every_kind
def test_newton_is_optimal_however_stiff(kind, largest):
    for seed in range(30):
        case, n0, best = problem(kind, seed, True)
        got = fit("newton", largest, case, n0)
        assert got.status in (Status.CONVERGED, Status.HOPELESS)
        check_certificate(got, case, n0, best)
        check_optimum(got, case, n0, best)


@pytest.mark.parametrize("solver", SOLVERS)
@bundled_or_not
@every_kind
def test_every_solver_is_optimal_where_no_multiplier_is_large(kind, largest, solver):
    for seed in range(15):
        case, n0, best = problem(kind, seed, False)
        # block ascent is of first order: many cheap sweeps
        got = fit(solver, largest, case, n0, max_steps=2000 if solver == "block" else 500)
        check_certificate(got, case, n0, best)
        if solver == "block" and case.hidden_zeros and got.status is Status.EXHAUSTED:
            continue  # a zero at infinity is approached as 1 / steps: enough that the certificate says so
        if solver == "lbfgs" and got.status is Status.STALLED:
            # its line search compares values, which tells slopes apart only to the root of double precision
            check_optimum(got, case, n0, best, misfit=1e-6)
            continue
        assert got.status in (Status.CONVERGED, Status.HOPELESS)
        check_optimum(got, case, n0, best)


@pytest.mark.parametrize("solver", ["block", "lbfgs"])
@bundled_or_not
@every_kind
def test_certificates_hold_when_a_solver_gives_up(kind, largest, solver):
    for seed in range(10):
        case, n0, best = problem(kind, seed, True)
        got = fit(solver, largest, case, n0, max_steps=20)
        check_certificate(got, case, n0, best)
        if got.status is Status.CONVERGED:
            check_optimum(got, case, n0, best)
        if solver == "block":  # each block step is an exact maximum: also where a cell's mass underflows
            dual = np.array([look.objective - look.gap for look in got.report.trace])
            size = np.array([1.0 + look.objective + look.gap for look in got.report.trace])
            assert (np.diff(dual) >= -1e-12 * size[1:]).all()


@pytest.mark.parametrize("seed", range(6))
def test_limited_multipliers_are_hubers_loss(seed):
    """With a limit, the square of a misfit goes on as a straight line: scipy's optimum of the dense dual agrees."""
    generator = np.random.default_rng([seed, 77])
    schema = Schema.from_mbi({"a": 3, "b": 4})
    prior = Prior(schema, Prior.uniform(schema).codes, generator.dirichlet(np.ones(12)))
    workload = Workload.marginals(schema, ["a", "b"])
    total, n0, limit = 200.0, 20.0, 0.7
    answers = [
        Measurement(part, total * generator.dirichlet(np.ones(part.n_cells)), generator.uniform(2, 8), "gaussian")
        for part in workload
    ]
    estimate = MAP(n0=n0, limit=limit, tolerance=1e-9).fit(prior, answers, total)
    matrix = np.concatenate([np.eye(part.n_cells)[part.cells(schema, prior.codes)].T for part in workload])
    y = np.concatenate([m.counts for m in answers]) / total
    v = np.concatenate([m.variance for m in answers]) * n0 / total**2

    def objective(q):
        r = np.abs(y - matrix @ q)
        huber = np.where(r <= limit * v, r**2 / (2 * v), limit * r - limit**2 * v / 2)
        return float(np.sum(q * np.log(q / prior.weights)) + huber.sum())

    def dual(multipliers):
        logits = np.log(prior.weights) + matrix.T @ multipliers
        top = logits.max()
        return -(multipliers @ y - top - np.log(np.exp(logits - top).sum()) - 0.5 * v @ multipliers**2)

    best = minimize(dual, np.zeros(len(y)), bounds=[(-limit, limit)] * len(y), method="L-BFGS-B", tol=1e-14)
    assert objective(estimate.weights) == pytest.approx(-best.fun, abs=1e-6)
    assert 0.99 * limit < np.abs(estimate.multipliers).max() <= limit * (1 + 1e-9)  # the bound is felt
    assert estimate.report.gap / n0 < 1e-6
