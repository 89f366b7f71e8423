"""Invented people, for demonstrations and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.examples.census import CensusLike as CensusLike
    from prade.examples.census import census_like as census_like

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
