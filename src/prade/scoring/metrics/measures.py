"""All metrics of synthetic rows against the true ones, in one dictionary, with a line for each in a summary.

They compare a table with the true rows: they are NOT private, and are published for public rows only. Where there is a
public table, each metric is also computed for it. `prade.reporting.truth` describes the dictionary.

Propensity takes a sample of at most `sample` rows of each table, the others all rows. A metric that these tables, or
this installation, do not allow has {"not_available": why} in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from prade.core.errors import DataError
from prade.core.execution import single_threaded_blas
from prade.scoring.metrics.regressions import Formula, regression, usual_linear, usual_logistic
from prade.scoring.metrics.tables import TREES, consistency, correlation_differences, matches, numbered, propensity
from prade.scoring.sides import Side, each, k_marginal, or_why

SAMPLE, SEED = 10_000, 0
K = (1, 2, 3)
INSTALL = "the metrics need scikit-learn: run `pip install 'prade[metrics]'`"
OTHERS = ("propensity", "linear", "logistic", "correlations", "unique", "consistency")


@dataclass(frozen=True)
class Choices:
    """What a user may choose: rows of a sample, its seed, and the two regressions (None for the usual ones)."""

    sample: int = SAMPLE
    seed: int = SEED
    linear: Formula | None = None
    logistic: Formula | None = None
    trees: int = TREES

    def __post_init__(self) -> None:
        if self.sample < 1:
            raise DataError(f"the sample has {self.sample} rows; give a number above 0, such as {SAMPLE:,}")
        if self.seed < 0:
            raise DataError(f"the seed is {self.seed}; give a whole number, 0 or more")


USUAL = Choices()


def need_installed() -> None:
    """Refuse to go on without the extra that the metrics need."""
    if find_spec("sklearn") is None:
        raise DataError(INSTALL)


def all_metrics(truth: Side, synthetic: Side, public: Side | None = None, choices: Choices = USUAL) -> dict[str, Any]:
    """All metrics of the synthetic rows, and of the public ones if given, against the truth; ready for JSON.

    The tables have the same coded columns. One-, two- and three-way tables are compared without the extra as well.
    """
    for formula, numeric in ((choices.linear, True), (choices.logistic, False)):
        if formula is not None:
            formula.check(truth.schema, truth.columns, numeric=numeric)
    others = {"synthetic": synthetic, "public": public}
    rows = {name: None if side is None else len(side) for name, side in {"truth": truth, **others}.items()}
    empty = next((f"the {name} table has no rows" for name, number in rows.items() if number == 0), None)
    lacks = empty or (None if find_spec("sklearn") else INSTALL)
    computed = {} if lacks else _computations(truth, others, choices)

    def of_tables(k: int) -> Any:
        return or_why(partial(k_marginal, truth, others, k, choices.seed)) if not empty else {"not_available": empty}

    with single_threaded_blas():
        metrics: dict[str, Any] = {"kmarginal": [of_tables(k) for k in K]}
        metrics |= {name: or_why(computed[name]) if computed else {"not_available": lacks} for name in OTHERS}
    every = {"summary": _summary(metrics), "rows": {**rows, "sample": choices.sample, "seed": choices.seed}, **metrics}
    return {name: plain(value) for name, value in every.items()}


def _computations(truth: Side, others: Mapping[str, Side | None], choices: Choices) -> dict[str, Callable[[], Any]]:
    seed, schema, columns = choices.seed, truth.schema, truth.columns
    sides = {"truth": truth, **others}
    given = {name: side for name, side in sides.items() if side is not None}
    size = min(choices.sample, *map(len, given.values()))  # one size: the classifier has as many rows of each kind
    few = {name: side.drawn(size, seed) for name, side in given.items()}
    drawn, number = {name: few.get(name) for name in others}, numbered(given)
    told_apart = partial(propensity, few["truth"], seed=seed, trees=choices.trees)
    return {
        "propensity": lambda: {"rows": size, **each(told_apart, drawn)},
        "linear": lambda: regression(sides, choices.linear or usual_linear(schema, columns), numeric=True),
        "logistic": lambda: regression(sides, choices.logistic or usual_logistic(schema, columns), numeric=False),
        "correlations": lambda: correlation_differences(truth, others),
        "unique": lambda: matches(number["truth"], {name: number.get(name) for name in others}),
        "consistency": lambda: consistency(truth, others, seed),
    }


def plain(value: Any) -> Any:
    """The same with Python's own numbers and lists, and None for what is not a finite number.

    >>> plain({"mean": np.float64(0.5), "matrix": np.array([np.nan, 1.0])})
    {'mean': 0.5, 'matrix': [None, 1.0]}
    """
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


# ---------------------------------------------------------------------- the summary


_OF_TABLES, _OF_FITS = "1000 perfect, 0 worst", "1 the same, 0 none"
# A metric, its title, its entry, where its main number is in a table's part of the entry, the best that this can be,
# its digits, and how to read it.
_LINES = (
    ("1-marginal", "One-way tables (k-marginal, k = 1)", "kmarginal", "score", 1000, 1, _OF_TABLES),
    ("2-marginal", "Two-way tables (k-marginal, k = 2)", "kmarginal", "score", 1000, 1, _OF_TABLES),
    ("3-marginal", "Three-way tables (k-marginal, k = 3)", "kmarginal", "score", 1000, 1, _OF_TABLES),
    ("pmse-ratio", "Propensity: pMSE / its expectation", "propensity", "ratio", 1, 2, "1 cannot be told apart"),
    ("auc", "Propensity: AUC of a classifier", "propensity", "auc", 0.5, 3, "0.5 guessing, 1 tells every row"),
    ("linear", "Linear regression: overlap of intervals", "linear", "overlap", 1, 3, _OF_FITS),
    ("logistic", "Logistic regression: overlap of intervals", "logistic", "overlap", 1, 3, _OF_FITS),
    ("correlations", "Correlations: mean difference", "correlations", "mean", 0, 3, "0 perfect, 1 or more worst"),
    ("unique", "Unique true rows that occur exactly", "unique", "share", None, 4, "share; compare with public"),
    ("consistency", "Rows that break an order of numbers", "consistency", "", 0, 4, "share; 0 perfect"),
)


def _summary(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines: each metric's main number for every table, the best it can be, how to read it, and why if it lacks."""
    lines = []
    for metric, title, name, place, best, digits, read in _LINES:
        entry = metrics[name][int(metric[0]) - 1] if name == "kmarginal" else metrics[name]
        values = {table: _number(entry, place, table) for table in ("synthetic", "public")}
        whys = [value["not_available"] for value in values.values() if isinstance(value, dict)]
        numbers = {table: None if isinstance(value, dict) else value for table, value in values.items()}
        told = {"best": best, "digits": digits, "read": read, "why": whys[0] if whys else ""}
        lines.append({"metric": metric, "title": title, **numbers, **told})
    return lines


def _number(entry: Any, place: str, table: str) -> Any:
    """A table's number, {"not_available": why}, or None where there is no such table."""
    if "not_available" in entry:
        return entry
    if not place:  # the mean over the rules of the share of rows that break one
        shares = [rule[table] for rule in entry["rules"] if rule[table] is not None]
        return sum(shares) / len(shares) if shares else None
    part = entry.get(table)
    return part if not isinstance(part, dict) or "not_available" in part else part[place]
