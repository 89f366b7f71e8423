"""The ledger keeps count: exact, for several data sets, in one file, and says no in time."""

from __future__ import annotations

import json
import pickle
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_a_data_set_is_what_was_entered(ledger: Ledger) -> None:
    dataset = ledger.dataset("census")
    assert (dataset.name, dataset.unit, dataset.cap) == ("census", UNIT, Budget.pure(1))
    assert ledger.remaining("census") == Budget.pure(1)
    assert ledger.entries("census") == []


@pytest.mark.parametrize("cap", [Budget.pure("1/3"), Budget.zcdp(0.1), Budget.approx(2, "1e-9")])
@pytest.mark.parametrize("unit", [Unit(), Unit(7, "ID", 2), Unit(2, neighbours="replace")])
def test_units_and_caps_survive_the_file_exactly(tmp_path: Path, unit: Unit, cap: Budget) -> None:
    entered = Ledger(tmp_path / "l").open_dataset("d", unit, cap)
    assert Ledger(tmp_path / "l").dataset("d") == entered == Dataset("d", unit, cap, entered.created)


def test_opening_again_changes_nothing(ledger: Ledger) -> None:
    first = ledger.dataset("census")
    ledger.reserve("census", "p", Budget.pure("0.4"))
    assert ledger.open_dataset("census", UNIT, Budget.pure(1)) == first
    assert ledger.remaining("census") == Budget.pure("0.6")


@pytest.mark.parametrize("cap", [Budget.pure(2), Budget.pure("0.5"), Budget.zcdp(1)])
def test_a_cap_is_set_once(ledger: Ledger, cap: Budget) -> None:
    with pytest.raises(PradeError, match="give the recorded cap"):
        ledger.open_dataset("census", UNIT, cap)
    assert ledger.dataset("census").cap == Budget.pure(1)


def test_a_unit_is_set_once(ledger: Ledger) -> None:
    with pytest.raises(PradeError, match="recorded unit"):
        ledger.open_dataset("census", Unit(1), Budget.pure(1))
    assert ledger.dataset("census").unit == UNIT


def test_data_sets_do_not_share_budget(ledger: Ledger) -> None:
    ledger.open_dataset("births", Unit(), Budget.zcdp(2))
    ledger.reserve("census", "p", Budget.pure("0.4"))
    ledger.reserve("births", "p", Budget.zcdp("0.5"))
    assert ledger.remaining("census") == Budget.pure("0.6")
    assert ledger.remaining("births") == Budget.zcdp("1.5")
    assert [dataset.name for dataset in ledger.datasets()] == ["births", "census"]
    assert [len(ledger.entries(name)) for name in ("births", "census")] == [1, 1]


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
    with pytest.raises(BudgetError) as refused:
        ledger.reserve("census", "plan-3", Budget.pure("1e-30"))
    assert refused.value.remaining == Budget.pure(0)
    assert refused.value.asked == Budget.pure("1e-30")
    assert len(ledger.entries("census")) == 3


def test_refusal_spends_nothing_and_says_what_remains(ledger: Ledger) -> None:
    ledger.reserve("census", "plan-1", Budget.pure("0.3"))
    with pytest.raises(BudgetError, match=r"epsilon = 0\.7 .*epsilon = 0\.8 .*request less") as refused:
        ledger.reserve("census", "plan-2", Budget.pure("0.8"))
    assert (refused.value.remaining, refused.value.asked) == (Budget.pure("0.7"), Budget.pure("0.8"))
    assert ledger.remaining("census") == Budget.pure("0.7")
    assert ledger.find("census", "plan-2") is None


def test_a_budget_error_travels_between_processes() -> None:
    error = BudgetError("too much", Budget.pure(1), Budget.pure(2))
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.remaining, copy.asked) == ("too much", Budget.pure(1), Budget.pure(2))


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


def test_a_cost_of_zero_is_refused(ledger: Ledger) -> None:
    with pytest.raises(PradeError, match="every measurement costs something"):
        ledger.reserve("census", "p", Budget.pure(0))


def test_wrong_arguments_are_named(ledger: Ledger) -> None:
    with pytest.raises(PradeError, match=r"cost must be a Budget, got 0\.1"):
        ledger.reserve("census", "p", 0.1)
    with pytest.raises(PradeError, match="cap must be a Budget"):
        ledger.open_dataset("other", UNIT, 1)
    with pytest.raises(PradeError, match="a plan's hash must be text"):
        ledger.reserve("census", "", Budget.pure("0.1"))
    with pytest.raises(PradeError, match="the name of a data set must not be empty"):
        ledger.open_dataset(" ", UNIT, Budget.pure(1))
    with pytest.raises(PradeError, match="the measurements' hash must be text"):
        ledger.commit(1, "")


def test_a_plan_pays_twice_only_when_told(ledger: Ledger) -> None:
    first = ledger.reserve("census", "plan-1", Budget.pure("0.3"))
    with pytest.raises(BudgetError, match=r"entry 1, reserved.*no noise was drawn.*Ledger\.give_back\(1, reason\)"):
        ledger.reserve("census", "plan-1", Budget.pure("0.3"))
    first = ledger.start_drawing(first.id)
    with pytest.raises(BudgetError, match=r"entry 1, drawing.*again=True"):
        ledger.reserve("census", "plan-1", Budget.pure("0.3"))
    assert ledger.find("census", "plan-1") == first
    second = ledger.reserve("census", "plan-1", Budget.pure("0.3"), again=True)
    assert ledger.find("census", "plan-1") == second != first
    assert ledger.remaining("census") == Budget.pure("0.4")


def test_commit_again_is_harmless_but_not_with_other_measurements(ledger: Ledger) -> None:
    entry = ledger.reserve("census", "plan-1", Budget.pure("0.3"))
    ledger.start_drawing(entry.id)
    committed = ledger.commit(entry.id, "hash-1")
    assert ledger.commit(entry.id, "hash-1") == committed
    with pytest.raises(PradeError, match="committed with the measurements hash-1, not hash-2"):
        ledger.commit(entry.id, "hash-2")
    assert ledger.entries("census") == [committed]


def test_commit_of_an_unknown_entry(ledger: Ledger) -> None:
    with pytest.raises(PradeError, match="no entry 7"):
        ledger.commit(7, "hash")


def test_ids_are_of_the_file_not_of_the_data_set(ledger: Ledger) -> None:
    ledger.open_dataset("births", UNIT, Budget.pure(1))
    ids = [ledger.reserve(name, "p", Budget.pure("0.1")).id for name in ("births", "census")]
    assert ids == [1, 2]
    ledger.start_drawing(2)
    ledger.commit(2, "hash")
    assert [entry.state for entry in ledger.entries("births")] == ["reserved"]


FRACTIONS = st.fractions(min_value=Fraction(1, 10**6), max_value=2, max_denominator=10**6)


@settings(max_examples=25)
@given(cap=FRACTIONS, costs=st.lists(FRACTIONS, max_size=8))
def test_the_file_agrees_with_exact_arithmetic(cap: Fraction, costs: list[Fraction]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "l")
        ledger.open_dataset("d", UNIT, Budget.zcdp(cap))
        spent = Fraction(0)
        for number, cost in enumerate(costs):
            if spent + cost <= cap:
                ledger.reserve("d", str(number), Budget.zcdp(cost))
                spent += cost
            else:
                with pytest.raises(BudgetError):
                    ledger.reserve("d", str(number), Budget.zcdp(cost))
            assert ledger.remaining("d").rho == cap - spent


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    def attempt(number: int) -> bool:
        try:
            ledger.reserve("census", str(number), Budget.pure("1/7"))
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(20))) == 7
    assert ledger.remaining("census") == Budget.pure(0)


# ---------------------------------------------------------------- the account


def test_the_account_says_it_all(ledger: Ledger) -> None:
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


def test_an_account_without_entries(ledger: Ledger) -> None:
    assert "nothing has been released" in ledger.account("census")


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


def test_costs_are_stored_as_exact_text(ledger: Ledger) -> None:
    ledger.reserve("census", "p", Budget.pure("1/3"))
    connection = sqlite3.connect(ledger.path)
    ((content,),) = connection.execute("SELECT content FROM event WHERE number = 3").fetchall()
    connection.close()
    assert json.loads(content)["cost"] == {"epsilon": "1/3", "kind": "pure"}


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


def test_every_write_reaches_the_disk_with_its_folder(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """synchronous = EXTRA (3) at each COMMIT: the journal cannot come back after a power cut and undo the entry."""
    levels = []

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            if sql == "COMMIT":
                levels.append(super().execute("PRAGMA synchronous").fetchone()[0])
                levels.append(super().execute("PRAGMA journal_mode").fetchone()[0])
            return super().execute(sql, *values)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **settings: real(*args, **settings, factory=Watched))
    ledger.commit(ledger.start_drawing(ledger.reserve("census", "p", Budget.pure("0.1")).id).id, "hash")
    ledger.fail(1, "write", "OSError")
    ledger.give_back(ledger.reserve("census", "q", Budget.pure("0.1")).id, "never begun")
    assert levels == [3, "delete"] * 6


@pytest.mark.parametrize("other", ["Census", "census ", " census", "CENSUS"])
def test_a_name_that_looks_the_same_gets_no_second_budget(ledger: Ledger, other: str) -> None:
    with pytest.raises(PradeError, match="has a data set 'census'"):
        ledger.open_dataset(other, Unit(max_rows=1), Budget.pure(1))
    assert ledger.open_dataset("census 2", Unit(max_rows=1), Budget.pure(1)).name == "census 2"
