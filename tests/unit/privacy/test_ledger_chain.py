"""The ledger as a chain: heads, raised caps, imported releases, one ledger per custodian."""

import shutil
from functools import partial

import platformdirs
import pytest

from prade import Budget, BudgetError, DataError, Ledger, PradeError, Unit
from prade.measuring.run import measure
from prade.privacy.ledger.file import Head
from prade.privacy.ledger.ledger import custodian_ledger
from prade.privacy.ledger.records import Claim, Origin
from prade.release.release import read_manifest, read_sealed
from prade.release.terms import import_release
from worlds.plans import EVERYBODY, PERSONS, SCHEMA, TWO_ROWS, ledger_for, plan_of

plan_for = partial(plan_of, SCHEMA, EVERYBODY, unit=TWO_ROWS, dataset="people")


def ledger_at(path, cap=4):
    return ledger_for(plan_for(), path, cap)


@pytest.fixture
def ledger(tmp_path):
    return ledger_at(tmp_path / "l")


def test_every_event_moves_the_head_and_all_heads_stay_on_the_chain(ledger):
    seen = [ledger.head()]
    entry = ledger.reserve("people", "p", Budget.pure(1))
    seen.append(ledger.head())
    assert entry.head == seen[-1]
    for act in (
        lambda: ledger.fail(entry.id, "count", "DataError"),
        lambda: ledger.start_drawing(entry.id),
        lambda: ledger.commit(entry.id, "h"),
        lambda: ledger.reserve("people", "q", Budget.pure(1), folder="q"),
        lambda: ledger.reserve("people", "q", Budget.pure(1), folder="q"),  # resumes it
        lambda: ledger.give_back(2, "not needed"),
    ):
        act()
        seen.append(ledger.head())
    ledger.raise_cap("people", Budget.pure(5), "more waves")
    seen.append(ledger.head())
    assert [head.number for head in seen if head] == list(range(2, 11))
    assert len({head.hash for head in seen if head}) == 9
    assert len({head.ledger for head in seen if head}) == 1
    assert all(ledger.has(head) for head in seen if head)
    assert ledger.entries("people")[0].head == entry.head
    assert str(ledger.head()) in ledger.account("people")
    assert str(ledger.path) in ledger.account("people")


def test_reading_and_what_changes_nothing_leave_the_head(ledger):
    entry = ledger.reserve("people", "p", Budget.pure(1))
    ledger.start_drawing(entry.id)
    ledger.commit(entry.id, "h")
    head = ledger.head()
    ledger.commit(entry.id, "h")
    ledger.open_dataset("people", TWO_ROWS, Budget.pure(4))
    ledger.check("people", "q", Budget.pure(1), unit=TWO_ROWS)
    ledger.account("people")
    with pytest.raises(BudgetError):
        ledger.reserve("people", "q", Budget.pure(9))
    assert ledger.head() == head


def test_two_copies_that_do_the_same_in_the_same_second_are_told_apart(ledger, tmp_path):
    copies = [Ledger(shutil.copy(ledger.path, tmp_path / f"copy {number}")) for number in range(2)]
    one, other = (copy.reserve("people", "p", Budget.pure(1)).head for copy in copies)
    assert one != other
    assert (one.ledger, one.number) == (other.ledger, other.number)
    assert [[copy.has(head) for head in (one, other)] for copy in copies] == [[True, False], [False, True]]


def test_a_release_holds_the_head_when_it_was_paid_and_after(ledger, tmp_path):
    release = measure(plan_for(), PERSONS, tmp_path / "r", ledger)
    (entry,) = ledger.entries("people")
    assert entry.head is not None
    assert read_manifest(release.path).head == entry.head
    extract = read_sealed(release.path / "ledger.json")
    head = ledger.head()
    assert head is not None
    assert extract["head"] == head.to_dict()
    assert head.number == entry.head.number + 2
    assert str(head) in release.account()
    assert [file.name for file in release.path.iterdir() if str(tmp_path).encode() in file.read_bytes()] == []
    assert import_release(ledger, release.path) == entry  # it is on record already
    assert ledger.head() == head


def test_a_cap_is_raised_on_the_record(ledger):
    ledger.reserve("people", "p", Budget.pure(3))
    home = ledger.raise_cap("people", Budget.pure(6), " second wave, approved ")
    assert home == ledger.dataset("people")
    assert (home.cap, ledger.remaining("people")) == (Budget.pure(6), Budget.pure(3))
    (step,) = home.raises
    assert (step.was, step.cap, step.reason) == (Budget.pure(4), Budget.pure(6), "second wave, approved")
    assert f"from {Budget.pure(4)} to {Budget.pure(6)}: second wave, approved" in ledger.account("people")
    assert ledger.statement("people").to_dict()["raises"][0]["reason"] == "second wave, approved"
    ledger.reserve("people", "q", Budget.pure(3))
    with pytest.raises(BudgetError):
        ledger.reserve("people", "r", Budget.pure("1/100"))


@pytest.mark.parametrize(
    ("cap", "reason", "message"),
    [
        (Budget.pure(4), "why", "is not above it; give a higher cap"),
        (Budget.pure(3), "why", "is not above it; give a higher cap"),
        (Budget.zcdp(9), "why", "budget of kind 'pure' .* but the cap is of kind 'zcdp'"),
        (Budget.pure(5), " ", "the reason for raising a cap is ' ': give a text"),
        (Budget.pure(5), None, "the reason for raising a cap is None: give a text"),
        (5, "why", "cap must be a Budget, got int"),
    ],
)
def test_a_cap_is_not_lowered_nor_changed_without_a_reason(ledger, cap, reason, message):
    before = ledger.head()
    with pytest.raises(PradeError, match=message):
        ledger.raise_cap("people", cap, reason)
    assert ledger.head() == before


def test_a_cap_of_two_numbers_goes_up_in_both(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.open_dataset("people", TWO_ROWS, Budget.approx(1, "1e-6"))
    for cap in (Budget.approx(2, "1e-7"), Budget.approx("0.5", "1e-5")):
        with pytest.raises(PradeError, match="is not above it"):
            ledger.raise_cap("people", cap, "why")
    assert ledger.raise_cap("people", Budget.approx(2, "1e-6"), "why").cap == Budget.approx(2, "1e-6")


@pytest.mark.parametrize("unit", [Unit(1, "PERSON"), Unit(2), Unit(2, "PERSON", 1), Unit(2, "PERSON", None, "replace")])
def test_a_cost_under_another_promise_is_refused(ledger, unit):
    for act in (ledger.reserve, ledger.check):
        with pytest.raises(PradeError, match=r"has Unit.* use the recorded unit, .* for one unit only"):
            act("people", "p", Budget.pure(1), unit=unit)
    assert ledger.entries("people") == []
    assert ledger.reserve("people", "p", Budget.pure(1), unit=TWO_ROWS).id == 1


def test_a_data_set_may_be_entered_with_its_first_expense(tmp_path):
    ledger = Ledger(tmp_path / "l")
    terms = {"unit": TWO_ROWS, "cap": Budget.pure(4)}
    ledger.check("people", "p", Budget.pure(1), **terms)
    assert not ledger.path.exists()
    with pytest.raises(BudgetError, match=r"has epsilon = 4 .* left of epsilon = 4 .* but epsilon = 5"):
        ledger.check("people", "p", Budget.pure(5), **terms)
    assert not ledger.path.exists()
    ledger.reserve("people", "p", Budget.pure(1), **terms)
    assert ledger.remaining("people") == Budget.pure(3)
    ledger.reserve("people", "q", Budget.pure(1), **terms)
    for act in (ledger.reserve, ledger.check):
        with pytest.raises(PradeError, match="give the recorded cap"):
            act("people", "r", Budget.pure(1), unit=TWO_ROWS, cap=Budget.pure(9))
        with pytest.raises(PradeError, match="to record a data set, give its Unit, got None"):
            act("other", "r", Budget.pure(1), cap=Budget.pure(9))
    assert [dataset.name for dataset in ledger.datasets()] == ["people"]
    with pytest.raises(DataError, match=r"the folder of the ledger .* does not exist"):
        Ledger(tmp_path / "no" / "l").check("people", "p", Budget.pure(1), **terms)


def test_a_release_of_another_ledger_is_put_on_record_once(ledger, tmp_path):
    theirs = ledger_at(tmp_path / "theirs")
    theirs.reserve("people", "other", Budget.pure("1/2"))
    measure(plan_for(), PERSONS, tmp_path / "r", theirs)
    entry = import_release(ledger, tmp_path / "r")
    paid = theirs.entries("people")[1]
    assert paid.head is not None
    assert (entry.state, entry.cost, entry.plan_hash) == ("imported", Budget.pure(1), paid.plan_hash)
    assert entry.measurements_hash == paid.measurements_hash
    assert entry.origin == Origin(paid.head.ledger, 2, paid.head.hash)
    assert entry.note == paid.note
    assert ledger.remaining("people") == Budget.pure(3)
    head = ledger.head()
    assert import_release(ledger, tmp_path / "r") == entry
    assert ledger.head() == head
    assert f"imported   entry 2 of ledger {paid.head.ledger}, measurements" in ledger.account("people")
    with pytest.raises(BudgetError, match=r"already been paid for .*imported.* using them again costs nothing"):
        ledger.reserve("people", paid.plan_hash, Budget.pure(1))
    assert measure(plan_for(), PERSONS, tmp_path / "r", ledger).plan == plan_for()  # it is read, nothing is spent
    assert ledger.head() == head
    assert ledger.paid("people", Claim(paid.plan_hash, 2, paid.measurements_hash, paid.head)) == entry
    for other in (Head(paid.head.ledger, paid.head.number, "of a fork"), Head("elsewhere", 4, paid.head.hash)):
        assert ledger.paid("people", Claim(paid.plan_hash, 2, paid.measurements_hash, other)) is None


def test_imports_that_are_refused(tmp_path):
    measure(plan_for(), PERSONS, tmp_path / "r", ledger_at(tmp_path / "theirs"))
    with pytest.raises(DataError, match="there is no ledger at"):
        import_release(Ledger(tmp_path / "none"), tmp_path / "r")
    empty = Ledger(tmp_path / "empty")
    empty.open_dataset("others", TWO_ROWS, Budget.pure(1))
    with pytest.raises(PradeError, match="has no data set 'people'"):
        import_release(empty, tmp_path / "r")
    small = ledger_at(tmp_path / "small", cap="1/2")
    with pytest.raises(BudgetError, match=r"cost epsilon = 1 .* has only epsilon = 0.5 .*raise the cap .*, then im"):
        import_release(small, tmp_path / "r")
    small.raise_cap("people", Budget.pure(1), "what was spent elsewhere")
    assert import_release(small, tmp_path / "r").id == 1
    unit = Ledger(tmp_path / "unit")
    unit.open_dataset("people", Unit(1), Budget.pure(4))
    with pytest.raises(PradeError, match="costs add up for one unit only"):
        import_release(unit, tmp_path / "r")
    kind = Ledger(tmp_path / "kind")
    kind.open_dataset("people", TWO_ROWS, Budget.zcdp(4))
    with pytest.raises(PradeError, match=r"budget of kind 'zcdp' .* but the cost is of kind 'pure'"):
        import_release(kind, tmp_path / "r")
    with (tmp_path / "r" / "measurements.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="has changed since the release was made"):
        import_release(ledger_at(tmp_path / "new"), tmp_path / "r")
    with pytest.raises(DataError, match="is not a release"):
        import_release(ledger_at(tmp_path / "newer"), tmp_path)


def test_an_entry_pays_for_its_own_draw_only(ledger):
    entry = ledger.start_drawing(ledger.reserve("people", "p", Budget.pure(1)).id)
    claim = Claim("p", entry.id, "h", entry.head)
    assert ledger.paid("people", claim) == entry
    assert entry.head is not None
    for other in (
        Claim("q", entry.id, "h", entry.head),
        Claim("p", 2, "h", entry.head),
        Claim("p", entry.id, "h", Head("another ledger", entry.head.number, entry.head.hash)),
        Claim("p", entry.id, "h", Head(entry.head.ledger, entry.head.number, "another event")),
    ):
        assert ledger.paid("people", other) is None, other
    committed = ledger.commit(entry.id, "h")
    assert ledger.paid("people", claim) == committed
    assert ledger.paid("people", Claim("p", entry.id, "another draw", entry.head)) is None


def test_the_custodians_ledger(monkeypatch, tmp_path):
    monkeypatch.setenv("PRADE_LEDGER", str(tmp_path / "mine.sqlite"))
    assert custodian_ledger() == tmp_path / "mine.sqlite"
    monkeypatch.setenv("PRADE_LEDGER", "mine.sqlite")
    with pytest.raises(PradeError, match="give an absolute path"):
        custodian_ledger()
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name, **_: tmp_path / "share" / name)
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("PRADE_LEDGER")
        else:
            monkeypatch.setenv("PRADE_LEDGER", unset)
        assert custodian_ledger() == tmp_path / "share" / "prade" / "ledger.sqlite"
    assert not (tmp_path / "share").exists()
    ledger = Ledger(custodian_ledger())
    ledger.check("people", "p", Budget.pure(1), unit=TWO_ROWS, cap=Budget.pure(1))
    assert not (tmp_path / "share").exists()
    ledger.open_dataset("people", TWO_ROWS, Budget.pure(1))  # its folder is made with it, and is the user's own
    assert (tmp_path / "share" / "prade").stat().st_mode & 0o077 == 0
    assert ledger.remaining("people") == Budget.pure(1)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name, **_: ledger.path / name)
    with pytest.raises(DataError, match=r"the folder of the ledger .* cannot be created"):
        Ledger(custodian_ledger()).open_dataset("people", TWO_ROWS, Budget.pure(1))
