"""The trace of a run that fails after its reservation: whether it fails may depend on one person's row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from prade.core.errors import PradeError
from prade.core.interrupts import held_back
from prade.measuring.source import EngineError
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.records import Entry
from prade.release.payment import Spending

Result = TypeVar("Result")


@dataclass
class Trace:
    """What the ledger records of a run that fails: its entry, the stage, and the kind of the error if it is known."""

    entry: Entry | None = None
    stage: str = "count"
    kind: str | None = None

    def start_drawing(self, ledger: Ledger, spending: Spending | None = None) -> None:
        """Record that noise will be drawn; if the entry no longer allows it, this run leaves no trace in it."""
        assert self.entry is not None
        self.stage = "draw"
        try:
            ledger.start_drawing(self.entry.id)
        except PradeError:
            with suppress(PradeError):  # a ledger that cannot be read
                now = next(each for each in ledger.entries(self.entry.dataset) if each.id == self.entry.id)
                if not now.resumable:
                    self.entry = None
                    if spending is not None:
                        spending.lose(now, ledger.path)
            raise

    def ended(self, result: Result) -> Result:
        """The result of a run that is complete: an interrupt that was postponed until now does not make it fail."""
        self.entry = None
        return result


@contextmanager
def traced(ledger: Ledger) -> Iterator[Trace]:
    """Record a failure of the block once it has an entry. A ledger that cannot be written has the reservation."""
    trace = Trace()
    try:
        yield trace
    except BaseException as error:
        if trace.entry is not None:
            kind = trace.kind or (error.kind if isinstance(error, EngineError) else type(error).__name__)
            with suppress(PradeError), held_back():
                ledger.fail(trace.entry.id, trace.stage, kind if kind.isidentifier() else "Exception")
        raise
