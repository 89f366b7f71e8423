"""Least squares and logistic regression with standard errors, and the overlap of two confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.core.errors import DataError, closest
from prade.data.declare.display import display_texts
from prade.queries.query import parse
from prade.scoring.sides import NotAvailable, Side

NORMAL = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations
STEPS, SMALL, LARGEST = 50, 1e-9, 30.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients and their standard errors."""

    estimate: Floats
    error: Floats

    @property
    def low(self) -> Floats:
        """The lower ends of the 95 % confidence intervals."""
        return np.asarray(self.estimate - NORMAL * self.error)

    @property
    def high(self) -> Floats:
        """The upper ends."""
        return np.asarray(self.estimate + NORMAL * self.error)


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
    """The inverse of X' W X."""
    information = x.T @ (weights[:, None] * x)
    scale = np.sqrt(np.diag(information))
    if (scale <= 0.0).any() or np.linalg.cond(information / np.outer(scale, scale)) > 1e12:
        raise NotAvailable("one predictor follows from the others; name others")
    return np.asarray(np.linalg.inv(information))


def overlap(one: Fit, other: Fit) -> Floats:
    """For each coefficient, what share of the two confidence intervals they have in common, 0 to 1.

    It is the mean of the common part's share of each (Karr, Kohnen, Oganian, Reiter and Sanil 2006), and 0 for
    intervals that do not meet.
    """
    common = np.minimum(one.high, other.high) - np.maximum(one.low, other.low)
    widths = one.high - one.low, other.high - other.low
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (common / widths[0] + common / widths[1]) / 2.0
    exact = (widths[0] <= 0.0) | (widths[1] <= 0.0)
    return np.where(exact, (common >= 0.0).astype(np.float64), np.maximum(mean, 0.0))


# ---------------------------------------------------------------------- the same regression on every table


if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

FEWEST_ROWS = 20  # with a value, for it to have a coefficient
PREDICTORS = 4
MOST_VALUES = 12  # of a predictor that is chosen by default
INTERCEPT = "intercept"


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
        if numeric and schema[self.outcome].kind != "numeric":
            raise DataError(f"the outcome {self.outcome!r} of a linear regression is not numeric; name another column")
        if len(set(self.predictors)) < len(self.predictors) or set(self.predictors) & set(outcome):
            raise DataError(f"{self.outcome!r} ~ {' + '.join(self.predictors)} has a column twice; name each once")


def usual_linear(schema: Schema, columns: Sequence[str]) -> Formula:
    """The first numeric column with at least half as many bins as any, age aside, by the first columns of few values.

    Age, or whatever number comes first, explains others more often than others explain it.
    """
    numeric = [name for name in columns if schema[name].kind == "numeric"]
    if not numeric:
        raise NotAvailable("no column is numeric, so none can be the outcome")
    candidates = numeric[1:] or numeric
    most = max(schema[name].present for name in candidates)
    outcome = next(name for name in candidates if 2 * schema[name].present >= most)
    return Formula(outcome, _usual_predictors(schema, columns, outcome))


def usual_logistic(schema: Schema, columns: Sequence[str]) -> Formula:
    """The last column of two values, or else the last categorical one: its first value against the others."""
    listed = [name for name in columns if schema[name].kind != "numeric" and schema[name].present > 1]
    if not listed:
        raise NotAvailable("no categorical column has two values, so none can be the outcome")
    of_two = [name for name in listed if schema[name].present == 2]
    outcome = (of_two or listed)[-1]
    return Formula(f"{outcome} == {schema[outcome].values[0]!r}", _usual_predictors(schema, columns, outcome))


def _usual_predictors(schema: Schema, columns: Sequence[str], outcome: str) -> tuple[str, ...]:
    """The first columns of numbers that are never missing, which would cost rows, or of few values."""
    others = [schema[name] for name in columns if name != outcome]
    few = [
        column.name
        for column in others
        if (not column.missing if column.kind == "numeric" else column.size <= MOST_VALUES)
    ]
    if not few:
        raise NotAvailable("no other column can serve as a predictor")
    return tuple(few[:PREDICTORS])


def linear_regression(sides: Mapping[str, Side | None], formula: Formula) -> dict[str, Any]:
    """Explain a numeric column in every table."""

    def outcome(side: Side) -> Floats:
        return side.numbers[formula.outcome]

    return _compared(sides, formula, outcome, least_squares)


def logistic_regression(sides: Mapping[str, Side | None], formula: Formula) -> dict[str, Any]:
    """Explain whether a row satisfies a query, in every table."""
    first = next(side for side in sides.values() if side is not None)
    query = parse(formula.outcome, first.schema)

    def outcome(side: Side) -> Floats:
        return query.mask(side.codes).astype(np.float64)

    return _compared(sides, formula, outcome, logistic)


def _compared(
    sides: Mapping[str, Side | None],
    formula: Formula,
    outcome: Callable[[Side], Floats],
    fit: Callable[[Floats, Floats, Floats], Fit],
) -> dict[str, Any]:
    """The fits of all tables, with the same terms, and how far their intervals overlap with the truth's."""
    given = {name: side for name, side in sides.items() if side is not None}
    usable = {name: side.take(np.flatnonzero(_complete(side, formula, outcome))) for name, side in given.items()}
    for name, side in usable.items():
        if not len(side):
            raise NotAvailable(f"no row of the {name} table has a number in all columns that need one")
    for name in formula.predictors:
        kept = _frequent(list(usable.values()), name)
        usable = {which: side.take(np.flatnonzero(kept[side.codes[name]])) for which, side in usable.items()}
    terms = _Terms.of(usable["truth"], formula.predictors)
    result: dict[str, Any] = {"outcome": formula.outcome, "predictors": list(formula.predictors)}
    truth = _fitted(usable["truth"], terms, outcome, fit)
    for name in sides:
        if name not in given:
            result[name] = None
        elif name == "truth":
            result[name] = _described(terms, truth, usable[name], None)
        else:
            try:
                result[name] = _described(terms, _fitted(usable[name], terms, outcome, fit), usable[name], truth)
            except NotAvailable as why:
                result[name] = {"not_available": str(why)}
    return result


def _complete(side: Side, formula: Formula, outcome: Callable[[Side], Floats]) -> Flags:
    """Rows that have a number wherever the regression needs one."""
    needed = [outcome(side), *(side.numbers[name] for name in formula.predictors if name in side.numbers)]
    return np.asarray(~np.isnan(np.stack(needed)).any(axis=0))


def _frequent(sides: list[Side], name: str) -> Flags:
    """Which codes of a categorical column enough rows of every table have; all codes of a numeric one."""
    size = sides[0].schema.size(name)
    if name in sides[0].numbers:
        return np.ones(size, np.bool_)
    counts = [np.bincount(side.codes[name], minlength=size) for side in sides]
    return np.asarray(np.min(counts, axis=0) >= FEWEST_ROWS)


@dataclass(frozen=True, eq=False)
class _Terms:
    """The columns of the matrix of predictors: means and deviations of numbers, codes of values, from the truth."""

    scales: dict[str, tuple[float, float]]
    values: dict[str, list[int]]
    names: list[str]

    @classmethod
    def of(cls, truth: Side, predictors: Sequence[str]) -> _Terms:
        scales, values, names = {}, {}, [INTERCEPT]
        for name in predictors:
            if name in truth.numbers:
                numbers = truth.numbers[name]
                if len(numbers) and np.ptp(numbers) > 0.0:  # a constant has no coefficient
                    scales[name] = (float(numbers.mean()), float(numbers.std()))
                    names.append(name)
                continue
            counts = np.bincount(truth.codes[name], minlength=truth.schema.size(name))
            texts = display_texts(truth.schema[name])
            values[name] = [code for code in np.flatnonzero(counts).tolist() if code != int(counts.argmax())]
            names += [f"{name} {texts[code]}" for code in values[name]]
        if len(names) == 1:
            raise NotAvailable("no predictor has two values that are frequent enough in every table")
        return cls(scales, values, names)

    def matrix(self, side: Side) -> Floats:
        """One row for each row of a table, one column for each term."""
        columns = [np.ones(len(side))]
        for name in self.scales | self.values:
            if name in self.scales:
                mean, deviation = self.scales[name]
                columns.append((side.numbers[name] - mean) / deviation)
            else:
                columns += [(side.codes[name] == code).astype(np.float64) for code in self.values[name]]
        return np.stack(columns, axis=1)


def _fitted(
    side: Side, terms: _Terms, outcome: Callable[[Side], Floats], fit: Callable[[Floats, Floats, Floats], Fit]
) -> Fit:
    y = outcome(side)
    if len(y) < len(terms.names) + FEWEST_ROWS:
        raise NotAvailable(f"{len(y)} rows are too few for {len(terms.names)} coefficients")
    if np.ptp(y) == 0.0:
        raise NotAvailable("the outcome has one value only")
    return fit(terms.matrix(side), y, side.weights)


def _described(terms: _Terms, fit: Fit, side: Side, truth: Fit | None) -> dict[str, Any]:
    shared = None if truth is None else overlap(truth, fit)
    coefficients = [
        {
            "term": term,
            "estimate": float(fit.estimate[k]),
            "error": float(fit.error[k]),
            "low": float(fit.low[k]),
            "high": float(fit.high[k]),
            **({} if shared is None else {"overlap": float(shared[k])}),
        }
        for k, term in enumerate(terms.names)
    ]
    mean = {} if shared is None else {"overlap": float(shared.mean())}
    return {"rows": len(side), "coefficients": coefficients, **mean}
