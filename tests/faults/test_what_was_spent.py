"""Every failure of a run ends with what it spent, and the ledger agrees."""

import errno
import os

import pytest

from prade import Budget, Ledger, Release
from prade.cli import main as cli
from prade.core.errors import BudgetError, PradeError
from prade.measuring import run
from prade.release.terms import NOTHING, spending_of, spending_stated
from worlds.plans import IN_TOWNS, TOWN_PLAN, ledger_for

cli.every_command()

COST = "In this run epsilon = 1 (pure differential privacy) was spent; it is in "
RESERVED = "In this run epsilon = 1 (pure differential privacy) was reserved in "
GO_ON = (
    ", and nothing was released: measure the same plan into the same folder, which goes on without paying again, or "
    "give it back with `prade ledger return`"
)
STAGES = {  # the steps from the reservation on, and the stage in which a run fails there
    "reserved": "count",
    "counted": "count",
    "drawn": "draw",
    "written": "write",
    "sealed": "write",
    "committed": "write",
    "extracted": "write",
}
STEPS = ["checked", "prepared", *STAGES]
FAILURES = {
    "full disk": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "interrupt": KeyboardInterrupt,
    "memory": MemoryError,
}


def failing_at(step, failure, monkeypatch):
    def fail(name):
        if name == step:
            raise failure()

    monkeypatch.setattr(run, "_step", fail)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("step", STEPS)
def test_a_failure_at_any_step_ends_with_what_was_spent(tmp_path, monkeypatch, step, failure):
    ledger, folder = ledger_for(TOWN_PLAN, tmp_path / "people.ledger"), tmp_path / "release"
    with monkeypatch.context() as context:
        failing_at(step, FAILURES[failure], context)
        with pytest.raises((PradeError, OSError, KeyboardInterrupt, MemoryError)) as failed:
            run.measure(TOWN_PLAN, IN_TOWNS, folder, ledger)
    said = spending_of(failed.value)
    assert said is not None
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    if not ledger.entries("people"):
        assert said == NOTHING
        assert STEPS.index(step) < STEPS.index("reserved")
        return
    (entry,) = ledger.entries("people")
    (recorded,) = entry.failures
    renamed = step in ("committed", "extracted") and failure == "full disk"  # which is said in an error of our own
    kind = "DataError" if renamed else type(FAILURES[failure]()).__name__
    assert (recorded.stage, recorded.kind) == (STAGES[step], kind)
    assert entry.state == ("failed" if step not in ("committed", "extracted") else "committed")
    assert entry.drawn == (STAGES[step] != "count")
    where = said.removeprefix(COST)
    if not entry.drawn:
        assert said == f"{RESERVED}{ledger.path} as entry 1{GO_ON}"
        assert files == [ledger.path]
    elif where.startswith(str(ledger.path)):
        assert where == f"{ledger.path} as entry 1, and no noisy counts were saved"
        assert STEPS.index(step) < STEPS.index("sealed")
        assert files == [ledger.path], "noisy counts are left on the disk"
    else:
        assert Release.load(where).plan == TOWN_PLAN


@pytest.mark.parametrize("failure", FAILURES)
def test_what_was_reserved_is_resumed_without_paying_again(tmp_path, monkeypatch, failure):
    """The cap affords one payment. Every failure stays on record, in the custodian's account only."""
    ledger, folder = ledger_for(TOWN_PLAN, tmp_path / "people.ledger"), tmp_path / "release"
    for number in range(1, 4):
        with monkeypatch.context() as context:
            failing_at("counted", FAILURES[failure], context)
            with pytest.raises((OSError, KeyboardInterrupt, MemoryError)):
                run.measure(TOWN_PLAN, IN_TOWNS, folder, ledger)
        (entry,) = ledger.entries("people")
        assert (entry.state, len(entry.failures), len(entry.resumed)) == ("failed", number, number - 1)
    with pytest.raises(BudgetError, match="resumes it without paying again") as refused:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "elsewhere", ledger)
    assert spending_of(refused.value) == NOTHING
    release = run.measure(TOWN_PLAN, IN_TOWNS, folder, ledger)
    (entry,) = ledger.entries("people")
    assert (entry.state, len(entry.failures), len(entry.resumed)) == ("committed", 3, 3)
    assert ledger.remaining("people") == Budget.pure(0)
    kind = type(FAILURES[failure]()).__name__
    assert ledger.account("people").count(f"stage count, {kind}") == 3
    told = "".join(path.read_text() for path in folder.glob("*.json"))
    assert kind not in release.account() + told


@pytest.mark.parametrize("happens", ["drawing", "returned"])
def test_a_run_whose_entry_is_used_up_while_it_counts_says_what_became_of_it(tmp_path, monkeypatch, happens):
    ledger, count = ledger_for(TOWN_PLAN, tmp_path / "people.ledger"), run.counts_of

    def slow(*given):
        ledger.start_drawing(1) if happens == "drawing" else ledger.give_back(1, "it takes too long")
        return count(*given)

    monkeypatch.setattr(run, "counts_of", slow)
    monkeypatch.setattr(run, "_draw", lambda *_: pytest.fail("noise is drawn"))
    with pytest.raises(PradeError, match="so it may not draw noise") as failed:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    another = (
        f"{RESERVED}{ledger.path} as entry 1, for which another run draws noise: measure the same plan into the same "
        "folder to get its release"
    )
    assert spending_of(failed.value) == (another if happens == "drawing" else NOTHING)
    (entry,) = ledger.entries("people")
    assert (entry.state, entry.failures) == (happens, ())


def test_a_run_whose_entry_is_given_back_and_paid_anew_returns_the_release_of_that_run(tmp_path, monkeypatch):
    ledger, count, other = ledger_for(TOWN_PLAN, tmp_path / "people.ledger"), run.counts_of, []

    def slow(*given):
        if not other:
            ledger.give_back(1, "it takes too long")
            other.append(None)
            other[0] = run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
        return count(*given)

    monkeypatch.setattr(run, "counts_of", slow)
    release = run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    assert [part.tolist() for part in release.noisy[0]] == [part.tolist() for part in other[0].noisy[0]]
    assert [entry.state for entry in ledger.entries("people")] == ["returned", "committed"]
    assert {path.name for path in tmp_path.iterdir()} == {"people.ledger", "release"}


def test_a_ledger_that_fails_before_noise_is_drawn(tmp_path, monkeypatch):
    """No noise is drawn; the failure is on record as soon as the ledger can be written again."""
    ledger = ledger_for(TOWN_PLAN, tmp_path / "people.ledger")
    with monkeypatch.context() as context:
        context.setattr(Ledger, "start_drawing", lambda *_: (_ for _ in ()).throw(PradeError("the ledger is busy")))
        context.setattr(run, "_draw", lambda *_: pytest.fail("noise is drawn"))
        with pytest.raises(PradeError, match="the ledger is busy") as failed:
            run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    assert spending_of(failed.value) == f"{RESERVED}{ledger.path} as entry 1{GO_ON}"
    (entry,) = ledger.entries("people")
    assert (entry.state, [(each.stage, each.kind) for each in entry.failures]) == ("failed", [("draw", "PradeError")])
    run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    assert [entry.state for entry in ledger.entries("people")] == ["committed"]


def test_a_release_that_has_its_name_is_where_the_sentence_says(tmp_path, monkeypatch):
    """An interrupt is held back until the release is complete."""
    failing_at("renamed", KeyboardInterrupt, monkeypatch)
    with pytest.raises(KeyboardInterrupt) as failed:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger_for(TOWN_PLAN, tmp_path / "people.ledger"))
    assert spending_of(failed.value) == f"{COST}{tmp_path / 'release'}"


@pytest.mark.parametrize("recorded", [False, True, None])
def test_a_ledger_that_fails_while_it_records_is_asked_what_it_recorded(tmp_path, monkeypatch, recorded):
    """Or (None) it can no longer be read, which leaves that open."""
    ledger, reserve = ledger_for(TOWN_PLAN, tmp_path / "people.ledger"), Ledger.reserve

    def fail(self, *arguments, **options):
        if recorded:
            reserve(self, *arguments, **options)
        if recorded is None:
            self.path.write_bytes(b"not a ledger any more")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Ledger, "reserve", fail)
    with pytest.raises(OSError, match="Input/output error") as failed:
        run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    said = spending_of(failed.value)
    if recorded is None:
        assert said is not None
        assert said.endswith(f"may have been spent: {ledger.path} will tell, once it can be read")
        return
    assert said == (f"{RESERVED}{ledger.path}{GO_ON}" if recorded else NOTHING)
    assert len(ledger.entries("people")) == recorded
    monkeypatch.undo()
    run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    (entry,) = ledger.entries("people")
    assert (entry.state, len(entry.resumed)) == ("committed", recorded)


def test_an_outer_run_says_what_an_inner_one_spent(tmp_path):
    def measure_and_fail():
        with spending_stated() as spending:
            run.measure(TOWN_PLAN, IN_TOWNS, tmp_path / "r", ledger_for(TOWN_PLAN, tmp_path / "people.ledger"))
            assert spending.paid
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full") as failed:
        measure_and_fail()
    assert failed.value.__notes__ == [f"{COST}{tmp_path / 'r'}"]
    with spending_stated() as spending:
        assert not spending.paid  # the next run begins anew
