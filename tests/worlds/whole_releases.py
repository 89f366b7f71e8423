"""Releases to look at: invented people, measured, estimated and drawn as any others would be."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from prade import Ask, Budget, Column, Level, Plan, Schema, Unit, Workload
from prade.data.read.tables import write_table
from prade.examples import census_like
from prade.measuring.run import measure
from prade.pipeline import sample
from worlds.contest import contest_schema
from worlds.plans import ledger_for
from worlds.releases import write_rows

NASTY = "</script><img src=x onerror=alert(1)>"
COLUMNS = ["STATE", "PLACE", "AGE", "SEX", "RACE", "EDUC", "MARITAL", "WAGE"]
CONTEST = ["SEX", "AGE", "MARST", "RACE", "EDUC", "LABFORCE", "HCOVANY", "INCWAGE"]


def released(folder: Path, plan: Plan, public: pa.Table, private: pa.Table) -> Path:
    """A whole release folder, and the private table beside it."""
    write_table(private, folder / "private.parquet")
    release = measure(plan, folder / "private.parquet", folder / "release", ledger_for(plan, folder / "ledger"))
    write_rows(sample(release, public, like="pyarrow"), release)
    return folder / "release"


def census(folder: Path) -> Path:
    """Two levels, one- and two-column tables, and numbers of rows of their own."""
    data = census_like(persons=2_500, places_per_state=4, years=(2023, 2024), seed=3)
    schema = data.schema.select(COLUMNS)
    groups = data.groups.select(["STATE", "PLACE"]).group_by(["STATE", "PLACE"]).aggregate([])
    ones = Workload.all_marginals(schema, 1)
    pairs = Workload.marginals(schema, [("MARITAL", "AGE"), ("SEX", "RACE")])
    levels = [Level("STATE", ones, total=0), Level("PLACE", [Ask(ones, 3), Ask(pairs)], total=1)]
    plan = Plan("census-like survey", schema, Budget.pure(4), Unit(2, person_id="PERSON"), levels, groups)
    return released(folder, plan, data.public.select(COLUMNS), data.private)


def nasty(folder: Path) -> Path:
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


def contest(folder: Path, parameters: Path) -> Path:
    """The schema and the 181 PUMAs of the contest; people who differ from place to place, none of them real."""
    whole = contest_schema(parameters)
    schema = whole.select(["PUMA", *CONTEST])
    places = list(whole["PUMA"].values)
    groups = {"PUMA": places}

    def table(seed: int, drift: float) -> pa.Table:
        generator = np.random.default_rng(seed)
        rows = generator.integers(60, 220, len(places)) if drift else np.full(len(places), 120)
        place = np.repeat(np.arange(len(places)), rows)
        # A place's factor goes with its number, as codes of neighbours do; Ohio drifts more than Illinois.
        factor = np.sin(np.arange(len(places)) / 9.0) + drift * np.array([text.startswith("39") for text in places])
        columns = {"PUMA": pa.array(places).take(pa.array(place))}
        for k, name in enumerate(CONTEST):
            column, score = schema[name], generator.standard_normal(len(place)) + (0.3 + 0.1 * k) * factor[place]
            size = len(column.values) if not (column.numeric or column.groups) else len(column.cuts)
            code = np.clip(np.floor((score + 2.5) / 5 * size), 0, size - 1).astype(int)
            values = column.values if not (column.numeric or column.groups) else column.cuts
            columns[name] = pa.array([values[c] for c in code])
        return pa.table(columns)

    ones = Workload.all_marginals(schema, 1)
    pairs = Workload.marginals(schema, [("AGE", "MARST"), ("SEX", "LABFORCE")])
    plan = Plan(
        "contest 2020", schema, Budget.pure(6), Unit(1), [Level((), pairs), Level("PUMA", Ask(ones, 3))], groups
    )
    return released(folder, plan, table(1, 0.0), table(2, 0.6))
