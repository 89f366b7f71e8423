"""The estimate depends on the distribution and the answers, not on how they were written down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating.layout import Layout
from prade.estimating.paper_estimators import IDE, TwoStage
from prade.estimating.posterior_mode import MAP
from prade.queries.parts import Cells, Marginal
from prade.release.release import Measurement

SIZES = {"a": 3, "b": 4, "c": 2}
SCHEMA = Schema.from_mbi(SIZES)
TOTAL = 200.0
NAMES = tuple(SIZES)

# `cyclic` visits bundled parts together, so the order is spelt out where bundles change
ESTIMATORS = {
    "ide-random": IDE(steps=12, seed=4),
    "ide-given": IDE(steps=12, order=[2, 0, 1, 3]),
    "ide-euclidean": IDE(steps=12, order=[2, 0, 1, 3], projection="euclidean"),
    "two-stage": TwoStage(),
    "map-newton": MAP(n0=20.0, solver="newton", tolerance=1e-13),
    "map-block": MAP(n0=20.0, solver="block", tolerance=1e-9),
    "map-automatic": MAP(tolerance=1e-13),  # n0, too, follows from the distribution and the answers
}
# these are arithmetic; the others stop at a gap g, and then the total variation is at most sqrt(g / 2 n0)
ARITHMETIC = ("ide-random", "ide-given", "ide-euclidean")
TOLERANCE = {**dict.fromkeys(ARITHMETIC, 1e-10), "map-block": 5e-5}
EACH = pytest.mark.parametrize("name", ESTIMATORS)
seeds = st.integers(0, 2**32 - 1)


def problem(seed, law="mixed"):
    """A prior on some of the 24 cells and noisy answers of four parts, one of them partial, with an empty cell."""
    generator = np.random.default_rng(seed)
    cells = generator.permutation(24)[: generator.integers(6, 20)]
    codes = {n: c.astype(np.uint8) for n, c in zip(NAMES, np.unravel_index(cells, (3, 4, 2)), strict=True)}
    prior = Prior(SCHEMA, codes, generator.exponential(size=len(cells)) + 0.05)
    parts = [Marginal.of(SCHEMA, ["a"]), Marginal.of(SCHEMA, ["b"]), Marginal.of(SCHEMA, ["a", "c"])]
    parts.append(Cells(["b"], [0, 2, 1, 2], 2))
    truth = Prior(SCHEMA, codes, prior.weights * generator.exponential(size=len(cells)))
    measured = []
    for part, answer in zip(parts, Workload(SCHEMA, parts).answer(truth), strict=True):
        chosen = law if law != "mixed" else str(generator.choice(["laplace", "gaussian"]))
        scale = generator.uniform(1.0, 6.0)
        noise = generator.laplace(size=len(answer)) if chosen == "laplace" else generator.normal(size=len(answer))
        measured.append(Measurement(part, TOTAL * answer + scale * noise, scale, chosen))
    return generator, prior, measured


def table(estimate):
    """The whole joint table: the one form that no rewriting of the input changes."""
    return estimate.project(NAMES)


def assert_same(name, first, second):
    assert second == pytest.approx(first, abs=TOLERANCE.get(name, 1e-6))


@EACH
@settings(max_examples=7)
@given(seed=seeds)
def test_order_of_rows_and_parts_and_labels_of_values(name, seed):
    generator, prior, measured = problem(seed)
    new = {n: generator.permutation(size) for n, size in SIZES.items()}  # new code of each old one
    order = generator.permutation(len(prior))
    codes = {n: new[n][c[order]].astype(np.uint8) for n, c in prior.codes.items()}
    relabelled = Prior(SCHEMA, codes, prior.weights[order])
    moved = []
    for m in measured:
        if isinstance(m.part, Marginal):
            grid = np.zeros(m.part.sizes)
            grid[np.ix_(*(new[n] for n in m.part.columns))] = m.counts.reshape(m.part.sizes)
            moved.append(Measurement(m.part, grid.ravel(), m.scale[0], m.law))
        else:
            lookup = np.empty_like(m.part.table)
            lookup[new["b"]] = m.part.table
            moved.append(Measurement(Cells(["b"], lookup, 2), m.counts, m.scale[0], m.law))
    parts = np.arange(len(measured)) if name in ARITHMETIC else generator.permutation(len(measured))
    fit = ESTIMATORS[name].fit
    first, second = fit(prior, measured, TOTAL), fit(relabelled, [moved[i] for i in parts], TOTAL)
    assert_same(name, table(first), table(second)[np.ix_(*(new[n] for n in NAMES))])
    names = [[part.name.partition("#")[0] for part in each.report.parts] for each in (first, second)]
    assert [names[1][i] for i in np.argsort(parts)] == names[0]


@EACH
@settings(max_examples=7)
@given(seed=seeds)
def test_a_row_split_in_two(name, seed):
    generator, prior, measured = problem(seed)
    twice = np.concatenate([np.arange(len(prior)), [0, 1, 1]])
    weights = prior.weights[twice].copy()
    parts_of_0, parts_of_1 = generator.dirichlet([1, 1]), generator.dirichlet([1, 1, 1])
    weights[[0, -3]] = prior.weights[0] * parts_of_0
    weights[[1, -2, -1]] = prior.weights[1] * parts_of_1
    split = Prior(SCHEMA, {n: c[twice] for n, c in prior.codes.items()}, weights)
    fit = ESTIMATORS[name].fit
    first = fit(prior, measured, TOTAL)
    second = fit(split, measured, TOTAL)
    assert_same(name, table(first), table(second))
    assert second.weights[[0, -3]] == pytest.approx(first.weights[0] * parts_of_0, abs=TOLERANCE.get(name, 1e-6))
    # a prior made of these rows has them together again
    assert_same(name, table(first), table(fit(Prior.from_joint(split), measured, TOTAL)))


@pytest.mark.parametrize(("law", "factor"), [("laplace", 2.0), ("gaussian", np.sqrt(2.0))])
@pytest.mark.parametrize("name", ["map-newton", "map-block"])
@settings(max_examples=5)
@given(seed=seeds)
def test_a_part_twice_with_as_little_information_as_once(name, law, factor, seed):
    """total / 2b twice is total / b; 1 / 2 (sqrt(2) sigma)^2 twice is 1 / 2 sigma^2."""
    _, prior, measured = problem(seed, law)
    chosen = measured[2]
    weaker = Measurement(chosen.part, chosen.counts, factor * chosen.scale, law)
    fit = ESTIMATORS[name].fit
    once = fit(prior, measured, TOTAL)
    twice = fit(prior, [*measured[:2], weaker, measured[3], weaker], TOTAL)
    assert_same(name, table(once), table(twice))
    assert twice.report.objective == pytest.approx(once.report.objective, rel=1e-6)
    # and the factor is not just any: as strong as before, the second copy moves the estimate
    stronger = fit(prior, [*measured, chosen], TOTAL)
    assert law == "laplace" or np.abs(table(stronger) - table(once)).max() > 1e-5


@settings(max_examples=10)
@given(seed=seeds)
def test_collapse_where_columns_are_left_out(seed):
    """Only `b` is asked about: most rows share their cell, and are given back in the prior's proportions."""
    _, prior, measured = problem(seed)
    asked = [measured[1]]
    workload = Workload(SCHEMA, [measured[1].part])
    layout = Layout(prior, workload)
    assert layout.rows <= 4
    for estimator in ESTIMATORS.values():
        estimator = IDE(steps=2) if isinstance(estimator, IDE) else estimator
        found = estimator.fit(prior, asked, TOTAL, layout=layout)
        whole = estimator.fit(prior, asked, TOTAL, layout=Layout(prior, workload, collapse=False))
        assert found.weights == pytest.approx(whole.weights, abs=1e-5)
        ratio = found.weights / prior.weights
        for value in np.unique(prior.codes["b"]):
            inside = ratio[prior.codes["b"] == value]
            assert inside == pytest.approx(np.full(len(inside), inside[0]), rel=1e-9)
