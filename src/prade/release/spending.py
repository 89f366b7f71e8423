"""What a run has spent: every failure of a run ends with it.

The sentence is a note of the exception (`BaseException.add_note`), so that it also goes with interruptions and with
errors of other libraries. Python shows notes below an error's message, and the command line ends its message with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from prade.privacy.budget import Budget
from prade.privacy.ledger.records import Entry
from prade.release.release import MANIFEST

BEGINNING = "In this run "
NOTHING = f"{BEGINNING}nothing was spent"


class Spending:
    """What a run has spent so far, by the ledger's record, and where to find what it paid for."""

    def __init__(self) -> None:
        self._cost: Budget | None = None
        self._places: tuple[Path, ...] = ()
        self._words = NOTHING

    @property
    def paid(self) -> bool:
        """Whether the ledger has recorded the run's cost."""
        return self._cost is not None

    @property
    def sentence(self) -> str:
        """What was spent. It is in the first place with a complete release, or else only in the ledger."""
        if self._cost is None:
            return self._words
        folders = (str(place) for place in self._places if (place / MANIFEST).is_file())
        return f"{BEGINNING}{self._cost} was spent; it is in {next(folders, self._words)}"

    def reserve(self, cost: Budget, ledger: str) -> None:
        """The ledger has recorded the cost, and no noise is drawn yet: nothing has been released."""
        self._words = (
            f"{BEGINNING}{cost} was reserved in {ledger}, and nothing was released: measure the same plan into the "
            "same folder, which goes on without paying again, or give it back with `prade ledger return`"
        )

    def lose(self, entry: Entry, ledger: Path) -> None:
        """While this run counted, another one drew the entry's noise, or the custodian gave the entry back."""
        self._words = NOTHING
        if entry.returned is None:
            self._words = (
                f"{BEGINNING}{entry.cost} was reserved in {ledger} as entry {entry.id}, for which another run draws "
                "noise: measure the same plan into the same folder to get its release"
            )

    def pay(self, cost: Budget, ledger: str, *places: Path) -> None:
        """The ledger has recorded the cost of a release that is, or will be, in one of the places."""
        self._cost, self._places, self._words = cost, places, f"{ledger}, and no noisy counts were saved"

    def doubt(self, cost: Budget, ledger: Path) -> None:
        """The ledger failed while it recorded the cost, and cannot be read now."""
        self._words = f"{BEGINNING}{cost} may have been spent: {ledger} will tell, once it can be read"

    def pay_nothing(self) -> None:
        """The ledger failed, but it can be read, and it did not record the cost."""
        self._words = NOTHING


_current: ContextVar[Spending | None] = ContextVar("spending", default=None)


@contextmanager
def spending_stated() -> Iterator[Spending]:
    """State what was spent with every exception that leaves the block. A block inside another one shares its spending.

    >>> try:
    ...     with spending_stated():
    ...         raise ValueError("the disk is full")
    ... except ValueError as error:
    ...     print(error, spending_of(error), sep=". ")
    the disk is full. In this run nothing was spent
    """
    if (outer := _current.get()) is not None:
        yield outer
        return
    spending = Spending()
    token = _current.set(spending)
    try:
        yield spending
    except BaseException as error:
        error.add_note(spending.sentence)
        raise
    finally:
        _current.reset(token)


def spending_of(error: BaseException) -> str | None:
    """What the run that ended with this exception spent; None if it was not a run."""
    return next((note for note in getattr(error, "__notes__", ()) if note.startswith(BEGINNING)), None)
