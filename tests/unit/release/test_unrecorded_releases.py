"""Releases know which ledger paid for them: a lost ledger, an old copy and another draw are noticed before rows are."""

import shlex
import shutil
import sqlite3
from pathlib import Path

import pytest

from prade import Budget, Column, Ledger, Level, PradeError, Release, Schema, Unit, Workload
from prade.measuring import run
from prade.measuring.run import measure
from prade.release.release import read_sealed, sealed_text
from prade.release.terms import import_release
from worlds.commands import call
from worlds.plans import PERSONS, TWO_ROWS, ledger_for, plan_of

# so many counts that two draws of noise are never the same: once in more than 10^15 pairs
SCHEMA = Schema([Column("AGE", "numeric", edges=list(range(5, 100, 5)))])
CAP = Budget.pure(20)


class Killed(BaseException):
    """In place of a kill."""


def plan_for(epsilon, dataset="people", unit=TWO_ROWS):
    everybody = Level((), Workload.all_marginals(SCHEMA, 1))
    return plan_of(SCHEMA, everybody, budget=epsilon, unit=unit, dataset=dataset)


@pytest.fixture
def ledger(tmp_path):
    return opened(tmp_path / "here.ledger")


def opened(path):
    return ledger_for(plan_for(1), path, CAP)


@pytest.fixture
def out(tmp_path):
    """The folder that releases lie in; the ledger is elsewhere."""
    folder = tmp_path / "releases"
    folder.mkdir()
    return folder


class Unread:
    """A table that must not be looked at."""

    def __getattr__(self, name):
        raise AssertionError("a private row was in reach")


def refused(plan, place, ledger, **more):
    """What a run is refused with, before the table is opened, and leaving all as it was."""
    before = {path: path.read_bytes() for path in place.parent.rglob("*") if path.is_file()}
    kept = ledger.path.read_bytes() if ledger.path.exists() else None
    with pytest.raises(PradeError) as caught:
        measure(plan, Unread(), place, ledger, **more)
    assert {path: path.read_bytes() for path in place.parent.rglob("*") if path.is_file()} == before
    assert (ledger.path.read_bytes() if ledger.path.exists() else None) == kept
    return str(caught.value)


def cut(ledger, events):
    """Take the last events away, as whoever may write to the file can."""
    connection = sqlite3.connect(ledger.path)
    connection.execute("DROP TRIGGER event_is_kept")
    connection.execute("DELETE FROM event WHERE number > (SELECT max(number) - ? FROM event)", (events,))
    connection.commit()
    connection.close()


def command_in(message, name):
    """The arguments of a command that a message tells the reader to run."""
    for line in message.partition(": prade ledger ")[2].split(" && "):
        words = shlex.split(line)
        if name in words[:3]:
            return ["ledger", *words[words.index(name) :]]
    raise AssertionError(message)


def test_a_deleted_ledger_beside_releases_has_no_new_budget(ledger, out):
    """The issue's own case: three releases, the ledger is removed, and the next run would have had a full cap."""
    for number in (1, 2, 3):
        measure(plan_for(number), PERSONS, out / f"r{number}", ledger)
    ledger.path.unlink()
    for attempt in ({}, {"cap": CAP}):
        said = refused(plan_for(4), out / "r4", ledger, **attempt)
        assert f"{out / 'r1'} is a release of data set 'people' that {ledger.path} does not have on record" in said
    call(*command_in(said, "open")[:3], "--cap", "20", *command_in(said, "open")[5:])
    said = refused(plan_for(4), out / "r4", ledger)
    call(*command_in(said, "import"))
    assert ledger.remaining("people") == Budget.pure(14)
    measure(plan_for(4), PERSONS, out / "r4", ledger)
    assert ledger.remaining("people") == Budget.pure(10)


@pytest.mark.parametrize("lost", ["a copy from before", "the last event", "the last two events", "a fork"])
def test_an_old_copy_and_a_cut_tail_are_noticed(ledger, out, tmp_path, lost):
    measure(plan_for(1), PERSONS, out / "r1", ledger)
    old = shutil.copy(ledger.path, tmp_path / "backup")
    measure(plan_for(2), PERSONS, out / "r2", ledger)
    newest = ledger.path.read_bytes()
    if "event" in lost:
        cut(ledger, 2 if "two" in lost else 1)
    else:
        shutil.copy(old, ledger.path)
    if lost == "a fork":
        measure(plan_for(2), PERSONS, tmp_path / "elsewhere", ledger)
    said = refused(plan_for(3), out / "r3", ledger)
    assert f"{ledger.path} is an old copy, or its end was cut off: entry 2 of this ledger paid for {out / 'r2'}" in said
    assert "Restore the newest copy" in said
    assert command_in(said, "import") == ["ledger", "import", str(out / "r2"), "--ledger", str(ledger.path)]
    forgotten = ledger.path.read_bytes()
    ledger.path.write_bytes(newest)
    measure(plan_for(3), PERSONS, out / "r3", ledger)
    shutil.rmtree(out / "r3")
    ledger.path.write_bytes(forgotten)
    call(*command_in(said, "import"))
    call(*command_in(said, "import"))
    left = ledger.remaining("people")
    assert left == Budget.pure(15 if lost == "a fork" else 17)  # the fork has paid for a second draw of plan 2
    measure(plan_for(3), PERSONS, out / "r3", ledger)
    assert ledger.remaining("people") == left - Budget.pure(3)


def test_a_sealed_folder_that_a_killed_run_left_counts_too(ledger, out, tmp_path, monkeypatch):
    staging = sealed(plan_for(1), out / "r1", ledger, monkeypatch)
    measure(plan_for(2), PERSONS, out / "r2", ledger)  # the ledger that paid for it
    identity, other = ledger.head(), opened(tmp_path / "other.ledger")
    assert identity is not None
    import_release(other, out / "r2")
    said = refused(plan_for(3), out / "r3", other)
    assert f"entry 1 of ledger {identity.ledger} paid for it. Use that ledger" in said
    assert command_in(said, "import") == ["ledger", "import", str(staging), "--ledger", str(other.path)]
    import_release(other, staging)
    measure(plan_for(3), PERSONS, out / "r3", other)
    assert measure(plan_for(1), Unread(), out / "r1", ledger).path == out / "r1"  # its own ledger finishes it
    assert [entry.state for entry in ledger.entries("people")] == ["committed"] * 2


def test_what_is_not_a_release_of_the_data_set_is_passed_over(ledger, out, tmp_path, monkeypatch):
    strangers = Ledger(tmp_path / "strangers.ledger")
    strangers.open_dataset("others", TWO_ROWS, CAP)
    measure(plan_for(1, "others"), PERSONS, out / "others", strangers)
    (out / "thesis").mkdir()
    (out / "program").mkdir()
    (out / "program" / "release.json").write_text('{"version": "2.0"}')
    (out / "notes.txt").write_text("release.json")
    (out / "broken link").symlink_to("nowhere")
    (out / "lost+found").mkdir()  # nobody may enter it
    is_file = Path.is_file

    def guarded(path):
        if path.parent.name == "lost+found":
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", guarded)
    measure(plan_for(1), PERSONS, out / "r1", ledger)
    shutil.copytree(out / "r1", out / "a copy of r1")
    measure(plan_for(2), PERSONS, out / "r2", ledger)
    assert len(ledger.entries("people")) == 2


@pytest.mark.parametrize("name", ["release.json", "ledger.json"])
def test_a_release_that_cannot_be_read_is_not_passed_over(ledger, out, name):
    measure(plan_for(1), PERSONS, out / "r1", ledger)
    sound = (out / "r1" / name).read_bytes()
    (out / "r1" / name).write_bytes(sound[:-9])
    said = refused(plan_for(2), out / "r2", ledger)
    assert f"{out / 'r1' / name} is damaged: restore the original; or move {out / 'r1'} elsewhere" in said
    (out / "r1").rename(out.parent / "moved")
    measure(plan_for(2), PERSONS, out / "r2", ledger)


@pytest.mark.parametrize("unit", [Unit(1, "PERSON"), Unit(2), Unit(2, "PERSON", 1), Unit(2, "PERSON", None, "replace")])
def test_a_plan_under_another_promise_is_refused_before_a_row_is_read(ledger, out, unit):
    said = refused(plan_for(1, unit=unit), out / "r", ledger)
    assert "use the recorded unit, because costs add up for one unit only" in said
    said = refused(plan_for(1, unit=unit), out / "r", ledger, cap=CAP)
    assert "use the recorded unit, because costs add up for one unit only" in said
    assert not (out / "r").exists()


def test_the_reservation_itself_is_under_the_plans_promise(ledger, out, monkeypatch):
    """What was checked before the rows were counted may have changed by the time that something is spent."""
    monkeypatch.setattr(ledger, "check", lambda *_, **__: None)
    monkeypatch.setattr(run, "_draw", lambda *_: pytest.fail("noise was drawn for another promise"))
    with pytest.raises(PradeError, match="costs add up for one unit only"):
        measure(plan_for(1, unit=Unit(1, "PERSON")), PERSONS, out / "r", ledger)
    assert ledger.entries("people") == []


def sealed(plan, place, ledger, monkeypatch, **more):
    """What a run that was killed at the seal leaves."""

    def kill(*_):
        raise Killed

    known = set(place.parent.glob(".*.unfinished"))
    with monkeypatch.context() as context:
        context.setattr(run, "_finish", kill)
        with pytest.raises(Killed):
            measure(plan, PERSONS, place, ledger, **more)
    (staging,) = set(place.parent.glob(".*.unfinished")) - known
    return staging


def redrawn(folder, like):
    """Put another draw of the same plan into a folder, with a manifest that fits it."""
    for name in ("measurements.parquet", "plan.toml"):
        shutil.copy(like / name, folder / name)
    manifest = {**read_sealed(folder / "release.json"), "files": read_sealed(like / "release.json")["files"]}
    (folder / "release.json").write_text(sealed_text(manifest), encoding="utf-8")
    Release.load(folder)


@pytest.fixture
def another_draw(tmp_path, ledger):
    """A release of the same plan, paid for by another ledger that calls it entry 1 as well."""
    return measure(plan_for(1), PERSONS, tmp_path / "another", opened(tmp_path / "another.ledger")).path


def test_another_draw_is_not_taken_for_the_release_that_was_paid_for(ledger, out, another_draw):
    measure(plan_for(1), PERSONS, out / "r", ledger)
    redrawn(out / "r", another_draw)
    said = refused(plan_for(1), out / "r", ledger)
    assert f"{ledger.path} did not pay for the noisy counts in {out / 'r'}" in said


def test_an_entry_of_another_plan_does_not_pay(ledger, out, another_draw):
    """A run of another plan broke off without measurements, and the manifest says that its entry paid for these."""
    entry = ledger.start_drawing(ledger.reserve("people", plan_for(2).hash, Budget.pure(1)).id)
    assert entry.head is not None
    shutil.copytree(another_draw, out / "r")
    claim = {"plan": entry.plan_hash, "entry": entry.id, "head": entry.head.to_dict()}
    file = out / "r" / "release.json"
    file.write_text(sealed_text({**read_sealed(file), **claim}), encoding="utf-8")
    said = refused(plan_for(1), out / "r", ledger)
    assert f"{ledger.path} did not pay for the noisy counts in {out / 'r'}" in said


def test_another_draw_is_not_finished_for_the_one_that_was_committed(ledger, out, another_draw, monkeypatch):
    """The run was killed after its commit: the ledger knows which draw it paid for."""

    def kill(step):
        if step == "committed":
            raise Killed

    with monkeypatch.context() as context:
        context.setattr(run, "_step", kill)
        with pytest.raises(Killed):
            measure(plan_for(1), PERSONS, out / "r", ledger)
    (staging,) = out.glob(".*.unfinished")
    redrawn(staging, another_draw)
    said = refused(plan_for(1), out / "r", ledger)
    assert f"did not pay for the noisy counts in {staging}" in said
    assert not (out / "r").exists()


@pytest.mark.parametrize("whose", ["another ledger's", "another entry's"])
def test_another_runs_draw_is_not_finished_for_one_that_broke_off(ledger, out, tmp_path, monkeypatch, whose):
    """The ledger has a reservation of this plan without measurements, and the folder has measurements of this plan."""
    if whose == "another ledger's":
        payer = opened(tmp_path / "payer.ledger")
        staging = sealed(plan_for(1), out / "r", payer, monkeypatch)
    else:
        staging = sealed(plan_for(1), out / "r", ledger, monkeypatch)
        manifest = {**read_sealed(staging / "release.json"), "entry": 2}
        (staging / "release.json").write_text(sealed_text(manifest), encoding="utf-8")
    ledger.start_drawing(ledger.reserve("people", plan_for(1).hash, Budget.pure(1), again=True).id)
    before = ledger.entries("people")
    said = refused(plan_for(1), out / "r", ledger)
    assert f"did not pay for the noisy counts in {staging}" in said
    assert ledger.entries("people") == before
