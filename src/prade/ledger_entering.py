"""A ledger that enters a new data set at the moment of its first expense: what fails before leaves nothing behind."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from prade.errors import BudgetError, DataError, PradeError
from prade.ledger import Dataset, Entry, Ledger
from prade.privacy import Budget, Unit
from prade.rounding import exact

if TYPE_CHECKING:
    from prade.plan import Plan


class EnteringLedger(Ledger):
    """The ledger at `path`, in which the data set `name` may be missing until something is spent on it.

    Until then it answers as if `name` had been entered with `unit` and `cap`, and nothing had been spent. `entered`
    says whether that has happened.

    >>> ledger = EnteringLedger("new.ledger", "survey", Unit(1), Budget.pure(1))
    >>> print(ledger.remaining("survey"), ledger.path.exists())
    epsilon = 1 (pure differential privacy) False
    >>> ledger.reserve("survey", "3f2a", Budget.pure(1)).id, ledger.entered, ledger.path.exists()
    (1, True, True)
    """

    def __init__(self, path: str | PathLike[str], name: str, unit: Unit, cap: Budget) -> None:
        super().__init__(path)
        self.name, self.unit, self.cap = name, unit, cap
        self.entered = False

    @classmethod
    def of(cls, path: str | PathLike[str], plan: Plan, cap: str | None = None) -> EnteringLedger:
        """For a plan; `cap` is the first number of its budget (another one grows along), the plan's own when None.

        A cap is refused when the ledger knows the data set with another one.
        """
        budget = plan.budget
        if cap is not None and not budget.amounts[0]:
            raise PradeError(f"the plan's budget is {budget}, of which a cap is no multiple: leave --cap out")
        wanted = budget if cap is None else budget * (exact(cap, "the cap") / budget.amounts[0])
        ledger = cls(path, plan.dataset, plan.unit, wanted)
        if cap is not None and not ledger._new(plan.dataset):
            ledger.open_dataset(plan.dataset, plan.unit, wanted)
        return ledger

    def _new(self, dataset: str) -> bool:
        """Whether it is the data set to enter, and not entered yet."""
        if dataset != self.name:
            return False
        return not self.path.exists() or all(known.name != dataset for known in self.datasets())

    def dataset(self, name: str) -> Dataset:
        """As it is recorded, or would be."""
        return Dataset(name, self.unit, self.cap, "") if self._new(name) else super().dataset(name)

    def entries(self, dataset: str) -> list[Entry]:
        """None before the data set is entered."""
        return [] if self._new(dataset) else super().entries(dataset)

    def remaining(self, dataset: str) -> Budget:
        """All of the cap before the data set is entered."""
        return self.cap if self._new(dataset) else super().remaining(dataset)

    def check(self, dataset: str, plan_hash: str, cost: Budget, *, again: bool = False) -> None:
        """Raise what `reserve` would raise now."""
        if not self._new(dataset):
            super().check(dataset, plan_hash, cost, again=again)
        elif not self.path.absolute().parent.is_dir():
            raise DataError(f"there is no folder for the ledger {self.path}; make it first")
        elif not cost <= self.cap:
            raise BudgetError(
                f"the cap for data set {dataset!r} would be {self.cap}, but {cost} was asked for: nothing was spent; "
                "give a larger cap, or make a plan for less",
                self.cap,
                cost,
            )

    def reserve(self, dataset: str, plan_hash: str, cost: Budget, note: str = "", *, again: bool = False) -> Entry:
        """Enter the data set where it is new, then spend."""
        if self._new(dataset):
            self.open_dataset(dataset, self.unit, self.cap)
            self.entered = True
        return super().reserve(dataset, plan_hash, cost, note, again=again)
