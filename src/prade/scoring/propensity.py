"""Propensity: can a classifier tell true rows from others?

Both tables are put together, and a decision tree of depth 5, as in SDNist, learns which rows are not true. With p_j the
chance that it gives row j of the N, and c the share of rows that are not true,

    pMSE = sum over rows (p_j - c)^2 / N

is 0 when it learns nothing. A tree finds something in chance alone: `expected` is the mean pMSE of trees that are
grown on the same rows with shuffled labels, and `ratio` is pMSE / expected, about 1 when the tables cannot be told
apart (Snoke, Raab, Nowok, Dibben and Slavkovic 2018). `auc` is the area under the ROC curve of boosted trees on rows
that they have not seen (5-fold cross-validation): 0.5 is guessing, 1 tells every row.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.scoring.sides import NotAvailable, Side

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
