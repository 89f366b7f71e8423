"""The metrics that the community of synthetic data agreed on, beside the contest's score, in one dictionary.

All compare a table with the true rows: they are NOT private, and are published for public rows only. Where there is a
public table, each metric is also computed for it in place of the synthetic rows: what the public table alone is worth.
`prade.reporting.truth` describes the dictionary.

k-marginals, regressions, correlations, unique matches and consistency take all rows. Propensity and principal
components take a sample: at most `sample` rows of each table, drawn with the seed. A metric that these tables, or this
installation, do not allow has {"not_available": why} in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from prade.core.arrays import Ints
from prade.core.errors import DataError
from prade.core.execution import single_threaded_blas
from prade.scoring.metrics.regressions import (
    Formula,
    linear_regression,
    logistic_regression,
    usual_linear,
    usual_logistic,
)
from prade.scoring.metrics.tables import (
    KINDS,
    Axes,
    check_installed,
    consistency,
    copies,
    correlation_differences,
    correlations,
    numbered,
    propensity,
    unique_matches,
)
from prade.scoring.sides import NotAvailable, Side, k_marginal

SAMPLE, SEED = 10_000, 0
K = (1, 2, 3)


@dataclass(frozen=True)
class Choices:
    """What a user may choose: rows of a sample, its seed, and the two regressions (None for the usual ones)."""

    sample: int = SAMPLE
    seed: int = SEED
    linear: Formula | None = None
    logistic: Formula | None = None

    def __post_init__(self) -> None:
        if self.sample < 1:
            raise DataError(f"the sample has {self.sample} rows; give a number above 0, such as {SAMPLE:,}")
        if self.seed < 0:
            raise DataError(f"the seed is {self.seed}; give a whole number, 0 or more")


USUAL = Choices()


def all_metrics(truth: Side, synthetic: Side, public: Side | None = None, choices: Choices = USUAL) -> dict[str, Any]:
    """All metrics of the synthetic rows, and of the public ones if given, against the truth; ready for JSON.

    The three tables have the same coded columns.
    """
    for formula, numeric in ((choices.linear, True), (choices.logistic, False)):
        if formula is not None:
            formula.check(truth.schema, truth.columns, numeric=numeric)
    tables = _Tables(truth, {"synthetic": synthetic, "public": public}, choices)
    with single_threaded_blas():
        found = {
            "kmarginal": [tables.metric(partial(k_marginal, truth, tables.others, k, choices.seed)) for k in K],
            "propensity": tables.metric(tables.propensity),
            "linear": tables.metric(tables.linear),
            "logistic": tables.metric(tables.logistic),
            "pca": tables.metric(tables.axes),
            "correlations": tables.metric(tables.correlations),
            "unique": tables.metric(lambda: unique_matches(tables.numbers["truth"], tables.other_numbers)),
            "copies": None if public is None else tables.metric(lambda: copies(**tables.numbers)),
            "consistency": tables.metric(lambda: consistency(truth, tables.others, choices.seed)),
        }
    rows: dict[str, Any] = {name: None if side is None else len(side) for name, side in tables.all.items()}
    rows |= {"sample": choices.sample, "seed": choices.seed}
    complete: dict[str, Any] = plain({"summary": summary(found), "rows": rows, **found})
    return complete


def or_why(metric: Callable[[], Any]) -> Any:
    """The metric, or why it is not available."""
    try:
        return metric()
    except NotAvailable as why:
        return {"not_available": str(why)}


@dataclass(frozen=True, eq=False)
class _Tables:
    """The true rows and the tables that are compared with them; of these, None is one that there is not."""

    truth: Side
    others: dict[str, Side | None]
    choices: Choices
    all: dict[str, Side | None] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "all", {"truth": self.truth, **self.others})

    def metric(self, compute: Callable[[], Any]) -> Any:
        """A metric, or why it is not available; of an empty table there is none."""
        for name, side in self.all.items():
            if side is not None and not len(side):
                return {"not_available": f"the {name} table has no rows"}
        return or_why(compute)

    def each(self, compute: Callable[[Side], Any], sides: dict[str, Side | None]) -> dict[str, Any]:
        """What is computed for each of the tables that are compared, or why it is not available."""
        return {name: None if side is None else or_why(partial(compute, side)) for name, side in sides.items()}

    @cached_property
    def numbers(self) -> dict[str, Ints]:
        """A number for each row of each table, equal for equal rows."""
        given = {name: side for name, side in self.all.items() if side is not None}
        return dict(zip(given, numbered(list(given.values())), strict=True))

    @property
    def other_numbers(self) -> dict[str, Ints | None]:
        return {name: self.numbers.get(name) for name in self.others}

    @cached_property
    def drawn(self) -> dict[str, Side | None]:
        """The samples; all of one size, so that the classifier has as many rows of each kind."""
        rows = min(self.choices.sample, *(len(side) for side in self.all.values() if side is not None))
        return {name: side and side.drawn(rows, self.choices.seed) for name, side in self.all.items()}

    def compared(self) -> tuple[Side, dict[str, Side | None]]:
        """The sample of the truth, and those of the other tables."""
        truth = self.drawn["truth"]
        assert truth is not None
        return truth, {name: self.drawn[name] for name in self.others}

    def propensity(self) -> dict[str, Any]:
        truth, others = self.compared()
        check_installed()
        return {"rows": len(truth), **self.each(lambda side: propensity(truth, side, self.choices.seed), others)}

    def axes(self) -> dict[str, Any]:
        truth, others = self.compared()
        axes = Axes.of(truth)
        return {"rows": len(truth), "axes": axes.described(), **self.each(axes.compared, others)}

    def linear(self) -> dict[str, Any]:
        usual = self.choices.linear or usual_linear(self.truth.schema, self.truth.columns)
        return linear_regression(self.all, usual)

    def logistic(self) -> dict[str, Any]:
        usual = self.choices.logistic or usual_logistic(self.truth.schema, self.truth.columns)
        return logistic_regression(self.all, usual)

    def correlations(self) -> dict[str, Any]:
        true = correlations(self.truth)
        differences = self.each(lambda side: correlation_differences(self.truth, true, side), self.others)
        return {"columns": list(self.truth.columns), "kinds": KINDS, **differences}


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


TABLES = ("synthetic", "public")


@dataclass(frozen=True)
class _Line:
    metric: str
    title: str
    find: Callable[[Mapping[str, Any], str], Any]  # of all metrics and a table's name: the number, or why not
    best: float | None
    digits: int
    read: str


def _kmarginal(k: int) -> Callable[[Mapping[str, Any], str], Any]:
    return lambda found, table: _at(found["kmarginal"][k - 1], table, "score")


def _of(metric: str, key: str) -> Callable[[Mapping[str, Any], str], Any]:
    return lambda found, table: _at(found[metric], table, key)


def _copies(found: Mapping[str, Any], table: str) -> Any:
    return _at(found["copies"], "synthetic") if table == "synthetic" else None


def _broken(found: Mapping[str, Any], table: str) -> Any:
    """The mean over the rules of the share of rows that break one."""
    rules = _at(found["consistency"], "rules")
    if not isinstance(rules, list):
        return rules
    shares = [rule[table] for rule in rules if rule[table] is not None]
    return sum(shares) / len(shares) if shares else None


LINES = (
    _Line("1-marginal", "One-way tables (k-marginal, k = 1)", _kmarginal(1), 1000, 1, "1000 perfect, 0 worst"),
    _Line("2-marginal", "Two-way tables (k-marginal, k = 2)", _kmarginal(2), 1000, 1, "1000 perfect, 0 worst"),
    _Line("3-marginal", "Three-way tables (k-marginal, k = 3)", _kmarginal(3), 1000, 1, "1000 perfect, 0 worst"),
    _Line(
        "pmse-ratio", "Propensity: pMSE / its expectation", _of("propensity", "ratio"), 1, 2, "1 cannot be told apart"
    ),
    _Line(
        "auc", "Propensity: AUC of a classifier", _of("propensity", "auc"), 0.5, 3, "0.5 guessing, 1 tells every row"
    ),
    _Line("linear", "Linear regression: overlap of intervals", _of("linear", "overlap"), 1, 3, "1 the same, 0 none"),
    _Line(
        "logistic", "Logistic regression: overlap of intervals", _of("logistic", "overlap"), 1, 3, "1 the same, 0 none"
    ),
    _Line("pca", "Principal components: distance", _of("pca", "distance"), 0, 3, "0 perfect, in standard deviations"),
    _Line(
        "correlations", "Correlations: mean difference", _of("correlations", "mean"), 0, 3, "0 perfect, 1 or more worst"
    ),
    _Line(
        "unique", "Unique true rows that occur exactly", _of("unique", "share"), None, 4, "share; compare with public"
    ),
    _Line("consistency", "Rows that break an order of numbers", _broken, 0, 4, "share; 0 perfect"),
    _Line("copies", "Rows equal to a public row", _copies, None, 4, "share of the synthetic rows"),
)


def summary(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines, with None and a reason where a metric is not available."""
    return [_described(line, found) for line in LINES if line.metric != "copies" or found["copies"] is not None]


def _described(line: _Line, found: Mapping[str, Any]) -> dict[str, Any]:
    numbers, whys = {}, []
    for table in TABLES:
        value = line.find(found, table)
        if isinstance(value, Mapping):  # {"not_available": why}
            whys.append(value["not_available"])
        numbers[table] = None if isinstance(value, Mapping) else value
    return {
        "metric": line.metric,
        "title": line.title,
        **numbers,
        "best": line.best,
        "digits": line.digits,
        "read": line.read,
        "why": whys[0] if whys else "",
    }


def _at(value: Any, *path: str) -> Any:
    """What is at a path of keys; on the way, None and {"not_available": why} end it."""
    for key in path:
        if value is None or "not_available" in value:
            return value
        value = value[key]
    return value
