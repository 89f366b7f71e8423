"""All metrics of synthetic rows against the true ones, in one dictionary, with a line for each in a summary.

They compare a table with the true rows: they are NOT private, and are published for public rows only. Where there is a
public table, each metric is also computed for it. `prade.reporting.truth` describes the dictionary.

Propensity takes a sample of at most `sample` rows of each table, the others all rows. A metric that these tables, or
this installation, do not allow has {"not_available": why} in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.errors import DataError
from prade.core.execution import single_threaded_blas
from prade.data.declare.draft import MOST_ROWS, ordered_pairs
from prade.data.public.joint import distinct_rows
from prade.scoring.metrics.regressions import Formula, regression, usual_linear, usual_logistic
from prade.scoring.sides import NotAvailable, Side, each, k_marginal, or_why

SAMPLE, SEED = 10_000, 0
DEPTH, SHUFFLES, FOLDS, TREES = 5, 5, 5, 60
FEWEST_ROWS = 50  # of each table: enough for every fold to have some of both
MOST_CATEGORIES = 255  # that boosted trees take; more are ordered by their code
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


# ---------------------------------------------------------------------- correlations


def correlations(side: Side) -> Floats:
    """The correlation of every pair of columns, in the order of `combinations`; NaN where there is none.

    Two numeric columns have Pearson's, over the rows that have both, as in SDMetrics' CorrelationSimilarity and SDNist.
    Any other pair has Cramer's V of its two-way table.
    """
    numbers, weights = side.numbers, side.weights
    return np.array([
        _pearson(numbers[one], numbers[other], weights)
        if one in numbers and other in numbers
        else cramers_v(side.project((one, other)))
        for one, other in combinations(side.columns, 2)
    ])  # fmt: skip


def _pearson(x: Floats, y: Floats, weights: Floats) -> float:
    both = ~np.isnan(x) & ~np.isnan(y) & (weights > 0.0)
    x, y = x[both], y[both]
    if len(x) < 2 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan")
    (a, c), (_, b) = np.cov(x, y, aweights=weights[both], ddof=0)
    return float(np.clip(c / np.sqrt(a * b), -1.0, 1.0)) if a * b > 0.0 else float("nan")


def cramers_v(table: Floats) -> float:
    """V^2 = sum (p - p_r p_c)^2 / (p_r p_c) / (min(r, c) - 1) over the r x c cells p of a table of shares.

    Empty rows and columns do not count; NaN if one row or column is left.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    table = table[table.sum(axis=1) > 0.0][:, table.sum(axis=0) > 0.0]
    degrees = min(table.shape) - 1
    if degrees < 1:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.sqrt(min(1.0, ((table - expected) ** 2 / expected).sum() / degrees)))


def correlation_differences(truth: Side, others: Mapping[str, Side | None]) -> dict[str, Any]:
    """How far the tables' correlations are from the true ones: the mean and the largest absolute difference."""
    true = correlations(truth)

    def compared(side: Side) -> dict[str, Any]:
        off = np.abs(correlations(side) - true)
        off = off[np.isfinite(off)]
        if not len(off):
            raise NotAvailable("no pair of columns has two values or more in both tables")
        return {"mean": off.mean(), "largest": off.max()}

    return each(compared, others)


# ---------------------------------------------------------------------- propensity


def propensity(truth: Side, side: Side, *, seed: int, trees: int = TREES) -> dict[str, Any]:
    """Can a classifier tell true rows from others? The tables have rows that count once.

    A decision tree (of depth 5, as in SDNist) learns which of the N rows are not true, a share c of them:

        pmse = sum over rows j (p_j - c)^2 / N,    p_j the chance that the tree gives row j

    `expected` is the mean pmse of trees grown on shuffled labels, and `ratio` = pmse / expected is about 1 when the
    tables cannot be told apart (Snoke, Raab, Nowok, Dibben and Slavkovic 2018). `auc` is the area under the ROC curve
    of boosted `trees` on rows that they have not seen (5-fold cross-validation): 0.5 is guessing, 1 tells every row.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = min(len(truth), len(side))
    if rows < FEWEST_ROWS:
        raise NotAvailable(f"each table needs {FEWEST_ROWS} rows or more, one has {rows}")
    cells, label = features(truth, side), np.repeat([0, 1], [len(truth), len(side)])
    if not np.ptp(cells, axis=0).any():
        raise NotAvailable("no column has more than one value")

    def pmse(label: Any) -> float:
        tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=seed).fit(cells, label)
        return float(np.mean((tree.predict_proba(cells)[:, 1] - label.mean()) ** 2))

    generator = np.random.default_rng(seed)
    mine, expected = pmse(label), float(np.mean([pmse(generator.permutation(label)) for _ in range(SHUFFLES)]))
    ratio = mine / expected if expected > 0.0 else None
    return {"pmse": mine, "expected": expected, "ratio": ratio, "auc": _auc(truth, cells, label, seed, trees)}


def features(*sides: Side) -> Floats:
    """The rows of all tables, with a column for each of theirs: numbers, or the codes of categories.

    A missing number is below all others, where one cut of a tree finds it.
    """
    cells = np.stack([_joined(sides, name) for name in sides[0].columns], axis=1).astype(np.float64)
    missing = np.isnan(cells)
    lowest = np.where(missing, np.inf, cells).min(axis=0)
    return np.where(missing, np.where(np.isfinite(lowest), lowest - 1.0, 0.0), cells)


def _joined(sides: Sequence[Side], name: str) -> Any:
    return np.concatenate([side.numbers.get(name, side.codes[name]) for side in sides])


def _auc(side: Side, cells: Floats, label: Any, seed: int, trees: int) -> float:
    """The area under the curve; below a half means that rows of both tables are alike, so it counts as guessing."""
    from sklearn.ensemble import HistGradientBoostingClassifier as Boosting
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    named = [name not in side.numbers and side.schema.size(name) <= MOST_CATEGORIES for name in side.columns]
    boosted = Boosting(max_iter=trees, early_stopping=False, random_state=seed, categorical_features=named)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    # On busy cores OpenMP's threads wait for each other: one takes seconds where two may take a minute. The limit holds
    # for libraries that have been loaded already.
    with threadpool_limits(1, user_api="openmp"):
        chance = cross_val_predict(boosted, cells, label, cv=folds, method="predict_proba")[:, 1]
    return max(0.5, float(roc_auc_score(label, chance)))


# ---------------------------------------------------------------------- matches


def numbered(sides: Mapping[str, Side]) -> dict[str, Ints]:
    """A number for each row of each table; rows have equal numbers exactly if all their values are equal."""
    tables = list(sides.values())
    columns = [np.unique(_joined(tables, name), return_inverse=True)[1] for name in tables[0].columns]
    number = distinct_rows([column.astype(np.min_scalar_type(column.max() + 1)) for column in columns])[1]
    return dict(zip(sides, np.split(number, np.cumsum([len(side) for side in tables])[:-1]), strict=True))


def matches(truth: Ints, others: Mapping[str, Ints | None]) -> dict[str, Any]:
    """How many rows are unique in the truth, and how many of these occur, with all values, in the other tables.

    As in SDNist, but without the columns of groups: a match in another place counts too.
    """
    unique = truth[np.bincount(truth)[truth] == 1]
    if not len(unique):
        raise NotAvailable("no row is unique in the truth")
    matched = {name: None if rows is None else int(np.isin(unique, rows).sum()) for name, rows in others.items()}
    shares = {name: None if k is None else {"matched": k, "share": k / len(unique)} for name, k in matched.items()}
    return {"unique": len(unique), "of": len(truth), **shares}


# ---------------------------------------------------------------------- consistency


def consistency(truth: Side, others: Mapping[str, Side | None], seed: int) -> dict[str, Any]:
    """For every rule "low <= high" of two numbers (`prade.data.declare.draft`), the share of rows that break it."""
    few = truth.drawn(MOST_ROWS, seed)
    pairs = ordered_pairs([truth.schema[n] for n in truth.columns if n in truth.numbers], few.numbers, few.codes)
    if not pairs:
        raise NotAvailable("no two numeric columns are ordered in nearly all true rows")
    rules = []
    for low, high in pairs:
        sides = {"truth": truth, **others}
        broken = {name: None if side is None else _broken(side, low, high) for name, side in sides.items()}
        both = ~np.isnan(truth.numbers[low] + truth.numbers[high])
        rules.append({"low": low, "high": high, "rows": int(both.sum()), **broken})
    return {"rules": rules}


def _broken(side: Side, low: str, high: str) -> float | None:
    one, other = side.numbers[low], side.numbers[high]
    both: Floats = np.where(np.isnan(one) | np.isnan(other), 0.0, side.weights)
    return float(both[one > other].sum() / both.sum()) if both.any() else None
