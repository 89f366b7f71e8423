"""Weights of public groups: the right ones, optimal by another solver, none where noise hides everything."""

import numpy as np
import pytest
from scipy.optimize import minimize

from prade.estimating.levels.resemblance import resemblance


def problem(seed, cells=8, groups=5, noise=0.02):
    generator = np.random.default_rng(seed)
    matrix = generator.dirichlet(np.full(cells, 2.0), size=groups).T
    deviation = noise * generator.uniform(0.5, 2.0, cells)
    answers = matrix @ generator.dirichlet(np.ones(groups)) + deviation * generator.normal(size=cells)
    return matrix, answers, deviation


def objective(w, matrix, answers, deviation):
    w = np.maximum(w, 1e-300)
    return float(np.sum(((matrix @ w - answers) / deviation) ** 2) / 2 + w @ np.log(w * len(w)))


def by_clarabel(matrix, answers, deviation):
    """min r.r / 2 + sum t  subject to  r = (A w - y) / s,  t_m >= w_m log(w_m n),  sum w = 1: exponential cones."""
    clarabel = pytest.importorskip("clarabel")
    from scipy.sparse import block_diag, csc_matrix

    groups = matrix.shape[1]
    scaled, target = matrix / deviation[:, None], answers / deviation
    quadratic = block_diag([csc_matrix(scaled.T @ scaled), csc_matrix((groups, groups))]).tocsc()
    linear = np.concatenate([-scaled.T @ target, np.ones(groups)])
    rows, right = [np.concatenate([np.ones(groups), np.zeros(groups)])], [1.0]
    for m in range(groups):  # (-t, w, 1/n) in K_exp: w exp(-t / w) <= 1 / n
        for column, value, constant in ((groups + m, 1.0, 0.0), (m, -1.0, 0.0), (None, 0.0, 1 / groups)):
            row = np.zeros(2 * groups)
            if column is not None:
                row[column] = value
            rows.append(row)
            right.append(constant)
    cones = [clarabel.ZeroConeT(1), *[clarabel.ExponentialConeT()] * groups]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(quadratic, linear, csc_matrix(np.array(rows)), np.array(right), cones, settings)
    return np.array(found.solve().x)[:groups]


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_optimum_by_two_other_solvers(seed, noise):
    matrix, answers, deviation = problem(seed, noise=noise)
    found = resemblance(matrix, answers, deviation)
    sloped = minimize(
        objective,
        np.full(5, 0.2),
        args=(matrix, answers, deviation),
        method="SLSQP",
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    conic = by_clarabel(matrix, answers, deviation)
    best = min(sloped.fun, objective(conic, matrix, answers, deviation))
    assert objective(found, matrix, answers, deviation) <= best + 1e-4
    np.testing.assert_allclose(found, conic, atol=5e-3)


def test_it_is_a_distribution():
    found = resemblance(*problem(7))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("right", range(5))
def test_little_noise_finds_the_right_group(right):
    matrix, _, _ = problem(11)
    found = resemblance(matrix, matrix[:, right], np.full(8, 1e-3))
    assert found[right] > 0.99


def test_much_noise_leaves_all_groups_alike():
    matrix, answers, _ = problem(12)
    np.testing.assert_allclose(resemblance(matrix, answers, np.full(8, 1e4)), 0.2, atol=1e-6)


def test_next_to_no_noise_is_no_trouble():
    """Deviations of 1e-9, as exact answers leave them, make an objective of 1e15: still finite, still the right one."""
    matrix, _, _ = problem(13)
    found = resemblance(matrix, matrix[:, 2], np.full(8, 1e-9))
    assert np.isfinite(found).all()
    assert found.argmax() == 2


def test_exact_cells_that_never_occur_are_passed_over():
    """Smoothing leaves them a deviation of 0."""
    matrix, answers, deviation = problem(14)
    wider = np.vstack([matrix, np.zeros((2, 5))])
    found = resemblance(wider, np.append(answers, [0.0, 0.0]), np.append(deviation, [0.0, 0.0]))
    assert np.array_equal(found, resemblance(matrix, answers, deviation))


def test_one_group_is_all_there_is():
    assert resemblance(np.array([[0.4], [0.6]]), np.array([0.9, 0.1]), np.array([0.1, 0.1])).tolist() == [1.0]
