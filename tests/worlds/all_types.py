"""Rows with every type of column, the schema and the parts to count them by, and their counts by numpy."""

import datetime
import decimal

import numpy as np
import pyarrow as pa

from prade import Column, Schema
from prade.data.public.joint import encode
from prade.privacy.protection import Unit
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse

ROWS = 3000
MESSY = [
    *("1", " 2", "2.0", "1e0", "x", "", "1e999", "9" * 400, "9" * 150, "1e299", "1e-299", "nan", "+2", "2020-01-01"),
    *("Ω", None),
]


def table() -> pa.Table:
    """Rows of every type, with empty cells, numbers out of range, and text of every kind."""
    generator = np.random.default_rng(11)

    def some(values, kind):
        picked = [values[place] for place in generator.integers(0, len(values), ROWS)]
        return pa.array(picked, kind)

    day, moment = datetime.date, datetime.datetime
    moments = [moment(2019, 12, 31, 23, 59, 59, 999999), *(moment(*each) for each in [(2020, 1, 1), (2020, 7, 1, 3)])]
    moments += [moment(2031, 1, 1), None]
    return pa.table(
        {
            "AGE": some([*range(100), None, -5, 2**31 - 1], pa.int32()),
            "HOURS": some([*range(0, 100, 7), None], pa.int16()),
            "INCOME": some([-1.0, 0.0, 1e4, 20.000000000000004, 1e300, float("nan"), float("inf"), None], pa.float64()),
            "RENT": some(
                [decimal.Decimal(text) for text in ("0.00", "0.10", "999.99", "1000.00")] + [None], pa.decimal128(12, 2)
            ),
            "SEX": some(MESSY, pa.string()),
            "RACE": some(["white", "black", "asian", "none", None], pa.string()),
            "CODE": some(["01", "02", "06", "99"], pa.string()),
            "WORKS": some([True, False, None], pa.bool_()),
            "BORN": some([day(1959, 12, 31), day(1960, 1, 1), day(2000, 2, 29), day(1, 1, 1), None], pa.date32()),
            "SEEN": some(moments, pa.timestamp("us")),
            "KNOWN": some(moments, pa.timestamp("us", "UTC")),
            "STATE": some(["36", "42", "99", " 36 "], pa.string()),
            "TOWN": some(list(range(150)), pa.int64()),
            "ID": some([*range(ROWS // 5), None], pa.int64()),
        }
    )


def schema() -> Schema:
    day = datetime.date
    return Schema(
        [
            Column("AGE", "numeric", edges=(5, 18, 65), integer=True, min=0, max=96, missing=True, unknown="missing"),
            Column("HOURS", "categorical", values=(0, 7, 42), other=0, missing=True),
            Column("INCOME", "numeric", edges=(0, float(np.nextafter(20, 21)), 1e5), missing=True),
            Column("RENT", "numeric", edges=(0.1, 1000)),
            Column("SEX", "categorical", values=(1, 2), missing=True),
            Column("RACE", "categorical", values=("asian", "black", "white")),
            Column("CODE", "categorical", values=("06", "02", "01"), missing=True),
            Column("WORKS", "categorical", values=(True, False), missing=True),
            Column("BORN", "numeric", edges=(day(1960, 1, 1), day(2000, 3, 1)), min=day(1900, 1, 1)),
            Column("SEEN", "numeric", edges=(day(2020, 1, 1),), max=day(2020, 7, 1), missing=True, unknown="missing"),
            Column("KNOWN", "numeric", edges=(day(2020, 1, 1), day(2020, 7, 1)), missing=True),
        ]
    )


def parts(schema: Schema) -> list:
    return [
        *(Marginal.of(schema, [name]) for name in schema.coded),
        Marginal.of(schema, ["AGE", "SEX", "WORKS"]),
        Cells(["RACE", "CODE"], table=np.arange(12) % 5, n_cells=4),
        Predicate(parse("AGE >= 65 and not (RACE == 'white' or SEX is missing)", schema), parse("AGE < 5", schema)),
    ]


def by_numpy(rows: pa.Table, groups: dict) -> list[np.ndarray]:
    declared = schema()
    codes = encode(declared, rows).codes
    states = [int(state) for state in rows["STATE"].to_pylist()]
    place = {group: number for number, group in enumerate(zip(groups["STATE"], groups["TOWN"], strict=True))}
    group = np.array([place.get(pair, -1) for pair in zip(states, rows["TOWN"].to_pylist(), strict=True)])
    found = []
    for part in parts(declared):
        cells = part.cells(declared, codes).astype(int)
        counts = np.zeros((len(place), part.n_cells), int)
        inside = (group >= 0) & (cells < part.n_cells)
        np.add.at(counts, (group[inside], cells[inside]), 1)
        found.append(counts)
    return found


GROUPS = {"STATE": [36, 42] * 120, "TOWN": [town for town in range(120) for _ in range(2)]}  # joined, not compared


def rows_kept(rows: pa.Table, unit: Unit) -> int:
    """How many rows of the two listed states a unit lets count."""
    each: dict = {}
    for person, state in zip(rows["ID"].to_pylist(), rows["STATE"].to_pylist(), strict=True):
        if person is not None and int(state) != 99:
            each.setdefault(person, {}).setdefault(int(state), []).append(1)
    return sum(
        min(unit.max_rows, sum(min(unit.per_group or len(rows), len(rows)) for rows in person.values()))
        for person in each.values()
    )
