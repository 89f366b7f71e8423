"""Which plan to choose: the whole run is rehearsed on public rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.tuning.explore import Exploration as Exploration
    from prade.tuning.rehearse import Rehearsal as Rehearsal
    from prade.tuning.tune import Tuned as Tuned

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
