"""Sampling: exact numbers, only rows with weight, no further from the distribution than before, honest errors."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from prade import Schema
from prade.core.errors import EstimationError
from prade.data.public.joint import Prior
from prade.examples import census_like
from prade.sampling.draw import Search, SortedRows, draw, drawn_ranks, improve, improved_ranks, ordering, sample

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


def distance(prior, rows, pairs=None):
    """Mean L1 distance of the two-way tables."""
    drawn = Prior(prior.schema, {name: code[rows] for name, code in prior.codes.items()}, np.ones(len(rows)))
    pairs = list(combinations(prior.columns, 2)) if pairs is None else pairs
    return np.mean([np.abs(drawn.project(pair) - prior.project(pair)).sum() for pair in pairs])


@pytest.fixture(scope="module")
def census():
    made = census_like(persons=3000, seed=3)
    return Prior.from_table(made.schema, made.public)


# ------------------------------------------------------------------ draw


@pytest.mark.parametrize("n", [0, 7, 10_000])
@pytest.mark.parametrize("ordered", [False, True])
def test_as_many_rows_as_wanted_each_within_one_of_its_share(n, ordered):
    prior = correlated()
    rows = draw(prior.weights, n, 5, order=ordering(prior.codes, prior.schema) if ordered else None)
    assert rows.shape == (n,)
    assert rows.dtype == np.int64
    counts = np.bincount(rows, minlength=len(prior))
    assert np.abs(counts - n * prior.weights).max() < 1 + 1e-9


def test_on_average_every_row_gets_its_share():
    weights = np.array([0.37, 0.0, 0.02, 0.11, 0.5])
    n, draws = 3, 4000
    counts = np.stack([np.bincount(draw(weights, n, seed), minlength=5) for seed in range(draws)])
    for row, weight in enumerate(weights):
        share = n * weight  # a count is floor(share) plus a coin of its fractional part
        heads = int((counts[:, row] - np.floor(share)).sum())
        coin = share - np.floor(share)
        assert stats.binomtest(heads, draws, coin).pvalue > FALSE_ALARM / 5


def test_a_stretch_of_the_order_gets_its_share():
    prior = correlated()
    order = ordering(prior.codes, prior.schema)
    n = 37
    counts = np.bincount(draw(prior.weights, n, 1, order=order), minlength=len(prior))[order]
    excess = np.cumsum(counts) - n * np.cumsum(prior.weights[order])
    assert excess.max() - excess.min() <= 1 + 1e-9


def test_rows_without_weight_are_never_drawn():
    weights = np.array([0.0, 1.0, 0.0, 1e-300, 2.0, 0.0])
    for seed in range(50):
        assert set(draw(weights, 11, seed).tolist()) <= {1, 3, 4}


@pytest.mark.parametrize("start", [0.0, np.nextafter(1.0, 0.0)])
def test_marks_on_the_very_ends_pick_rows_with_weight(start, monkeypatch):
    class Extreme:
        """The least and the greatest start that a generator may give."""

        def random(self):
            return start

        def shuffle(self, rows):
            pass

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Extreme())
    weights = np.concatenate([np.zeros(3), np.full(49, 0.1), np.zeros(3)])
    for n in range(1, 400):
        rows = draw(weights, n, 0)
        assert rows.min() >= 3
        assert rows.max() < 52


def test_weights_need_not_sum_to_one():
    assert np.array_equal(draw(np.array([1.0, 2.0, 5.0]), 50, 3), draw(np.array([1.0, 2.0, 5.0]) / 8, 50, 3))


def test_the_order_of_the_result_says_nothing():
    rows = draw(np.ones(2000), 2000, 0)
    assert abs(stats.spearmanr(rows, np.arange(2000)).statistic) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(1999)
    prior = correlated()
    better = improve(prior.codes, SCHEMA, prior.weights, draw(prior.weights, 2000, 0), seed=0)
    place = np.argsort(ordering(prior.codes, SCHEMA))
    found = stats.spearmanr(place[better], np.arange(2000)).statistic
    assert abs(found) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(1999)


# ------------------------------------------------------------------ ordering


def test_the_most_telling_column_is_sorted_first_and_noise_last():
    generator = np.random.default_rng(0)
    cause = generator.integers(0, 6, 5000)
    codes = {
        "noise": generator.integers(0, 9, 5000),
        "half": cause // 2,
        "cause": cause,
        "odd": cause % 2,
    }
    order = ordering(codes, Schema.from_mbi({"noise": 9, "half": 3, "cause": 6, "odd": 2}))
    assert np.array_equal(codes["cause"][order], np.sort(cause))
    # the others follow from the cause, so noise is sorted within it
    assert np.array_equal(codes["noise"][order], codes["noise"][np.lexsort([codes["noise"], cause])])


def test_columns_too_many_for_one_key_are_all_sorted_by():
    generator = np.random.default_rng(0)
    names = [f"c{k}" for k in range(30)]  # 20^30 combinations are more than 2^64
    codes = {name: generator.integers(0, 20, 40)[generator.integers(0, 40, 500) // 4] for name in names}
    order = ordering(codes, Schema.from_mbi(dict.fromkeys(names, 20)))
    left = {name: code[order] for name, code in codes.items()}
    tie = np.ones(499, bool)  # whether a row is equal to the next one in every column found so far
    while left:
        ascending = [name for name, code in left.items() if (np.diff(code)[tie] >= 0).all()]
        assert ascending, "no column comes next: the rows are not sorted column after column"
        tie &= np.diff(left.pop(ascending[0])) == 0


def test_a_sorted_draw_is_nearer_than_one_in_file_order(census):
    order = ordering(census.codes, census.schema)
    plain = np.mean([distance(census, draw(census.weights, 500, seed)) for seed in range(10)])
    along = np.mean([distance(census, draw(census.weights, 500, seed, order=order)) for seed in range(10)])
    assert along < 0.97 * plain


# ------------------------------------------------------------------ improve


@pytest.mark.parametrize("n", [1, 5, 60, 3000])
def test_improving_keeps_the_number_and_the_support_and_comes_nearer(n):
    prior = correlated()
    weights = prior.weights.copy()
    weights[::3] = 0.0
    kept = Prior(SCHEMA, prior.codes, weights)
    for seed in range(5):
        rows = draw(kept.weights, n, seed)
        better = improve(kept.codes, SCHEMA, kept.weights, rows, seed=seed)
        assert better.shape == (n,)
        assert better.dtype == np.int64
        assert (kept.weights[better] > 0).all()
        assert distance(kept, better) <= distance(kept, rows) + 1e-9


def test_improving_takes_a_quarter_off_the_error_and_more_passes_more(census):
    order = ordering(census.codes, census.schema)
    rows = draw(census.weights, 600, 1, order=order)
    one = improve(census.codes, census.schema, census.weights, rows, seed=1, order=order, search=Search(1))
    more = improve(census.codes, census.schema, census.weights, rows, seed=1, order=order, search=Search(12))
    assert distance(census, one) < 0.75 * distance(census, rows)
    assert distance(census, more) < 0.95 * distance(census, one)


def test_a_bad_start_is_mended():
    prior = Prior.uniform(SCHEMA)
    rows = improve(prior.codes, SCHEMA, prior.weights, np.zeros(240, int), seed=0, search=Search(10))
    assert distance(prior, rows) < 0.1


def test_the_given_rows_are_not_changed_and_none_is_lost_without_passes():
    prior = correlated()
    rows = draw(prior.weights, 80, 2)
    before = rows.copy()
    improve(prior.codes, SCHEMA, prior.weights, rows, seed=0)
    assert np.array_equal(rows, before)
    for search in (Search(passes=0), Search(candidates=0)):
        kept = improve(prior.codes, SCHEMA, prior.weights, rows, seed=0, search=search)
        assert np.array_equal(np.sort(kept), np.sort(rows))


def test_one_column_or_one_row_will_do():
    schema = Schema.from_mbi({"a": 4})
    prior = Prior(schema, {"a": np.arange(4)}, np.array([4.0, 3.0, 2.0, 1.0]))
    rows = improve(prior.codes, schema, prior.weights, np.zeros(10, int), seed=0)
    assert np.bincount(rows).tolist() == [4, 3, 2, 1]
    alone = Prior(schema, {"a": np.array([2])}, np.ones(1))
    assert sample(alone, 3, 0).codes["a"].tolist() == [2, 2, 2]
    assert len(sample(alone, 0, 0)) == 0


# ------------------------------------------------------------------ seeds


def test_the_seed_decides_whatever_the_threads(census):
    order = ordering(census.codes, census.schema)

    def work(seed):
        rows = draw(census.weights, 300, seed, order=order)
        return improve(census.codes, census.schema, census.weights, rows, seed=seed, order=order)

    alone = [work(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(8)))
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))
    assert not np.array_equal(np.sort(alone[0]), np.sort(alone[1]))


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [0.5, -0.1], [1.0, np.nan], [np.inf, 1.0], [[0.5, 0.5]]], ids=str)
def test_weights_must_be_a_distribution(weights):
    with pytest.raises(EstimationError, match="none negative and not all zero"):
        draw(np.array(weights), 3, 0)


@pytest.mark.parametrize("setting", [{"n": -1}, {"n": 2.5}, {"n": True}, {"seed": -3}, {"seed": None}], ids=str)
def test_numbers_of_rows_and_seeds_are_whole(setting):
    with pytest.raises(EstimationError, match="give a whole number, 0 or more"):
        draw(np.ones(3), **{"n": 2, "seed": 0, **setting})


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 3], [-1, 0, 1], [0.0, 1.0, 2.0]], ids=str)
def test_an_order_has_every_row_once(order):
    with pytest.raises(EstimationError, match="each of the 3 rows once"):
        draw(np.ones(3), 2, 0, order=np.array(order))


BAD = {
    "rows without weight": ({"rows": np.array([1])}, "no weight"),
    "weights for others": ({"weights": np.ones(2)}, "2 weights for 3 coded rows"),
    "code too large": ({"codes": {"a": np.array([0, 1, 9]), "b": np.zeros(3, int)}}, "'a' has codes outside 0 to 2"),
    "code negative": ({"codes": {"a": np.array([0, 1, -1]), "b": np.zeros(3, int)}}, "'a' has codes outside 0 to 2"),
    "lengths differ": ({"codes": {"a": np.array([0, 1]), "b": np.zeros(3, int)}}, "2 different lengths"),
    "no columns": ({"codes": {}}, "at least one column"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_improved_is_refused(name):
    changes, message = BAD[name]
    good = {
        "codes": {"a": np.array([0, 1, 2]), "b": np.array([0, 1, 1])},
        "schema": SCHEMA,
        "weights": np.array([1.0, 0.0, 2.0]),
        "rows": np.array([0, 2]),
        "seed": 0,
    }
    assert len(improve(**good)) == 2
    with pytest.raises(EstimationError, match=message):
        improve(**{**good, **changes})


@pytest.mark.parametrize(("wrong", "message"), [({"passes": -1}, "passes is -1"), ({"detail": 0}, "at least one row")])
def test_a_search_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(EstimationError, match=message):
        Search(**wrong)


# ------------------------------------------------------------------ large schemas, large groups


def wide(columns=6, codes=3000, rows=2000, seed=0):
    """Columns of many codes that lean on one hidden number."""
    generator = np.random.default_rng(seed)
    hidden = generator.random(rows)
    schema = Schema.from_mbi({f"c{k}": codes for k in range(columns)})
    found = {
        name: np.minimum(codes * np.abs(hidden + 0.02 * generator.normal(size=rows)), codes - 1).astype(np.int64)
        for name in schema.coded
    }
    return Prior(schema, found, generator.exponential(size=rows))


def coarsened(prior, codes, most):
    schema = Schema.from_mbi(dict.fromkeys(prior.columns, most))
    return Prior(schema, {name: code * most // codes for name, code in prior.codes.items()}, prior.weights)


def test_columns_of_many_thousand_codes_are_improved():
    """18,000 codes together, 135 million pairs of them: counted in some 700 runs a column, each of few rows."""
    prior = wide()
    rows = draw(prior.weights, 500, 1)
    better = improve(prior.codes, prior.schema, prior.weights, rows, seed=1)
    seen = coarsened(prior, 3000, 10)
    assert distance(seen, better) < 0.95 * distance(seen, rows)


def test_a_pool_that_is_capped_improves_as_well(census):
    """500 rows drawn for a sample of 1,000: the tables to be met are exact then, and only candidates are fewer."""
    assert (census.weights > 0).sum() > 2 * 1000
    rows = SortedRows(census.codes, census.schema)
    edges, generator = rows.edges(census.weights), np.random.default_rng(1)
    ranks = drawn_ranks(edges, 1000, generator)
    better = improved_ranks(rows, census.weights, edges, ranks, generator, Search(detail=2), largest=500)
    assert distance(census, rows.order[better]) < 0.8 * distance(census, rows.order[ranks])
