"""One line for each metric: its main number for every table, the best it can be, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
