"""From noisy counts and a prior to a distribution: Algorithm 1, the paper's exact problem, the posterior mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.data.public.joint import Prior as Prior
    from prade.estimating.estimate import Estimate as Estimate
    from prade.estimating.layout import Layout as Layout
    from prade.estimating.levels.estimates import Estimates as Estimates
    from prade.estimating.paper_estimators import IDE as IDE
    from prade.estimating.paper_estimators import TwoStage as TwoStage
    from prade.estimating.posterior_mode import MAP as MAP
    from prade.release.release import Measurement as Measurement

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
