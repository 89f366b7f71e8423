"""Layouts: exact collapse, exact bundles, one evaluation that agrees with dense numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prade.core.arrays
import prade.estimating.kernels
from prade import EstimationError, Schema, Workload
from prade.core.arrays import distinct_rows
from prade.data.public.joint import Coded, Prior
from prade.estimating.kernels import choose_bundles
from prade.estimating.layout import Layout
from prade.queries.parts import Cells, Marginal

seeds = st.integers(0, 2**32 - 1)


def random_prior(generator, sizes=(2, 3, 4), rows=40, zeros=0.0):
    schema = Schema.from_mbi({"abcdefgh"[i]: n for i, n in enumerate(sizes)})
    codes = {name: generator.integers(0, schema.size(name), rows).astype(np.uint8) for name in schema.names}
    first, _ = distinct_rows(list(codes.values()))
    weights = generator.exponential(size=len(first))
    weights[generator.random(len(first)) < zeros] = 0.0
    weights[0] += 0.1
    return Prior(schema, {name: code[first] for name, code in codes.items()}, weights)


def random_parts(generator, schema):
    names = schema.names
    parts = [Marginal.of(schema, [name]) for name in names if generator.random() < 0.7]
    parts.append(Marginal.of(schema, list(generator.permutation(names)[:2])))
    size = schema.size(names[-1])
    parts.append(Cells([names[-1]], generator.integers(0, 3, size), 2))  # 2 stands for none: partial
    return [parts[i] for i in generator.permutation(len(parts))]


def dense(prior, parts):
    """W as a plain 0/1 matrix, cells x rows of the prior."""
    blocks = []
    for part in parts:
        cell = part.cells(prior.schema, prior.codes)
        blocks.append((cell[None, :] == np.arange(part.n_cells)[:, None]).astype(float))
    return np.vstack(blocks)


def tilted_by_hand(matrix, weights, multipliers):
    exponent = matrix.T @ multipliers
    top = exponent[weights > 0].max()
    w = np.zeros(len(weights))
    held = weights > 0
    w[held] = weights[held] * np.exp(exponent[held] - top)
    return w / w.sum(), float(np.log(w.sum()) + top), float(top)


# ------------------------------------------------------------------ distinct rows


def check_distinct(columns):
    first, kind = distinct_rows(columns)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    kinds = list(dict.fromkeys(rows))  # in order of first appearance
    assert [rows[i] for i in first] == kinds
    assert first.tolist() == [rows.index(row) for row in kinds]
    assert [kinds[k] for k in kind] == rows


@settings(max_examples=50)
@given(seeds)
def test_distinct_rows_are_exact(seed):
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(1, 60))
    types = [np.uint8, np.uint16, np.uint32, np.uint64]
    check_distinct([
        generator.integers(0, generator.integers(1, 5), rows).astype(types[generator.integers(0, 4)])
        for _ in range(int(generator.integers(1, 4)))
    ])  # fmt: skip


def test_collisions_of_the_random_sums_are_found_and_repaired(monkeypatch):
    """The first draws make every row collide, then pairs of rows; only the third is a proper one."""
    real = np.random.default_rng(11)
    asked = []

    class Clumsy:
        def integers(self, low, high, size, dtype):
            asked.append(size)
            if len(asked) <= 2:
                return np.zeros(size, dtype)
            if len(asked) <= 4:
                return np.arange(size, dtype=dtype)  # sums collide: 0 + 1 = 1 + 0
            return real.integers(low, high, size=size, dtype=dtype)

    monkeypatch.setattr(prade.core.arrays.np.random, "default_rng", lambda seed: Clumsy())
    check_distinct([np.array([0, 1, 1, 0, 2, 0]), np.array([1, 0, 0, 1, 0, 2])])
    assert len(asked) == 6


def test_distinct_rows_of_one_row_and_of_none():
    check_distinct([np.array([3])])
    first, kind = distinct_rows([np.zeros(0, np.uint8)])
    assert (len(first), len(kind)) == (0, 0)


# ------------------------------------------------------------------ bundles


@settings(max_examples=40)
@given(seeds, st.sampled_from([1, 6, 20, 2048]))
def test_bundled_codes_lead_back_to_their_parts(seed, largest):
    generator = np.random.default_rng(seed)
    sizes = [int(n) for n in generator.integers(1, 6, int(generator.integers(1, 7)))]
    cells = [generator.integers(0, n + 1, 30).astype(np.uint8) for n in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prade.estimating.kernels, "LARGEST_BUNDLE", largest)
        bundles = choose_bundles(cells, sizes)
    assert sorted(k for bundle in bundles for k in bundle.parts.tolist()) == list(range(len(sizes)))
    for bundle in bundles:
        for position, k in enumerate(bundle.parts):
            assert bundle.combinations[bundle.code, position].tolist() == cells[k].tolist()
        if len(bundle.parts) > 1:  # a part on its own keeps all its cells, seen or not
            assert sorted(set(bundle.code.tolist())) == list(range(len(bundle.combinations)))
            assert len(bundle.combinations) <= largest


def test_parts_are_bundled_where_it_pays():
    generator = np.random.default_rng(1)
    sizes = [3, 4, 2, 5, 9, 2]
    cells = [generator.integers(0, n, 500).astype(np.uint8) for n in sizes]
    assert len(choose_bundles(cells, sizes)) < 3


# ------------------------------------------------------------------ collapse and expand


@settings(max_examples=40)
@given(seeds)
def test_collapsed_rows_expand_in_the_priors_proportions(seed):
    generator = np.random.default_rng(seed)
    prior = random_prior(generator, zeros=0.2)
    layout = Layout(prior, Workload(prior.schema, [Marginal.of(prior.schema, ["a", "b"])]))
    assert layout.rows <= 6
    assert layout.base.sum() == pytest.approx(1.0)
    assert layout.expand(layout.base) == pytest.approx(prior.weights, rel=1e-14)
    collapsed = generator.dirichlet(np.ones(layout.rows)) * (layout.base > 0)
    expanded = layout.expand(collapsed)
    assert expanded.sum() == pytest.approx(collapsed.sum())
    key = prior.codes["a"].astype(int) * 3 + prior.codes["b"]
    for cell in np.unique(key):
        inside = key == cell
        mass = prior.weights[inside].sum()
        if mass > 0:
            share = expanded[inside].sum() / mass
            assert expanded[inside] == pytest.approx(prior.weights[inside] * share, rel=1e-12)
        else:
            assert not expanded[inside].any()


def test_collapse_can_be_left_out():
    prior = random_prior(np.random.default_rng(0))
    workload = Workload.marginals(prior.schema, ["a"])
    assert Layout(prior, workload).rows == 2
    assert Layout(prior, workload, collapse=False).rows == len(prior)


# ------------------------------------------------------------------ evaluation


@pytest.mark.parametrize("parts", [1, 3, 4, 5, 8, 11])
def test_any_number_of_bundles_is_passed_over(parts, monkeypatch):
    """Bundles are taken four at a time, and then those that are left one by one; rows beyond a tile, too."""
    monkeypatch.setattr(prade.estimating.kernels, "LARGEST_BUNDLE", 1)
    generator = np.random.default_rng(parts)
    schema = Schema.from_mbi({f"c{k}": 3 for k in range(parts)})
    codes = {name: generator.integers(0, 3, 1500).astype(np.uint8) for name in schema.coded}
    prior = Prior(schema, codes, generator.dirichlet(np.ones(1500)))
    workload = Workload.marginals(schema, schema.coded)
    layout = Layout(prior, workload, collapse=False)
    assert len(layout.bundles) == parts
    multipliers = generator.normal(size=layout.n_cells)
    q, log_z, _ = tilted_by_hand(dense(prior, workload.parts), prior.weights, multipliers)
    tilted = layout.evaluate(multipliers)
    assert tilted.masses == pytest.approx(dense(prior, workload.parts) @ q, rel=1e-9)
    assert tilted.log_z == pytest.approx(log_z, rel=1e-12)
    assert layout.weights(multipliers) == pytest.approx(q, rel=1e-9)


@settings(max_examples=40)
@given(seeds, st.sampled_from([0.0, 1.0, 30.0, 300.0]), st.booleans(), st.sampled_from([1, 5, 2048]))
def test_evaluation_agrees_with_dense_numpy(seed, size, collapse, largest):
    generator = np.random.default_rng(seed)
    prior = random_prior(generator, zeros=0.3)
    parts = random_parts(generator, prior.schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prade.estimating.kernels, "LARGEST_BUNDLE", largest)
        layout = Layout(prior, Workload(prior.schema, parts), collapse=collapse)
    matrix = dense(prior, parts)
    multipliers = size * generator.choice([-1.0, 1.0, generator.random()], layout.n_cells)
    q, log_z, top = tilted_by_hand(matrix, prior.weights, multipliers)
    tilted = layout.evaluate(multipliers)
    assert layout.expand(tilted.normalised()) == pytest.approx(q, rel=1e-9, abs=1e-300)
    assert np.array_equal(layout.weights(multipliers), layout.expand(tilted.normalised()))
    assert tilted.masses == pytest.approx(matrix @ q, rel=1e-9, abs=1e-300)
    assert tilted.log_z == pytest.approx(log_z, rel=1e-12, abs=1e-12)
    assert tilted.top == pytest.approx(top, rel=1e-12, abs=1e-12)
    assert layout.prior_masses == pytest.approx(matrix @ prior.weights, rel=1e-12)
    assert layout.reachable.tolist() == (matrix @ prior.weights > 0).tolist()
    assert layout.masses_of(tilted.normalised()) == pytest.approx(matrix @ q, rel=1e-9, abs=1e-300)
    some = np.arange(0, layout.rows, 2)
    kinds = np.arange(len(prior)) if layout.kind is None else layout.kind
    assert layout.bundles.cells_of(some).todense().tolist() == [
        matrix[:, list(kinds).index(row)].tolist() for row in some
    ]
    collapsed = layout.bundles.row_logits(multipliers)
    everyone = collapsed if layout.kind is None else collapsed[layout.kind]
    assert everyone == pytest.approx(matrix.T @ multipliers, rel=1e-12, abs=1e-10)


def large_prior(generator, rows=150_000):
    """More rows than one chunk (65,536) holds, and many tiles with very different weights."""
    schema = Schema.from_mbi({"a": 60, "b": 50, "c": 50})
    cells = generator.permutation(150_000)[:rows]
    grid = np.unravel_index(cells, (60, 50, 50))
    codes = {name: code.astype(np.uint8) for name, code in zip("abc", grid, strict=True)}
    weights = generator.exponential(size=rows)
    weights[:70_000] *= generator.random(70_000) < 0.5
    weights[:3000] = 0.0  # whole tiles without mass come first
    return Prior(schema, codes, weights)


@pytest.mark.parametrize("size", [1.0, 300.0])
def test_evaluation_over_many_tiles_and_chunks(size):
    generator = np.random.default_rng(8)
    prior = large_prior(generator)
    parts = [Marginal.of(prior.schema, [name]) for name in "abc"]
    layout = Layout(prior, Workload(prior.schema, parts))
    assert len(layout.chunks) > 2
    multipliers = size * generator.uniform(-1, 1, layout.n_cells)
    exponent = sum(multipliers[layout.part(k)][prior.codes[name]] for k, name in enumerate("abc"))
    w = np.where(prior.weights > 0, prior.weights * np.exp(exponent - exponent[prior.weights > 0].max()), 0.0)
    q = w / w.sum()
    tilted = layout.evaluate(multipliers)
    assert layout.expand(tilted.normalised()) == pytest.approx(q, rel=1e-9, abs=1e-300)
    expected = np.concatenate([np.bincount(prior.codes[n], weights=q, minlength=prior.schema.size(n)) for n in "abc"])
    assert tilted.masses == pytest.approx(expected, rel=1e-9, abs=1e-300)
    threaded = Layout(prior, Workload(prior.schema, parts), threads=2).evaluate(multipliers)
    assert threaded.masses.tobytes() == tilted.masses.tobytes()
    assert threaded.log_z == tilted.log_z


@settings(max_examples=30)
@given(seeds)
def test_restriction_takes_the_mass_of_the_other_rows_away(seed):
    generator = np.random.default_rng(seed)
    prior = random_prior(generator)
    parts = random_parts(generator, prior.schema)
    layout = Layout(prior, Workload(prior.schema, parts), collapse=False)
    before = layout.prior_masses.copy()
    allowed = generator.random(layout.rows) < 0.5
    allowed[0] = True
    narrow = layout.restricted(allowed)
    matrix = dense(prior, parts)
    weights = np.where(allowed, prior.weights, 0.0)
    multipliers = generator.normal(size=layout.n_cells)
    q, log_z, _ = tilted_by_hand(matrix, weights, multipliers)
    assert narrow.evaluate(multipliers).masses == pytest.approx(matrix @ q, rel=1e-12, abs=1e-300)
    assert narrow.evaluate(multipliers).log_z == pytest.approx(log_z, rel=1e-12, abs=1e-12)
    assert narrow.reachable.tolist() == (matrix @ weights > 0).tolist()
    assert narrow.expand(narrow.evaluate(multipliers).normalised()) == pytest.approx(q, rel=1e-12, abs=1e-300)
    # the layout it came from is as it was
    assert layout.evaluate(np.zeros(layout.n_cells)).masses.tobytes() == before.tobytes()
    assert layout.prior_masses.tobytes() == before.tobytes()


# ------------------------------------------------------------------ curvature


@settings(max_examples=30)
@given(seeds)
def test_covariance_of_all_rows_is_exact(seed):
    generator = np.random.default_rng(seed)
    prior = random_prior(generator, zeros=0.2)
    parts = random_parts(generator, prior.schema)
    layout = Layout(prior, Workload(prior.schema, parts))
    multipliers = generator.normal(size=layout.n_cells)
    matrix = dense(prior, parts)
    q, _, _ = tilted_by_hand(matrix, prior.weights, multipliers)
    mean = matrix @ q
    expected = (matrix * q) @ matrix.T - np.outer(mean, mean)
    found = layout.bundles.covariance(layout.evaluate(multipliers), layout.rows, 0.5)
    assert found == pytest.approx(expected, abs=1e-12)


def test_covariance_of_a_sample_is_close_for_common_and_rare_cells():
    """8,192 of 150,000 rows, 160 cells: a diagonal entry m (1 - m) is off by at most 60 %, by 20 % on average (rms).

    A cell is hit 8192 / 160 = 51 times on average and no hit weighs more than the cell's mass, so its relative
    standard error is at most 1 / sqrt(51) = 14 %; 60 % is more than four of those. A covariance is a mean over the
    hits too: off the diagonal correlations are within 0.15.
    """
    generator = np.random.default_rng(9)
    prior = large_prior(generator)
    parts = [Marginal.of(prior.schema, [name]) for name in "abc"]
    layout = Layout(prior, Workload(prior.schema, parts))
    tilted = layout.evaluate(generator.normal(size=layout.n_cells))
    exact = layout.bundles.covariance(tilted, layout.rows, 0.5)
    sampled = layout.bundles.covariance(tilted, 8192, 0.5)
    deviation = np.sqrt(np.diag(exact))
    assert (deviation > 0).all()
    assert deviation.max() > 5 * deviation.min()  # rare cells are among them
    relative = np.diag(sampled) / np.diag(exact) - 1
    assert np.abs(relative).max() <= 0.6
    assert np.sqrt(np.mean(relative**2)) <= 0.2
    off = ~np.eye(layout.n_cells, dtype=bool)
    wrong = (np.abs(sampled - exact) / np.outer(deviation, deviation))[off]
    assert wrong.max() <= 0.15
    assert sampled == pytest.approx(sampled.T, abs=0)


# ------------------------------------------------------------------ unusual workloads


def test_one_part_of_one_cell_that_covers_everything():
    prior = random_prior(np.random.default_rng(3))
    layout = Layout(prior, Workload(prior.schema, [Cells(["a"], [0, 0], 1)]))
    assert (layout.rows, layout.n_cells) == (1, 1)
    tilted = layout.evaluate(np.array([5.0]))
    assert tilted.masses == pytest.approx(np.array([1.0]))
    assert tilted.log_z == pytest.approx(5.0)
    assert layout.expand(tilted.normalised()) == pytest.approx(prior.weights)
    assert layout.bundles.covariance(tilted, 10, 0.5) == pytest.approx(np.zeros((1, 1)), abs=1e-15)


def test_more_cells_than_sixteen_bits_hold():
    schema = Schema.from_mbi({"a": 300, "b": 250, "c": 2})
    generator = np.random.default_rng(6)
    rows = 3000
    codes = {"a": generator.integers(0, 300, rows), "b": generator.integers(0, 250, rows)}
    codes["a"][0], codes["b"][0] = 299, 249  # the very last cell
    prior = Prior.from_joint(Coded(schema, {**codes, "c": generator.integers(0, 2, rows)}))
    parts = [Marginal.of(schema, ["a", "b"]), Marginal.of(schema, ["c"])]
    layout = Layout(prior, Workload(schema, parts))
    assert layout.bundles.codes.dtype == np.uint32
    assert layout.n_cells == 75_002
    joint = prior.codes["a"].astype(int) * 250 + prior.codes["b"]
    assert layout.prior_masses[:75_000] == pytest.approx(np.bincount(joint, weights=prior.weights, minlength=75_000))
    multipliers = np.zeros(layout.n_cells)
    multipliers[74_999] = np.log(100.0)
    w = prior.weights * np.where(joint == 74_999, 100.0, 1.0)
    found = layout.expand(layout.evaluate(multipliers).normalised())
    assert found == pytest.approx(w / w.sum(), rel=1e-12)


def test_nothing_to_lay_out_is_refused():
    schema = Schema.from_mbi({"a": 2})
    empty = Coded(schema, {"a": np.zeros(0, np.uint8)})
    with pytest.raises(EstimationError, match="no rows: give a public table"):
        Layout(empty, Workload.marginals(schema, ["a"]))
    with pytest.raises(EstimationError, match="no parts: name at least one"):
        Layout(Prior.uniform(schema), Workload(schema, []))


def test_another_prior_on_the_same_rows_gives_the_layout_that_it_would_make_itself():
    schema = Schema.from_mbi({"a": 3, "b": 2, "c": 2})
    prior = Prior.uniform(schema)
    workload = Workload.marginals(schema, ["a", ("a", "b")])
    weights = np.random.default_rng(0).dirichlet(np.ones(len(prior)))
    other = Prior(schema, prior.codes, weights)
    moved, fresh = Layout(prior, workload).reweighted(other), Layout(other, workload)
    multipliers = np.linspace(-1, 1, fresh.n_cells)
    for layout in (moved, fresh):
        assert np.allclose(layout.prior_masses, np.concatenate(workload.answer(other)))
    assert np.allclose(moved.evaluate(multipliers).masses, fresh.evaluate(multipliers).masses)
    assert np.allclose(moved.expand(moved.base), weights)
    with pytest.raises(EstimationError, match="the other prior has 3"):
        moved.reweighted(Prior.uniform(schema, ["a"]))


def test_masses_next_to_nothing_leave_no_infinities():
    """A row with a mass below the smallest normal number: its inverse would overflow."""
    schema = Schema.from_mbi({"a": 40, "b": 40, "c": 2})
    prior = Prior.uniform(schema)
    weights = prior.weights.copy()
    weights[prior.codes["a"] == 7] = 5e-320
    tiny = Prior(schema, prior.codes, weights / weights.sum())
    workload = Workload.marginals(schema, ["a", "b"])
    layout = Layout(tiny, workload)
    with np.errstate(all="raise", under="ignore"):
        tilted = layout.evaluate(np.zeros(layout.n_cells))
        assert np.isfinite(layout.bundles.covariance(tilted, 200, 0.5)).all()
        assert np.isfinite(layout.expand(tilted.normalised())).all()
