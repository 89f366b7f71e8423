"""The runs of an entry: they fail on the record, are resumed without paying again, draw once, and are given back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from prade.core.errors import BudgetError, PradeError
from prade.privacy.budget import Budget
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.file import Head
from prade.privacy.ledger.records import Claim, Entry, Failure
from prade.privacy.protection import Unit

UNIT = Unit(max_rows=3, person_id="PERSON")
THEN = "2026-07-01T12:00:00+00:00"
HALF = Budget.pure("1/2")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "budget.ledger")
    ledger.open_dataset("census", UNIT, Budget.pure(1))
    return ledger


def reserved(ledger: Ledger, plan: str = "p", folder: str | None = "/r", **more: Any) -> Entry:
    return ledger.reserve("census", plan, more.pop("cost", HALF), folder=folder, **more)


def version(ledger: Ledger) -> int:
    connection = sqlite3.connect(ledger.path)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(found)


# ---------------------------------------------------------------- failures


def test_a_failure_is_on_record_and_the_amount_stays_spent(ledger: Ledger) -> None:
    entry = reserved(ledger)
    failed = ledger.fail(entry.id, "count", "DataError")
    assert (failed.state, failed.drawn) == ("failed", False)
    (failure,) = failed.failures
    assert failure == Failure("count", "DataError", failure.time)
    assert ledger.remaining("census") == HALF
    again = ledger.fail(entry.id, "count", "KeyboardInterrupt")
    assert [each.kind for each in again.failures] == ["DataError", "KeyboardInterrupt"]
    assert ledger.entries("census") == [again]
    text = ledger.account("census")
    assert f"  failure    {failure.time}, stage count, DataError" in text
    assert "stage count, KeyboardInterrupt" in text
    assert "failed     spent, but no noise was drawn: the last run failed; it can be resumed or given back" in text
    assert json.loads(json.dumps(again.to_dict()))["failures"][0] == vars(failure)


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        ("read", "DataError"),
        (None, "DataError"),
        ("count", ""),
        ("count", "DataError: p17"),
        ("count", 17),
    ],
)
def test_a_failure_is_a_stage_and_the_name_of_a_class(ledger: Ledger, stage: Any, kind: Any) -> None:
    """Never an error's text; not even the refusal says it."""
    entry = reserved(ledger)
    with pytest.raises(PradeError, match="the name of the error's class, such as DataError") as refused:
        ledger.fail(entry.id, stage, kind)
    assert "17" not in str(refused.value)
    assert ledger.entries("census") == [entry]


# ---------------------------------------------------------------- resuming


def test_what_is_resumed_is_the_same_plan_folder_and_cost(ledger: Ledger, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    entry = reserved(ledger, folder="r", cost=Budget.pure("1/8"))
    others = [("other", "1/8"), (None, "1/8"), ("r", "1/4"), ("r", "1/9")]
    for folder, cost in others:
        for act in (ledger.reserve, ledger.check):
            with pytest.raises(BudgetError, match=rf"entry 1, reserved.*measuring into {tmp_path / 'r'} resumes it"):
                act("census", "p", Budget.pure(cost), folder=folder)
    anew = [reserved(ledger, "p", folder, cost=Budget.pure(cost), again=True).id for folder, cost in others]
    assert anew == [2, 3, 4, 5]
    assert reserved(ledger, "q", "r", cost=Budget.pure("1/8")).id == 6
    assert reserved(ledger, folder=tmp_path / "r", cost=Budget.pure("1/8")).id == entry.id
    with pytest.raises(PradeError, match="use the recorded unit"):
        reserved(ledger, folder="r", cost=Budget.pure("1/8"), unit=Unit(1))


# ---------------------------------------------------------------- drawing


def test_of_two_runs_that_resume_one_entry_one_draws(ledger: Ledger) -> None:
    entry = reserved(ledger)
    assert reserved(ledger).id == entry.id
    ledger.fail(entry.id, "count", "KeyboardInterrupt")  # the other may draw all the same
    assert ledger.start_drawing(entry.id).drawn
    with pytest.raises(PradeError, match=r"is drawing, and its noise was drawn, or may have been, so it may not draw"):
        ledger.start_drawing(entry.id)
    ledger.fail(entry.id, "draw", "PradeError")  # of the second run, while the first one draws
    with pytest.raises(PradeError, match="is failed, and its noise was drawn"):
        ledger.start_drawing(entry.id)
    assert ledger.commit(entry.id, "h").state == "committed"
    with pytest.raises(PradeError, match="is committed: its measurements h were written, so it may not draw noise"):
        ledger.start_drawing(entry.id)


# ---------------------------------------------------------------- giving back


@pytest.mark.parametrize("fails", [False, True])
def test_an_entry_is_given_back_once(ledger: Ledger, fails: bool) -> None:
    entry = reserved(ledger, cost=Budget.pure(1))
    if fails:
        ledger.fail(entry.id, "count", "DataError")
    for reason in (" ", None):
        with pytest.raises(PradeError, match=r"the reason for giving an entry back is .*: give a text"):
            ledger.give_back(entry.id, reason)
    with pytest.raises(BudgetError):
        reserved(ledger, "q")
    back = ledger.give_back(entry.id, "  the database was down ")
    assert (back.state, back.drawn, len(back.failures)) == ("returned", False, fails)
    assert back.returned is not None
    assert back.returned.reason == "the database was down"
    assert ledger.remaining("census") == Budget.pure(1)
    assert f"returned   {back.returned.time}, nothing is spent: the database was down" in ledger.account("census")
    assert ("stage count, DataError" in ledger.account("census")) == fails
    assert json.loads(json.dumps(back.to_dict()))["returned"]["reason"] == "the database was down"
    for act in (lambda: ledger.give_back(1, "once more"), lambda: ledger.start_drawing(1)):
        with pytest.raises(PradeError, match=r"entry 1 of .* was given back on .* \(the database was down\)"):
            act()
    assert ledger.remaining("census") == Budget.pure(1)
    assert ledger.times_paid("census", "p") == 0
    second = reserved(ledger)  # the plan may be paid for anew
    assert (second.id, second.state, ledger.remaining("census")) == (2, "reserved", HALF)


def test_once_noise_may_have_been_drawn_nothing_is_given_back_or_resumed(ledger: Ledger) -> None:
    entry = ledger.start_drawing(reserved(ledger).id)
    for act, state in (
        (lambda: None, "is drawing, and its noise was drawn, or may have been"),
        (lambda: ledger.fail(entry.id, "draw", "MemoryError"), "is failed, and its noise was drawn, or may have been"),
        (lambda: ledger.commit(entry.id, "h"), "is committed: its measurements h were written"),
    ):
        act()
        with pytest.raises(PradeError, match=f"{state}, so it cannot be given back"):
            ledger.give_back(entry.id, "why")
        for ask in (ledger.reserve, ledger.check):
            with pytest.raises(BudgetError, match="has already been paid for"):
                ask("census", "p", HALF, folder="/r")
    assert ledger.remaining("census") == HALF


def test_an_imported_entry_is_of_another_ledgers_run(ledger: Ledger) -> None:
    claim = Claim("p", 3, "h", Head("another", 9, "x"))
    entry = ledger.record_import("census", UNIT, HALF, claim, None, "", "/r")
    assert (entry.state, entry.drawn) == ("imported", True)
    for act in (
        lambda: ledger.start_drawing(entry.id),
        lambda: ledger.fail(entry.id, "count", "DataError"),
        lambda: ledger.give_back(entry.id, "why"),
    ):
        with pytest.raises(PradeError, match="is imported"):
            act()
    assert ledger.entries("census") == [entry]


# ---------------------------------------------------------------- releases


def test_an_entry_without_noise_pays_for_no_release(ledger: Ledger) -> None:
    """A release that names such an entry comes from a ledger that had more events: this is an old copy."""
    entry = reserved(ledger)
    claim = Claim("p", entry.id, "h", entry.head)
    assert ledger.paid("census", claim) is None
    assert ledger.paid("census", Claim("p", entry.id, "another", entry.head)) is None


@pytest.mark.parametrize(
    ("drawing", "after"), [(False, Head("lost", 9, "x")), (False, None), (True, Head("lost", 9, "x"))]
)
def test_importing_such_a_release_records_that_noise_was_drawn(
    ledger: Ledger, drawing: bool, after: Head | None
) -> None:
    """It costs nothing more, and the entry can no longer be resumed or given back."""
    entry = reserved(ledger)
    if drawing:
        ledger.start_drawing(entry.id)
    ledger.fail(entry.id, "count", "DataError")
    claim = Claim("p", entry.id, "h", entry.head)
    found = ledger.record_import("census", UNIT, HALF, claim, after, "", "/r")
    assert (found.id, found.state, found.drawn, found.measurements_hash) == (entry.id, "committed", True, "h")
    assert ledger.record_import("census", UNIT, HALF, claim, after, "", "/r") == found
    assert ledger.paid("census", claim) == found
    assert ledger.remaining("census") == HALF
    assert after is None or ledger.has(after)
    with pytest.raises(PradeError, match="cannot be given back"):
        ledger.give_back(entry.id, "why")


def test_an_entry_that_was_given_back_pays_for_no_release(ledger: Ledger) -> None:
    entry = reserved(ledger)
    claim = Claim("p", entry.id, "h", entry.head)
    ledger.give_back(entry.id, "this old copy does not know that noise was drawn")
    assert ledger.paid("census", claim) is None
    imported = ledger.record_import("census", UNIT, HALF, claim, None, "", "/r")
    assert (imported.id, imported.state) == (2, "imported")
    assert ledger.remaining("census") == HALF
    assert ledger.record_import("census", UNIT, HALF, claim, None, "", "/r") == imported


def test_readers_of_a_release_learn_nothing_about_failures(ledger: Ledger) -> None:
    """No noise protects what a failure tells, nor what was given back, and why; nor do they learn a path."""
    entry = reserved(ledger, folder="/secret/r")
    ledger.fail(entry.id, "count", "DataError")
    reserved(ledger, folder="/secret/r")
    reserved(ledger, "q", "/secret/q", cost=Budget.pure("1/8"))
    ledger.fail(2, "count", "DataError")
    ledger.give_back(reserved(ledger, "s", "/secret/s", cost=Budget.pure("1/8")).id, "not needed")
    done = ledger.commit(ledger.start_drawing(entry.id).id, "h")
    published = json.dumps([done.to_publish(), ledger.statement("census").words()])
    for private in ("secret", "folder", "fail", "DataError", "resumed", "returned", "not needed", "Entry 3"):
        assert private not in published
    own = ledger.account("census")
    assert "nothing is spent: not needed" in own
    assert own.count("stage count, DataError") == 2


# ---------------------------------------------------------------- files


def test_entries_of_earlier_versions_had_their_noise_drawn(ledger: Ledger) -> None:
    """Their events have no `drawn`: such an entry is neither resumed nor given back, but can be committed.

    The next event makes the file format 4.
    """
    event = {"event": "reserved", "entry": 1, "dataset": "census", "plan": "p", "cost": HALF.to_dict(), "note": ""}
    with ledger._file.transaction("reserve") as chain:
        chain.add({**event, "time": THEN, "folder": "/r"})
    for old in (2, 3):
        with closing(sqlite3.connect(ledger.path)) as connection:
            connection.execute(f"PRAGMA user_version = {old}")
        (entry,) = ledger.entries("census")
        assert (entry.state, entry.drawn) == ("reserved", True)
        for act in (lambda: ledger.give_back(1, "why"), lambda: ledger.start_drawing(1)):
            with pytest.raises(PradeError, match="is reserved, and its noise was drawn, or may have been"):
                act()
        with pytest.raises(BudgetError, match="measuring into /r will find them"):
            reserved(ledger)
        ledger.open_dataset("census", UNIT, Budget.pure(1))
        assert version(ledger) == old, "reading, or a step without an event, has changed the format"
    assert ledger.commit(1, "h").state == "committed"
    assert version(ledger) == 4
