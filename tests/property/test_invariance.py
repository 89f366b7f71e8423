"""The estimate depends on the distribution and the answers, not on how they were written down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade import Schema, Workload
from prade.data.public.joint import Prior
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


def problem(seed):
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
        law = str(generator.choice(["laplace", "gaussian"]))
        scale = generator.uniform(1.0, 6.0)
        noise = generator.laplace(size=len(answer)) if law == "laplace" else generator.normal(size=len(answer))
        measured.append(Measurement(part, TOTAL * answer + scale * noise, scale, law))
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
