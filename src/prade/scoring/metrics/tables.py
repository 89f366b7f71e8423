"""Principal components: the axes along which the true rows differ most, and where another table lies on them.

Numbers are standardised by the truth's mean and deviation (missing counts as the mean, and has a column of its own);
each value of a category is a column (indicator - p) / sqrt(p) with p its share in the truth, as in the factor analysis
of mixed data, so that the order of categories does not matter. (SDNist takes codes as numbers.) The other table's rows
are projected on the truth's axes. On each axis, in standard deviations of the truth: how far the means are apart
(`shift`), and the distance between the two distributions (Wasserstein's, `distance`); 0 is perfect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, distinct_rows, smallest_unsigned
from prade.data.declare.draft import MOST_ROWS, ordered_pairs
from prade.scoring.sides import NotAvailable, Side

AXES = 5
NAMED = 3  # columns that say what an axis is about


@dataclass(frozen=True, eq=False)
class Axes:
    """The truth's axes, with what is needed to project other rows on them."""

    truth: Side
    vectors: Floats  # [features, axes]
    projected: Floats  # [rows of the truth, axes]
    shares: Floats  # of the truth's variance

    @classmethod
    def of(cls, truth: Side) -> Axes:
        """The first few axes of a table whose rows count once."""
        cells = _features(truth, truth)
        covariance = cells.T @ cells / max(len(cells), 1)  # their means are 0
        total = float(np.trace(covariance))
        if len(truth) < 2 or total <= 1e-12:
            raise NotAvailable("no column of the truth has more than one value")
        values, vectors = np.linalg.eigh(covariance)
        real = [k for k in range(len(values) - 1, -1, -1) if values[k] > 1e-9 * total][:AXES]
        vectors = vectors[:, real]
        vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(real))])
        return cls(truth, vectors, cells @ vectors, values[real] / total)

    def described(self) -> list[dict[str, Any]]:
        """Each axis: its share of the truth's variance, and the columns that make most of it."""
        columns = self.truth.columns
        owner = np.repeat(np.arange(len(columns)), [_width(self.truth, name) for name in columns])
        parts = np.stack([np.bincount(owner, axis**2, minlength=len(columns)) for axis in self.vectors.T])
        most = np.argsort(-parts, axis=1, kind="stable")[:, :NAMED]
        return [
            {"share": float(share), "columns": [columns[c] for c in largest]}
            for share, largest in zip(self.shares, most, strict=True)
        ]

    def compared(self, side: Side) -> dict[str, Any]:
        """Where another table's rows lie on these axes."""
        from scipy.stats import wasserstein_distance

        cells = _features(self.truth, side)
        projected, total = cells @ self.vectors, float(cells.var(axis=0).sum())
        axes = []
        for mine, theirs in zip(self.projected.T, projected.T, strict=True):
            deviation = float(mine.std())
            axes.append(
                {
                    "share": float(theirs.var()) / total if total > 0.0 else 0.0,
                    "shift": float(theirs.mean() - mine.mean()) / deviation,
                    "distance": float(wasserstein_distance(mine, theirs)) / deviation,
                }
            )
        return {"distance": float(np.mean([axis["distance"] for axis in axes])), "axes": axes}


def _width(side: Side, name: str) -> int:
    """How many features a column has: the number and whether it is missing, or one for each value."""
    return 2 if name in side.numbers else side.schema.size(name)


def _features(truth: Side, side: Side) -> Floats:
    """The rows of a table in the features of the truth."""
    blocks = []
    for name in truth.columns:
        if name in truth.numbers:
            known = truth.numbers[name][~np.isnan(truth.numbers[name])]
            varies = len(known) > 0 and np.ptp(known) > 0.0  # a rounded deviation of equal numbers may be above 0
            mean, deviation = (known.mean(), known.std()) if varies else (0.0, np.inf)
            numbers = side.numbers[name]
            missing = np.isnan(numbers)
            standard = np.where(missing, 0.0, (numbers - mean) / deviation)
            share = float(np.isnan(truth.numbers[name]).mean())
            blocks.append(np.stack([standard, _indicator(missing, share)], axis=1))
        else:
            size = truth.schema.size(name)
            shares = np.bincount(truth.codes[name], minlength=size) / max(len(truth), 1)
            each = [_indicator(side.codes[name] == code, float(shares[code])) for code in range(size)]
            blocks.append(np.stack(each, axis=1))
    return np.concatenate(blocks, axis=1)


def _indicator(flags: Any, share: float) -> Floats:
    """A value's column; one that no true row has, or every one, tells the true rows nothing."""
    return (flags - share) / np.sqrt(share) if 0.0 < share < 1.0 else np.zeros(len(flags))


# ---------------------------------------------------------------------- correlations


PEARSON, CRAMER = "Pearson", "Cramer's V"
KINDS = "Pearson's correlation of the numbers of two numeric columns, Cramer's V of the two-way table otherwise"
WORST = 10


def pearson(x: Floats, y: Floats, weights: Floats) -> float:
    """The weighted correlation over the rows that have both; NaN if one of them does not vary there."""
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y, weights = x[both], y[both], weights[both]
    if len(x) < 2 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan")
    x, y = (each - np.average(each, weights=weights) for each in (x, y))
    spread = np.sqrt(float((weights * x * x).sum()) * float((weights * y * y).sum()))
    return float(np.clip((weights * x * y).sum() / spread, -1.0, 1.0)) if spread > 0.0 else float("nan")


def cramers_v(table: Floats) -> float:
    """The strength of dependence in a table of shares; NaN if one of its columns has a single value.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    table = table[table.sum(axis=1) > 0.0][:, table.sum(axis=0) > 0.0]
    degrees = min(table.shape) - 1
    if degrees < 1:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.sqrt(min(1.0, ((table - expected) ** 2 / expected).sum() / degrees)))


def correlations(side: Side) -> Floats:
    """The correlation of every pair of columns: symmetric, NaN on the diagonal and where there is none."""
    found = np.full((len(side.columns), len(side.columns)), np.nan)
    for a, b in combinations(range(len(side.columns)), 2):
        one, other = side.columns[a], side.columns[b]
        if kind_of(side, one, other) == PEARSON:
            found[a, b] = pearson(side.numbers[one], side.numbers[other], side.coded.weights)
        else:
            found[a, b] = cramers_v(side.coded.project((one, other)))
        found[b, a] = found[a, b]
    return found


def kind_of(side: Side, one: str, other: str) -> str:
    """How the correlation of a pair is measured."""
    return PEARSON if one in side.numbers and other in side.numbers else CRAMER


def correlation_differences(truth: Side, true: Floats, side: Side) -> dict[str, Any]:
    """How far a table's correlations are from the `true` ones, as a matrix and in a few numbers."""
    if len(truth.columns) < 2:
        raise NotAvailable("there are fewer than 2 columns")
    found = correlations(side)
    difference = found - true
    pairs = [(a, b) for a, b in combinations(range(len(truth.columns)), 2) if np.isfinite(difference[a, b])]
    if not pairs:
        raise NotAvailable("no pair of columns has two values or more in both tables")
    off = np.abs([difference[pair] for pair in pairs])
    worst = [pairs[k] for k in np.argsort(-off, kind="stable")[:WORST]]
    return {
        "mean": float(off.mean()),
        "largest": float(off.max()),
        "worst": [_described(truth, a, b, float(true[a, b]), float(found[a, b])) for a, b in worst],
        "matrix": difference,
    }


def _described(side: Side, a: int, b: int, true: float, found: float) -> dict[str, Any]:
    one, other = side.columns[a], side.columns[b]
    named = {"first": one, "second": other, "kind": kind_of(side, one, other)}
    return {**named, "truth": true, "found": found, "difference": found - true}


# ---------------------------------------------------------------------- propensity


DEPTH, SHUFFLES, FOLDS, TREES = 5, 5, 5, 60
FEWEST_ROWS = 50  # of each table: enough for every fold to have some of both
MOST_CATEGORIES = 255  # that boosted trees take; more are ordered by their code
INSTALL = "it needs scikit-learn: run `pip install 'prade[metrics]'`"


def features(*sides: Side) -> Floats:
    """The rows of all tables, with a column for each of theirs: numbers, or the codes of categories.

    A missing number is below all others, where one cut of a tree finds it.
    """
    columns = []
    for name in sides[0].columns:
        cells = np.concatenate([side.numbers.get(name, side.codes[name]) for side in sides]).astype(np.float64)
        missing = np.isnan(cells)
        cells[missing] = 0.0 if missing.all() else cells[~missing].min() - 1.0
        columns.append(cells)
    return np.stack(columns, axis=1)


def check_installed() -> None:
    """Say what to install if it is not there."""
    if find_spec("sklearn") is None:
        raise NotAvailable(INSTALL)


def propensity(truth: Side, side: Side, seed: int) -> dict[str, Any]:
    """pMSE, its expectation under chance, their ratio and the AUC, from two tables whose rows count once."""
    rows = min(len(truth), len(side))
    if rows < FEWEST_ROWS:
        raise NotAvailable(f"each table needs {FEWEST_ROWS} rows or more, one has {rows}")
    cells, label = features(truth, side), np.repeat([0, 1], [len(truth), len(side)])
    if not np.ptp(cells, axis=0).any():
        raise NotAvailable("no column has more than one value")
    found = _pmse(cells, label, seed)
    generator = np.random.default_rng(seed)
    expected = float(np.mean([_pmse(cells, generator.permutation(label), seed) for _ in range(SHUFFLES)]))
    ratio = found / expected if expected > 0.0 else None
    return {"pmse": found, "expected": expected, "ratio": ratio, "auc": _auc(truth, cells, label, seed)}


def _pmse(cells: Floats, label: Any, seed: int) -> float:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=seed).fit(cells, label)
    return float(np.mean((tree.predict_proba(cells)[:, 1] - label.mean()) ** 2))


def _auc(side: Side, cells: Floats, label: Any, seed: int) -> float:
    """The area under the curve; below a half means that rows of both tables are alike, so it counts as guessing."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    named = [name not in side.numbers and side.schema.size(name) <= MOST_CATEGORIES for name in side.columns]
    boosted = HistGradientBoostingClassifier(
        max_iter=TREES, early_stopping=False, random_state=seed, categorical_features=named
    )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    # On busy cores OpenMP's threads wait for each other: one takes seconds where two may take a minute. The limit holds
    # for libraries that have been loaded already.
    with threadpool_limits(1, user_api="openmp"):
        chance = cross_val_predict(boosted, cells, label, cv=folds, method="predict_proba")[:, 1]
    return max(0.5, float(roc_auc_score(label, chance)))


# ---------------------------------------------------------------------- unique matches


def numbered(sides: Sequence[Side]) -> list[Ints]:
    """A number for each row of each table; rows have equal numbers exactly if all their values are equal."""
    columns = []
    for name in sides[0].columns:
        if name in sides[0].numbers:
            columns.append(_ranks(np.concatenate([side.numbers[name] for side in sides])))
        else:
            columns.append(np.concatenate([side.codes[name] for side in sides]))
    number = distinct_rows(columns)[1]
    return np.split(number, np.cumsum([len(side) for side in sides])[:-1])


def _ranks(numbers: Floats) -> Any:
    """A number for each distinct value; all missing ones have the same."""
    values, rank = np.unique(numbers, return_inverse=True)
    return rank.astype(smallest_unsigned(len(values)))


def among(rows: Ints, other: Ints) -> Flags:
    """Which rows occur in another table, by their numbers."""
    known = np.zeros(max(int(each.max(initial=-1)) for each in (rows, other)) + 1, np.bool_)
    known[other] = True
    return np.asarray(known[rows])


def unique_matches(truth: Ints, others: dict[str, Ints | None]) -> dict[str, Any]:
    """How many rows are unique in the truth, and how many of these occur in each of the other tables."""
    unique = truth[np.bincount(truth)[truth] == 1]
    if not len(unique):
        raise NotAvailable("no row is unique in the truth")
    result: dict[str, Any] = {"unique": len(unique), "of": len(truth)}
    for name, rows in others.items():
        matched = None if rows is None else int(among(unique, rows).sum())
        result[name] = None if matched is None else {"matched": matched, "share": matched / len(unique)}
    return result


def copies(truth: Ints, synthetic: Ints, public: Ints) -> dict[str, float]:
    """The share of synthetic rows, and of true ones, that have all values of one public row."""
    return {"synthetic": float(among(synthetic, public).mean()), "truth": float(among(truth, public).mean())}


# ---------------------------------------------------------------------- consistency


def consistency(truth: Side, others: dict[str, Side | None], seed: int) -> dict[str, Any]:
    """For every rule of the true rows, how many rows of each table break it."""
    numeric = [truth.schema[name] for name in truth.columns if name in truth.numbers]
    if len(numeric) < 2:
        raise NotAvailable("there are fewer than 2 numeric columns")
    few = truth.drawn(MOST_ROWS, seed)
    pairs = ordered_pairs(numeric, few.numbers, few.codes)
    if not pairs:
        raise NotAvailable("no two numeric columns are ordered in nearly all true rows")
    sides = {"truth": truth, **others}
    rules = []
    for low, high in pairs:
        broken = {name: None if side is None else _broken(side, low, high) for name, side in sides.items()}
        both = ~np.isnan(truth.numbers[low]) & ~np.isnan(truth.numbers[high])
        rules.append({"low": low, "high": high, "rows": int(both.sum()), **broken})
    return {"rules": rules}


def _broken(side: Side, low: str, high: str) -> float | None:
    """The share of the rows with both values in which the lower one is above; None if no row has both."""
    one, other = side.numbers[low], side.numbers[high]
    both: Floats = np.where(np.isnan(one) | np.isnan(other), 0.0, side.coded.weights)
    return float(both[one > other].sum() / both.sum()) if both.any() else None
