"""Releases to look at: invented people, measured, estimated and drawn as any others would be."""

import json

import numpy as np
import pyarrow as pa

from prade import Ask, Budget, Column, Level, Plan, Schema, Unit, Workload
from prade.data.read.tables import write_table
from prade.examples import census_like
from prade.measuring.run import measure
from prade.pipeline import sample
from worlds.plans import ledger_for
from worlds.releases import write_rows

NASTY = "</script><img src=x onerror=alert(1)>"
COLUMNS = ["STATE", "PLACE", "AGE", "SEX", "RACE", "EDUC", "MARITAL", "WAGE"]


def released(folder, plan, public, private):
    """A whole release folder, and the private table beside it."""
    write_table(private, folder / "private.parquet")
    release = measure(plan, folder / "private.parquet", folder / "release", ledger_for(plan, folder / "ledger"))
    write_rows(sample(release, public, like="pyarrow"), release)
    return folder / "release"


def census(folder):
    """Two levels, one- and two-column tables, and numbers of rows of their own."""
    data = census_like(persons=2_500, places_per_state=4, years=(2023, 2024), seed=3)
    schema = data.schema.select(COLUMNS)
    groups = data.groups.select(["STATE", "PLACE"]).group_by(["STATE", "PLACE"]).aggregate([])
    ones = Workload.all_marginals(schema, 1)
    pairs = Workload.marginals(schema, [("MARITAL", "AGE"), ("SEX", "RACE")])
    levels = [Level("STATE", ones, total=0), Level("PLACE", [Ask(ones, 3), Ask(pairs)], total=1)]
    plan = Plan("census-like survey", schema, Budget.pure(4), Unit(2, person_id="PERSON"), levels, groups)
    return released(folder, plan, data.public.select(COLUMNS), data.private)


def nasty(folder):
    """A column, a value, a group and a data set whose names would be markup."""
    schema = Schema([Column(NASTY, "categorical", values=[NASTY, "&amp;"]), Column("b", "categorical", values=[1, 2])])
    generator = np.random.default_rng(0)

    def table():
        return pa.table(
            {
                "TOWN": generator.choice([NASTY, "b"], 300),
                NASTY: generator.choice([NASTY, "&amp;"], 300),
                "b": generator.integers(1, 3, 300),
            }
        )

    level = Level("TOWN", Workload.all_marginals(schema, 1))
    plan = Plan(NASTY, schema, Budget.pure(1), Unit(1), [level], groups={"TOWN": [NASTY, "b"]})
    return released(folder, plan, table(), table())


def contest(folder, parameters):
    """The 181 PUMAs of the contest, and invented people in them."""
    pumas = json.loads(parameters.read_text())["schema"]["PUMA"]["values"]
    data = census_like(persons=20_000, states=1, places_per_state=len(pumas), years=(2023, 2024), seed=3)
    schema = Schema([Column("PUMA", "group", values=pumas), *data.schema.select(COLUMNS[2:])])

    def table(rows):
        place = [pumas[int(text[-3:]) - 1] for text in rows["PLACE"].to_pylist()]
        return rows.select(COLUMNS[2:]).append_column("PUMA", pa.array(place))

    ones, pairs = Workload.all_marginals(schema, 1), Workload.marginals(schema, [("AGE", "MARITAL"), ("SEX", "EDUC")])
    levels = [Level((), pairs), Level("PUMA", Ask(ones, 3))]
    plan = Plan("contest 2020", schema, Budget.pure(6), Unit(1), levels, {"PUMA": pumas})
    return released(folder, plan, table(data.public), table(data.private))
