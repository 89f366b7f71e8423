"""From distributions to synthetic rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.sampling.table import drawn_table as drawn_table
    from prade.sampling.table import resized as resized
    from prade.sampling.table import sample_groups as sample_groups

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
