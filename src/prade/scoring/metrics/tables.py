"""Metrics of whole tables: correlations, propensity, matches, and rules that rows break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.data.declare.draft import MOST_ROWS, ordered_pairs
from prade.data.public.joint import distinct_rows
from prade.scoring.sides import NotAvailable, Side, each

DEPTH, SHUFFLES, FOLDS, TREES = 5, 5, 5, 60
FEWEST_ROWS = 50  # of each table: enough for every fold to have some of both
MOST_CATEGORIES = 255  # that boosted trees take; more are ordered by their code


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
