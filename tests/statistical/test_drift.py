"""Columns that drifted, in six worlds of two states and forty places: intervals of the other columns stay as narrow.

Far more people rent than in the public table, and whether somebody rents follows from whether there is a rent. Nothing
else has changed. Seeds are fixed.
"""

import numpy as np
import pytest

from prade import Column, Level, Schema, Workload
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.estimating.levels.cell_counts import NINETY_FIVE
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
DRIFTED, OTHERS = ("RENTS == 1", "RENTS == 0", "RENT is null"), ("AGE < 20", "SEX == 1")


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


@pytest.fixture(scope="module")
def intervals():
    """By query: which contain the truth, and their widths as multiples of what noise alone would need."""
    inside, widths = ({query: [] for query in (*DRIFTED, *OTHERS)} for _ in range(2))
    for seed in range(6):
        private = people((3, 4), 0.6, 2 * seed + 1)
        plan = plan_of(SCHEMA, Level("STATE"), Level("PLACE", ONES), groups=GROUPS)
        release = counted(plan, private, np.random.default_rng(seed))
        found = Estimates.of(release, Public.of(SCHEMA, people((1, 2), 0.35, 2 * seed), ["STATE", "PLACE"]))
        codes, noise = encode(SCHEMA, private).codes, np.sqrt(found.answers[0].variance[:, 0])
        for query in inside:
            said = found.answer(query, "STATE")
            true = np.bincount(private["STATE"][parse(query, SCHEMA).mask(codes)], minlength=5)[3:]
            low, high = (said[name].to_numpy() for name in ("low", "high"))
            inside[query] += ((low <= true) & (true <= high)).tolist()
            widths[query] += ((high - low) / (2 * NINETY_FIVE * noise)).tolist()
    return inside, widths


def test_all_intervals_contain_the_truth(intervals):
    assert np.mean(list(intervals[0].values())) >= 0.9  # 59 of 60 did


def test_columns_that_did_not_drift_have_intervals_as_narrow_as_noise_alone_would_make_them(intervals):
    """They were 0.8 times as wide; a common scale for all columns widens them."""
    assert max(max(intervals[1][query]) for query in OTHERS) < 1.0


def test_columns_that_drifted_have_wider_ones_with_a_limit(intervals):
    """They were 1.6 to 4.3 times as wide, half of them less than 2."""
    widths = np.concatenate([intervals[1][query] for query in DRIFTED])
    assert np.median(widths) < 2.5
    assert widths.max() < 5
