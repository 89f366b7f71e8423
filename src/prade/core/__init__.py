"""What every room needs: errors, exact numbers, arrays, threads, files, wording. Nothing here knows about privacy."""

from prade.core.errors import BudgetError, DataError, EstimationError, PradeError, SchemaError, WorkloadError

__all__ = ["BudgetError", "DataError", "EstimationError", "PradeError", "SchemaError", "WorkloadError"]
