"""What is valid: a release with its estimates, files of every kind, and what a reader is."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from prade import Ask, Budget, Column, Level, Plan, Schema, Unit, Workload
from prade.data.public.public import Public
from prade.data.public.table import PublicFiles
from prade.estimating.levels.estimates import estimates_of
from prade.queries.parts import Cells
from prade.release.release import Release
from worlds import survey
from worlds.releases import answered, write_folder
from worlds.survey import THREE_PLACES as GROUPS


@dataclass(frozen=True)
class Reader:
    """A reader: `mutate` makes an input, `read` reads it; what is not a PradeError is a finding."""

    name: str
    mutate: Callable[[random.Random], Any]
    read: Callable[[Any], object]


SCHEMA = Schema(
    [
        Column("STATE", "group", values=(1, 2)),
        Column("PLACE", "group", values=("p", "q")),
        Column("AGE", "numeric", edges=[18, 40, 65], integer=True, min=0, max=120, missing=True),
        Column("SEX", "categorical", values=[1, 2]),
        Column("WORK", "categorical", values=["none", "part", "full"], other="none"),
    ]
)
BORN = Column("BORN", "numeric", edges=(0.0, 10_000.0), dates=True)
LABELLED = Schema(
    [
        replace(SCHEMA["STATE"], labels={1: "north"}),
        replace(SCHEMA["AGE"], title="Age", unit="years", labels={None: "not known"}),
        replace(SCHEMA["SEX"], description="as registered", labels={1: "male", 2: "female"}),
    ]
)


def people():
    """A public table with columns of several kinds."""
    generator = np.random.default_rng(1)
    born = pa.array(generator.integers(0, 20_000, 120).astype(np.int32), pa.int32()).cast(pa.date32())
    return survey.people(1, [1, 3], 120).append_column("BORN", born).append_column("WEIGHT", [generator.random(120)])


def plan():
    """A plan with every kind of part."""
    ones = Workload.all_marginals(SCHEMA, 1)
    old = Workload(SCHEMA, [Cells(["AGE"], [0, 0, 1, 1, 2], 2, ["young", "old"])])
    asked = Workload.queries(SCHEMA, ["AGE >= 65 and SEX == 2", "WORK in ['part', 'full']"])
    levels = [Level("STATE", ones), Level("PLACE", [Ask(ones, 3), Ask(old), Ask(asked, "1/3")], total="1/7")]
    public = PublicFiles(("public.parquet",), "WEIGHT")
    return Plan("survey", SCHEMA, Budget.pure(3), Unit(2, person_id="ID"), levels, GROUPS, public=public)


class World:
    """A release with its estimates, and files of every kind, in a folder of its own."""

    def __init__(self, folder):
        self.folder, self.plan = folder, plan()
        folder.mkdir(exist_ok=True)
        generator = np.random.default_rng(2)  # counts are invented
        invented = answered(self.plan, lambda _, part, groups: generator.integers(0, 50, (groups, part.n_cells)))
        self.release = Release.load(write_folder(folder / "release", self.plan, invented.noisy))
        self.public = Public.of(SCHEMA, people(), ["STATE", "PLACE"])
        estimates_of(self.release, self.public)
        pq.write_table(people(), folder / "public.parquet")
        SCHEMA.save(folder / "schema.toml")
        (folder / "places.csv").write_text("STATE,PLACE\n1,p\n1,q\n2,p\n")
