"""The jobs of the comparison: two real ones, two like the Adult table by the generator, a small one to try out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from common import OUT
from jobs import PATIENCE, THREADS, Job, acs, nist
from prade import Budget, Schema, Unit
from prade.core.execution import Execution
from prade.data.read.tables import write_table
from prade.examples import census_like
from prade.tuning.tune import Tuned, tune

ADULT = (
    "AGE", "SEX", "RACE", "HISPANIC", "CITIZEN", "EDUC", "MARITAL", "EMPLOY", "OCCUP", "HOURS", "WAGE", "INCOME",
    "HHSIZE", "TENURE",
)  # fmt: skip
FEW = ("AGE", "SEX", "RACE", "CITIZEN", "MARITAL", "EMPLOY")  # 19,200 cells in all
PERSONS = 72_000  # of whom some 48,000 are seen in the year that is taken: about as many as there are in Adult


@dataclass(frozen=True, eq=False)
class QuickJob(Job):
    """A job that is tuned with less effort: small ones need no more."""

    tuning: float = 20.0

    def tuned(self, budget: str | Budget) -> Tuned:
        return tune(self.task(budget), self.rows, effort=self.tuning, seconds=PATIENCE, execution=Execution(THREADS))


def adult() -> Job:
    """Like Adult: one table, 14 columns, no groups; the public table is of other states. Nobody in it is real."""
    public, private, schema = _generated("adult", PERSONS, places=10)
    return QuickJob("adult", schema.select(["STATE", *ADULT]), public, private, None, (), Unit(1), tuning=60.0)


def few() -> Job:
    """The same people as in `adult`, of whom six columns are asked."""
    public, private, schema = _generated("adult", PERSONS, places=10)
    return QuickJob("few", schema.select(["STATE", *FEW]), public, private, None, (), Unit(1))


def small() -> Job:
    """A few thousand invented people in six places: for trying the comparison out."""
    public, private, schema = _generated("small", 9_000, places=3)
    places = {"STATE": [13] * 3 + [14] * 3, "PLACE": [f"{state}-{k:03d}" for state in (13, 14) for k in (1, 2, 3)]}
    wanted = schema.select(["STATE", "PLACE", *ADULT[:8]])
    return QuickJob("small", wanted, public, private, places, ("STATE", "PLACE"), Unit(1), tuning=5.0)


def _generated(name: str, persons: int, places: int) -> tuple[Path, Path, Schema]:
    """The generator's two tables as files, in one of its years, so that a person has one row."""
    data = census_like(persons=persons, states=2, places_per_state=places, years=(2023, 2024), seed=0)
    OUT.mkdir(exist_ok=True)
    files = []
    for side, table in (("public", data.public), ("private", data.private)):
        file = OUT / f"{name}_{side}.parquet"
        write_table(table.filter(pc.equal(table["YEAR"], 2023)), file)
        files.append(file)
    return files[0], files[1], data.schema


JOBS: dict[str, Callable[[], Job]] = {"acs": acs, "nist": nist, "adult": adult, "few": few, "small": small}
PLACED = "acs", "nist", "small"  # they have places, each of which may have a model of its own
TITLES = {
    "acs": "The ACS job: New York and Pennsylvania, 239 PUMAs, from Illinois and Ohio",
    "nist": "The NIST pair: 2019 from 2018, the same 20 PUMAs",
    "adult": "Like Adult: one invented table of 14 columns, from other states",
    "few": "The same people, six columns only: few enough cells (19,200) to count them all, as a histogram does",
    "small": "A small invented table of 8 columns, six places",
}
