"""Tables and their schemas: reading tables, turning cells into codes and back, public rows and their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.data.declare.column import Column as Column
    from prade.data.declare.groups import Groups as Groups
    from prade.data.declare.schema import Schema as Schema
    from prade.data.public.decode import Decoder as Decoder
    from prade.data.public.joint import Coded as Coded
    from prade.data.public.joint import Prior as Prior
    from prade.data.public.joint import encode as encode
    from prade.data.public.joint import outside as outside
    from prade.data.public.public import Public as Public
    from prade.data.public.table import PublicTable as PublicTable

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
