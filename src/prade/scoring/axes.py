"""Principal components: the axes along which the true rows differ most, and where another table lies on them.

Numbers are standardised by the truth's mean and deviation (missing counts as the mean, and has a column of its own);
each value of a category is a column (indicator - p) / sqrt(p) with p its share in the truth, as in the factor analysis
of mixed data, so that the order of categories does not matter. (SDNist takes codes as numbers.) The other table's rows
are projected on the truth's axes. On each axis, in standard deviations of the truth: how far the means are apart
(`shift`), and the distance between the two distributions (Wasserstein's, `distance`); 0 is perfect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prade.core.arrays import Floats
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
