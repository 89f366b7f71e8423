"""The folder that measuring writes: noisy counts, the plan they answer, what they cost. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.release.payment import import_release as import_release
    from prade.release.release import Measurement as Measurement
    from prade.release.release import Release as Release

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
