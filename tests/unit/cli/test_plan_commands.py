"""What `schema infer`, `check` and `plan` say, write and refuse before anything private is read."""

import json

import pyarrow as pa
import pytest

from prade import Budget, Ledger, Plan, Schema, Unit
from prade.data.read.tables import write_table
from prade.examples import census_like
from worlds.commands import call

COLUMNS = ["STATE", "PLACE", "AGE", "SEX", "TENURE"]
FEW = ["STATE", "PLACE", "AGE", "SEX"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    data = census_like(persons=1_500, places_per_state=4, seed=3)
    write_table(data.public.select(COLUMNS), folder / "public.parquet")
    data.schema.select(COLUMNS).save(folder / "schema.toml")
    write_table(data.groups.group_by(["STATE", "PLACE"]).aggregate([]), folder / "places.csv")
    return folder


def planning(files, *more):
    given = ["plan", "--schema", files / "schema.toml", "--public", files / "public.parquet"]
    return [*given, "--groups", files / "places.csv", "--levels", "STATE,PLACE", "--effort", 1, *more]


@pytest.fixture(scope="module")
def several(files, tmp_path_factory):
    """A run with three budgets: its folder and its JSON."""
    folder = tmp_path_factory.mktemp("several")
    done = call(*planning(files, "--epsilon", "10, 0.001,1", "-o", folder / "census.toml", "--json"))
    return folder, json.loads(done.stdout)


def test_each_budget_has_a_plan_and_all_have_a_page(several):
    folder, facts = several
    names = ["census-0.001.toml", "census-1.toml", "census-10.toml"]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, "explore.html"])
    assert facts["files"] == [str(folder / name) for name in names]
    assert facts["page"] == str(folder / "explore.html")
    for name, epsilon in zip(names, ("0.001", 1, 10), strict=True):
        assert Plan.load(folder / name).budget == Budget.pure(epsilon)


def test_the_json_and_the_page_have_all_of_it(several):
    folder, facts = several
    assert [budget["epsilon"] for budget in facts["budgets"]] == ["0.001", "1", "10"]
    for budget in facts["budgets"]:
        plan = Plan.load(folder / budget["file"])
        assert budget["plan"] == (folder / budget["file"]).read_text()
        assert budget["expected"]["error"] == plan.expected.error
        assert budget["advice"] == plan.expected.advice
        assert len(budget["pair_errors"]) == len(facts["columns"]) == 3
    cells = sum(len(column["labels"]) for column in facts["columns"])
    assert {len(place["truth"]) for place in facts["places"]} == {cells}
    assert facts["public"]["rows"] > 0
    page = (folder / "explore.html").read_text()
    assert all(budget["file"] in page for budget in facts["budgets"])


@pytest.mark.parametrize(
    ("budget", "kind"), [(["--rho", "0.1,1"], "zcdp"), (["--epsilon", "0.1,1", "--delta", "1e-9"], "approx")]
)
def test_several_rhos_and_several_epsilons_with_one_delta(files, tmp_path, budget, kind):
    given = planning(files, *budget, "-o", tmp_path / "plan.toml", "--page", tmp_path / "look.html")
    said = call(*given, "--effort", 0).stdout
    assert {Plan.load(path).budget.kind for path in tmp_path.glob("plan-*.toml")} == {kind}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["look.html", "plan-0.1.toml", "plan-1.toml"]
    assert said.startswith("rho" if kind == "zcdp" else "epsilon")


def test_a_weak_budget_is_remarked_on_and_its_command_says_so(files, tmp_path):
    (tmp_path / "explore.html").write_text("mine")
    given = planning(files, "--epsilon", "1,30", "-o", tmp_path / "plan.toml", "--effort", 0, "--json", "--force")
    done = call(*given)
    assert (tmp_path / "explore.html").read_text() != "mine"
    assert "Weak protection at epsilon = 30" in done.stderr
    first, second = json.loads(done.stdout)["budgets"]
    assert "--yes-weak-protection" in second["command"]
    assert "--yes-weak-protection" not in first["command"]
    entered, measured = first["command"].splitlines()  # a data set must be in the ledger before it is measured
    assert entered.startswith("prade ledger open ")
    assert "--cap CAP --max-rows-per-person" in entered
    assert measured == f"prade measure {tmp_path / 'plan-1.toml'} PRIVATE -o release-1"


@pytest.fixture
def no_work(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the work started")

    monkeypatch.setattr("prade.tuning.explore.explore", refuse)
    monkeypatch.setattr("prade.data.public.table.PublicTable.rows", refuse)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("existing", ["plan-0.1.toml", "plan-10.toml", "explore.html"])
def test_a_file_that_exists_is_refused_before_the_work(files, tmp_path, existing):
    (tmp_path / existing).write_text("mine")
    said = call(*planning(files, "--epsilon", "0.1,1,10", "-o", tmp_path / "plan.toml"), code=1).stderr
    assert f"{existing} exists already" in said
    assert ("--page" if existing == "explore.html" else "-o") in said
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("more", "words", "code"),
    [
        (["--epsilon", "1,1.0"], "given twice", 1),
        (["--epsilon", "1,much"], "epsilon is 'much'", 1),
        (["--epsilon", "0,1"], "budget is zero", 1),
        (["--epsilon", "1,2", "--rho", "1"], "give the budget as --epsilon", 2),
        (["--epsilon", "1,2", "--no-tune"], "compared by rehearsal", 2),
        (["--epsilon", "1,2", "--page", "no/such/folder.html"], "there is no folder", 1),
        (["--epsilon", "1", "--page", "x.html"], "for several budgets", 2),
        (["--epsilon", "1,2", "--page", "{}/plan-1.toml"], "is also the name of a plan: choose another", 2),
    ],
)
def test_what_cannot_work_is_refused_before_the_work(files, tmp_path, more, words, code):
    more = [each.format(tmp_path) for each in more]
    said = call(*planning(files, *more, "-o", tmp_path / "plan.toml"), code=code).stderr
    assert words in said
    assert list(tmp_path.iterdir()) == []


TARGETS = """version = 1
target = [{tables = ["AGE x SEX", "TENURE"], by = ["STATE", "PLACE"], weight = 3},
          {predicates = ["AGE >= 65"], by = "all"}]
"""


def test_targets_are_in_the_plan_and_on_the_page(files, tmp_path):
    (tmp_path / "targets.toml").write_text(TARGETS)
    given = ["--targets", tmp_path / "targets.toml", "--epsilon", "1,10", "-o", tmp_path / "plan.toml"]
    call(*planning(files, "--effort", 0, *given))
    plan = Plan.load(tmp_path / "plan-10.toml")
    assert [target.weight for target in plan.targets] == [3, 1]
    errors = plan.expected.targets
    by_level = [(what, by) for what in ("AGE x SEX", "TENURE") for by in ("STATE", "STATE+PLACE")]
    assert [(each.what, each.by) for each in errors] == [*by_level, ("AGE >= 65", "all")]
    page = (tmp_path / "explore.html").read_text()
    assert "<caption>Targets: expected errors</caption>" in page
    assert f"{errors[4].error:.4f}" in page


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    data = census_like(persons=300, places_per_state=2, seed=3)
    table = data.public.select(FEW)
    write_table(table, folder / "public.csv")
    write_table(table.drop(["AGE"]), folder / "ageless.csv")
    for name, cell in (("text", "heavy"), ("negative", "-3")):
        weights = pa.array(["1"] * 4 + [cell] + ["1"] * (table.num_rows - 5))
        write_table(table.append_column("WEIGHT", weights), folder / f"{name}.csv")
    data.schema.select(FEW).save(folder / "schema.toml")
    known = sorted({(row["STATE"], row["PLACE"]) for row in table.to_pylist()})
    places = {"STATE": [known[0][0], 98, 99], "PLACE": [known[0][1], "a", "b"]}
    write_table(pa.table(places), folder / "places.csv")
    return folder


def measuring(rows, public, *more):
    given = ["plan", "--schema", rows / "schema.toml", "--groups", rows / "places.csv", "--levels", "STATE,PLACE"]
    public = [each for name in public for each in ("--public", rows / name)]
    return [*given, *public, "--epsilon", 1, "--no-tune", *more]


@pytest.mark.parametrize(
    ("public", "more", "expected"),
    [
        (["ageless.csv"], [], "ageless.csv: the table has no column 'AGE'"),
        (["public.csv"], ["--weight", "WEIGHT"], "public.csv: the table has no column 'WEIGHT'"),
        (["text.csv"], ["--weight", "WEIGHT"], "text.csv: column 'WEIGHT': the weight of row 5 is 'heavy' (1 such"),
        (["negative.csv"], ["--weight", "WEIGHT"], "column 'WEIGHT': the weight of row 5 is '-3'"),
    ],
)
def test_a_plan_refuses_what_sample_cannot_read_and_names_the_file(rows, tmp_path, public, more, expected):
    said = call(*measuring(rows, public, *more), "-o", tmp_path / "plan.toml", code=1).stderr
    assert expected in said
    assert not (tmp_path / "plan.toml").exists()


def test_check_and_plan_say_what_will_not_be_measured(rows, tmp_path):
    given = ["check", "--schema", rows / "schema.toml", "--groups", rows / "places.csv", rows / "public.csv"]
    made = measuring(rows, ["public.csv"], "-o", tmp_path / "plan.toml", "--force")
    for command in (given, made):
        assert "1 of 3 groups occurs among the public rows" in call(*command).stdout
        assert json.loads(call(*command, "--json").stdout)["groups_with_public_rows"] == 1
    (tmp_path / "states.csv").write_text("STATE\n98\n99\n")
    given[4] = tmp_path / "states.csv"
    unlisted = "not in the list of groups, so that synthetic rows will lack them: PLACE"
    assert unlisted in call(*given).stdout
    assert json.loads(call(*given, "--json").stdout)["not_in_groups"] == ["PLACE"]
    made = ["plan", *given[1:5], "--levels", "STATE", "--public", rows / "public.csv", "-o", tmp_path / "plan.toml"]
    tuned = ["--epsilon", "1/1000", "--effort", 0, "--force"]  # so little that only numbers of rows are asked for
    said = call(*made, *tuned).stdout
    assert unlisted in said
    assert "not measured, so that their values follow the public table: AGE, SEX" in said


def test_the_people_are_those_of_the_release_before(rows, tmp_path, custodian):
    """--dataset and the unit need not be repeated, and another one has to be meant."""
    given = ["--max-rows-per-person", 2, "--person-id", "PERSON", "--dataset", "people"]
    first = tmp_path / "first"
    call("ledger", "open", "people", "--cap", 9, *given[:4])
    people = {"STATE": [98] * 400, "PLACE": ["a"] * 400, "AGE": [4] * 400, "SEX": [1] * 400, "PERSON": range(400)}
    write_table(pa.table(people), tmp_path / "p.csv")
    call("synthesize", tmp_path / "p.csv", *measuring(rows, ["public.csv"], *given)[1:], "-o", first)
    named = ["--public", rows / "public.csv"]  # it lies outside the release's folder
    following = measuring(rows, [], "--previous", first, "--force", "-o", tmp_path / "next.toml")
    assert "lies outside the plan's folder" in call(*following, code=1).stderr
    for more in ([], given):
        call(*following, *named, *more)
        plan = Plan.load(tmp_path / "next.toml")
        assert (plan.dataset, plan.unit) == ("people", Unit(2, person_id="PERSON"))
    for option, other, words in (
        ("--dataset", "private", "is about the data set 'people', and this plan about the data set 'private'"),
        ("--max-rows-per-person", 3, "is about the unit Unit(max_rows=2, person_id='PERSON'"),
        ("--person-id", "ID", "and this plan about the unit Unit(max_rows=2, person_id='ID'"),
    ):
        said = call(*following, *named, option, other, code=1).stderr
        assert words in said
        assert "add --other-people if these are other people" in said
    call(*following, *named, "--dataset", "private", "--other-people")
    assert Plan.load(tmp_path / "next.toml").dataset == "private"
    assert "--other-people" in call(*measuring(rows, ["public.csv"], "--other-people"), code=2).stderr
    again = ["synthesize", tmp_path / "p.csv", *following[1:-3], *named, "-o", tmp_path / "second"]
    assert "--other-people" in call(*again, "--dataset", "private", code=1).stderr
    call(*again)
    assert [entry.dataset for entry in Ledger(custodian).entries("people")] == ["people"] * 2


@pytest.mark.parametrize("command", ["plan", "infer"])
def test_an_existing_file_is_replaced_with_force_only(rows, tmp_path, command):
    infer = ["schema", "infer", rows / "public.csv", "--groups", "STATE,PLACE"]
    given = measuring(rows, ["public.csv"]) if command == "plan" else infer
    place = tmp_path / "made.toml"
    place.write_text("by hand")
    said = call(*given, "-o", place, code=1).stderr
    assert "exists already; give another name with -o, or add --force to replace it" in said
    assert place.read_text() == "by hand"
    call(*given, "-o", place, "--force")
    assert place.read_text() != "by hand"
    if command == "infer":
        assert Schema.load(place).coded == ("AGE", "SEX")


def test_infer_says_what_it_took_for_missing(tmp_path):
    """As in the NIST files, where "N" stands for a question that was not asked."""
    rows = [f"{age},{'N' if age < 15 else 1000.0 * age},{'N' if age % 3 else age % 2}" for age in range(80)]
    (tmp_path / "public.csv").write_text("\n".join(["AGEP,PAY,KIND", *rows]) + "\n")
    done = call("schema", "infer", tmp_path / "public.csv", "-o", tmp_path / "s.toml")
    assert "'N' is not a number and was taken for missing (68 cells): PAY, KIND" in done.stderr
    given = ["schema", "infer", tmp_path / "public.csv", "-o", tmp_path / "s.toml", "--force", "--json"]
    assert json.loads(call(*given).stdout)["read_as_missing"] == {"PAY": {"N": 15}, "KIND": {"N": 53}}
