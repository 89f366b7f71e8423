"""Sampling: exact numbers, only rows with weight, no further from the distribution than before, honest errors."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from prade import Schema
from prade.core.compiled import marked
from prade.core.errors import EstimationError
from prade.data.public.joint import Prior
from prade.examples import census_like
from prade.sampling.draw import SortedRows, ordering, sample

FALSE_ALARM = 1e-4  # of the statistical tests below; seeds are fixed, so they fail always or never
SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
SCHEMA = Schema.from_mbi(SIZES)


def correlated(rows=400, seed=0):
    """A prior whose columns lean on one hidden number."""
    generator = np.random.default_rng(seed)
    hidden = generator.random(rows)
    codes = {
        name: (size * np.where(generator.random(rows) < 0.7, hidden, generator.random(rows))).astype(np.uint8)
        for name, size in SIZES.items()
    }
    return Prior.from_joint(Prior(SCHEMA, codes, generator.exponential(size=rows)))


def sorted_rows(prior):
    return SortedRows(prior.codes, prior.schema)


def distance(prior, rows):
    """Mean L1 distance of the two-way tables."""
    drawn = Prior(prior.schema, {name: code[rows] for name, code in prior.codes.items()}, np.ones(len(rows)))
    pairs = combinations(prior.columns, 2)
    return np.mean([np.abs(drawn.project(pair) - prior.project(pair)).sum() for pair in pairs])


@pytest.fixture(scope="module")
def census():
    data = census_like(persons=3000, seed=3)
    return Prior.from_table(data.schema, data.public)


def test_on_average_every_row_gets_its_share():
    weights, one_column = np.array([0.37, 0.0, 0.02, 0.11, 0.5]), Schema.from_mbi({"a": 5})
    rows, n, draws = SortedRows({"a": np.arange(5)}, one_column), 3, 4000
    counts = np.stack([np.bincount(sample(rows, weights, n, seed, passes=0), minlength=5) for seed in range(draws)])
    for row, weight in enumerate(weights):
        share = n * weight  # a count is floor(share) plus a coin of its fractional part
        heads = int((counts[:, row] - np.floor(share)).sum())
        assert stats.binomtest(heads, draws, share - np.floor(share)).pvalue > FALSE_ALARM / 5


def test_a_stretch_of_the_order_gets_its_share_whatever_the_weights_sum_to():
    prior, n = correlated(), 37
    rows = sorted_rows(prior)
    drawn = sample(rows, prior.weights, n, 1, passes=0)
    excess = np.cumsum((np.bincount(drawn, minlength=len(prior)) - n * prior.weights)[rows.order])
    assert excess.max() - excess.min() <= 1 + 1e-9
    assert np.array_equal(sample(rows, 8 * prior.weights, n, 1, passes=0), drawn)


@pytest.mark.parametrize("start", [0.0, np.nextafter(1.0, 0.0)])
def test_marks_on_the_very_ends_pick_rows_with_weight(start):
    """With the least and the greatest start that a generator may give."""
    edges = np.cumsum(np.concatenate([np.zeros(3), np.full(49, 0.1), np.zeros(3)]))
    for n in range(1, 400):
        rows = marked(edges, n, start)
        assert rows.min() >= 3
        assert rows.max() < 52


def test_the_most_telling_column_is_sorted_first_and_noise_last():
    generator = np.random.default_rng(0)
    cause, noise = generator.integers(0, 6, 5000), generator.integers(0, 9, 5000)
    codes = {"noise": noise, "half": cause // 2, "cause": cause, "odd": cause % 2}
    order = ordering(codes, Schema.from_mbi({"noise": 9, "half": 3, "cause": 6, "odd": 2}))
    assert np.array_equal(cause[order], np.sort(cause))
    assert np.array_equal(noise[order], noise[np.lexsort([noise, cause])])  # the others follow from the cause


def test_improving_takes_a_quarter_off_the_error_and_more_passes_more(census):
    rows = sorted_rows(census)
    errors = [distance(census, sample(rows, census.weights, 600, 1, passes)) for passes in (0, 1, 12)]
    assert errors[1] < 0.75 * errors[0]
    assert errors[2] < 0.95 * errors[1]


THREE = {"a": np.array([0, 1, 2]), "b": np.array([0, 1, 1])}


@pytest.mark.parametrize(
    ("codes", "weights", "setting", "message"),
    [
        *((THREE, wrong, {}, "none negative and not all zero") for wrong in ([], [0.5, -0.1, 0.6], [1.0, np.nan, 0.0])),
        (THREE, [1.0, 1.0, 1.0], {"n": -1}, "give a whole number, 0 or more"),
        ({**THREE, "a": np.array([0, 1, 9])}, [1.0, 1.0, 1.0], {}, "'a' has codes outside 0 to 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(codes, weights, setting, message):
    with pytest.raises(EstimationError, match=message):
        sample(SortedRows(codes, SCHEMA), np.array(weights), **{"n": 2, "seed": 0, **setting})
