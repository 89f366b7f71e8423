"""The paper's own method, with which prade is compared: the same door, ledger, priors and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.baselines.algorithm_2 import Algorithm2 as Algorithm2

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
