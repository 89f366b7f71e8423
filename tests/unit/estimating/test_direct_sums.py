"""What raw answers alone say about sums of measured cells."""

import numpy as np
import pytest

from prade import Column, Level, Schema, Workload
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.estimating.levels.cell_counts import NINETY_FIVE, direct_variances
from prade.estimating.levels.estimates import Estimates
from prade.queries.query import parse
from worlds.plans import plan_of
from worlds.releases import counted

SCHEMA = Schema(
    [
        Column("STATE", "group", values=(1, 2, 3, 4)),
        Column("PLACE", "group", values=tuple(range(40))),
        Column("RENTS", "categorical", values=(0, 1)),
        Column("RENT", "numeric", edges=(500, 1000, 1500), min=0, max=3000, missing=True),
        Column("AGE", "numeric", edges=(20, 40, 60), min=0, max=100),
        Column("SEX", "categorical", values=(1, 2)),
    ]
)
ONES = Workload.all_marginals(SCHEMA, 1)
GROUPS = {"STATE": [state for state in (3, 4) for _ in range(20)], "PLACE": list(range(40))}


def people(states, renting, seed):
    """Rows of 40 places in two states. Whoever rents has a rent, and nobody else has."""
    draw, each = np.random.default_rng(seed), 250
    place = np.repeat(np.arange(40), each)
    chance = np.clip(renting + draw.normal(0, 0.08, 40), 0.05, 0.95)[place]
    rents = (draw.random(len(place)) < chance).astype(int)
    rent = np.where(rents == 1, draw.uniform(0, 2000, len(place)), np.nan)
    age, sex = draw.integers(0, 100, len(place)), draw.integers(1, 3, len(place))
    state = np.repeat(states, 20 * each)
    return {"STATE": state, "PLACE": place, "RENTS": rents, "RENT": rent, "AGE": age, "SEX": sex}


def estimated(seed, epsilon=1):
    private = people((3, 4), 0.6, 2 * seed + 1)
    plan = plan_of(SCHEMA, Level("STATE"), Level("PLACE", ONES), groups=GROUPS, budget=epsilon)
    release = counted(plan, private, np.random.default_rng(seed))
    return Estimates.of(release, Public.of(SCHEMA, people((1, 2), 0.35, 2 * seed), ["STATE", "PLACE"])), private


@pytest.fixture(scope="module")
def found():
    return estimated(0)[0]


def asked(found, query):
    return np.where(parse(query, SCHEMA).mask(found.public.prior.codes), 0, 1), 1


def test_it_is_the_noise_and_the_distance_from_the_raw_answers(found):
    answers, number = found.answers[0], [part.columns for part in found.answers[0].parts].index(("AGE",))
    raw, noise = answers.counts[number][:, 2:].sum(axis=1), 2 * answers.variance[:, number]
    limit = direct_variances(found, 0, [asked(found, "AGE >= 40")], np.arange(2), raw[:, None] + 100)
    np.testing.assert_allclose(limit[:, 0], noise + 100**2)
    both = direct_variances(found, 0, [asked(found, "AGE >= 40")], np.zeros(2, int), raw.sum(keepdims=True)[:, None])
    np.testing.assert_allclose(both[0, 0], noise.sum())


def test_columns_that_follow_from_each_other_do_not_widen_intervals():
    """Far more people rent than the public table has, and whether somebody rents follows from whether there is a rent.

    Over six worlds, 95 % intervals by state are compared with those that noise alone would need. Half of them are at
    most 1.2 times as wide (it was 1.09; 2.5 without the limit), 95 of 100 at most twice as wide (1.5; 6.4), and nine in
    ten contain the truth (59 of 60 did).
    """
    inside, widths = [], []
    for seed in range(6):
        found, private = estimated(seed)
        codes, state = encode(SCHEMA, private).codes, private["STATE"]
        noise = np.sqrt(found.answers[0].variance[:, 0])
        for query in ("RENTS == 1", "RENTS == 0", "RENT is null", "AGE < 20", "SEX == 1"):
            said = found.answer(query, "STATE")
            true = np.bincount(state[parse(query, SCHEMA).mask(codes)], minlength=5)[3:]
            low, high = (said[name].to_numpy() for name in ("low", "high"))
            inside += ((low <= true) & (true <= high)).tolist()
            widths += ((high - low) / (2 * NINETY_FIVE * noise)).tolist()
    assert np.mean(inside) >= 0.9
    assert np.median(widths) <= 1.2
    assert np.quantile(widths, 0.95) <= 2.0
