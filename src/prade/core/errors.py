"""The errors that prade raises, sorted by what has to be corrected.

Every message says what was expected and what was given. If the remedy is to change an argument, it is data: a `Remedy`,
which is worded differently for Python and for the shell (`prade.core.remedies`). No message contains a value from a
private row: code that may see private rows raises only errors that depend on the schema, the plan and the table's
column names.
"""

from __future__ import annotations

import copy
from typing import Any, Self

from prade.core.remedies import Language, Remedy, in_words


class PradeError(ValueError):
    """Base class of every error that prade raises deliberately."""

    def __init__(self, message: str, *values: Any, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, *values)
        self.remedy = Remedy(remedy) if isinstance(remedy, str) else remedy

    def told(self, language: Language) -> str:
        """The message and the remedy, worded for Python or for the shell."""
        message = str(self.args[0])
        return message if self.remedy is None else f"{message}; {in_words(self.remedy, language)}"

    def __str__(self) -> str:
        return self.told("python")

    def within(self, where: str) -> Self:
        """The same error with a prefix that says where it occurred, such as the name of a file."""
        error = copy.copy(self)
        error.args = (f"{where}: {self.args[0]}", *self.args[1:])
        return error


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

    `remaining` and `asked` are instances of `prade.Budget`.
    """

    def __init__(self, message: str, remaining: Any, asked: Any, *, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, remaining, asked, remedy=remedy)
        self.remaining = remaining
        self.asked = asked


class Remark(UserWarning):
    """A warning of prade's own, which the command line prints as a remark. It has no value of a private row."""
