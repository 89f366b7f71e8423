"""The ledger keeps count: exact, for several data sets, in one file, and says no in time."""

import json
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from prade import Budget, BudgetError, DataError, Ledger, PradeError, Unit
from prade.privacy.ledger.file import Head
from prade.privacy.ledger.records import Claim, Failure, shares_of

UNIT = Unit(max_rows=3, person_id="PERSON")


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.ledger")
    ledger.open_dataset("census", UNIT, Budget.pure(1))
    return ledger


@pytest.mark.parametrize(
    ("unit", "cap", "message"),
    [
        (UNIT, Budget.pure(2), "give the recorded cap"),
        (UNIT, Budget.pure("0.5"), "give the recorded cap"),
        (UNIT, Budget.zcdp(1), "give the recorded cap"),
        (Unit(1), Budget.pure(1), "use the recorded unit"),
    ],
)
def test_a_unit_and_a_cap_are_set_once(ledger, unit, cap, message):
    before = ledger.dataset("census")
    assert ledger.open_dataset("census", UNIT, Budget.pure(1)) == before
    with pytest.raises(PradeError, match=message):
        ledger.open_dataset("census", unit, cap)
    assert ledger.dataset("census") == before


def test_an_unknown_data_set_is_refused_with_what_is_close(ledger):
    for ask in (ledger.entries, ledger.remaining, ledger.account, ledger.dataset):
        with pytest.raises(PradeError, match=r"no data set 'cencus'.*census"):
            ask("cencus")
    with pytest.raises(PradeError, match="no data set 'cencus'"):
        ledger.reserve("cencus", "p", Budget.pure("0.1"))
    assert ledger.remaining("census") == Budget.pure(1)


def test_the_last_of_the_budget_can_be_spent_and_no_more(ledger):
    for third in range(3):
        ledger.reserve("census", f"plan-{third}", Budget.pure("1/3"))
    assert ledger.remaining("census") == Budget.pure(0)
    with pytest.raises(BudgetError, match=r"epsilon = 0 .*epsilon = 1e-30 .*request less") as refused:
        ledger.reserve("census", "plan-3", Budget.pure("1e-30"))
    assert (refused.value.remaining, refused.value.asked) == (Budget.pure(0), Budget.pure("1e-30"))
    assert len(ledger.entries("census")) == 3


@pytest.mark.parametrize("cost", [Budget.approx("0.1", "2e-6"), Budget.approx(2, "1e-9")])
def test_neither_epsilon_nor_delta_goes_over(tmp_path, cost):
    ledger = Ledger(tmp_path / "l")
    ledger.open_dataset("d", UNIT, Budget.approx(1, "1e-6"))
    with pytest.raises(BudgetError):
        ledger.reserve("d", "p", cost)
    ledger.reserve("d", "p", Budget.approx("0.25", "1e-7"))
    assert ledger.remaining("d") == Budget.approx("0.75", "9e-7")


def test_a_cost_of_another_kind_is_refused(ledger):
    with pytest.raises(PradeError, match=r"budget of kind 'pure' in .*, but the cost is of kind 'zcdp'"):
        ledger.reserve("census", "p", Budget.zcdp("0.1"))
    assert ledger.remaining("census") == Budget.pure(1)


def test_wrong_arguments_are_named(ledger):
    with pytest.raises(PradeError, match=r"cost must be a Budget, got float"):
        ledger.reserve("census", "p", 0.1)
    with pytest.raises(PradeError, match="cap must be a Budget"):
        ledger.open_dataset("other", UNIT, 1)
    with pytest.raises(PradeError, match="every measurement costs something"):
        ledger.reserve("census", "p", Budget.pure(0))


def test_a_plan_pays_twice_only_when_told(ledger):
    first = ledger.reserve("census", "plan-1", Budget.pure("0.3"))
    with pytest.raises(
        BudgetError, match=r"entry 1, reserved.*no noise was drawn.*Ledger\.give_back\(1, reason\)"
    ) as no:
        ledger.reserve("census", "plan-1", Budget.pure("0.3"))  # without a folder it is not resumed
    assert "prade ledger return 1 --reason" in no.value.worded("shell")
    first = ledger.start_drawing(first.id)
    with pytest.raises(BudgetError, match=r"entry 1, drawing.*again=True"):
        ledger.reserve("census", "plan-1", Budget.pure("0.3"))
    assert ledger.entries("census") == [first]
    second = ledger.reserve("census", "plan-1", Budget.pure("0.3"), again=True)
    assert ledger.entries("census") == [first, second]
    assert ledger.remaining("census") == Budget.pure("0.4")


def test_the_account_says_it_all(ledger):
    assert "nothing has been released" in ledger.account("census")
    entry = ledger.reserve("census", "plan-1", Budget.pure("0.3"), "36 one-way parts, Laplace scale 120")
    ledger.start_drawing(entry.id)
    ledger.commit(entry.id, "hash-1")
    ledger.start_drawing(ledger.reserve("census", "plan-2", Budget.pure("0.2")).id)
    ledger.reserve("census", "plan-3", Budget.pure("0.1"))
    text = ledger.account("census")
    for words in (
        "Data set census",
        UNIT.promise(),
        f"cap        {Budget.pure(1)}",
        f"spent      {Budget.pure('0.6')}",
        f"remaining  {Budget.pure('0.4')}",
        "asked      36 one-way parts, Laplace scale 120",
        f"cost       {Budget.pure('0.3')}",
        "measurements hash-1",
        "plan-2",
        "drawing    spent, but no measurements are recorded",
        "plan-3",
        "reserved   spent, but no noise was drawn: the run is in progress or was interrupted; it can be resumed or ",
    ):
        assert words in text


def test_reading_makes_no_file(tmp_path):
    ledger = Ledger(tmp_path / "absent")
    for ask in (ledger.entries, ledger.remaining, ledger.account, ledger.dataset):
        with pytest.raises(DataError, match="there is no ledger at"):
            ask("d")
    # nor does reserving: a mistyped path must not be a fresh budget
    with pytest.raises(DataError, match="there is no ledger at"):
        ledger.reserve("d", "p", Budget.pure("0.1"))
    assert list(tmp_path.iterdir()) == []


def test_odd_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a b?mode=memory#c%20.ledger", "Etat civil \u00e9t\u00e9.ledger"):
        Ledger(name).open_dataset("d", UNIT, Budget.pure(1))
        assert (tmp_path / name).is_file()
        assert Ledger(tmp_path / name).remaining("d") == Budget.pure(1)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event",
        "DELETE FROM event WHERE number = 6",
        "UPDATE event SET content = '{}'",
        "UPDATE event SET number = 9 WHERE number = 6",
        "REPLACE INTO event SELECT 6, before, content, hash FROM event WHERE number = 6",
        "INSERT OR REPLACE INTO event SELECT 3, before, content, hash FROM event WHERE number = 2",
        "INSERT INTO event SELECT 8, hash, content, hash FROM event WHERE number = 6",
        "INSERT INTO event SELECT 7, before, content, hash FROM event WHERE number = 6",
    ],
)
def test_the_file_itself_refuses_to_give_back(ledger, statement):
    ledger.commit(ledger.start_drawing(ledger.reserve("census", "p", Budget.pure("0.1")).id).id, "hash")
    ledger.reserve("census", "q", Budget.pure("0.1"))
    before = ledger.account("census")
    connection = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()
    assert ledger.account("census") == before


THEN = "2026-07-01T12:00:00+00:00"
HALF = Budget.pure("1/2")


def reserved(ledger, plan="p", folder="/r", **more):
    return ledger.reserve("census", plan, more.pop("cost", HALF), folder=folder, **more)


def version(ledger):
    connection = sqlite3.connect(ledger.path)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(found)


def test_a_failure_is_on_record_and_the_amount_stays_spent(ledger):
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
    [("read", "DataError"), (None, "DataError"), ("count", ""), ("count", "DataError: p17"), ("count", 17)],
)
def test_a_failure_is_a_stage_and_the_name_of_a_class(ledger, stage, kind):
    """Never an error's text; not even the refusal says it."""
    entry = reserved(ledger)
    with pytest.raises(PradeError, match="the name of the error's class, such as DataError") as refused:
        ledger.fail(entry.id, stage, kind)
    assert "17" not in str(refused.value)
    assert ledger.entries("census") == [entry]


def test_what_is_resumed_is_the_same_plan_folder_and_cost(ledger, monkeypatch, tmp_path):
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


def test_of_two_runs_that_resume_one_entry_one_draws(ledger):
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


@pytest.mark.parametrize("fails", [False, True])
def test_an_entry_is_given_back_once(ledger, fails):
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


def test_once_noise_may_have_been_drawn_nothing_is_given_back_or_resumed(ledger):
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


def test_an_imported_entry_is_of_another_ledgers_run(ledger):
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


def test_an_entry_without_noise_pays_for_no_release(ledger):
    """A release that names such an entry comes from a ledger that had more events: this is an old copy."""
    entry = reserved(ledger)
    claim = Claim("p", entry.id, "h", entry.head)
    assert ledger.paid("census", claim) is None
    assert ledger.paid("census", Claim("p", entry.id, "another", entry.head)) is None


@pytest.mark.parametrize(
    ("drawing", "after"), [(False, Head("lost", 9, "x")), (False, None), (True, Head("lost", 9, "x"))]
)
def test_importing_such_a_release_records_that_noise_was_drawn(ledger, drawing, after):
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


def test_an_entry_that_was_given_back_pays_for_no_release(ledger):
    entry = reserved(ledger)
    claim = Claim("p", entry.id, "h", entry.head)
    ledger.give_back(entry.id, "this old copy does not know that noise was drawn")
    assert ledger.paid("census", claim) is None
    imported = ledger.record_import("census", UNIT, HALF, claim, None, "", "/r")
    assert (imported.id, imported.state) == (2, "imported")
    assert ledger.remaining("census") == HALF
    assert ledger.record_import("census", UNIT, HALF, claim, None, "", "/r") == imported


def test_readers_of_a_release_learn_nothing_about_failures(ledger):
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


def test_entries_of_earlier_versions_had_their_noise_drawn(ledger):
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


def test_shares_may_differ_and_dividing_again_divides_what_is_left(ledger):
    ledger.divide("census", 3, ["2", 1, "1"])
    ledger.reserve("census", "a", HALF)
    with pytest.raises(BudgetError, match=r"is in year 1 of 3 .* has epsilon = 0 .* left for it.*begin the next year"):
        ledger.reserve("census", "b", Budget.pure("1/8"))
    assert shares_of(3, ["0.5", "1/4", 0.25]) == (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    division = ledger.divide("census", 4).division
    assert (division.before, division.left, division.year) == (HALF, HALF, 1)


@pytest.mark.parametrize(("years", "shares"), [(0, None), (True, None), (2, ["1"]), (2, [1, 0]), (2, [1, -1])])
def test_bad_divisions_are_refused(ledger, years, shares):
    with pytest.raises(PradeError, match="give"):
        ledger.divide("census", years, shares)
    assert ledger.dataset("census").division is None


def test_a_budget_that_is_not_divided_has_no_next_year(ledger):
    with pytest.raises(PradeError, match=r"is not divided over years .*divide it with Ledger\.divide"):
        ledger.next_year("census")
    with pytest.raises(PradeError, match="no data set"):
        ledger.divide("persons", 2)
