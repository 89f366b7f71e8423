"""The mean of several noisy answers to the same question, weighted by inverse variances.

    mean = sum_k (y_k / v_k) / sum_k (1 / v_k),        variance = 1 / sum_k (1 / v_k)

No other unbiased weighted mean of independent answers y_k with variances v_k is more precise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prade.core.arrays import Floats


class PreciseMean:
    """The mean so far; `add` takes in one more answer.

    Answers are arrays of one shape. A variance is a number, or has one entry for each row of the answers.

    >>> mean = PreciseMean(2)
    >>> mean.add(np.array([90.0, 10.0]), 4.0)
    >>> mean.add(np.array([100.0, 20.0]), 1.0)
    >>> mean.value, mean.variance
    (array([98., 18.]), 0.8)
    """

    def __init__(self, *shape: int) -> None:
        self.weighted = np.zeros(shape)
        self.precision: Any = 0.0

    def add(self, answers: Floats, variance: Any) -> None:
        """Take in answers with this noise variance."""
        self.weighted += answers / self._per_row(variance)
        self.precision = self.precision + 1 / variance

    @property
    def known(self) -> bool:
        """Whether every row has an answer."""
        return bool(np.all(self.precision > 0))

    @property
    def value(self) -> Floats:
        return np.asarray(self.weighted / self._per_row(self.precision))

    @property
    def variance(self) -> Any:
        return 1 / self.precision

    def _per_row(self, values: Any) -> Any:
        return (
            values if np.ndim(values) == 0 else np.reshape(values, (len(values), *(1 for _ in self.weighted.shape[1:])))
        )
