"""Groups that add up to their parents, and the intervals of sums."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import Level, Workload
from prade.core.arrays import mass_by_group
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.estimating.levels.error_bars import _Kind, birge_ratios
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.smoothing import ODD_SHARE, excess_variance
from prade.estimating.levels.totals import added_up, adding_up, benchmarked, leverage, parts_of_parents
from prade.estimating.levels.variation import PublicVariation, VariationOfCells, _counted, numbered
from prade.examples import census_like
from prade.queries.query import parse
from worlds.plans import plan_of
from worlds.releases import counted

PARENT_OF = np.array([0, 0, 0, 1, 2, 2])
SEEDS = st.integers(0, 2**32 - 1)


def children(seed):
    generator = np.random.default_rng(seed)
    rows = generator.uniform(1, 1000, 6)
    return generator.uniform(0, 1, (6, 4)), generator.uniform(1e-6, 1e-2, (6, 4)), rows, generator.uniform(0, 1, (3, 4))


# ---------------------------------------------------------------- shares


@given(SEEDS)
def test_shares_add_up_to_their_parents(seed):
    shares, variance, rows, wanted = children(seed)
    found = benchmarked(shares, variance, rows, np.zeros(6), PARENT_OF, wanted)
    part = parts_of_parents(rows, PARENT_OF, 3)[:, None]
    np.testing.assert_allclose(added_up(part * found, PARENT_OF, 3), wanted, atol=1e-9)
    np.testing.assert_allclose(found[3], wanted[1])  # an only child is its parent
    np.testing.assert_allclose(leverage(rows, variance, PARENT_OF, 3)[3], 1.0)


@given(SEEDS)
def test_they_are_the_most_likely_shares_that_add_up(seed):
    """Oracle: Gaussian conditioning of independent shares on their weighted sum, cell by cell."""
    shares, variance, rows, wanted = children(seed)
    found = benchmarked(shares, variance, rows, np.zeros(6), PARENT_OF, wanted)
    mine = PARENT_OF == 0
    part = rows[mine] / rows[mine].sum()
    for cell in range(4):
        covariance = np.diag(variance[mine, cell])
        gain = covariance @ part / (part @ covariance @ part)
        expected = shares[mine, cell] + gain * (wanted[0, cell] - part @ shares[mine, cell])
        np.testing.assert_allclose(found[mine, cell], expected, rtol=1e-9)
        left = np.diag(covariance - np.outer(gain, part @ covariance))
        np.testing.assert_allclose(
            variance[mine, cell] * (1 - leverage(rows, variance, PARENT_OF, 3)[mine, cell]), left, atol=1e-15
        )


def test_numbers_of_rows_that_are_hardly_known_change_hardly_anything():
    shares, variance, rows, wanted = children(1)
    changes = [
        np.abs(benchmarked(shares, variance, rows, np.full(6, each), PARENT_OF, wanted) - shares).mean()
        for each in (0.0, 1e2, 1e6, 1e12)
    ]
    assert changes == sorted(changes, reverse=True)
    assert changes[-1] < 1e-3 * changes[0]


# ---------------------------------------------------------------- numbers of rows


@given(SEEDS, st.lists(st.integers(0, 500), min_size=3, max_size=3))
def test_numbers_of_rows_are_whole_and_add_up(seed, parents):
    generator = np.random.default_rng(seed)
    totals, variance = generator.uniform(0, 200, 6), generator.uniform(0, 50, 6) * generator.integers(0, 2)
    found = adding_up(totals, variance, PARENT_OF, np.array(parents, float))
    assert (found == np.round(found)).all()
    assert (found >= 0).all()
    assert added_up(found, PARENT_OF, 3).tolist() == parents


@pytest.mark.parametrize("epsilon", ["1/20", 1])
def test_numbers_of_rows_add_up_at_every_level_of_a_release(epsilon):
    found, _ = estimated(epsilon, [Level(()), Level("STATE"), Level("PLACE", ONES)])
    groupings = found.plan.groupings
    for upper, lower in ((0, 1), (1, 2)):
        sums = added_up(found.levels[lower].totals, groupings[lower].above(groupings[upper]), len(groupings[upper]))
        assert sums.tolist() == found.levels[upper].totals.tolist()
    assert (found.totals >= 0).all()


# ---------------------------------------------------------------- tables


WORLD = census_like(persons=4000, places_per_state=8, years=(2021, 2022), seed=2)
SCHEMA = WORLD.schema.select(["STATE", "PLACE", "AGE", "SEX", "TENURE", "EMPLOY"])
ONES = Workload.all_marginals(SCHEMA, 1)
GROUPS = WORLD.groups.group_by(["STATE", "PLACE"]).aggregate([])


def estimated(epsilon, levels, seed=0):
    plan = plan_of(SCHEMA, *levels, groups=GROUPS, budget=epsilon)
    release = counted(plan, WORLD.private, np.random.default_rng(seed))
    return Estimates.of(release, Public.of(SCHEMA, WORLD.public, ["STATE", "PLACE"])), release


def test_the_table_of_a_state_is_the_sum_of_its_places_and_near_the_states_own_estimate():
    found, _ = estimated(2, [Level("STATE"), Level("PLACE", ONES)])
    places, states = (found.marginal("TENURE", by) for by in (("STATE", "PLACE"), "STATE"))
    for state in set(states["STATE"].to_pylist()):
        counts, own = (
            np.array([row["count"] for row in table.to_pylist() if row["STATE"] == state]) for table in (places, states)
        )
        np.testing.assert_allclose(counts.reshape(-1, len(own)).sum(axis=0), own, rtol=1e-6)
    for number in range(2):
        direct = found.joint(number, 0).project(["TENURE"])
        added = np.array([row["share"] for row in states.to_pylist()]).reshape(2, -1)[number]
        assert np.abs(direct - added).sum() < 0.02


def test_benchmarking_takes_sums_nearer_to_the_truth(monkeypatch):
    """Means over six draws of noise of the L1 error of one-way tables by state: at least 3 % smaller (it was 6 %)."""
    codes = encode(SCHEMA, WORLD.private).codes
    errors = {"with": [], "without": []}
    for seed in range(6):
        for way, found_errors in errors.items():
            with monkeypatch.context() as patch:
                if way == "without":
                    patch.setattr("prade.estimating.levels.descent.benchmarked", lambda shares, *_: shares)
                found, release = estimated("1/2", [Level("STATE"), Level("PLACE", ONES)], seed)
            states = release.plan.groups.level(["STATE"])
            number = release.plan.groups.keyed(("STATE", "PLACE"), states.number).numbers(
                WORLD.private.select(["STATE", "PLACE"])
            )
            for part in ONES:
                true = mass_by_group(number, 2, part.cells(SCHEMA, codes), part.n_cells)
                said = found.marginal(part.columns, "STATE")["share"].to_numpy().reshape(true.shape)
                found_errors.append(np.abs(said - true / true.sum(axis=1, keepdims=True)).sum(axis=1).mean())
    assert np.mean(errors["with"]) < 0.97 * np.mean(errors["without"])


@pytest.mark.parametrize("places", [1, 2, 8])
def test_intervals_hold_however_few_groups_a_parent_has(places):
    """Of 95 % intervals by place and by state, at least 85 % contain the truth, over four invented worlds.

    Cells of one world are correlated, so that the limit is generous; with an only child, 29 to 42 % were inside before.
    """
    inside = {"PLACE": [], "STATE": []}
    for seed in range(4):
        world = census_like(persons=6000, states=16 // places, places_per_state=places, years=(2021, 2022), seed=seed)
        groups = world.groups.group_by(["STATE", "PLACE"]).aggregate([])
        plan = plan_of(SCHEMA, Level("STATE"), Level("PLACE", ONES), groups=groups, budget=1)
        release = counted(plan, world.private, np.random.default_rng(seed))
        found = Estimates.of(release, Public.of(SCHEMA, world.public, ["STATE", "PLACE"]))
        codes = encode(SCHEMA, world.private).codes
        for by in (("STATE", "PLACE"), ("STATE",)):
            level = plan.groups.level(by)
            keys = world.private.select(["STATE", "PLACE"])
            number = plan.groups.keyed(("STATE", "PLACE"), level.number).numbers(keys)
            for query in ("AGE >= 65", "SEX == 1", "AGE < 18 and SEX == 1", "TENURE == 'owned'"):
                true = np.bincount(number[parse(query, SCHEMA).mask(codes)], minlength=len(level))
                said = found.answer(query, by)
                inside[by[-1]] += ((said["low"].to_numpy() <= true) & (true <= said["high"].to_numpy())).tolist()
    assert min(np.mean(each) for each in inside.values()) >= 0.85, inside


# ---------------------------------------------------------------- what residuals say


def test_a_cell_that_differs_more_than_public_groups_do_is_odd():
    generator = np.random.default_rng(0)
    variance = np.full((40, 6), 1e-6)
    deviations = generator.normal(0, 1e-3, (40, 6))
    deviations[:, 2] += 5e-3
    for laplace in (False, True):
        excess = excess_variance(deviations, variance, laplace=laplace)
        assert np.flatnonzero(excess).tolist() == [2]
        assert excess[2] == pytest.approx(25e-6, rel=0.2)


def test_no_cell_is_odd_where_noise_drowns_a_share_of_one_in_a_hundred():
    deviations = np.random.default_rng(1).laplace(0, 20 * ODD_SHARE, (3, 10_000))
    assert not excess_variance(deviations, np.full(deviations.shape, 800 * ODD_SHARE**2), laplace=True).any()


def test_residuals_beyond_the_model_widen_and_others_do_not():
    found, _ = estimated(5, [Level("PLACE", ONES)])
    answers, totals = found.answers[0], found.totals
    rows, cells = len(totals), sum(part.n_cells for part in ONES)
    everywhere, nobody = np.ones(cells, np.bool_), np.zeros(rows, np.bool_)
    raw, noise = answers.shares(totals), answers.noise(totals)
    half = np.full((rows, cells), 0.5)
    generator = np.random.default_rng(3)
    right = raw + noise * np.sqrt(0.5) * generator.normal(size=raw.shape)  # V - D, as the model has it
    assert (birge_ratios(answers, totals, half, right, everywhere, nobody) < 1.3).all()
    off = birge_ratios(answers, totals, half, raw + 3 * noise, everywhere, nobody)
    assert (off > 10).all()
    right[:, 0] = raw[:, 0] + 1_000 * noise[:, 0]  # one cell that cannot be met
    assert (birge_ratios(answers, totals, half, right, everywhere, nobody) < 5).all()


# ---------------------------------------------------------------- further cells


def test_further_cells_vary_as_if_they_had_been_known():
    """Cells asked for again have the covariances of the measured ones; combinations those of the sums."""
    generator = np.random.default_rng(5)
    group = np.repeat(np.arange(30), 100)
    chance = generator.dirichlet(np.full(4, 8.0), 30)
    cells = np.array([generator.choice(4, p=chance[each]) for each in group])
    known = VariationOfCells([cells], [4], group, 30, seed=0)
    again = known.further([cells], [4])
    np.testing.assert_allclose(again.within, known.variation.within, atol=1e-12)
    np.testing.assert_allclose(again.between, known.variation.between, atol=1e-12)
    np.testing.assert_allclose(again.within_variance, np.diag(known.variation.within), atol=1e-12)
    np.testing.assert_allclose(again.explained, np.diag(known.variation.between), atol=1e-12)
    sums = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, -1.0]])
    combined = known.further([cells], [4], sums)
    np.testing.assert_allclose(combined.within, sums @ known.variation.within, atol=1e-12)
    np.testing.assert_allclose(combined.within_variance, np.diag(sums @ known.variation.within @ sums.T), atol=1e-12)
    whole = PublicVariation.of([cells], [4], group, 30, seed=0)
    np.testing.assert_array_equal(whole.within, known.variation.within)


def test_errors_between_two_noises_are_interpolated():
    """As numpy does it one cell after the other: inside the grid, at its points and at its ends."""
    draw = np.random.default_rng(4)
    parts, factor = draw.random((4, 3, 5)), np.array([1.0, 1.3, 2.0, 7.9, 8.0])
    for grid in (np.array([1.0, 2.0, 4.0, 8.0]), np.array([8.0])):
        found = _Kind._of_groups(SimpleNamespace(grid=grid, factor=factor), parts[: len(grid)])
        for k, cell in np.ndindex(3, 5):
            expected = np.interp(np.log(factor), np.log(grid), parts[: len(grid), k, cell])
            np.testing.assert_allclose(found[:, k, cell], expected, rtol=1e-12)


def test_numbered_cells_are_counted_as_parts_one_by_one():
    """Rows in no cell of a part are left out of it; the order of additions is the same, so is the last bit."""
    draw = np.random.default_rng(5)
    sizes, weights, row = [3, 2, 4], draw.random(50), draw.integers(0, 5, 50)
    cells = [draw.integers(0, size + 1, 50) for size in sizes]
    expected = np.concatenate(
        [mass_by_group(row, 4, cell, size, weights) for cell, size in zip(cells, sizes, strict=True)], axis=1
    )
    assert (_counted(np.minimum(row, 4), 4, numbered(cells, sizes), sum(sizes), weights) == expected).all()
