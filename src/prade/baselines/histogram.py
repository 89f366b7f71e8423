"""The Laplace histogram: noisy counts of all cells of a small domain, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prade.baselines.base import ask_total, check_settings, judged, number_of_rows
from prade.core.errors import EstimationError
from prade.core.numbers import exact
from prade.data.public.joint import Prior
from prade.queries.parts import Marginal, Part

if TYPE_CHECKING:
    from prade.estimating.estimate import Estimate
    from prade.estimating.layout import Layout
    from prade.measuring.adaptive.session import Door
    from prade.release.release import Measurement


@dataclass(frozen=True)
class Histogram:
    """Every cell of the full domain of the prior's columns, counted with Laplace noise.

        q_i = max(y_i, 0) / sum over cells max(y, 0)

    The noisy counts y are unbiased; q is not, because it has no negative values. The method uses no prior knowledge:
    only the prior's columns matter. Domains of more than `most_cells` are refused.

    Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis (2006).

    >>> from prade import Schema
    >>> from prade.release.release import Measurement
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> answer = Measurement(Marginal.of(schema, ["a", "b"]), [60, -4, 20, 20], 5.0)
    >>> Histogram().fit(Prior.uniform(schema), [answer], total=100).weights
    array([0.6, 0. , 0.2, 0.2])
    """

    most_cells: int = 2**20
    total_share: float = 0.05

    def __post_init__(self) -> None:
        check_settings(most_cells=self.most_cells, total_share=self.total_share)

    def parts(self, prior: Prior) -> Sequence[Part]:
        """The only part: the marginal of all columns."""
        cells = prior.schema.domain_size(prior.columns)
        if cells > self.most_cells:
            raise EstimationError(
                f"the full domain of {len(prior.columns)} columns has {cells:.3g} cells, but a histogram may have at "
                f"most {self.most_cells:,}; use fewer columns or coarser bins, or a method that does not need all cells"
            )
        return [Marginal.of(prior.schema, prior.columns)]

    def ask(self, prior: Prior, door: Door) -> Estimate:
        """Ask for the total, then for all cells at once."""
        (part,) = self.parts(prior)
        ask_total(prior, door, exact(self.total_share, "total_share"))
        answer = door.answer(part, door.left)
        return self.fit(prior, [answer], number_of_rows(door.measurements))

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """The noisy counts, with negative ones set to 0; uniform if none is positive. (`layout` is not used.)"""
        expected = self.parts(prior)
        if [measurement.part for measurement in measurements] != expected:
            raise EstimationError(
                f"a histogram needs one noisy answer, of part {expected[0].name!r}; got {len(measurements)}, of other "
                "parts"
            )
        domain = Prior.uniform(prior.schema, prior.columns)
        positive = np.maximum(measurements[0].counts, 0.0)
        weights = positive / positive.sum() if positive.any() else domain.weights
        return judged(self, domain, weights, measurements, total)
