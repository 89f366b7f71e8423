"""Laws of sampling that hold for any distribution: numbers, support, and an objective that never rises."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from prade import Schema
from prade.data.public.joint import Prior
from prade.sampling.draw import SortedRows, improved, ordering, sample

law = settings(max_examples=60)
seeds = st.integers(0, 2**32 - 1)
numbers = st.integers(0, 300)


@st.composite
def distributions(draw_from):
    """Up to 40 rows of one to four columns, some without weight, some heavy."""
    sizes = draw_from(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    generator = np.random.default_rng(draw_from(seeds))
    rows = draw_from(st.integers(1, 40))
    codes = {f"c{k}": generator.integers(0, size, rows) for k, size in enumerate(sizes)}
    weights = generator.exponential(size=rows) ** draw_from(st.sampled_from([0, 1, 4]))
    weights *= generator.random(rows) < 0.7
    weights[generator.integers(rows)] += 0.1
    return Prior(Schema.from_mbi(dict(zip(codes, sizes, strict=True))), codes, weights)


def objective(prior, rows):
    """The sum of H over all one- and two-way cells, in exact tables."""
    n = len(rows)
    drawn = Prior(prior.schema, {name: code[rows] for name, code in prior.codes.items()}, np.ones(n))
    total = 0.0
    for columns in [*combinations(prior.columns, 1), *combinations(prior.columns, 2)]:
        wanted = n * prior.project(columns)
        width = np.maximum(0.5, np.sqrt(np.pi / 2 * wanted))
        total += np.sum(huber_sum(np.rint(n * drawn.project(columns)), wanted, width))
    return total


def huber_sum(count, wanted, width):
    """H as the sum of its slopes clip((k + 1/2 - wanted) / width, -1, 1) from no row to `count`."""
    most = int(count.max(initial=0))
    steps = np.arange(most)[(...,) + (None,) * count.ndim]
    slopes = np.clip((steps + 0.5 - wanted) / width, -1, 1)
    return np.where(steps < count, slopes, 0.0).sum(axis=0)


@law
@given(distributions(), numbers, seeds)
def test_draws_are_exact_in_number_within_one_and_on_the_support(prior, n, seed):
    rows = sample(SortedRows(prior.codes, prior.schema), prior.weights, n, seed, passes=0)
    counts = np.bincount(rows, minlength=len(prior))
    assert counts.sum() == n
    assert np.abs(counts - n * prior.weights).max() < 1 + 1e-9
    assert not counts[prior.weights == 0].any()


@law
@given(distributions(), numbers, seeds, st.integers(1, 6))
def test_improving_never_raises_the_objective(prior, n, seed, passes):
    """From a start at random, so that there is something to improve; so few rows have exact tables to be met."""
    rows = SortedRows(prior.codes, prior.schema)
    ranks = np.random.default_rng(seed).choice(np.flatnonzero(prior.weights[rows.order]), n)
    edges, generator = rows.edges(prior.weights), np.random.default_rng([seed, 1])
    start, better = (
        rows.order[each] for each in (ranks, improved(rows, prior.weights, edges, ranks, generator, passes))
    )
    assert len(better) == n
    assert (prior.weights[better] > 0).all()
    # slopes are rounded to 1 / 2^14: that much a cell and a swap may be gained or lost
    slack = n * passes * len(prior.columns) ** 2 * 2.0**-13
    if n > 1:  # 32 rows in the pool for each of the sample: not for a single one
        assert objective(prior, better) <= objective(prior, start) + slack


@law
@given(distributions())
def test_the_ordering_brings_equal_rows_together(prior):
    order = ordering(prior.codes, prior.schema)
    assert np.array_equal(np.sort(order), np.arange(len(prior)))
    rows = np.stack(list(prior.codes.values()), axis=1)[order]
    changes = 1 + int((rows[1:] != rows[:-1]).any(axis=1).sum())
    assert changes == len(np.unique(rows, axis=0))
