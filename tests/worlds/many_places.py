"""A release of three levels with enough groups for several batches: invented places, some of which are public too."""

import numpy as np
import pyarrow as pa

from prade import Ask, Level, Release, Workload
from prade.data.public.public import Public
from worlds.plans import plan_of
from worlds.releases import counted, write_folder
from worlds.survey import SCHEMA

STATES, PLACES = 3, 50
NAMES = [f"p{number:02}" for number in range(PLACES)]
GROUPS = {
    "STATE": [1 + number for number in range(STATES) for _ in NAMES],
    "PLACE": [name for _ in range(STATES) for name in NAMES],
}
ONES = Workload.all_marginals(SCHEMA, 1)
PAIR = Workload.marginals(SCHEMA, [("AGE", "WORK")])


def people(rows, states, seed, places=PLACES):
    """People who differ from place to place."""
    generator = np.random.default_rng(seed)
    place = generator.integers(places, size=rows)
    old = generator.random(rows) < 0.2 + 0.5 * place / places
    return {
        "STATE": generator.choice(states, rows),
        "PLACE": np.array(NAMES)[place],
        "AGE": np.where(old, generator.integers(50, 90, rows), generator.integers(0, 60, rows)),
        "SEX": generator.integers(1, 3, rows),
        "WORK": np.where(old, "none", generator.choice(["none", "part", "full"], rows)),
    }


def public_table():
    """Two states that the plan does not have, and one of it, whose places recur."""
    return pa.table(people(2_000, [1, 8, 9], 1, places=8))


def public():
    """The same, coded."""
    return Public.of(SCHEMA, public_table(), ["STATE", "PLACE"])


def release(folder=None):
    """Noisy counts, in a folder if one is given."""
    levels = Level((), PAIR), Level("STATE"), Level("PLACE", [Ask(ONES, 2)])
    plan = plan_of(SCHEMA, *levels, groups=GROUPS, budget=4)
    made = counted(plan, people(20_000, [1, 2, 3], 2), np.random.default_rng(3))
    return made if folder is None else Release.load(write_folder(folder, made.plan, made.noisy))


def bits(estimates):
    """All that was estimated, to the last bit."""
    levels = [
        repr([each.totals.tolist(), each.rows_variance.tolist(), each.scale.tolist(), sorted(each.kinds.items())])
        for each in estimates.levels
    ]
    return levels + [
        made.tilt.multipliers.tobytes()
        + repr((made.tilt.group, made.tilt.emptied, made.status, made.kl, made.gap)).encode()
        for made in estimates.made
    ]
