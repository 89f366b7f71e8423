"""What the ledger requires of what it is given, and refuses: the checks before an event is recorded."""

from __future__ import annotations

from pathlib import Path

from prade.core.errors import BudgetError, PradeError, Remedy
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import dataset_name
from prade.privacy.ledger.records import Dataset, Entry
from prade.privacy.unit import Unit

STAGES = ("count", "draw", "write")  # of a run, after its cost is reserved


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


def require_failure(stage: object, kind: object) -> None:
    """Refuse a failure that is not a stage of a run and the name of a class: nothing else may be recorded of it."""
    if stage not in STAGES or not isinstance(kind, str) or not kind.isidentifier():
        raise PradeError(
            f"a failure has a stage ({', '.join(STAGES)}) and the name of the error's class, such as DataError, but "
            "not its text, which may contain private values; give these two"
        )


def require_unit(recorded: Dataset, unit: Unit, ledger: Path) -> None:
    """Refuse another unit of protection than the data set's."""
    if recorded.unit != unit:
        raise PradeError(
            f"data set {recorded.name!r} has {recorded.unit} in {ledger}, not {unit}; use the recorded unit, "
            "because costs add up for one unit only"
        )


def require_kind(recorded: Dataset, given: Budget, what: str, ledger: Path) -> None:
    """Refuse another kind of budget than the cap's."""
    if given.kind != recorded.cap.kind:
        raise PradeError(
            f"data set {recorded.name!r} has a budget of kind {recorded.cap.kind!r} in {ledger}, but the {what} "
            f"is of kind {given.kind!r}; give Budget.{recorded.cap.kind}(...)"
        )


def require_affordable(recorded: Dataset, remaining: Budget, cost: Budget, ledger: Path) -> None:
    """Refuse a cost beyond the cap, or beyond what this year may spend of it."""
    if not cost <= remaining:
        raise BudgetError(
            f"data set {recorded.name!r} has {remaining} left of {recorded.cap} in {ledger}, but {cost} was "
            "requested; request less, or use what has already been measured",
            remaining,
            cost,
        )
    if recorded.division is not None:
        recorded.division.refuse(recorded.cap - remaining, cost, f"data set {recorded.name!r} in {ledger}")


def require_undrawn(entry: Entry, what: str, ledger: Path) -> None:
    """Refuse to draw noise for an entry, or to give it back, once noise may have been drawn or it was given back."""
    if entry.resumable:
        return
    if entry.returned is not None:
        why = f"was given back on {entry.returned.time} ({entry.returned.reason})"
    elif entry.measurements_hash is not None:
        why = f"is {entry.state}: its measurements {entry.measurements_hash} were written"
    else:
        why = f"is {entry.state}, and its noise was drawn, or may have been"
    raise PradeError(f"entry {entry.id} of {ledger} {why}, so it {what}; `prade ledger show` lists all entries")


def paid_already(entry: Entry, cost: Budget, remaining: Budget, ledger: Path) -> BudgetError:
    """The error for a plan that has an entry already."""
    message = (
        f"plan {entry.plan_hash} has already been paid for on data set {entry.dataset!r} in {ledger} "
        f"(entry {entry.id}, {entry.state}): {entry.whereabouts()}"
    )
    if entry.resumable:
        return BudgetError(message, remaining, cost, remedy=Remedy("give_back", entry.id))
    return BudgetError(message, remaining, cost, remedy=Remedy("again", cost))
