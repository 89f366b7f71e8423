"""The same linear or logistic regression on every table, side by side: would an analyst come to the same conclusions?

A numeric predictor is in standard deviations of the truth, above its mean there. A categorical one has a term for each
value but the truth's most frequent, and missing is a value. Rows without a number of the outcome or of a predictor are
left out, and so are rows with a value that fewer than 20 rows of one of the tables have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.core.errors import DataError, closest
from prade.data.declare.schema import Schema
from prade.queries.query import parse
from prade.scoring.sides import NotAvailable, Side, each

FEWEST_ROWS = 20  # with a value, for it to have a coefficient
PREDICTORS, MOST_VALUES = 4, 12  # of the regressions that nobody named, and of each of their predictors
NORMAL = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations
STEPS, SMALL, LARGEST = 50, 1e-9, 30.0  # of Newton's method


@dataclass(frozen=True)
class Formula:
    """What is explained by what: a numeric column, or for a logistic regression a query, and the predictors.

    >>> Formula.read("INCOME ~ AGE + SEX")
    Formula(outcome='INCOME', predictors=('AGE', 'SEX'))
    """

    outcome: str
    predictors: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Formula:
        """Read "OUTCOME ~ PREDICTOR + PREDICTOR"."""
        outcome, mark, rest = (each.strip() for each in text.partition("~"))
        predictors = tuple(name.strip() for name in rest.split("+"))
        if not mark or not outcome or not all(predictors):
            raise DataError(f"{text!r} is not a regression; write the outcome and its predictors, as in Y ~ A + B")
        return cls(outcome, predictors)

    def check(self, schema: Schema, columns: Sequence[str], *, numeric: bool) -> None:
        """Refuse columns that are not there, an outcome that does not fit, and one that is its own predictor."""
        outcome = (self.outcome,) if numeric else parse(self.outcome, schema).columns
        for name in (*self.predictors, *outcome):
            if name not in columns:
                raise DataError(f"the table has no column {name!r} to use in a regression{closest(name, columns)}")
        if numeric and not schema[self.outcome].numeric:
            raise DataError(f"the outcome {self.outcome!r} of a linear regression is not numeric; name another column")
        if len(set(self.predictors)) < len(self.predictors) or set(self.predictors) & set(outcome):
            raise DataError(f"{self.outcome!r} ~ {' + '.join(self.predictors)} has a column twice; name each once")


def usual_linear(schema: Schema, columns: Sequence[str]) -> Formula:
    """The first numeric column but one with at least half as many bins as any, by the first columns of few values."""
    numeric = [name for name in columns if schema[name].numeric]
    if not numeric:
        raise NotAvailable("no column is numeric, so none can be the outcome")
    candidates = numeric[1:] or numeric
    most = max(schema[name].present for name in candidates)
    outcome = next(name for name in candidates if 2 * schema[name].present >= most)
    return Formula(outcome, _usual_predictors(schema, columns, outcome))


def usual_logistic(schema: Schema, columns: Sequence[str]) -> Formula:
    """The last column of two values, or else the last categorical one: its first value against the others."""
    listed = [name for name in columns if not schema[name].numeric and schema[name].present > 1]
    if not listed:
        raise NotAvailable("no categorical column has two values, so none can be the outcome")
    outcome = ([name for name in listed if schema[name].present == 2] or listed)[-1]
    return Formula(f"{outcome} == {schema[outcome].values[0]!r}", _usual_predictors(schema, columns, outcome))


def _usual_predictors(schema: Schema, columns: Sequence[str], outcome: str) -> tuple[str, ...]:
    """The first columns of numbers that are never missing, which would cost rows, or of few values."""
    others = [schema[name] for name in columns if name != outcome]
    few = [each.name for each in others if (not each.missing if each.numeric else each.size <= MOST_VALUES)]
    if not few:
        raise NotAvailable("no other column can serve as a predictor")
    return tuple(few[:PREDICTORS])


class Fit(NamedTuple):
    """Coefficients and their standard errors."""

    estimate: Floats
    error: Floats

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """The ends of the 95 % confidence intervals."""
        return self.estimate - NORMAL * self.error, self.estimate + NORMAL * self.error


def least_squares(x: Floats, y: Floats, weights: Floats) -> Fit:
    """Linear regression; `weights` have mean one. Errors are the usual ones, of equal variances."""
    inverse = _inverse(x, weights)
    estimate = inverse @ (x.T @ (weights * y))
    residual = y - x @ estimate
    variance = float((weights * residual**2).sum()) / (len(y) - x.shape[1])
    return Fit(estimate, np.sqrt(variance * np.diag(inverse)))


def logistic(x: Floats, y: Floats, weights: Floats) -> Fit:
    """Logistic regression of zeros and ones by Newton's method; errors come from the Fisher information."""
    estimate = np.zeros(x.shape[1])
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(x @ estimate, -500.0, 500.0)))
        inverse = _inverse(x, weights * chance * (1.0 - chance))
        step = inverse @ (x.T @ (weights * (y - chance)))
        estimate += step
        if np.abs(estimate).max() > LARGEST:
            break
        if np.abs(step).max() < SMALL:
            return Fit(estimate, np.sqrt(np.diag(inverse)))
    raise NotAvailable("the predictors tell the outcome of some rows for certain, so that the fit has no end")


def _inverse(x: Floats, weights: Floats) -> Floats:
    information = x.T @ (weights[:, None] * x)
    scale = np.sqrt(np.diag(information))
    if (scale <= 0.0).any() or np.linalg.cond(information / np.outer(scale, scale)) > 1e12:
        raise NotAvailable("one predictor follows from the others; name others")
    return np.asarray(np.linalg.inv(information))


def overlap(one: Fit, other: Fit) -> Floats:
    """For each coefficient, the mean share of the two intervals that they have in common, 0 to 1 (Karr et al. 2006)."""
    (low, high), (other_low, other_high) = one.interval, other.interval
    common = np.minimum(high, other_high) - np.maximum(low, other_low)
    widths = high - low, other_high - other_low
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (common / widths[0] + common / widths[1]) / 2.0
    exact = (widths[0] <= 0.0) | (widths[1] <= 0.0)
    return np.where(exact, (common >= 0.0).astype(np.float64), np.maximum(mean, 0.0))


# ---------------------------------------------------------------------- the same regression on every table


def regression(sides: Mapping[str, Side | None], formula: Formula, *, numeric: bool) -> dict[str, Any]:
    """The fits of all tables with the same terms, and how far their intervals overlap with the truth's."""
    given = {name: side for name, side in sides.items() if side is not None}
    query = None if numeric else parse(formula.outcome, given["truth"].schema)

    def outcome(side: Side) -> Floats:
        return side.numbers[formula.outcome] if query is None else query.mask(side.codes).astype(np.float64)

    usable = _usable(given, formula, outcome)
    terms = _terms(usable["truth"], formula.predictors)

    def fitted(side: Side) -> Fit:
        y = outcome(side)
        if len(y) < len(terms) + FEWEST_ROWS:
            raise NotAvailable(f"{len(y)} rows are too few for {len(terms)} coefficients")
        if np.ptp(y) == 0.0:
            raise NotAvailable("the outcome has one value only")
        matrix = np.stack([term(side) for term in terms.values()], axis=1)
        return (least_squares if numeric else logistic)(matrix, y, side.weights * len(side))

    truth = fitted(usable["truth"])

    def described(side: Side) -> dict[str, Any]:
        mine = side is usable["truth"]
        return _described(terms, truth if mine else fitted(side), len(side), None if mine else truth)

    of_tables = each(described, {name: usable.get(name) for name in sides})
    return {"outcome": formula.outcome, "predictors": list(formula.predictors), **of_tables}


def _usable(sides: Mapping[str, Side], formula: Formula, outcome: Callable[[Side], Floats]) -> dict[str, Side]:
    """The rows that have every number, and values that enough rows of every table have."""
    usable = {}
    for which, side in sides.items():
        needed = [outcome(side), *(side.numbers[name] for name in formula.predictors if name in side.numbers)]
        usable[which] = side.take(np.flatnonzero(~np.isnan(np.stack(needed)).any(axis=0)))
        if not len(usable[which]):
            raise NotAvailable(f"no row of the {which} table has a number in all columns that need one")
    for name in formula.predictors:
        if name not in usable["truth"].numbers:
            size = usable["truth"].schema.size(name)
            counts = [np.bincount(side.codes[name], minlength=size) for side in usable.values()]
            frequent: Flags = np.min(counts, axis=0) >= FEWEST_ROWS
            usable = {which: side.take(np.flatnonzero(frequent[side.codes[name]])) for which, side in usable.items()}
    return usable


def _terms(truth: Side, predictors: Sequence[str]) -> dict[str, Callable[[Side], Floats]]:
    """The columns of the matrix of predictors by name; means, deviations and frequencies are those of the truth."""

    def has_code(name: str, code: int, side: Side) -> Floats:
        return np.asarray(side.codes[name] == code, np.float64)

    def standardised(name: str, side: Side) -> Floats:
        return np.asarray((side.numbers[name] - truth.numbers[name].mean()) / truth.numbers[name].std())

    terms: dict[str, Callable[[Side], Floats]] = {"intercept": lambda side: np.ones(len(side))}
    for name in predictors:
        if name not in truth.numbers:
            counts = np.bincount(truth.codes[name], minlength=truth.schema.size(name))
            texts = truth.schema[name].display_texts()
            others = (code for code in np.flatnonzero(counts).tolist() if code != counts.argmax())
            terms |= {f"{name} {texts[code]}": partial(has_code, name, code) for code in others}
        elif len(truth) and np.ptp(truth.numbers[name]) > 0.0:  # a constant has no coefficient
            terms[name] = partial(standardised, name)
    if len(terms) == 1:
        raise NotAvailable("no predictor has two values that are frequent enough in every table")
    return terms


def _described(terms: Iterable[str], fit: Fit, rows: int, truth: Fit | None) -> dict[str, Any]:
    numbers = {"estimate": fit.estimate, "error": fit.error, "low": fit.interval[0], "high": fit.interval[1]}
    if truth is not None:
        numbers["overlap"] = overlap(truth, fit)
    coefficients = [{"term": term, **{n: each[k] for n, each in numbers.items()}} for k, term in enumerate(terms)]
    mean = {} if truth is None else {"overlap": numbers["overlap"].mean()}
    return {"rows": rows, "coefficients": coefficients, **mean}
