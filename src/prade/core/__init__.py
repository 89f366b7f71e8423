"""What every room needs: errors, exact numbers, arrays, threads, files, wording. Nothing here knows about privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.core.errors import BudgetError as BudgetError
    from prade.core.errors import DataError as DataError
    from prade.core.errors import EstimationError as EstimationError
    from prade.core.errors import PradeError as PradeError
    from prade.core.errors import SchemaError as SchemaError
    from prade.core.errors import WorkloadError as WorkloadError

_HOMES = {
    "BudgetError": "prade.core.errors",
    "DataError": "prade.core.errors",
    "EstimationError": "prade.core.errors",
    "PradeError": "prade.core.errors",
    "SchemaError": "prade.core.errors",
    "WorkloadError": "prade.core.errors",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
