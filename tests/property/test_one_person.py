"""The law of the door, for files and tables in memory: one more person, with any cells, changes at most their rows.

Types are not held fixed: they follow the rows, as the tool that makes the table infers them. Rows are split over files
in any way. The run with the new person fails if and only if the run without fails; here neither does.
"""

import csv
import datetime
import decimal
import itertools
import tempfile
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from prade import Column, Schema
from prade.measuring.source import open_source
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal
from worlds.counting import count

DAY, MOMENT, HOURS = datetime.date, datetime.datetime, datetime.timedelta
TEXTS = ("1", "2", "37.5", "true", "2020-01-01", "2020-01-01 08:30:00", "x", "1234567890123456", "1.5", "00100")
SCHEMA = Schema(
    [
        Column("BINS", "numeric", edges=(20, 38, 60), missing=True),
        Column("CLIPPED", "numeric", edges=(1, 10), min=0, max=60, integer=True),
        Column("LIST", "categorical", values=(1, 2, 65), missing=True),
        Column("TEXT", "categorical", values=TEXTS, missing=True),
        Column("TRUTH", "categorical", values=(False, True), missing=True, unknown="missing"),
        Column("DATE", "numeric", edges=(DAY(2020, 1, 1), DAY(2020, 7, 1)), missing=True),
    ]
)
NAMES = (*SCHEMA.coded, "PLACE", "ID")
PARTS = [Marginal.of(SCHEMA, [name]) for name in SCHEMA.coded]
PLACES = {"PLACE": ["a", "b", "1", "2020-01-01"]}
law = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.explicit, Phase.generate])

EAST, WEST = (datetime.timezone(HOURS(hours=hours)) for hours in (9, -5))
NUMBERS = [0, 1, 2, 10, 37, 38, 65, 100, -7, 1234567890123456, 2**53 + 1, 2**62, 1.0, 37.5, 1.5, -0.0, 1e300, np.inf]
WORDS = ["a", "b", "x", "1", "2", "37.5", "true", "False", "2020-01-01", "1e999", " 1 ", "00100", "", "é", "a\nb", 'q"']
DATES = [DAY(2020, 1, 1), DAY(1, 1, 1), DAY(9999, 12, 31), DAY(2020, 6, 30)]
MOMENTS = [MOMENT(2020, 1, 1), MOMENT(2020, 1, 1, 8, 30), MOMENT(2019, 12, 31, 23, 59, 59, 999999), MOMENT(2262, 4, 12)]
DIGITS = ("1", "0", "0.0000001", "1.0000000001", "1.50", "37.5", "37.500", "65.0", "-7.25", "100")
DECIMALS = [decimal.Decimal(text) for text in DIGITS]
FAMILIES = {
    "numbers": [*NUMBERS, None],
    "truths": [True, False, None],
    "words": [*WORDS, None],
    "dates": [*DATES, None],
    "moments": [*MOMENTS, None],
    "moments of a zone": [*(moment.replace(tzinfo=datetime.UTC) for moment in MOMENTS), None],
    "decimals": [*DECIMALS, None],
    "nothing": [None],
}
ODD = [
    *[b"1", b"\xff", 1j, (1,), [1], {"a": 1}, object, datetime.time(8), HOURS(days=1), "\ud800", 2**70, -(2**70)],
    *[float("nan"), decimal.Decimal("NaN"), decimal.Decimal("1e400"), pd.NaT, pd.NA, np.bool_(True), np.float32(37.5)],
    *[np.int8(1), np.datetime64("2020-01-01"), np.datetime64("2020-01-01T08:30:00.000000001"), np.datetime64("NaT")],
    *[
        pd.Timestamp("2020-01-01"),
        pd.Timestamp("2020-01-01T08:30", tz="Europe/Berlin"),
        MOMENT(2020, 1, 1, tzinfo=EAST),
    ],
    *[
        MOMENT(2020, 6, 30, 20, tzinfo=WEST),
        pd.Timedelta(1),
        pd.Period("2020-01"),
        np.str_("x"),
        np.timedelta64(5, "ns"),
    ],
    *[*map(decimal.Decimal, ("0.0000001", "1.0000000001", "0")), np.datetime64("12000-01-01")],
]
ANY = [*itertools.chain(*FAMILIES.values()), *ODD]


@st.composite
def neighbours(draw, families, most_files):
    """Rows of others and of one more person, dealt out to files; ids are numbers or texts, some missing."""
    cells = {name: st.sampled_from(draw(st.sampled_from(families))) for name in NAMES}
    others = draw(st.lists(st.fixed_dictionaries(cells), max_size=6))
    new = draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=2))
    number = draw(st.booleans())
    for place, row in enumerate(others):
        row["ID"] = draw(st.sampled_from([place // 2, None])) if number else f"p{place // 2}"
    newcomer = draw(st.sampled_from([None, 77, 7.5] if number else [None, "new"]))
    for row in new:
        row["ID"] = newcomer
    unit = draw(st.sampled_from([None, Unit(1, person_id="ID"), Unit(2, person_id="ID", per_group=1)]))
    files = draw(st.lists(st.integers(0, most_files - 1), min_size=len(others), max_size=len(others)))
    homes = draw(st.lists(st.integers(0, most_files - 1), min_size=len(new), max_size=len(new)))
    return unit, others, new, files, homes


def dealt(rows, files, most):
    """The rows of each file that has any, and one file at least."""
    tables = [[row for row, file in zip(rows, files, strict=True) if file == each] for each in range(most)]
    return [table for table in tables if table] or [[]]


def in_columns(rows):
    return {name: [row[name] for row in rows] for name in NAMES}


def outcome(opened, unit):
    """The counts by place and in all; the secret that chooses a person's rows is held fixed."""
    with opened as source, patch("secrets.token_hex", lambda size: "0" * 2 * size):
        answers = [count(source, SCHEMA, PARTS, PLACES, unit), count(source, SCHEMA, PARTS, None, unit)]
    return [np.concatenate([answer.ravel() for answer in level]) for level in answers]


def check(unit, others, new, files, homes, opened_of):
    """One more person moves each level's counts by at most one count per part and row of theirs, all upwards."""
    before = outcome(opened_of(others, files), unit)
    after = outcome(opened_of([*others, *new], [*files, *homes]), unit)
    allowed = len(new) if unit is None else min(unit.max_rows, len(new))
    for without, within in zip(before, after, strict=True):
        change = within - without
        assert (change >= 0).all()
        assert change.sum() <= allowed * len(PARTS)
    if unit is None:  # without a bound every row counts, once in every part
        assert after[1].sum() - before[1].sum() == len(new) * len(PARTS)


EVERYTHING = [ANY]
ONE_KIND = list(FAMILIES.values())
# Arrow infers no type that holds large whole numbers and floats.
ARROW_KINDS = [[cell for cell in family if not (isinstance(cell, int) and cell > 2**53)] for family in ONE_KIND]


def pandas_frame(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on times of several zones, and on nanoseconds that are dropped
        return pd.DataFrame(in_columns(rows))


def pandas_objects(rows):
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in in_columns(rows).items()})


def pandas_categories(rows):
    def category(column):
        with suppress(TypeError, OverflowError):  # pandas makes no categories of lists, nor of far days
            return column.astype("category")
        return column

    return pandas_objects(rows).apply(category)


def pandas_declared(rows):
    """With pandas' own nullable types, where the cells allow it: a type that does not change with a missing value."""
    return pandas_objects(rows).convert_dtypes()


def polars_frame(rows):
    return pl.DataFrame(in_columns(rows), strict=False)


def polars_objects(rows):
    return pl.DataFrame({name: pl.Series(name, cells, dtype=pl.Object) for name, cells in in_columns(rows).items()})


def arrow_table(rows):
    return pa.table({name: pa.array(cells, from_pandas=True) for name, cells in in_columns(rows).items()})


@pytest.mark.parametrize(
    ("table_of", "families"),
    [
        (pandas_frame, EVERYTHING),
        (pandas_frame, ONE_KIND),
        (pandas_objects, EVERYTHING),
        (pandas_categories, EVERYTHING),
        (pandas_declared, ONE_KIND),
        (in_columns, EVERYTHING),
        (polars_frame, ONE_KIND),
        (polars_objects, EVERYTHING),
        (arrow_table, ARROW_KINDS),
    ],
    ids=lambda value: getattr(value, "__name__", "mixed" if value is EVERYTHING else "kinds"),
)
@law
@given(st.data())
def test_tables_in_memory(table_of, families, data):
    people = data.draw(neighbours(families, 1))
    check(*people, lambda rows, _: open_source(table_of(rows), rows_per_batch=2))


def write_csv(rows, path):
    """As a CSV writer does it, without line breaks in cells."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(
            [["" if row[name] is None else str(row[name]).replace("\n", " ") for name in NAMES] for row in rows]
        )


@contextmanager
def opened_files(rows, files, most, write, suffix):
    with tempfile.TemporaryDirectory() as folder:
        for place, table in enumerate(dealt(rows, files, most)):
            path = Path(folder) / f"part-{place}{suffix}"
            write(table, path)
            # Rows of tests are few and alike; files that are equal byte for byte would be refused as one file twice.
            if suffix == ".csv":
                path.write_text(path.read_text(encoding="utf-8") + "\n" * place, encoding="utf-8", newline="")
            else:
                written = pq.read_table(path)
                pq.write_table(written.append_column("FILE", pa.array([place] * len(written))), path)
        with open_source(f"{folder}/*{suffix}", rows_per_batch=1) as source:
            yield source


@pytest.mark.parametrize("most", [1, 3], ids=["one file", "several files"])
@pytest.mark.parametrize(
    ("write", "suffix", "families"),
    [
        (lambda rows, path: pandas_frame(rows).to_parquet(path, index=False), ".parquet", ONE_KIND),
        (lambda rows, path: pq.write_table(arrow_table(rows), path), ".parquet", ARROW_KINDS),
        (lambda rows, path: polars_frame(rows).write_parquet(path), ".parquet", ONE_KIND),
        (write_csv, ".csv", [[*itertools.chain(*FAMILIES.values())]]),
    ],
    ids=["pandas parquet", "arrow parquet", "polars parquet", "csv"],
)
@law
@given(st.data())
def test_files(most, write, suffix, families, data):
    people = data.draw(neighbours(families, most))
    check(*people, lambda rows, homes: opened_files(rows, homes, most, write, suffix))
