"""Places whose private rows come from the population of the public ones, or, in some of them, from another one."""

import numpy as np

from prade import Column, Plan, Schema, Task
from prade.data.public.public import Public
from prade.diagnosis.diagnose import diagnosed
from worlds.releases import counted

SIZES = {"TEN": 4, "SEX": 2, "AGE": 7, "RARE": 5}
SCHEMA = Schema(
    [
        Column("STATE", "group"),
        Column("PLACE", "group"),
        *(Column(name, "categorical", values=tuple(range(size))) for name, size in SIZES.items()),
    ]
)
PLACES, STATES = 12, 2
STATE_OF = np.arange(PLACES) * STATES // PLACES + 1
GROUPS = {"STATE": STATE_OF.tolist(), "PLACE": list(range(PLACES))}

Shares = dict[str, np.ndarray]


class World:
    """Twelve places of two states; the public table has the same places (`recurring`) or twelve others like them."""

    def __init__(self, seed, budget, *, recurring=True):
        self.generator = generator = np.random.default_rng(seed)
        self.plan = Plan.simplest(Task("drift", SCHEMA, budget, levels=["STATE", "PLACE"], groups=GROUPS))
        base = {
            name: generator.dirichlet(np.full(size, 0.2 if name == "RARE" else 2.0)) for name, size in SIZES.items()
        }
        self.places = [
            {name: generator.dirichlet(np.maximum(40 * p, 0.02)) for name, p in base.items()} if recurring else base
            for _ in range(PLACES)
        ]
        self.sizes = generator.poisson(800 * generator.choice([0.25, 1, 4], PLACES))
        public = self._rows(self.places, generator.poisson(self.sizes * generator.choice([0.5, 2.0])) + 1)
        away = 0 if recurring else 100
        table = {**public, "STATE": public["STATE"] + away, "PLACE": public["PLACE"] + away}
        self.public = Public.of(SCHEMA, table, ["STATE", "PLACE"])

    def _rows(self, places, sizes):
        """Rows of every place, drawn at random."""
        place = np.repeat(np.arange(PLACES), sizes)
        drawn = {
            name: np.concatenate(
                [self.generator.choice(len(p[name]), n, p=p[name]) for p, n in zip(places, sizes, strict=True)]
            )
            for name in SIZES
        }
        return {"STATE": STATE_OF[place], "PLACE": place, **drawn}

    def answers(self, changed=None):
        """Noisy counts of private rows; places in `changed` have other shares in some columns."""
        places = [{**p, **(changed or {}).get(g, {})} for g, p in enumerate(self.places)]
        self.private = self._rows(places, self.sizes)
        return [list(parts) for parts in counted(self.plan, self.private, self.generator).noisy]

    def distances(self):
        """Total-variation distances between the private rows of the last answers and the public ones: [places, 4].

        For recurring places only.
        """
        public = np.array([row[1] for row in self.public.groups.values])[self.public.group]
        found = np.zeros((PLACES, len(SIZES)))
        for place in range(PLACES):
            for k, (name, size) in enumerate(SIZES.items()):
                mine = np.bincount(self.private[name][self.private["PLACE"] == place], minlength=size)
                theirs = np.bincount(self.public.prior.codes[name][public == place], minlength=size)
                found[place, k] = np.abs(mine / max(mine.sum(), 1) - theirs / theirs.sum()).sum() / 2
        return found

    def diagnosis(self, changed=None, **options):
        """The diagnosis of noisy counts."""
        return diagnosed(self.plan, self.answers(changed), self.public, **options)


def moved(shares, distance):
    """Shares at this total-variation distance: taken from the largest cell, given to the smallest."""
    other = shares.copy()
    other[np.argmax(shares)] -= distance
    other[np.argmin(shares)] += distance
    assert (other >= 0).all()
    return other
