"""Strategies: closed forms against dense matrices, guarantees, known optima, and messages."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from prade import Schema, Workload, WorkloadError
from prade.core.errors import EstimationError
from prade.planning.strategy.choice import best_strategy, p_identity, weighted_marginals

NORMS = pytest.mark.parametrize("norm", [1, 2])
CASES = [
    ((2, 3, 2), [(0,), (0, 1), (1, 2)]),
    ((2, 3, 2), [(), (2, 0), (1,)]),
    ((4, 3), [(0, 1)]),
    ((2, 2, 2, 2), list(itertools.combinations(range(4), 2))),
    ((5, 1, 3), [(0,), (1,), (1, 2), (2,)]),
    ((3, 3, 3), [(0, 1, 2), (0,), ()]),
    ((2,) * 13, [(i, i + 1) for i in range(12)]),
]


def marginal_matrix(sizes, columns):
    """Q_S over the full domain, cells in the order of `columns`, written out from its meaning."""
    rows = []
    for wanted in itertools.product(*(range(sizes[i]) for i in columns)):
        cells = itertools.product(*map(range, sizes))
        rows.append([all(cell[i] == w for i, w in zip(columns, wanted, strict=True)) for cell in cells])
    return np.array(rows, dtype=float)


def touched(sizes, asked):
    """The same problem on the columns that are asked about, as the strategy sees it."""
    names = sorted({i for columns in asked for i in columns})
    return [sizes[i] for i in names], [[names.index(i) for i in columns] for columns in asked], names


def noise_variances(strategy, norm):
    unit = [float(q.share) for q in strategy.questions]
    each = [2 / s**2 if norm == 1 else 1 / (2 * s) for s in unit]
    return np.concatenate([np.full(q.n_cells, v) for q, v in zip(strategy.questions, each, strict=True)])


@NORMS
@pytest.mark.parametrize(("sizes", "asked"), CASES[:-1])
def test_marginal_closed_forms_are_those_of_dense_matrices(sizes, asked, norm):
    strategy = weighted_marginals(sizes, asked, norm)
    small, columns, names = touched(sizes, asked)
    workload = np.concatenate([marginal_matrix(small, c) for c in columns])
    measured = [marginal_matrix(small, [names.index(i) for i in q.columns]) for q in strategy.questions]
    a = np.concatenate(measured) / np.sqrt(noise_variances(strategy, norm))[:, None]  # whitened
    covariance = workload @ np.linalg.pinv(a.T @ a) @ workload.T
    np.testing.assert_allclose(strategy.variances, np.diag(covariance), rtol=1e-8)
    assert strategy.expected_error() == pytest.approx(np.trace(covariance))
    assert strategy.errors[strategy.choice] == pytest.approx(np.trace(covariance))
    # least squares, from answers that contradict each other
    noisy = [np.random.default_rng(5).normal(size=q.n_cells) for q in strategy.questions]
    y = np.concatenate(noisy) / np.sqrt(noise_variances(strategy, norm))
    expected = workload @ np.linalg.pinv(a) @ y
    found = strategy.reconstruct(noisy)
    np.testing.assert_allclose(found.answers, expected, atol=1e-9)
    np.testing.assert_allclose(found.std**2, strategy.variances)


@NORMS
@pytest.mark.parametrize(("sizes", "asked"), CASES)
def test_exact_answers_come_back_exactly(sizes, asked, norm):
    strategy = weighted_marginals(sizes, asked, norm)
    small, columns, _ = touched(sizes, asked)
    histogram = np.random.default_rng(1).integers(0, 50, size=small)
    wanted = [
        histogram.sum(axis=tuple(set(range(len(small))) - set(c))).transpose(np.argsort(np.argsort(c))).ravel()
        for c in columns
    ]
    np.testing.assert_allclose(
        strategy.reconstruct(strategy.exact(histogram)).answers, np.concatenate(wanted), atol=1e-7
    )


def test_workload_baselines_are_computed_from_their_meaning():
    sizes, asked = (2, 3, 4), [(0, 1), (1, 2)]
    workload = np.concatenate([marginal_matrix(sizes, c) for c in asked])
    for norm, unit in ((1, 2.0), (2, 0.5)):
        errors = weighted_marginals(sizes, asked, norm).errors
        sensitivity = 2.0 if norm == 1 else math.sqrt(2.0)
        assert errors["workload"] == pytest.approx(unit * sensitivity**2 * np.linalg.matrix_rank(workload))
        assert errors["raw"] == pytest.approx(unit * sensitivity**2 * len(workload))
        assert errors["identity"] == pytest.approx(unit * workload.sum())
        singular = np.linalg.svd(workload, compute_uv=False).sum()
        assert errors["bound"] == pytest.approx(unit * singular**2 / 24)


marginal_problems = st.integers(1, 4).flatmap(
    lambda d: st.tuples(
        st.lists(st.integers(1, 5), min_size=d, max_size=d),
        st.lists(st.sets(st.integers(0, d - 1)).map(sorted), min_size=1, max_size=6),
    )
)


@settings(max_examples=60)
@given(problem=marginal_problems, norm=st.sampled_from([1, 2]))
def test_marginal_strategies_keep_their_promises(problem, norm):
    sizes, asked = problem
    strategy = weighted_marginals(sizes, asked, norm)
    check_promises(strategy)
    assert sum(question.share for question in strategy.questions) == Fraction(1)
    assert all(question.share > 0 for question in strategy.questions)


matrices = st.tuples(st.integers(1, 7), st.integers(1, 9), st.integers(0, 10**6), st.floats(0.1, 0.9))


@settings(max_examples=60)
@given(drawn=matrices, norm=st.sampled_from([1, 2]))
def test_matrix_strategies_keep_their_promises(drawn, norm):
    m, n, seed, density = drawn
    w = (np.random.default_rng(seed).random((m, n)) < density).astype(int)
    w[0, 0] = 1
    strategy = p_identity(w, norm=norm)
    check_promises(strategy)
    check_matrix_strategy(strategy, w, norm)


def check_promises(strategy):
    errors = strategy.errors
    chosen = errors[strategy.choice]
    assert chosen <= min(errors["workload"], errors["identity"], errors["raw"]) * (1 + 1e-9)
    assert chosen >= errors["bound"] * (1 - 1e-6)
    assert strategy.expected_error() == pytest.approx(chosen)
    said = {"optimised": "an optimised strategy", "workload": "the workload itself", "identity": "every cell"}
    assert said[strategy.choice] in strategy.explain()


def check_matrix_strategy(strategy, w, norm):
    """Sensitivity, error and reconstruction from the whole-number matrix alone."""
    a = strategy.matrix[:, strategy.cell_of] * (strategy.cell_of >= 0)  # over the original cells
    assert strategy.l1 == np.abs(a).sum(axis=0).max()
    assert strategy.l2_squared == (a**2).sum(axis=0).max()
    unit = 2.0 * strategy.l1**2 if norm == 1 else strategy.l2_squared / 2
    inverse = np.linalg.pinv(a.astype(float), rcond=1e-7)
    np.testing.assert_allclose(w @ inverse @ a, w, atol=1e-6)  # unbiased: the questions determine the queries
    np.testing.assert_allclose(strategy.variances, unit * ((w @ inverse) ** 2).sum(axis=1), rtol=1e-5)
    histogram = np.arange(w.shape[1]) ** 2
    np.testing.assert_array_equal(strategy.exact(histogram), a @ histogram)
    np.testing.assert_allclose(strategy.reconstruct(strategy.exact(histogram)).answers, w @ histogram, atol=1e-5)


# ------------------------------------------------------------------ known optima


@pytest.mark.parametrize("n", [1, 3, 20])
def test_identity_workload_is_measured_as_it_is(n):
    for norm, each in ((1, 2.0), (2, 0.5)):
        strategy = p_identity(np.eye(n), norm=norm)
        assert strategy.choice == "workload"
        np.testing.assert_array_equal(np.sort(strategy.matrix, axis=0)[-1], np.ones(n))
        assert strategy.expected_error() == pytest.approx(each * n)
        assert strategy.errors["bound"] == pytest.approx(each * n)


def test_total_is_one_count():
    for norm, each in ((1, 2.0), (2, 0.5)):
        assert p_identity(np.ones((1, 50)), norm=norm).expected_error() == pytest.approx(each)
        strategy = weighted_marginals((4, 5), [()], norm)
        assert strategy.expected_error() == pytest.approx(each)
        assert [(q.columns, q.share) for q in strategy.questions] == [((), 1)]


@NORMS
def test_single_marginal_is_measured_alone(norm):
    strategy = weighted_marginals((4, 5, 6), [(0, 2)], norm)
    assert [(q.columns, q.share) for q in strategy.questions] == [((0, 2), 1)]
    assert strategy.expected_error() == pytest.approx(24 * (2.0 if norm == 1 else 0.5))
    assert strategy.errors["bound"] == pytest.approx(strategy.expected_error())


@NORMS
def test_a_marginal_asked_twice_is_measured_once(norm):
    once, twice = (weighted_marginals((4, 5), asked, norm) for asked in ([(0, 1)], [(0, 1), (1, 0)]))
    assert [(q.columns, q.share) for q in twice.questions] == [((0, 1), 1)]
    assert twice.expected_error() == pytest.approx(2 * once.expected_error())


@NORMS
def test_nested_marginals_for_free(norm):
    """A marginal and its own sums: the sums follow, so nothing but the marginal is measured when it has few cells."""
    strategy = weighted_marginals((2, 2), [(0, 1), (0,)], norm)
    if norm == 1:
        assert [q.columns for q in strategy.questions] == [(0, 1)]
    assert strategy.expected_error() <= (2.0 if norm == 1 else 0.5) * (4 + 2 * 2) * (1 + 1e-9)


def test_pairs_of_eight_binary_columns():
    asked = list(itertools.combinations(range(8), 2))
    pure, gauss = (weighted_marginals((2,) * 8, asked, norm) for norm in (1, 2))
    # three overlapping marginals of 5, 5 and 6 columns; weights in closed form (4 : 4 : 5)
    assert sorted(len(q.columns) for q in pure.questions) == [5, 5, 6]
    np.testing.assert_allclose(sorted(float(q.share) for q in pure.questions), [4 / 13, 4 / 13, 5 / 13], rtol=1e-3)
    assert pure.errors["optimised"] < 0.81 * pure.errors["identity"] < 0.21 * pure.errors["workload"]
    assert gauss.errors["optimised"] < 0.85 * gauss.errors["workload"]


@NORMS
def test_ranges_gain(norm):
    strategy = best_strategy(Workload.all_ranges(Schema.from_mbi({"a": 32}), "a"), norm)
    assert strategy.choice == "optimised"
    assert strategy.errors["optimised"] < (0.99 if norm == 1 else 0.4) * strategy.errors["identity"]


def test_gaussian_strategy_reaches_its_bound():
    strategy = p_identity(np.tri(40), norm=2)
    assert strategy.errors["optimised"] <= strategy.errors["bound"] * (1 + 1e-4)


# ------------------------------------------------------------------ workloads, budgets, settings


def test_answers_keep_the_order_of_the_workload():
    schema = Schema.from_mbi({"a": 8, "b": 3})
    histogram = np.random.default_rng(0).integers(0, 9, size=(8, 3))
    ranges = Workload.all_ranges(schema, "a")
    strategy = best_strategy(ranges, 2)
    found = strategy.reconstruct(strategy.exact(histogram.sum(axis=1))).answers
    wanted = [histogram[i : j + 1].sum() for i in range(8) for j in range(i, 8)]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    queries = Workload.queries(schema, ["a >= 4 and b == 1", "a == 2", "b != 0", "a >= 4"])
    strategy = best_strategy(queries)
    found = strategy.reconstruct(strategy.exact(histogram)).answers
    wanted = [histogram[4:, 1].sum(), histogram[2].sum(), histogram[:, 1:].sum(), histogram[4:].sum()]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    part = strategy.part(queries.columns)
    cells = part.cells(schema, dict(zip("ab", np.unravel_index(np.arange(24), (8, 3)), strict=True)))
    counts = np.bincount(cells, weights=histogram.ravel(), minlength=part.n_cells + 1)[: part.n_cells].astype(int)
    np.testing.assert_array_equal(strategy.exact(counts), strategy.exact(histogram))


def test_marginals_of_a_schema_become_parts():
    schema = Schema.from_mbi({"a": 3, "b": 4, "c": 2})
    workload = Workload.marginals(schema, ["a", ("c", "a")])
    strategy = best_strategy(workload, 2)
    assert all(q.part(schema).n_cells == q.n_cells for q in strategy.questions)
    assert "b" not in {name for q in strategy.questions for name in q.columns}
    total = weighted_marginals(schema, [()]).questions[0].part(schema)
    assert (total.n_cells, total.covers) == (1, True)


def test_budget_and_rows_scale_the_error():
    pure, gauss = (p_identity(np.tri(6), norm=norm) for norm in (1, 2))
    assert pure.law == "laplace"
    assert pure.expected_error(Fraction(1, 2), rows=3) == pytest.approx(36 * pure.expected_error())
    assert gauss.law == "gaussian"
    assert gauss.expected_error(0.5, rows=3) == pytest.approx(18 * gauss.expected_error())
    np.testing.assert_allclose(pure.expected_std(2) ** 2, pure.variances / 4)
    np.testing.assert_allclose(pure.reconstruct(np.zeros(len(pure.matrix)), 2).std, pure.expected_std(2))
    with pytest.raises(EstimationError, match="above 0"):
        pure.expected_error(0)


@NORMS
def test_importance_moves_error_to_what_matters_less(norm):
    def share_of_first(strategy, cells):
        return strategy.variances[:cells].sum() / strategy.variances.sum()

    plain, weighted = (weighted_marginals((30, 40), [(0,), (1,)], norm, importance=i) for i in (None, [100, 1]))
    assert share_of_first(weighted, 30) < 0.7 * share_of_first(plain, 30)
    plain, weighted = (p_identity(np.tri(12), norm=norm, importance=i) for i in (None, [100] * 6 + [1] * 6))
    assert share_of_first(weighted, 6) < share_of_first(plain, 6)


def test_same_input_same_strategy():
    first, second = (weighted_marginals((2, 3, 4, 2), [(0, 1), (2, 3), (0, 3)]) for _ in range(2))
    assert first.questions == second.questions
    a, b = (p_identity(np.tri(20), p=2) for _ in range(2))
    np.testing.assert_array_equal(a.matrix, b.matrix)


def test_full_table_only_where_it_may_be_measured():
    asked = list(itertools.combinations(range(4), 2))
    assert weighted_marginals((3,) * 4, asked).choice == "identity"
    limited = weighted_marginals((3,) * 4, asked, max_cells=27)
    assert limited.errors["identity"] == math.inf
    assert max(q.n_cells for q in limited.questions) <= 27


def test_sparse_and_dense_matrices_are_the_same():
    w = np.tri(9)
    np.testing.assert_array_equal(p_identity(w).matrix, p_identity(sparse.coo_array(w)).matrix)


def test_many_columns():
    """36 columns: the full table has more cells than a number of 64 bits holds."""
    asked = list(itertools.combinations(range(36), 2))
    strategy = weighted_marginals([4] * 36, asked, 2)
    check_promises(strategy)
    answers = strategy.reconstruct([np.zeros(q.n_cells) for q in strategy.questions]).answers
    assert answers.shape == (630 * 16,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: weighted_marginals((2, 3), []), "at least one"),
        (lambda: weighted_marginals((2, 3), [(0, 5)]), "unknown column 5"),
        (lambda: weighted_marginals((2, 3), [(0, 0)]), "twice"),
        (lambda: weighted_marginals((2, 3), [(0,)], 3), "use 1 for Laplace"),
        (lambda: weighted_marginals((2, 3), [(0,)], importance=[0]), "1 positive number"),
        (lambda: weighted_marginals((2,) * 20, [range(20)]), "sub-marginals"),
        (lambda: p_identity(np.zeros((2, 3))), "nothing to measure"),
        (lambda: p_identity([[0.5, 1]]), "whole numbers"),
        (lambda: p_identity([[1, np.nan]]), "whole numbers"),
        (lambda: p_identity([1, 2]), "queries x cells"),
        (lambda: p_identity(np.eye(3), p=4), "from 1 to 3"),
        (lambda: p_identity(np.eye(1025)), "coarser"),
    ],
)
def test_what_cannot_be_done_is_said(make, message):
    with pytest.raises(WorkloadError, match=message):
        make()


def test_answers_of_the_wrong_shape_are_refused():
    marginals, matrix = weighted_marginals((2, 3), [(0,), (1,)], 2), p_identity(np.tri(5))
    with pytest.raises(EstimationError, match="one a question"):
        marginals.reconstruct([])
    with pytest.raises(EstimationError, match="all finite"):
        marginals.reconstruct([np.full(q.n_cells, np.nan) for q in marginals.questions])
    with pytest.raises(EstimationError, match="finite answers"):
        matrix.reconstruct([1.0])
    with pytest.raises(EstimationError, match="whole counts"):
        matrix.exact(np.zeros(5))


def test_general_queries_on_a_large_domain_are_refused():
    schema = Schema.from_mbi({f"c{i}": 10 for i in range(6)})
    workload = Workload.queries(schema, [" and ".join(f"c{i} >= 5" for i in range(6))])
    with pytest.raises(WorkloadError, match="split the workload"):
        best_strategy(workload)
