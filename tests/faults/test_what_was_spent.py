"""Every failure of a run ends with what it spent, and the ledger agrees."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from prade import Budget, Ledger, Release
from prade.core.errors import BudgetError, PradeError
from prade.measuring import run
from prade.release.spending import NOTHING, spending_of, spending_stated
from worlds.people import IN_TOWNS, TOWN_PLAN
from worlds.plans import ledger_for

COST = "In this run epsilon = 1 (pure differential privacy) was spent; it is in "
STEPS = ["checked", "counted", "prepared", "reserved", "drawn", "written", "sealed", "committed", "extracted"]
FAILURES = {
    "full disk": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "interrupt": KeyboardInterrupt,
    "memory": MemoryError,
}


def failing_at(step: str, failure: Callable[[], BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        if name == step:
            raise failure()

    monkeypatch.setattr(run, "_step", fail)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("step", STEPS)
def test_a_failure_at_any_step_ends_with_what_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: str
) -> None:
    ledger, folder = ledger_for(TOWN_PLAN, tmp_path / "people.ledger"), tmp_path / "release"
    with monkeypatch.context() as context:
        failing_at(step, FAILURES[failure], context)
        with pytest.raises((PradeError, OSError, KeyboardInterrupt, MemoryError)) as failed:
            run.measure(TOWN_PLAN, IN_TOWNS, folder, ledger)
    said = spending_of(failed.value)
    assert said is not None
    if not ledger.entries("people"):
        assert said == NOTHING
        assert STEPS.index(step) < STEPS.index("reserved")
        return
    where = said.removeprefix(COST)
    if where.startswith(str(ledger.path)):
        assert where == f"{ledger.path} as entry 1, and no noisy counts were saved"
        assert STEPS.index(step) < STEPS.index("sealed")
    else:
        assert Release.load(where).plan == TOWN_PLAN


def test_a_release_that_has_its_name_is_where_the_sentence_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt is held back until the release is complete."""
    failing_at("renamed", KeyboardInterrupt, monkeypatch)
    with pytest.raises(KeyboardInterrupt) as failed:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger_for(TOWN_PLAN, tmp_path / "people.ledger"))
    assert spending_of(failed.value) == f"{COST}{tmp_path / 'release'}"


@pytest.mark.parametrize("recorded", [False, True])
def test_a_ledger_that_fails_while_it_records_is_asked_what_it_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    ledger, reserve = ledger_for(TOWN_PLAN, tmp_path / "people.ledger"), Ledger.reserve

    def fail(self: Ledger, *arguments: object, **options: object) -> None:
        if recorded:
            reserve(self, *arguments, **options)  # type: ignore[arg-type]
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Ledger, "reserve", fail)
    with pytest.raises(OSError, match="Input/output error") as failed:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    words = f"{COST}{ledger.path}, and no noisy counts were saved" if recorded else NOTHING
    assert spending_of(failed.value) == words
    assert len(ledger.entries("people")) == recorded


def test_a_ledger_that_can_no_longer_be_read_leaves_it_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = ledger_for(TOWN_PLAN, tmp_path / "people.ledger")

    def fail(self: Ledger, *_: object, **__: object) -> None:
        self.path.write_bytes(b"not a ledger any more")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Ledger, "reserve", fail)
    with pytest.raises(OSError, match="Input/output error") as failed:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    said = spending_of(failed.value)
    assert said is not None
    assert said.endswith(f"may have been spent: {ledger.path} will tell, once it can be read")


def test_a_run_that_is_refused_because_another_has_paid_spends_nothing(tmp_path: Path) -> None:
    ledger = ledger_for(TOWN_PLAN, tmp_path / "people.ledger")
    ledger.reserve("people", TOWN_PLAN.hash, Budget.pure(1))
    with pytest.raises(BudgetError) as failed:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    assert spending_of(failed.value) == NOTHING


def test_an_outer_run_says_what_an_inner_one_spent(tmp_path: Path) -> None:
    def measure_and_fail() -> None:
        with spending_stated() as spending:
            run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "r", ledger_for(TOWN_PLAN, tmp_path / "people.ledger"))
            assert spending.paid
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full") as failed:
        measure_and_fail()
    assert failed.value.__notes__ == [f"{COST}{tmp_path / 'r'}"]
    with spending_stated() as spending:
        assert not spending.paid  # the next run begins anew
