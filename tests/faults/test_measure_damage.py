"""What `measure` and `Release.load` do with damaged files, wrong folders and wrong ledgers, and when a helper fails."""

import json
import os
import shutil
import stat
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Budget, Ledger, Workload
from prade.core.errors import BudgetError, DataError, PradeError
from prade.core.execution import Execution
from prade.measuring import run
from prade.measuring.run import measure
from prade.planning.questions import Level
from prade.queries.parts import Cells
from prade.release.release import Release, read_sealed, sealed_text
from worlds.counting import duckdb_file, sqlite_file
from worlds.plans import IN_TOWNS, TOWN_PLAN, ledger_for, plan_of, town_plan

FILES = ("plan.toml", "measurements.parquet", "release.json", "ledger.json")


class Killed(BaseException):
    """In place of a kill."""


@pytest.fixture
def ledger(tmp_path):
    return ledger_for(TOWN_PLAN, tmp_path / "budget.ledger", 3)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder with a ledger and a release in it."""
    home = tmp_path_factory.mktemp("original")
    measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger_for(TOWN_PLAN, home / "budget.ledger", 3))
    return home


@pytest.fixture
def home(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "home"))


@pytest.fixture
def sealed(tmp_path, ledger, monkeypatch):
    """What a run that was killed at the seal leaves, for the folder `tmp_path / "release"`."""
    return seal(tmp_path / "release", ledger, monkeypatch)


def seal(place, ledger, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(run, "_finish", raising(Killed()))
        with pytest.raises(Killed):
            measure(TOWN_PLAN, IN_TOWNS, place, ledger)
    (staging,) = place.parent.glob(".*.unfinished")
    return staging


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


def hidden(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def same(one, other):
    mine, theirs = ([part.tolist() for parts in each.noisy for part in parts] for each in (one, other))
    return mine == theirs


@pytest.mark.parametrize("name", FILES[:3])
def test_no_changed_byte_passes(home, name):
    """One bit of every third byte is changed: the file is refused by its name, or says the same as ever."""
    path = home / "release" / name
    sound = path.read_bytes()
    complaints = []
    places = range(0, len(sound), 3)
    for place in places:
        changed = bytearray(sound)
        changed[place] ^= (0x01, 0x02, 0x04, 0x10, 0x80)[place % 5]
        path.write_bytes(changed)
        try:
            Release.load(home / "release")
        except DataError as error:
            complaints.append(str(error))
        else:
            assert name == "release.json", place
            assert json.loads(changed) == json.loads(sound), place  # the blanks between words
    assert all(name in complaint for complaint in complaints)
    assert len(sound) > 400
    assert len(complaints) == len(places) if name != "release.json" else len(complaints) > 0.8 * len(places)
    path.write_bytes(sound[:-9])
    with pytest.raises(DataError, match=name):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", home / "budget.ledger")
    path.write_bytes(sound)
    measure(TOWN_PLAN, IN_TOWNS, home / "release", home / "budget.ledger")
    assert len(Ledger(home / "budget.ledger").entries("people")) == 1


def test_a_changed_account_is_not_told(home):
    release, path = Release.load(home / "release"), home / "release" / "ledger.json"
    sound = path.read_text()
    assert "remaining  epsilon = 2" in release.account()
    path.write_text(sound.replace("remaining  epsilon = 2", "remaining  epsilon = 9"))
    with pytest.raises(DataError, match=r"ledger\.json is damaged: restore the original"):
        release.account()
    path.unlink()
    with pytest.raises(DataError, match=r"it has no ledger\.json"):
        release.account()


@pytest.mark.parametrize("name", FILES[:3])
def test_a_missing_file(home, name):
    (home / "release" / name).unlink()
    with pytest.raises(DataError, match=f"there is no file .*{name}" if name in FILES[:2] else f"it has no {name}"):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", home / "budget.ledger")
    (home / "release" / name).mkdir()
    with pytest.raises(DataError, match=rf"{name} cannot be read \(Is a directory\)"):
        Release.load(home / "release")


def test_a_newer_release(home):
    manifest = {**read_sealed(home / "release" / "release.json"), "format": 2}
    (home / "release" / "release.json").write_text(sealed_text(manifest))
    with pytest.raises(DataError, match=r"release\.json has release format 2, this version reads 1: update prade"):
        Release.load(home / "release")


def test_folders_that_hold_something_else(home):
    ledger = Ledger(home / "budget.ledger")
    (home / "mine").mkdir()
    (home / "mine" / "thesis.txt").write_text("chapter 1")
    for place in (home / "mine", home / "mine" / "thesis.txt"):
        with pytest.raises(
            DataError, match=r"is not a release: it has no release\.json\. Give .* a new one to measure into"
        ):
            measure(town_plan("a"), IN_TOWNS, place, ledger)
    with pytest.raises(DataError, match="holds the release of another plan; choose a separate folder"):
        measure(town_plan("a"), IN_TOWNS, home / "release", ledger)
    with pytest.raises(DataError, match="already holds a release of this plan, which is kept; choose another folder"):
        measure(TOWN_PLAN, IN_TOWNS, home / "release", ledger, again=True)
    with pytest.raises(BudgetError, match=r"were written to .*; using them again costs nothing"):
        measure(TOWN_PLAN, IN_TOWNS, home / "elsewhere", ledger)
    with pytest.raises(DataError, match=r"there is no folder .*nowhere; make it first"):
        measure(town_plan("a"), IN_TOWNS, home / "nowhere" / "release", ledger)
    assert len(ledger.entries("people")) == 1
    assert (home / "mine" / "thesis.txt").read_text() == "chapter 1"
    assert not hidden(home)


def test_a_name_that_leaves_no_room_for_a_longer_one(tmp_path, ledger):
    with pytest.raises(DataError, match=r"File name too long.* choose another folder\nIn this run nothing was spent"):
        measure(TOWN_PLAN, IN_TOWNS, tmp_path / ("r" * 250), ledger)
    assert ledger.entries("people") == []


def test_an_empty_folder_and_a_link_to_one_are_used(tmp_path, ledger):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    release = measure(TOWN_PLAN, IN_TOWNS, tmp_path / "link", ledger)
    assert same(measure(TOWN_PLAN, IN_TOWNS, tmp_path / "real", ledger), release)
    assert len(ledger.entries("people")) == 1


@pytest.mark.parametrize("name", ["[1]", "r*", "an {odd} name?", "-r", "\N{SNOWMAN}"])
def test_odd_names_lose_nothing(tmp_path, ledger, monkeypatch, name):
    kept = Release.load(seal(tmp_path / name, ledger, monkeypatch))
    assert same(measure(TOWN_PLAN, IN_TOWNS, tmp_path / name, ledger), kept)
    assert len(ledger.entries("people")) == 1


@pytest.mark.parametrize("name", FILES[:3])
@pytest.mark.parametrize("again", [False, True])
def test_damage_to_what_a_killed_run_left(sealed, ledger, tmp_path, name, again):
    """It is neither released nor credited nor thrown away, and it can be given up."""
    changed = bytearray((sealed / name).read_bytes())
    changed[len(changed) // 2] ^= 1
    (sealed / name).write_bytes(changed)
    with pytest.raises(
        DataError, match=f"{name} .*Or give them up: remove that folder; to spend .* once more, pass again=True"
    ):
        measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger, again=again)
    (entry,) = ledger.entries("people")
    assert (entry.state, entry.drawn) == ("failed", True)
    assert not (tmp_path / "release").exists()
    with pytest.raises(PradeError, match="cannot be given back"):
        ledger.give_back(entry.id, "it is damaged")
    shutil.rmtree(sealed)
    with pytest.raises(BudgetError, match="has already been paid for"):
        measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger, again=True)
    assert [entry.state for entry in ledger.entries("people")] == ["failed", "committed"]


def test_what_is_left_for_one_plan_stays_while_another_takes_the_place(sealed, ledger, tmp_path):
    kept = Release.load(sealed)
    measure(town_plan("a"), IN_TOWNS, tmp_path / "release", ledger)
    assert same(Release.load(sealed), kept)
    (tmp_path / "release").rename(tmp_path / "other")
    assert same(measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger), kept)
    assert [entry.state for entry in ledger.entries("people")] == ["committed", "committed"]


def test_the_ledger_goes_away_in_between(tmp_path, ledger, monkeypatch):
    away = tmp_path / "away"

    def move(*arguments):
        ledger.path.rename(away)
        return finish(*arguments)

    finish = run._finish
    with monkeypatch.context() as context:
        context.setattr(run, "_finish", move)
        with pytest.raises(DataError, match=r"are paid for, but could not be moved to .*there is no ledger at"):
            measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    away.rename(ledger.path)
    measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    assert len(ledger.entries("people")) == 1


def failing_table(kind, place, monkeypatch):
    """A table whose engine fails amid the rows, with an error that quotes one, or whose file is cut off meanwhile."""
    if kind == "InvalidInputException":
        age = "CASE WHEN AGE = 70 THEN error('person Miller is ' || AGE) ELSE AGE END::BIGINT AS AGE"
        return duckdb_file(
            place,
            "CREATE TABLE raw AS SELECT n AS AGE, 'a' AS TOWN FROM range(90) AS t(n)",
            f"CREATE VIEW people AS SELECT {age}, TOWN FROM raw",
        )
    if kind == "OperationalError":
        age = "json_extract('Miller ' || AGE, '$.x' || AGE) AS AGE"
        view = f"CREATE VIEW failing AS SELECT {age}, TOWN FROM people"
        rows = [(number, "a") for number in range(90)]
        return sqlite_file(place, "AGE integer, TOWN text", rows, view).replace("/people", "/failing")
    path, count = place.with_suffix(".parquet"), run.counts_of
    pq.write_table(pa.table({"AGE": [70] * 60_000, "TOWN": ["Miller"] * 60_000}), path, row_group_size=1000)
    cut = partial(os.truncate, path, path.stat().st_size // 3)
    monkeypatch.setattr(run, "counts_of", lambda *given: (cut(), count(*given))[1])
    return str(path)


@pytest.mark.parametrize("kind", ["InvalidInputException", "OperationalError", "ArrowInvalid"])
def test_an_engine_that_fails_amid_the_rows_leaves_its_errors_name_and_no_word_of_it(
    tmp_path, ledger, monkeypatch, kind
):
    with (
        monkeypatch.context() as context,
        pytest.raises(DataError, match="its own message is not shown because it may quote private rows") as caught,
    ):
        measure(TOWN_PLAN, failing_table(kind, tmp_path / "rows", context), tmp_path / "release", ledger)
    (entry,) = ledger.entries("people")
    assert (entry.state, [(each.stage, each.kind) for each in entry.failures]) == ("failed", [("count", kind)])
    assert ledger.remaining("people") == Budget.pure(2)
    told = str(caught.value) + ledger.account("people") + repr(entry) + repr(ledger.path.read_bytes())
    assert "Miller" not in told
    assert "quote" not in repr(ledger.path.read_bytes())  # nor of our own error
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert not hidden(tmp_path)
    measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    (entry,) = ledger.entries("people")
    assert (entry.state, len(entry.resumed)) == ("committed", 1)
    assert ledger.remaining("people") == Budget.pure(2)


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_a_table_that_is_cut_off_before_it_is_opened_costs_nothing(tmp_path, ledger, kind):
    path = tmp_path / f"rows.{kind}"
    private = duckdb_file(path, people=IN_TOWNS) if kind == "duckdb" else str(path)
    pq.write_table(IN_TOWNS, path) if kind == "parquet" else None
    os.truncate(path, path.stat().st_size // 3)
    with pytest.raises(DataError, match=r"DuckDB does not open|not a well-formed parquet file"):
        measure(TOWN_PLAN, private, tmp_path / "release", ledger)
    assert ledger.entries("people") == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (type("Error", (Exception,), {"kind": "Miller"})(), "Error"),  # some libraries' errors have such a text
        (type("Error[Miller]", (Exception,), {})(), "Exception"),
        (DataError("4711 is Miller"), "DataError"),
    ],
)
def test_a_failure_is_recorded_by_the_name_of_its_class_whatever_else_it_has(
    tmp_path, ledger, monkeypatch, error, kind
):
    monkeypatch.setattr(run, "_counted", raising(error))
    with pytest.raises(type(error)):
        measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    (entry,) = ledger.entries("people")
    assert [(each.stage, each.kind) for each in entry.failures] == [("count", kind)]
    assert b"Miller" not in ledger.path.read_bytes()


def cannot_be_kept():
    """A plan with half a character in a label."""
    halves = Workload(TOWN_PLAN.schema, [Cells(["AGE"], [0, 0, 1], 2, ["young", "\ud800"])])
    return plan_of(TOWN_PLAN.schema, Level("TOWN", halves), groups=TOWN_PLAN.groups, dataset="people")


@pytest.mark.parametrize(
    ("broken", "plan", "threads", "error"),
    [
        (("version", ImportError("opendp")), TOWN_PLAN, 1, ImportError),
        (("add_noise", ImportError("opendp")), TOWN_PLAN, 1, ImportError),
        (("need_room", OSError()), TOWN_PLAN, 1, DataError),
        (None, TOWN_PLAN, "two", TypeError),
        (None, cannot_be_kept(), 1, PradeError),
    ],
    ids=["version", "add_noise", "need_room", "threads", "text"],
)
def test_what_fails_in_preparation_costs_nothing(tmp_path, ledger, monkeypatch, broken, plan, threads, error):
    with monkeypatch.context() as context:
        if broken is not None:
            context.setattr(run, broken[0], raising(broken[1]))
        with pytest.raises(error):
            measure(plan, IN_TOWNS, tmp_path / "release", ledger, execution=Execution(threads))
    assert ledger.entries("people") == []
    assert not hidden(tmp_path)
    measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("Miller is secret"), OSError(28, "Miller")])
def test_a_draw_that_fails_is_spent_and_says_so(tmp_path, ledger, monkeypatch, error):
    with monkeypatch.context() as context:
        context.setattr(run, "_draw", raising(error))
        with pytest.raises(
            DataError, match=r"pass again=True\nIn this run .* was spent; it is in .* entry 1"
        ) as caught:
            measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    assert "Miller" not in str(caught.value)
    assert b"Miller" not in ledger.path.read_bytes()
    assert caught.value.__context__ is None  # crash reporters follow it
    (entry,) = ledger.entries("people")
    assert (entry.state, entry.drawn) == ("failed", True)
    assert [(each.stage, each.kind) for each in entry.failures] == [("draw", type(error).__name__)]
    assert not hidden(tmp_path)
    with pytest.raises(PradeError, match="its noise was drawn, or may have been, so it cannot be given back"):
        ledger.give_back(entry.id, "nothing was drawn")
    with pytest.raises(BudgetError, match="has already been paid for"):
        measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger, again=True)
    assert ledger.remaining("people") == Budget.pure(1)


def test_a_file_system_that_cannot_make_names_durable(tmp_path, ledger, monkeypatch):
    """Some network file systems refuse to sync a folder; what was paid for is released all the same."""
    sync = os.fsync

    def refuse_folders(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(22, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger)
    assert [entry.state for entry in ledger.entries("people")] == ["committed"]
