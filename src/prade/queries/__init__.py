"""Questions about rows: predicates, one-way and two-way tables, workloads, and how much one person changes counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.queries.parts import Marginal as Marginal
    from prade.queries.parts import Part as Part
    from prade.queries.query import Query as Query
    from prade.queries.query import expect as expect
    from prade.queries.query import parse as parse
    from prade.queries.workload import Workload as Workload

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
