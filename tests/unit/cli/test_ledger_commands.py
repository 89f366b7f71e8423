"""The ledger on the command line: one per custodian, with a cap that the custodian gave, whatever folder is written."""

import json
import shlex

import pytest

from prade import Budget, Ledger, Unit
from prade.cli import main as cli
from prade.data.read.tables import write_table
from worlds.commands import call
from worlds.plans import EVERYBODY, PERSONS, SCHEMA, TWO_ROWS, plan_of


@pytest.fixture
def files(tmp_path):
    """A plan, another one, and a private table."""
    write_table(PERSONS, tmp_path / "private.parquet")
    for epsilon in (1, 2):
        plan = plan_of(SCHEMA, EVERYBODY, budget=epsilon, unit=TWO_ROWS, dataset="people")
        plan.save(tmp_path / f"plan{epsilon}.toml")
    return tmp_path


def enter(*more):
    unit = ["--max-rows-per-person", 2, "--person-id", "PERSON"]
    return call("ledger", "open", "people", *(unit if "--max-rows-per-person" not in more else []), *more)


def measuring(files, folder, number=1):
    (files / folder).mkdir(exist_ok=True)
    return ["measure", files / f"plan{number}.toml", files / "private.parquet", "-o", files / folder / "release"]


def test_one_ledger_whatever_folder_is_written(files, custodian):
    """The issue's own case: the same plan and table into a/release and b/release; the second used to be free."""
    enter("--cap", 1)
    assert f"left for 'people' in {custodian}" in call(*measuring(files, "a")).stdout
    said = call(*measuring(files, "b"), code=cli.TOO_MUCH).stderr
    assert f"has already been paid for on data set 'people' in {custodian}" in said
    said = call(*measuring(files, "b"), "--again", code=cli.TOO_MUCH).stderr
    assert "has epsilon = 0 (pure differential privacy) left of epsilon = 1 (pure differential privacy)" in said
    assert sorted(path.name for path in files.rglob("*ledger*")) == ["ledger.json"]


def test_a_data_set_without_a_cap_is_refused_with_the_command_to_run(files, custodian):
    said = call(*measuring(files, "a"), code=1).stderr
    assert f"{custodian} does not know data set 'people', so nothing was measured" in said
    assert not custodian.exists()
    assert list((files / "a").iterdir()) == []
    command = said.partition("people: prade ")[2].partition(" (")[0]
    assert str(custodian) in command
    call(*shlex.split(command))
    assert Ledger(custodian).dataset("people").unit == TWO_ROWS
    call(*measuring(files, "a"))
    assert "No such option" in call(*measuring(files, "a"), "--cap", 4, code=2).stderr


REPLACED = "--max-rows-per-person 7 --person-id ID --max-rows-per-group 2 --neighbours replace"


@pytest.mark.parametrize(
    ("given", "cap", "unit"),
    [
        (["--cap", "1/3"], Budget.pure("1/3"), TWO_ROWS),
        (["--cap", 2, "--delta", "1e-9"], Budget.approx(2, "1e-9"), TWO_ROWS),
        (["--rho", "0.5"], Budget.zcdp("1/2"), TWO_ROWS),
        (shlex.split(f"--cap 4 {REPLACED}"), Budget.pure(4), Unit(7, "ID", 2, "replace")),
    ],
)
def test_a_data_set_is_entered_completely(custodian, given, cap, unit):
    said = enter(*given).stdout
    assert str(custodian) in said
    assert unit.promise() in said
    home = Ledger(custodian).dataset("people")
    assert (home.cap, home.unit) == (cap, unit)
    found = json.loads(enter(*given, "--json").stdout)
    assert (found["cap"], found["unit"]) == (cap.to_dict(), unit.to_dict())
    assert Ledger(custodian).head().number == 2  # entering it again has changed nothing


def test_a_cap_must_be_said_in_one_way(custodian):
    for given in ([], ["--delta", "1e-9"], ["--cap", 1, "--rho", 1]):
        said = call("ledger", "open", "people", *given, code=2).stderr
        assert "give the budget as --cap, as --cap with --delta, or as --rho" in said
    assert "the name of a data set is ' '" in call("ledger", "open", " ", "--cap", 1, code=1).stderr
    assert not custodian.exists()


def test_a_cap_is_raised_with_a_reason(custodian):
    enter("--cap", 4)
    assert "Missing option '--reason'" in call("ledger", "raise-cap", "people", "--cap", 6, code=2).stderr
    raised = ["ledger", "raise-cap", "people", "--reason", "a second wave", "--cap"]
    assert f"{custodian}, and epsilon = 3" in call(*raised, 3, code=1).stderr
    assert f"{custodian}: data set 'people' now has the cap epsilon = 6" in call(*raised, 6).stdout
    assert "to epsilon = 6 (pure differential privacy): a second wave" in call("ledger", "show", "people").stdout
    (found,) = json.loads(call("ledger", "show", "--json").stdout)
    assert found["raises"][0]["reason"] == "a second wave"
    assert found["remaining"] == Budget.pure(6).to_dict()
    said = call("ledger", "open", "people", "--cap", 4, code=1).stderr
    assert "to raise the cap, use `prade ledger raise-cap`" in said


def test_a_weak_cap_is_remarked_on_and_not_refused(custodian):
    """What several releases tell adds up, though each of their plans may protect well."""
    words = "is weak protection once it is spent, in one release or in several"
    assert words not in enter("--cap", 20).stderr
    raised = call("ledger", "raise-cap", "people", "--cap", 21, "--reason", "approved", "--json")
    assert words in raised.stderr
    assert json.loads(raised.stdout)["dataset"] == "people"
    assert words in call("ledger", "open", "others", "--rho", 10).stderr


def test_releases_of_a_lost_ledger_are_imported(files, custodian):
    enter("--cap", 4)
    call(*measuring(files, "a"))
    custodian.unlink()
    said = call(*measuring(files, "a", 2)[:-1], files / "a" / "second", code=1).stderr
    assert "put what was spent on record (with a cap that covers what was spent): prade ledger open people" in said
    enter("--cap", 2)
    release = files / "a" / "release"
    assert f"entry 1 (imported) of 'people' in {custodian}" in call("ledger", "import", release).stdout
    (found,) = json.loads(call("ledger", "import", release, "--json").stdout)
    assert (found["state"], found["cost"], found["ledger"]) == ("imported", Budget.pure(1).to_dict(), str(custodian))
    said = call(*measuring(files, "a", 2)[:-1], files / "a" / "second", code=cli.TOO_MUCH).stderr
    assert "has epsilon = 1 (pure differential privacy) left of epsilon = 2 (pure differential privacy)" in said
    call("ledger", "raise-cap", "people", "--cap", 3, "--reason", "the second plan")
    call(*measuring(files, "a", 2)[:-1], files / "a" / "second")
    assert Ledger(custodian).remaining("people") == Budget.pure(0)


def test_a_budget_is_divided_over_years_and_no_year_spends_more(files, tmp_path):
    enter("--cap", 3)
    done = call("ledger", "plan", "people", "--years", 2, "--shares", "1,2")
    assert "epsilon = 1 (pure differential privacy) may be spent this year." in done.output
    private = files / "private.parquet"
    refused = call("measure", files / "plan2.toml", private, "-o", tmp_path / "release", code=3)
    assert "is in year 1 of 2 (epsilon = 1, epsilon = 2)" in refused.stderr
    assert "begin the next year with `prade ledger next-year`" in refused.stderr
    facts = json.loads(call("ledger", "next-year", "people", "--json").stdout)
    assert facts["division"]["year"] == 2
    assert facts["left_this_year"] == {"kind": "pure", "epsilon": "3"}
    call("measure", files / "plan2.toml", private, "-o", tmp_path / "release")
    assert "years      year 2 of 2" in call("ledger", "show", "people").output
    assert "has no year after 2" in call("ledger", "next-year", "people", code=1).stderr


@pytest.fixture
def reserved(custodian):
    """An entry whose run failed while it counted."""
    enter("--cap", 4)
    entry = Ledger(custodian).reserve("people", "3f2a", Budget.pure(1), "ages", folder="/releases/first")
    return Ledger(custodian).fail(entry.id, "count", "DataError")


def test_an_entry_is_given_back_on_the_record(custodian, reserved):
    failure = reserved.failures[0]
    shown = call("ledger", "show", "people").stdout
    assert f"failure    {failure.time}, stage count, DataError" in shown
    assert "failed     spent, but no noise was drawn" in shown
    (found,) = json.loads(call("ledger", "show", "--json").stdout)
    assert found["entries"][0]["failures"] == [{"stage": "count", "kind": "DataError", "time": failure.time}]
    assert found["remaining"] == Budget.pure(3).to_dict()

    returned = json.loads(call("ledger", "return", reserved.id, "--reason", "the database was down", "--json").stdout)
    assert (returned["id"], returned["dataset"], returned["state"]) == (1, "people", "returned")
    assert (returned["ledger"], returned["remaining"]) == (str(custodian), Budget.pure(4).to_dict())
    shown = call("ledger", "show", "people").stdout
    assert "nothing is spent: the database was down" in shown
    assert "stage count, DataError" in shown
    (listed,) = json.loads(call("ledger", "list", "--json").stdout)
    assert (listed["entries"], listed["remaining"]) == (1, Budget.pure(4).to_dict())
    for entry, words in ((1, "was given back on"), (7, f"{custodian} has no entry 7; `prade ledger show` lists all")):
        assert words in call("ledger", "return", entry, "--reason", "why", code=1).stderr
    assert "Missing option '--reason'" in call("ledger", "return", 1, code=2).stderr
