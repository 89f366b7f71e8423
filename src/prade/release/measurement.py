"""A noisy answer as a value: the question's part, the noisy counts, and the law of their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.core.arrays import Floats
from prade.core.errors import EstimationError
from prade.privacy.budget import Law

if TYPE_CHECKING:
    from prade.queries.workload import Part


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of one part.

    counts_i = true count of cell i + noise_i, where the noise is Laplace with mean 0 and scale b (density
    exp(-|x|/b) / 2b), or Gaussian with standard deviation `scale`. `scale` is one number, or one per cell; 0 means
    that the count is exact.

    >>> from prade import Schema, Workload
    >>> part = Workload.marginals(Schema.from_mbi({"sex": 2}), ["sex"])[0]
    >>> Measurement(part, [48, 55], scale=3.0).variance
    array([18., 18.])
    """

    part: Part
    counts: NDArray[np.float64]
    scale: NDArray[np.float64]
    law: Law = "laplace"

    def __init__(self, part: Part, counts: ArrayLike, scale: ArrayLike, law: Law = "laplace") -> None:
        if not hasattr(part, "n_cells"):
            raise EstimationError(f"a measurement needs a Part, got a {type(part).__name__}: take it from a Workload")
        values = np.array(counts, np.float64)
        scales = np.array(scale, np.float64)
        if values.shape != (part.n_cells,):
            raise EstimationError(
                f"{part.name}: expected {part.n_cells} counts, one per cell, but the answer has shape {values.shape}"
            )
        if scales.shape not in ((), values.shape):
            raise EstimationError(
                f"{part.name}: scale must be one number or one for each of the {part.n_cells} cells, "
                f"but has shape {scales.shape}"
            )
        if not np.isfinite(values).all():
            raise EstimationError(f"{part.name}: the answer contains NaN or infinity; every count must be a number")
        if not np.isfinite(scales).all() or (scales < 0).any():
            raise EstimationError(f"{part.name}: scale must be finite and not negative (0 for an exact count)")
        if law not in ("laplace", "gaussian"):
            raise EstimationError(f"{part.name}: law is {law!r}, expected 'laplace' or 'gaussian'")
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "counts", values)
        object.__setattr__(self, "scale", np.broadcast_to(scales, values.shape))
        object.__setattr__(self, "law", law)

    @classmethod
    def of_parts(cls, parts: Sequence[Part], counts: Floats, scales: Floats, law: Law) -> list[Measurement]:
        """Measurements of several parts, from the counts and scales of all their cells one after the other.

        They are checked once for all parts: a level of a nation has tens of thousands of answers.

        >>> from prade import Schema, Workload
        >>> parts = list(Workload.marginals(Schema.from_mbi({"sex": 2, "age": 3}), ["sex", "age"]))
        >>> [each.counts.tolist() for each in Measurement.of_parts(parts, np.arange(5.0), np.ones(5), "gaussian")]
        [[0.0, 1.0], [2.0, 3.0, 4.0]]
        """
        starts = np.cumsum([0, *(part.n_cells for part in parts)]).tolist()
        cells = starts[-1]
        if not counts.shape == scales.shape == (cells,) or law not in ("laplace", "gaussian"):
            raise EstimationError(
                f"expected {cells} counts and scales, one per cell, under the law 'laplace' or 'gaussian', but got "
                f"counts of shape {counts.shape}, scales of shape {scales.shape} and the law {law!r}"
            )
        if not (np.isfinite(counts).all() and np.isfinite(scales).all() and (scales >= 0).all()):
            raise EstimationError("every count must be a number, and every scale a number that is not negative")
        found = []
        for part, start in zip(parts, starts, strict=False):
            mine, made = slice(start, start + part.n_cells), cls.__new__(cls)
            made.__dict__.update(part=part, counts=counts[mine], scale=scales[mine], law=law)
            found.append(made)
        return found

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variance of the noise in each cell: 2 b^2 (Laplace) or sigma^2 (Gaussian)."""
        return np.asarray((2.0 if self.law == "laplace" else 1.0) * self.scale**2)
