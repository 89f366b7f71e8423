"""The one door: only this room reads private rows and draws noise, and only noisy counts leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.measuring.run import measure as measure

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
