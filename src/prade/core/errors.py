"""The errors that prade raises, sorted by what has to be corrected.

Every message says what was expected, what was given and what to do. No message contains a value from a private row:
code that may see private rows raises only errors that depend on the schema, the plan and the table's column names.
"""

from __future__ import annotations

from typing import Any


class PradeError(ValueError):
    """Base class of every error that prade raises deliberately."""


class SchemaError(PradeError):
    """A schema, a domain or a list of groups contradicts itself."""


class DataError(PradeError):
    """A table or file is not what was declared."""


class WorkloadError(PradeError):
    """A part, a query or a workload cannot be built."""


class EstimationError(PradeError):
    """Answers, noise scales, weights or settings that no estimator can use."""


class BudgetError(PradeError):
    """A request exceeds the remaining privacy budget, or would pay a second time for the same plan. Nothing was spent.

    `remaining` and `asked` are instances of `prade.privacy.budget.Budget`.
    """

    def __init__(self, message: str, remaining: Any, asked: Any) -> None:
        super().__init__(message, remaining, asked)
        self.remaining = remaining
        self.asked = asked

    def __str__(self) -> str:
        return str(self.args[0])
