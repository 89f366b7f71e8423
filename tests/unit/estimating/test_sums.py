"""Groups that add up to their parents, and the intervals of sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import Level, Workload
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.totals import added_up, adding_up, benchmarked, leverage, parts_of_parents
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


@given(SEEDS)
def test_shares_add_up_to_their_parents(seed):
    shares, variance, rows, wanted = children(seed)
    found = benchmarked(shares, variance, rows, np.zeros(6), PARENT_OF, wanted)
    part = parts_of_parents(rows, PARENT_OF, 3)[:, None]
    np.testing.assert_allclose(added_up(part * found, PARENT_OF, 3), wanted, atol=1e-9)
    np.testing.assert_allclose(found[3], wanted[1])  # an only child is its parent
    np.testing.assert_allclose(leverage(rows, variance, PARENT_OF, 3)[3], 1.0)


@given(SEEDS, st.lists(st.integers(0, 500), min_size=3, max_size=3))
def test_numbers_of_rows_are_whole_and_add_up(seed, parents):
    generator = np.random.default_rng(seed)
    totals, variance = generator.uniform(0, 200, 6), generator.uniform(0, 50, 6) * generator.integers(0, 2)
    found = adding_up(totals, variance, PARENT_OF, np.array(parents, float))
    assert (found == np.round(found)).all()
    assert (found >= 0).all()
    assert added_up(found, PARENT_OF, 3).tolist() == parents


@pytest.mark.parametrize("places", [1, 2, 8])
def test_intervals_hold_however_few_groups_a_parent_has(places):
    """Of 95 % intervals by place and by state, at least 85 % contain the truth, over four invented worlds.

    Cells of one world are correlated, so that the limit is generous; with an only child, 29 to 42 % were inside before.
    """
    inside = {"PLACE": [], "STATE": []}
    for seed in range(4):
        world = census_like(persons=6000, states=16 // places, places_per_state=places, years=(2021, 2022), seed=seed)
        schema = world.schema.select(["STATE", "PLACE", "AGE", "SEX", "TENURE", "EMPLOY"])
        ones = Workload.all_marginals(schema, 1)
        groups = world.groups.group_by(["STATE", "PLACE"]).aggregate([])
        plan = plan_of(schema, Level("STATE"), Level("PLACE", ones), groups=groups, budget=1)
        release = counted(plan, world.private, np.random.default_rng(seed))
        found = Estimates.of(release, Public.of(schema, world.public, ["STATE", "PLACE"]))
        codes = encode(schema, world.private).codes
        for by in (("STATE", "PLACE"), ("STATE",)):
            level = plan.groups.level(by)
            keys = world.private.select(["STATE", "PLACE"])
            number = plan.groups.keyed(("STATE", "PLACE"), level.number).numbers(keys)
            for query in ("AGE >= 65", "SEX == 1", "AGE < 18 and SEX == 1", "TENURE == 'owned'"):
                true = np.bincount(number[parse(query, schema).mask(codes)], minlength=len(level))
                said = found.answer(query, by)
                inside[by[-1]] += ((said["low"].to_numpy() <= true) & (true <= said["high"].to_numpy())).tolist()
    assert min(np.mean(each) for each in inside.values()) >= 0.85, inside
