"""Strategies against independent optimisers, and their predicted errors against simulated noise.

Gaussian strategies: the convex problems are given to Clarabel as a semidefinite and as a second-order cone programme.
Laplace strategies have no known optimum in general; on the smallest problems all of them are tried.
"""

import itertools
import math

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import chi2

from prade import Schema, Workload
from prade.planning.strategy.choice import best_strategy, p_identity, weighted_marginals

ranges = np.array([[i <= k < j for k in range(6)] for i in range(6) for j in range(i + 1, 7)], dtype=int)
MATRICES = {
    "prefixes": np.tri(6, dtype=int),
    "ranges": ranges,
    "wide": np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]),
    "rank 2, a cell for nothing": np.array([[2, 0, 1], [0, 2, 1]]),
    "random": (np.random.default_rng(3).random((9, 6)) < 0.4).astype(int),
    "two marginals": np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0]]),
}


def solve(objective, blocks, cones):
    """Clarabel on  min c.x  subject to  b - A x in the cones; blocks of (A, b)."""
    a = sparse.csc_matrix(sparse.vstack([sparse.csc_matrix(block) for block, _ in blocks]))
    b = np.concatenate([np.atleast_1d(side) for _, side in blocks])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    nothing = sparse.csc_matrix((len(objective), len(objective)))
    solution = clarabel.DefaultSolver(nothing, np.asarray(objective), a, b, cones, settings).solve()
    assert str(solution.status) == "Solved"
    return solution.obj_val


def best_gaussian(w):
    """min tr(W X^-1 W^T) with X_jj <= 1: min tr Z subject to [[Z, W], [W^T, X]] positive semidefinite."""
    m, n = w.shape
    size = m + n
    pairs = [(i, j) for j in range(size) for i in range(j + 1)]  # upper triangle by columns
    unknown = {pair: k for k, pair in enumerate(p for p in pairs if (p[0] < m) == (p[1] < m))}
    cone, side = sparse.lil_matrix((len(pairs), len(unknown))), np.zeros(len(pairs))
    for row, (i, j) in enumerate(pairs):
        scale = 1.0 if i == j else math.sqrt(2.0)
        if (i, j) in unknown:
            cone[row, unknown[i, j]] = -scale
        else:
            side[row] = scale * w[i, j - m]
    diagonal = sparse.lil_matrix((n, len(unknown)))
    for j in range(n):
        diagonal[j, unknown[m + j, m + j]] = 1.0
    objective = np.array([float(i == j and i < m) for i, j in unknown])
    cones = [clarabel.PSDTriangleConeT(size), clarabel.NonnegativeConeT(n)]
    return solve(objective, [(cone, side), (diagonal, np.ones(n))], cones)


@pytest.mark.parametrize("name", MATRICES)
def test_gaussian_strategy_is_the_optimum_of_the_semidefinite_programme(name):
    w = MATRICES[name]
    optimum = best_gaussian(w) / 2
    strategy = p_identity(w, norm=2)
    assert strategy.expected_error() == pytest.approx(optimum, rel=1e-4)
    assert strategy.errors["bound"] == pytest.approx(optimum, rel=1e-5)
    assert strategy.errors["bound"] <= optimum * (1 + 1e-6)


def marginal_matrix(sizes, columns):
    factors = [np.eye(size) if i in columns else np.ones((1, size)) for i, size in enumerate(sizes)]
    product = np.eye(1)
    for factor in factors:
        product = np.kron(product, factor)
    return product


MARGINALS = [
    ((2, 2, 2), [(0, 1), (1, 2), (0, 2)]),
    ((2, 3, 4), [(0,), (1, 2), (0, 1)]),
    ((2,) * 5, list(itertools.combinations(range(5), 2))),
    ((6, 2, 2), [(), (0,), (1, 2), (0, 1, 2)]),
]


@pytest.mark.parametrize(("sizes", "asked"), MARGINALS)
def test_gaussian_marginal_weights_are_the_convex_optimum(sizes, asked):
    """min sum_i v_i t_i  with  t_i (sum_S u_S l_Si) >= 1  and  sum u <= 1, over all marginals S.

    All A^T A commute here: their common eigenvectors, and so the numbers l and v, come from dense matrices.
    """
    every = [c for k in range(len(sizes) + 1) for c in itertools.combinations(range(len(sizes)), k)]
    grams = [marginal_matrix(sizes, c).T @ marginal_matrix(sizes, c) for c in every]
    demand = sum(marginal_matrix(sizes, c).T @ marginal_matrix(sizes, c) for c in asked)
    mixture = sum(g * weight for g, weight in zip(grams, np.random.default_rng(0).random(len(grams)), strict=True))
    vectors = np.linalg.eigh(mixture)[1]
    eigenvalues = np.array([np.diag(vectors.T @ g @ vectors) for g in grams])
    v = np.diag(vectors.T @ demand @ vectors)
    wanted = np.flatnonzero(v > 1e-9)
    k, n = len(every), len(wanted)
    blocks = [
        (np.hstack([np.ones((1, k)), np.zeros((1, n))]), 1.0),
        (np.hstack([-np.eye(k), np.zeros((k, n))]), np.zeros(k)),
    ]
    cones = [clarabel.NonnegativeConeT(1 + k)]
    for place, i in enumerate(wanted):
        t = np.eye(n)[place]
        # (t + l, t - l, 2) in the second-order cone says t l >= 1
        plus, minus = np.concatenate([eigenvalues[:, i], t]), np.concatenate([-eigenvalues[:, i], t])
        blocks.append((-np.array([plus, minus, np.zeros(k + n)]), np.array([0.0, 0.0, 2.0])))
        cones.append(clarabel.SecondOrderConeT(3))
    optimum = solve(np.concatenate([np.zeros(k), v[wanted]]), blocks, cones) / 2
    strategy = weighted_marginals(sizes, asked, 2)
    assert strategy.expected_error() == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 5), (7, 2)])
@pytest.mark.parametrize("asked", [[(0,), (1,)], [(0, 1), (0,)], [(), (0,), (0, 1)]])
def test_laplace_marginal_weights_beat_every_point_of_a_grid(sizes, asked):
    every = [(), (0,), (1,), (0, 1)]
    grams = np.array([marginal_matrix(sizes, c).T @ marginal_matrix(sizes, c) for c in every])
    demand = sum(grams[every.index(c)] for c in asked)
    found = weighted_marginals(sizes, asked, 1).expected_error()
    steps = 12
    best = math.inf
    for cut in itertools.product(range(steps + 1), repeat=3):
        if sum(cut) <= steps:
            theta = np.array([*cut, steps - sum(cut)]) / steps
            x = np.tensordot(theta**2, grams, axes=1)
            inverse = np.linalg.pinv(x, hermitian=True)
            if np.abs(demand @ inverse @ x - demand).max() < 1e-6:
                best = min(best, 2 * float(np.trace(demand @ inverse)))
    assert found <= best * (1 + 1e-9)
    assert found >= 0.9 * best  # the grid is fine enough to come near


@pytest.mark.parametrize("name", ["prefixes", "ranges", "random"])
def test_laplace_p_identity_is_not_beaten_by_a_search_without_derivatives_by_hand(name):
    """The same family, dense, numerical slopes, sixteen starts."""
    w = MATRICES[name].astype(float)
    n = w.shape[1]

    def error(x):
        theta = x.reshape(-1, n)
        a = np.concatenate([np.eye(n), theta]) / (1 + theta.sum(axis=0))
        return 2 * float(np.trace(w @ np.linalg.inv(a.T @ a) @ w.T))

    rng = np.random.default_rng(8)
    starts = [rng.random(p * n) * 3 for p in (1, 2) for _ in range(8)]
    best = min(minimize(error, s, method="L-BFGS-B", bounds=[(0, None)] * len(s)).fun for s in starts)
    found = min(p_identity(w, p=p, restarts=10).expected_error() for p in (1, 2))
    assert found <= best * (1 + 1e-4)
    assert p_identity(w).expected_error() <= best * 1.01


def test_laplace_p_identity_stops_where_no_slope_is_left():
    """Numerical slopes of the dense formula at the end of the search, for Theta off its bounds; no L1 is wasted."""
    w = np.tri(16)
    strategy = p_identity(w, p=1)
    assert strategy.choice == "optimised"
    assert set(strategy.matrix.sum(axis=0).tolist()) == {strategy.l1}
    theta = strategy.matrix[16:] / np.diag(strategy.matrix[:16])

    def log_error(change):
        moved = theta * (1 + change)
        a = np.concatenate([np.eye(16), moved]) / (1 + moved.sum(axis=0))
        return math.log(float(np.trace(w @ np.linalg.inv(a.T @ a) @ w.T)))

    step = 1e-4
    for k, j in zip(*np.nonzero(theta > 1e-3), strict=True):
        change = np.zeros_like(theta)
        change[k, j] = step
        assert abs(log_error(change) - log_error(-change)) / (2 * step) < 3e-5


# ------------------------------------------------------------------ simulated noise

REPEATS = 4000
FALSE_ALARM = 1e-4  # a correct implementation fails each of the two checks below with at most this chance, per case


def simulate(strategy, histogram, budget, rows, rng):
    if hasattr(strategy, "questions"):
        noisy = []
        for question, counts in zip(strategy.questions, strategy.exact(histogram), strict=True):
            share = float(question.share)
            if strategy.norm == 1:
                noisy.append(counts + rng.laplace(scale=rows / (budget * share), size=counts.shape))
            else:
                noisy.append(counts + rng.normal(scale=rows / math.sqrt(2 * budget * share), size=counts.shape))
        return noisy
    exact = strategy.exact(histogram)
    if strategy.norm == 1:
        return exact + rng.laplace(scale=rows * strategy.l1 / budget, size=exact.shape)
    return exact + rng.normal(scale=rows * math.sqrt(strategy.l2_squared / (2 * budget)), size=exact.shape)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("kind", ["marginals", "ranges"])
def test_answers_are_unbiased_and_spread_as_predicted(kind, norm):
    """Mean error of every query by a z test, mean of error^2 / std^2 by another; Bonferroni over queries."""
    rng = np.random.default_rng([7, norm])
    schema = Schema.from_mbi({"a": 3, "b": 4, "c": 2})
    workload = Workload.all_marginals(schema, 2) if kind == "marginals" else Workload.all_ranges(schema, "b")
    strategy = best_strategy(workload, norm)
    shape = schema.shape(("a", "b", "c")) if kind == "marginals" else (4,)
    histogram = rng.integers(0, 30, size=shape)
    truth = strategy.reconstruct(strategy.exact(histogram)).answers
    budget, rows = 0.7, 2
    draws = [
        strategy.reconstruct(simulate(strategy, histogram, budget, rows, rng), budget, rows) for _ in range(REPEATS)
    ]
    z = (np.array([draw.answers for draw in draws]) - truth) / draws[0].std
    # the mean of 4000 draws is normal to far better than the tail in question
    means = math.sqrt(REPEATS) * z.mean(axis=0)
    assert np.max(means**2) <= chi2.isf(FALSE_ALARM / z.shape[1], 1)
    squares = z**2
    spread = math.sqrt(REPEATS) * (squares.mean(axis=0) - 1) / squares.std(axis=0)
    assert np.max(spread**2) <= chi2.isf(FALSE_ALARM / z.shape[1], 1)
