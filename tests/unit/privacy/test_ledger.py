"""The ledger keeps count: exact, for several data sets, in one file, and says no in time."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from prade.core.errors import BudgetError, DataError, PradeError
from prade.privacy.budget import Budget
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.records import Dataset, Entry
from prade.privacy.protection import Unit

UNIT = Unit(max_rows=3, person_id="PERSON")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "budget.ledger")
    ledger.open_dataset("census", UNIT, Budget.pure(1))
    return ledger


# ---------------------------------------------------------------- data sets


@pytest.mark.parametrize("cap", [Budget.pure("1/3"), Budget.zcdp(0.1), Budget.approx(2, "1e-9")])
@pytest.mark.parametrize("unit", [Unit(), Unit(7, "ID", 2), Unit(2, neighbours="replace")])
def test_units_and_caps_survive_the_file_exactly(tmp_path: Path, unit: Unit, cap: Budget) -> None:
    entered = Ledger(tmp_path / "l").open_dataset("d", unit, cap)
    assert Ledger(tmp_path / "l").dataset("d") == entered == Dataset("d", unit, cap, entered.created)


@pytest.mark.parametrize(
    ("unit", "cap", "message"),
    [
        (UNIT, Budget.pure(2), "give the recorded cap"),
        (UNIT, Budget.pure("0.5"), "give the recorded cap"),
        (UNIT, Budget.zcdp(1), "give the recorded cap"),
        (Unit(1), Budget.pure(1), "use the recorded unit"),
    ],
)
def test_a_unit_and_a_cap_are_set_once(ledger: Ledger, unit: Unit, cap: Budget, message: str) -> None:
    before = ledger.dataset("census")
    assert ledger.open_dataset("census", UNIT, Budget.pure(1)) == before
    with pytest.raises(PradeError, match=message):
        ledger.open_dataset("census", unit, cap)
    assert ledger.dataset("census") == before


def test_data_sets_do_not_share_budget(ledger: Ledger) -> None:
    ledger.open_dataset("births", Unit(), Budget.zcdp(2))
    ledger.reserve("census", "p", Budget.pure("0.4"))
    ledger.reserve("births", "p", Budget.zcdp("0.5"))
    assert ledger.remaining("census") == Budget.pure("0.6")
    assert ledger.remaining("births") == Budget.zcdp("1.5")
    assert [dataset.name for dataset in ledger.datasets()] == ["births", "census"]
    assert [[entry.id for entry in ledger.entries(name)] for name in ("births", "census")] == [[2], [1]]


def test_an_unknown_data_set_is_refused_with_what_is_close(ledger: Ledger) -> None:
    for ask in (ledger.entries, ledger.remaining, ledger.account, ledger.dataset):
        with pytest.raises(PradeError, match=r"no data set 'cencus'.*census"):
            ask("cencus")
    with pytest.raises(PradeError, match="no data set 'cencus'"):
        ledger.reserve("cencus", "p", Budget.pure("0.1"))
    assert ledger.remaining("census") == Budget.pure(1)


# ---------------------------------------------------------------- reserve and commit


def test_reserve_then_commit(ledger: Ledger) -> None:
    reserved = ledger.reserve("census", "plan-1", Budget.pure("0.3"), "36 one-way parts, Laplace scale 120")
    assert reserved == Entry(
        id=1,
        dataset="census",
        plan_hash="plan-1",
        cost=Budget.pure("0.3"),
        note="36 one-way parts, Laplace scale 120",
        created=reserved.created,
        state="reserved",
        head=ledger.head(),
    )
    assert datetime.fromisoformat(reserved.created).utcoffset() == timedelta(0)
    assert ledger.entries("census") == [reserved]
    assert not reserved.drawn

    drawing = ledger.start_drawing(reserved.id)
    assert drawing == replace(reserved, state="drawing", drawn=True)
    assert ledger.entries("census") == [drawing]

    committed = ledger.commit(reserved.id, "hash-1")
    assert (committed.state, committed.measurements_hash) == ("committed", "hash-1")
    assert committed.committed is not None
    assert ledger.entries("census") == [committed]
    assert ledger.remaining("census") == Budget.pure("0.7")


def test_the_last_of_the_budget_can_be_spent_and_no_more(ledger: Ledger) -> None:
    for third in range(3):
        ledger.reserve("census", f"plan-{third}", Budget.pure("1/3"))
    assert ledger.remaining("census") == Budget.pure(0)
    with pytest.raises(BudgetError, match=r"epsilon = 0 .*epsilon = 1e-30 .*request less") as refused:
        ledger.reserve("census", "plan-3", Budget.pure("1e-30"))
    assert (refused.value.remaining, refused.value.asked) == (Budget.pure(0), Budget.pure("1e-30"))
    assert len(ledger.entries("census")) == 3


@pytest.mark.parametrize("cost", [Budget.approx("0.1", "2e-6"), Budget.approx(2, "1e-9")])
def test_neither_epsilon_nor_delta_goes_over(tmp_path: Path, cost: Budget) -> None:
    ledger = Ledger(tmp_path / "l")
    ledger.open_dataset("d", UNIT, Budget.approx(1, "1e-6"))
    with pytest.raises(BudgetError):
        ledger.reserve("d", "p", cost)
    ledger.reserve("d", "p", Budget.approx("0.25", "1e-7"))
    assert ledger.remaining("d") == Budget.approx("0.75", "9e-7")


def test_a_cost_of_another_kind_is_refused(ledger: Ledger) -> None:
    with pytest.raises(PradeError, match=r"budget of kind 'pure' in .*, but the cost is of kind 'zcdp'"):
        ledger.reserve("census", "p", Budget.zcdp("0.1"))
    assert ledger.remaining("census") == Budget.pure(1)


def test_wrong_arguments_are_named(ledger: Ledger) -> None:
    with pytest.raises(PradeError, match=r"cost must be a Budget, got 0\.1"):
        ledger.reserve("census", "p", 0.1)
    with pytest.raises(PradeError, match="cap must be a Budget"):
        ledger.open_dataset("other", UNIT, 1)
    with pytest.raises(PradeError, match="every measurement costs something"):
        ledger.reserve("census", "p", Budget.pure(0))


def test_a_plan_pays_twice_only_when_told(ledger: Ledger) -> None:
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


# ---------------------------------------------------------------- the account


def test_the_account_says_it_all(ledger: Ledger) -> None:
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


# ---------------------------------------------------------------- the file


def test_reading_makes_no_file(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "absent")
    for ask in (ledger.entries, ledger.remaining, ledger.account, ledger.dataset):
        with pytest.raises(DataError, match="there is no ledger at"):
            ask("d")
    # nor does reserving: a mistyped path must not be a fresh budget
    with pytest.raises(DataError, match="there is no ledger at"):
        ledger.reserve("d", "p", Budget.pure("0.1"))
    assert list(tmp_path.iterdir()) == []


def test_odd_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_the_file_itself_refuses_to_give_back(ledger: Ledger, statement: str) -> None:
    ledger.commit(ledger.start_drawing(ledger.reserve("census", "p", Budget.pure("0.1")).id).id, "hash")
    ledger.reserve("census", "q", Budget.pure("0.1"))
    before = ledger.account("census")
    connection = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()
    assert ledger.account("census") == before
