"""Invented workers, with numbers, categories and missing values, for the tests of metrics."""

import numpy as np
import pyarrow as pa

from prade import Column, Schema

SCHEMA = Schema(
    [
        Column("TOWN", "group"),
        Column("AGE", "numeric", edges=(18, 30, 45, 65), integer=True, min=0, max=100),
        Column("SEX", "categorical", values=(1, 2)),
        Column("RACE", "categorical", values=("a", "b", "c")),
        Column("WAGE", "numeric", edges=(10, 20, 40, 60, 80), missing=True),
        Column("INCOME", "numeric", edges=(10, 20, 40, 60, 80), missing=True),
        Column("WORKS", "categorical", values=("no", "yes"), missing=True),
    ]
)


def workers(rows, seed, tilt=0.0):
    """Rows in which wages are part of incomes; `tilt` makes them differ from those of another table."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 95, rows)
    sex = 1 + (generator.random(rows) < 0.5 + tilt / 4)
    wage = np.round(np.maximum(0.0, 0.4 * age + 8 * sex + generator.normal(0, 12, rows) + 20 * tilt), 2)
    child = age < 15
    works = np.where(generator.random(rows) < 1 / (1 + np.exp(1.5 - 0.04 * age - 0.5 * sex)), "yes", "no")
    return pa.table(
        {
            "TOWN": generator.choice(["p", "q", "r"], rows),
            "AGE": age,
            "SEX": sex,
            "RACE": generator.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "WAGE": pa.array(wage, mask=child),
            "INCOME": pa.array(np.round(wage + generator.exponential(6, rows), 2), mask=child),
            "WORKS": pa.array(works, mask=child),
        }
    )
