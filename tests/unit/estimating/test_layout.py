"""Layouts: exact collapse, exact bundles, one evaluation that agrees with dense numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade import EstimationError, Schema, Workload
from prade.data.public.joint import Coded, Prior, distinct_rows
from prade.estimating.kernels import LARGEST_BUNDLE
from prade.estimating.layout import Layout
from prade.queries.parts import Cells, Marginal

seeds = st.integers(0, 2**32 - 1)


def random_prior(generator, zeros=0.0):
    schema = Schema.from_mbi({"a": 2, "b": 3, "c": 4})
    codes = {name: generator.integers(0, schema.size(name), 40).astype(np.uint8) for name in schema.names}
    first, _ = distinct_rows(list(codes.values()))
    weights = generator.exponential(size=len(first))
    weights[generator.random(len(first)) < zeros] = 0.0
    weights[0] += 0.1
    return Prior(schema, {name: code[first] for name, code in codes.items()}, weights)


def random_parts(generator, schema):
    names = schema.names
    parts = [Marginal.of(schema, [name]) for name in names if generator.random() < 0.7]
    parts.append(Marginal.of(schema, list(generator.permutation(names)[:2])))
    parts.append(Cells([names[-1]], generator.integers(0, 3, schema.size(names[-1])), 2))  # 2 stands for none: partial
    return [parts[i] for i in generator.permutation(len(parts))]


def dense(prior, parts):
    """W as a plain 0/1 matrix, cells x rows of the prior."""
    cells = [part.cells(prior.schema, prior.codes)[None, :] == np.arange(part.n_cells)[:, None] for part in parts]
    return np.vstack(cells).astype(float)


def tilted_by_hand(matrix, weights, multipliers):
    held, exponent = weights > 0, matrix.T @ multipliers
    top = exponent[held].max()
    w = np.zeros(len(weights))
    w[held] = weights[held] * np.exp(exponent[held] - top)
    return w / w.sum(), float(np.log(w.sum()) + top), float(top)


@settings(max_examples=30)
@given(seeds)
def test_distinct_rows_are_exact(seed):
    generator = np.random.default_rng(seed)
    types = [np.uint8, np.uint16, np.uint32, np.uint64]
    rows, columns = int(generator.integers(0, 60)), int(generator.integers(1, 4))
    drawn = [generator.integers(0, 1 + k, rows).astype(types[generator.integers(0, 4)]) for k in range(columns)]
    first, kind = distinct_rows(drawn)
    rows = list(zip(*(column.tolist() for column in drawn), strict=True))
    kinds = list(dict.fromkeys(rows))  # in order of first appearance
    assert first.tolist() == [rows.index(row) for row in kinds]
    assert [kinds[k] for k in kind] == rows


@settings(max_examples=40)
@given(seeds, st.sampled_from([0.0, 1.0, 30.0, 300.0]), st.booleans(), st.sampled_from([1, 5, LARGEST_BUNDLE]))
def test_evaluation_agrees_with_dense_numpy(seed, size, collapse, largest):
    generator = np.random.default_rng(seed)
    prior = random_prior(generator, zeros=0.3)
    parts = random_parts(generator, prior.schema)
    layout = Layout(prior, Workload(prior.schema, parts), collapse=collapse, largest_bundle=largest)
    matrix = dense(prior, parts)
    multipliers = size * generator.choice([-1.0, 1.0, generator.random()], layout.n_cells)
    q, log_z, top = tilted_by_hand(matrix, prior.weights, multipliers)
    tilted = layout.evaluate(multipliers)
    assert layout.expand(tilted.normalised()) == pytest.approx(q, rel=1e-9, abs=1e-300)
    assert np.array_equal(layout.weights(multipliers), layout.expand(tilted.normalised()))
    assert tilted.masses == pytest.approx(matrix @ q, rel=1e-9, abs=1e-300)
    assert (tilted.log_z, tilted.top) == pytest.approx((log_z, top), rel=1e-12, abs=1e-12)
    assert layout.start.masses == pytest.approx(matrix @ prior.weights, rel=1e-12)
    assert layout.reachable.tolist() == (matrix @ prior.weights > 0).tolist()
    assert layout.masses_of(tilted.normalised()) == pytest.approx(matrix @ q, rel=1e-9, abs=1e-300)
    kinds = np.arange(len(prior)) if layout.kind is None else layout.kind
    some = np.arange(0, layout.rows, 2)
    at = [list(kinds).index(row) for row in some]
    assert layout.bundles.cells_of(some).todense().tolist() == matrix[:, at].T.tolist()
    assert layout.bundles.row_logits(multipliers)[kinds] == pytest.approx(matrix.T @ multipliers, rel=1e-12, abs=1e-10)


@settings(max_examples=20)
@given(seeds)
def test_restricted_and_reweighted_layouts_are_those_of_their_own_weights(seed):
    generator = np.random.default_rng(seed)
    prior = random_prior(generator)
    parts = random_parts(generator, prior.schema)
    layout = Layout(prior, Workload(prior.schema, parts), collapse=False)
    before = layout.start.masses.copy()
    allowed = generator.random(layout.rows) < 0.5
    allowed[0] = True
    other = prior.with_weights(generator.dirichlet(np.ones(len(prior))))
    matrix, multipliers = dense(prior, parts), generator.normal(size=layout.n_cells)
    for changed, weights in (
        (layout.restricted(allowed), np.where(allowed, prior.weights, 0.0)),
        (layout.reweighted(other), other.weights),
    ):
        q, log_z, _ = tilted_by_hand(matrix, weights, multipliers)
        tilted = changed.evaluate(multipliers)
        assert tilted.masses == pytest.approx(matrix @ q, rel=1e-12, abs=1e-300)
        assert tilted.log_z == pytest.approx(log_z, rel=1e-12, abs=1e-12)
        assert changed.reachable.tolist() == (matrix @ weights > 0).tolist()
        assert changed.expand(tilted.normalised()) == pytest.approx(q, rel=1e-12, abs=1e-300)
    assert layout.evaluate(np.zeros(layout.n_cells)).masses.tobytes() == before.tobytes()  # it is as it was
    with pytest.raises(EstimationError, match="the other prior has 1"):
        layout.reweighted(Prior.from_table(prior.schema, {"a": [0], "b": [0], "c": [0]}))


@pytest.fixture(scope="module")
def large():
    """More rows than one chunk (65,536) holds, and many tiles with very different weights."""
    generator = np.random.default_rng(8)
    schema = Schema.from_mbi({"a": 60, "b": 50, "c": 50})
    grid = np.unravel_index(generator.permutation(150_000), (60, 50, 50))
    weights = generator.exponential(size=150_000)
    weights[:70_000] *= generator.random(70_000) < 0.5
    weights[:3000] = 0.0  # whole tiles without mass come first
    prior = Prior(schema, {name: code.astype(np.uint8) for name, code in zip("abc", grid, strict=True)}, weights)
    return prior, Layout(prior, Workload.all_marginals(schema, 1))


@pytest.mark.parametrize("size", [1.0, 300.0])
def test_evaluation_over_many_tiles_and_chunks(large, size):
    prior, layout = large
    assert len(layout.chunks) > 2
    multipliers = size * np.random.default_rng(1).uniform(-1, 1, layout.n_cells)
    exponent = sum(multipliers[layout.part(k)][prior.codes[name]] for k, name in enumerate("abc"))
    w = np.where(prior.weights > 0, prior.weights * np.exp(exponent - exponent[prior.weights > 0].max()), 0.0)
    q = w / w.sum()
    tilted = layout.evaluate(multipliers)
    assert layout.expand(tilted.normalised()) == pytest.approx(q, rel=1e-9, abs=1e-300)
    expected = np.concatenate([np.bincount(prior.codes[n], weights=q, minlength=prior.schema.size(n)) for n in "abc"])
    assert tilted.masses == pytest.approx(expected, rel=1e-9, abs=1e-300)


@settings(max_examples=20)
@given(seeds)
def test_covariance_of_all_rows_is_exact(seed):
    generator = np.random.default_rng(seed)
    prior = random_prior(generator, zeros=0.2)
    parts = random_parts(generator, prior.schema)
    layout = Layout(prior, Workload(prior.schema, parts))
    multipliers = generator.normal(size=layout.n_cells)
    matrix = dense(prior, parts)
    q, _, _ = tilted_by_hand(matrix, prior.weights, multipliers)
    expected = (matrix * q) @ matrix.T - np.outer(matrix @ q, matrix @ q)
    covariance = layout.bundles.covariance(layout.evaluate(multipliers), layout.rows, 0.5)
    assert covariance == pytest.approx(expected, abs=1e-12)


def test_covariance_of_a_sample_is_close_for_common_and_rare_cells(large):
    """8,192 of 150,000 rows, 160 cells: a diagonal entry m (1 - m) is off by at most 60 %, by 20 % on average (rms).

    A cell is hit 8192 / 160 = 51 times on average and no hit weighs more than the cell's mass, so its relative
    standard error is at most 1 / sqrt(51) = 14 %; 60 % is more than four of those. A covariance is a mean over the
    hits too: off the diagonal correlations are within 0.15.
    """
    layout = large[1]
    tilted = layout.evaluate(np.random.default_rng(9).normal(size=layout.n_cells))
    exact, sampled = (layout.bundles.covariance(tilted, rows, 0.5) for rows in (layout.rows, 8192))
    deviation = np.sqrt(np.diag(exact))
    assert deviation.max() > 5 * deviation.min() > 0  # rare cells are among them
    relative = np.diag(sampled) / np.diag(exact) - 1
    assert np.abs(relative).max() <= 0.6
    assert np.sqrt(np.mean(relative**2)) <= 0.2
    wrong = (np.abs(sampled - exact) / np.outer(deviation, deviation))[~np.eye(layout.n_cells, dtype=bool)]
    assert wrong.max() <= 0.15
    assert sampled == pytest.approx(sampled.T, abs=0)


def test_more_cells_than_sixteen_bits_hold():
    schema = Schema.from_mbi({"a": 300, "b": 250, "c": 2})
    generator = np.random.default_rng(6)
    codes = {"a": generator.integers(0, 300, 3000), "b": generator.integers(0, 250, 3000)}
    codes["a"][0], codes["b"][0] = 299, 249  # the very last cell
    prior = Prior.from_joint(Coded(schema, {**codes, "c": generator.integers(0, 2, 3000)}))
    layout = Layout(prior, Workload.marginals(schema, [("a", "b"), "c"]))
    assert layout.bundles.codes.dtype == np.uint32
    assert layout.n_cells == 75_002
    multipliers = np.zeros(layout.n_cells)
    multipliers[74_999] = np.log(100.0)
    w = prior.weights * np.where((prior.codes["a"] == 299) & (prior.codes["b"] == 249), 100.0, 1.0)
    assert layout.expand(layout.evaluate(multipliers).normalised()) == pytest.approx(w / w.sum(), rel=1e-12)


def test_masses_next_to_nothing_leave_no_infinities():
    """A row with a mass below the smallest normal number: its inverse would overflow."""
    schema = Schema.from_mbi({"a": 40, "b": 40, "c": 2})
    prior = Prior.uniform(schema)
    weights = np.where(prior.codes["a"] == 7, 5e-320, prior.weights)
    layout = Layout(prior.with_weights(weights / weights.sum()), Workload.marginals(schema, ["a", "b"]))
    with np.errstate(all="raise", under="ignore"):
        tilted = layout.evaluate(np.zeros(layout.n_cells))
        assert np.isfinite(layout.bundles.covariance(tilted, 200, 0.5)).all()
        assert np.isfinite(layout.expand(tilted.normalised())).all()
