"""A world so small that every row and every person in it can be tried, and tables of many such worlds at once."""

import itertools

import numpy as np
import pyarrow as pa

from prade import Column, Schema
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse

SCHEMA = Schema([Column("A", "categorical", values=(0, 1)), Column("B", "numeric", edges=(5,), missing=True)])
PLACES = ["here", "there"]
ROWS = list(itertools.product([0, 1], [1, 7, None], [*PLACES, "elsewhere"]))  # but for order
PARTS = {
    "A": Marginal.of(SCHEMA, ["A"]),
    "A x B": Marginal.of(SCHEMA, ["A", "B"]),
    "some cells": Cells(["B"], table=[0, 1, 1], n_cells=1),
    "young": Predicate(parse("B < 5", SCHEMA)),
    "old": Predicate(parse("B >= 5", SCHEMA)),
    "two": Predicate(parse("A == 0 and B < 5", SCHEMA), parse("A == 1", SCHEMA)),
}
TYPES = {"WORLD": pa.int64(), "PERSON": pa.string(), "A": pa.int64(), "B": pa.int64(), "PLACE": pa.string()}


def persons(most):
    """Every person with up to `most` rows; the first has none."""
    return [rows for many in range(most + 1) for rows in itertools.combinations_with_replacement(ROWS, many)]


def one_table(worlds):
    """The rows (person, row) of all worlds in one table, persons of different worlds being different; its groups."""
    rows = [(world, f"{world}:{person}", *row) for world, table in enumerate(worlds) for person, row in table]
    columns = zip(*rows, strict=True) if rows else [()] * len(TYPES)
    cells = [pa.array(list(each), kind) for each, kind in zip(columns, TYPES.values(), strict=True)]
    groups = {"WORLD": np.repeat(np.arange(len(worlds)), len(PLACES)), "PLACE": PLACES * len(worlds)}
    return pa.table(cells, names=list(TYPES)), groups
