"""What the ledger requires of what it is given, before it looks at its records."""

from __future__ import annotations

from prade.core.errors import PradeError
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import dataset_name
from prade.privacy.unit import Unit


def require_dataset(name: str, unit: Unit | None, cap: Budget) -> tuple[str, Unit]:
    """Refuse a data set without a name, a unit or a cap; the normal form of its name."""
    require_budget(cap, "cap")
    if not isinstance(unit, Unit):
        raise PradeError(f"to record a data set, give its Unit, got {unit!r}")
    return dataset_name(name), unit


def require_text(value: object, what: str) -> None:
    """Refuse what is not text, or empty."""
    if not isinstance(value, str) or not value.strip():
        raise PradeError(f"{what} must be text and must not be empty, got {value!r}")


def require_budget(value: object, what: str) -> None:
    """Refuse what is not a budget."""
    if not isinstance(value, Budget):
        raise PradeError(f"{what} must be a Budget, got {value!r}; use Budget.pure(...), .zcdp(...) or .approx(...)")
