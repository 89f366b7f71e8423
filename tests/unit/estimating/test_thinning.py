"""A thinned support: what it keeps, what it stands for, and that estimates, answers and samples work on it."""

import numpy as np
import pytest

from prade import Level, Workload
from prade.data.public.public import Public
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.public_cells import own_rows, thinned
from prade.planning.settings import Settings
from worlds.plans import plan_of
from worlds.releases import counted
from worlds.survey import FIVE_PLACES, SCHEMA

ONES = Workload.all_marginals(SCHEMA, 1)
ROWS = 4_000


def people(seed, rows=ROWS, places=("u", "v", "w"), rare=0.002):
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 90, rows)
    work = np.where(generator.random(rows) < age / 120, "none", generator.choice(["part", "full"], rows))
    sex = np.where(generator.random(rows) < rare, 2, 1)
    return {
        "STATE": generator.choice([7, 8], rows),
        "PLACE": generator.choice(places, rows),
        "AGE": age,
        "SEX": sex,
        "WORK": work,
        "W": generator.uniform(0.5, 1.5, rows),
    }


def public_of(table):
    return Public.of(SCHEMA, table, ["STATE", "PLACE"], weight="W")


PUBLIC = public_of(people(0))


def release_of(seed=0):
    generator = np.random.default_rng([seed, 1])
    place = generator.integers(0, 5, 3_000)
    plan = plan_of(SCHEMA, Level("STATE"), Level("PLACE", ONES), groups=FIVE_PLACES, budget=2)
    mine = people(seed + 10, 3_000, rare=0.1)
    named = {name: np.array(FIVE_PLACES[name])[place] for name in ("STATE", "PLACE")}
    return counted(plan, {**mine, **named}, generator)


def tables_of(prior):
    return np.concatenate([prior.project(columns).ravel() for columns in (["AGE", "WORK"], ["SEX", "WORK"])])


def test_the_rows_are_distinct_public_rows_and_as_many_as_were_asked_for():
    support = thinned(PUBLIC, ONES.parts, 500)
    assert len(support) == len(np.unique(support.rows)) == 500
    assert np.all(np.diff(support.rows) > 0)
    for name, code in PUBLIC.prior.codes.items():
        assert np.array_equal(support.public.prior.codes[name], code[support.rows])
    assert np.array_equal(support.public.group, PUBLIC.group[support.rows])
    assert support.public.prior.weights.sum() == pytest.approx(1.0)


def test_weights_stand_for_the_rows_that_are_left_out():
    """Over many tables, the mean of a cell's thinned mass is its mass: common cells, rare ones, groups."""
    found = []
    for seed in range(40):
        public = public_of(people(seed, 1_000, rare=0.01))
        support = thinned(public, ONES.parts, 120).public
        found.append(
            np.concatenate(
                [tables_of(support.prior) - tables_of(public.prior), support.group_weights - public.group_weights]
            )
        )
    away = np.array(found)
    assert np.all(np.abs(away.mean(axis=0)) < 4 * away.std(axis=0) / np.sqrt(len(away)) + 1e-12)


def test_rare_cells_and_small_groups_keep_rows():
    table = people(3, rare=0.002)
    table["PLACE"][:5] = "tiny"
    public = public_of(table)
    support = thinned(public, ONES.parts, 200)
    rare = public.prior.codes["SEX"] == 1
    assert 0 < rare.sum() < 20
    assert rare[support.rows].sum() > 0.5 * rare.sum()  # of whom one in twenty would be kept by weight alone
    assert len(np.unique(support.public.group)) == len(public.groups)


def test_rows_of_small_recurring_groups_are_all_kept_with_their_weights():
    """State 1, place p is also the plan's."""
    table = people(4, places=("p", *map(str, range(45))))
    mine = table["PLACE"] == "p"
    public = public_of({**table, "STATE": np.where(mine, 1, table["STATE"])})
    own = own_rows(public, release_of().plan.groupings)
    assert 50 < mine.sum() < 125
    assert np.all(own[mine] == mine.sum())
    assert np.all(np.isinf(own[~mine]))
    support = thinned(public, ONES.parts, 500, own)
    assert np.all(np.isin(np.flatnonzero(mine), support.rows))
    assert 500 < len(support) <= 500 + mine.sum()
    whole = support.spread(support.public.prior.weights)
    np.testing.assert_allclose(whole[mine], public.prior.weights[mine], rtol=1e-12)


@pytest.fixture(scope="module")
def both():
    return [Estimates.of(release_of(), PUBLIC, Settings(support=number)) for number in (0, 800)]


def test_thinned_estimates_are_close_to_those_of_all_rows(both):
    whole, some = both
    assert (len(whole.support), len(some.support)) == (ROWS, 800)
    for group in range(5):
        one, other = (tables_of(each.joint(group)) for each in both)
        prior = np.abs(one - tables_of(PUBLIC.prior)).sum()
        assert np.abs(one - other).sum() < 0.25 * prior
    np.testing.assert_allclose(whole.totals, some.totals)


def test_error_bars_come_from_all_rows(both):
    """Covariances do not see the support: the standard errors are those of all rows, to within what a and w differ.

    Of a measured column, noise decides. The pair was not measured, and w of the whole table differs by a factor of two.
    """
    for columns, most in (("SEX", 1e-4), (["AGE", "WORK"], 0.15)):
        one, other = (np.array(each.marginal(columns, by="PLACE")["sd"]) for each in both)
        assert np.abs(np.log(other / one)).max() < most
