"""The folder that measuring writes: noisy counts, the plan they answer, what they cost. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.release.measurement import Measurement as Measurement
    from prade.release.release import Release as Release
    from prade.release.unrecorded_releases import import_release as import_release

_HOMES = {
    "Measurement": "prade.release.measurement",
    "Release": "prade.release.release",
    "import_release": "prade.release.unrecorded_releases",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
