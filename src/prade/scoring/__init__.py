"""How far two tables are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.scoring.score import Score as Score

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
