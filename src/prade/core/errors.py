"""What can go wrong, by whose mistake it was.

Every message says what was expected and what came. What to do about it is data where it is an argument: a `Remedy` that
Python and the shell each put in their own words (`prade.core.remedies`). Messages never carry a value of a private row:
code that may see private rows raises only errors that depend on the schema, the plan and the table's column names.
"""

from __future__ import annotations

import copy
from typing import Any, Self

from prade.core.remedies import Language, Remedy, in_words


class PradeError(ValueError):
    """Base of every error that prade raises on purpose."""

    def __init__(self, message: str, *values: Any, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, *values)
        self.remedy = Remedy(remedy) if isinstance(remedy, str) else remedy

    def told(self, language: Language) -> str:
        """The message and the remedy, in the words of Python or of the shell."""
        message = str(self.args[0])
        return message if self.remedy is None else f"{message}; {in_words(self.remedy, language)}"

    def __str__(self) -> str:
        return self.told("python")

    def within(self, where: str) -> Self:
        """The same error, saying where it arose: in which file, or in which part of it."""
        error = copy.copy(self)
        error.args = (f"{where}: {self.args[0]}", *self.args[1:])
        return error


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

    `remaining` and `asked` are values of `prade.Budget`.
    """

    def __init__(self, message: str, remaining: Any, asked: Any, *, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, remaining, asked, remedy=remedy)
        self.remaining = remaining
        self.asked = asked
