"""What can go wrong, by whose mistake it was.

Every message says what was expected, what came and what to do. Messages never carry a value of a private
row: code that may see private rows raises only errors that depend on the schema, the plan and the table's
column names.
"""

from __future__ import annotations

from typing import Any


class PradeError(ValueError):
    """Base of every error that prade raises on purpose."""


class SchemaError(PradeError):
    """A schema, a domain or a group list that contradicts itself."""


class DataError(PradeError):
    """A table or file that does not fit what was declared about it."""


class WorkloadError(PradeError):
    """A part, a query or a workload that cannot be built."""


class EstimationError(PradeError):
    """Answers, scales, weights or settings that no estimator can work with."""


class BudgetError(PradeError):
    """More privacy budget was asked for than remains, or a second time for what is paid already; nothing was spent.

    `remaining` and `asked` are values of `prade.privacy.budget.Budget`.
    """

    def __init__(self, message: str, remaining: Any, asked: Any) -> None:
        super().__init__(message, remaining, asked)
        self.remaining = remaining
        self.asked = asked

    def __str__(self) -> str:
        return str(self.args[0])
