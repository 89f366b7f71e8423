"""`prade plan` with several budgets: a table, one plan for each, a page; refusals come before the work."""

import json

import pytest

from prade import Budget, Plan
from prade.data.read.tables import write_table
from prade.examples import census_like
from worlds.commands import call

COLUMNS = ["STATE", "PLACE", "AGE", "SEX", "TENURE"]


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


def test_the_json_has_all_of_it_in_lists(several):
    folder, facts = several
    assert [budget["epsilon"] for budget in facts["budgets"]] == ["0.001", "1", "10"]
    for budget in facts["budgets"]:
        plan = Plan.load(folder / budget["file"])
        assert budget["plan"] == (folder / budget["file"]).read_text()
        assert budget["expected"]["error"] == plan.expected.error
        assert budget["advice"] == plan.expected.advice
        assert len(budget["pair_errors"]) == len(facts["columns"]) == 3
    cells = sum(len(column["labels"]) for column in facts["columns"])
    assert [len(table["truth"][0]) for table in facts["tables"]] == [cells] * len(facts["places"])
    assert facts["public"]["rows"] > 0
    assert "packed" not in json.dumps(facts)


def test_the_page_has_the_plans_and_is_one_file(several):
    folder, facts = several
    page = (folder / "explore.html").read_text()
    assert facts["dataset"] in page
    assert all(budget["file"] in page for budget in facts["budgets"])
    assert '"packed"' in page


def test_the_table_the_elbow_and_the_files_are_printed(files, tmp_path):
    said = call(*planning(files, "--epsilon", "0.001,10", "-o", tmp_path / "plan.toml", "--no-page")).stdout
    header, first, second, *rest = said.splitlines()
    assert header.split("  ")[0] == "epsilon"
    assert all(title in header for title in ("expected error", "public baseline", "improvement", "groups at risk"))
    assert first.startswith("0.001 ")
    assert first.endswith("no")
    assert second.startswith("10 ")
    assert second.endswith("yes")
    assert "Only at epsilon = 10 is the result expected to be better than the public table." in rest
    assert "Nothing private was read, and nothing was spent." in rest
    assert rest[-1] == f"The plans are in {tmp_path / 'plan-0.001.toml'}, {tmp_path / 'plan-10.toml'}."
    assert not (tmp_path / "explore.html").exists()


@pytest.mark.parametrize(
    ("budget", "kind"),
    [(["--rho", "0.1,1"], "zcdp"), (["--epsilon", "0.1,1", "--delta", "1e-9"], "approx")],
)
def test_several_rhos_and_several_epsilons_with_one_delta(files, tmp_path, budget, kind):
    given = planning(files, *budget, "-o", tmp_path / "plan.toml", "--page", tmp_path / "look.html")
    said = call(*given, "--effort", 0).stdout
    assert {Plan.load(path).budget.kind for path in tmp_path.glob("plan-*.toml")} == {kind}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["look.html", "plan-0.1.toml", "plan-1.toml"]
    assert said.startswith("rho" if kind == "zcdp" else "epsilon")


def test_a_weak_budget_is_remarked_on_and_its_command_says_so(files, tmp_path):
    done = call(*planning(files, "--epsilon", "1,30", "-o", tmp_path / "plan.toml", "--effort", 0, "--json"))
    assert "Weak protection at epsilon = 30" in done.stderr
    first, second = json.loads(done.stdout)["budgets"]
    assert "--yes-weak-protection" in second["command"]
    assert "--yes-weak-protection" not in first["command"]


# ---------------------------------------------------------------- refusals


@pytest.fixture
def no_work(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the work started")

    monkeypatch.setattr("prade.tuning.explore.explore", refuse)
    monkeypatch.setattr("prade.data.public.table.PublicTable.rows", refuse)


@pytest.mark.usefixtures("no_work")
def test_a_page_must_not_replace_a_plan(files, tmp_path):
    given = planning(files, "--epsilon", "1,2", "-o", tmp_path / "w.toml", "--page", tmp_path / "w-1.toml", "--force")
    assert "is also the name of a plan: choose another" in call(*given, code=2).stderr


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("existing", ["plan-0.1.toml", "plan-10.toml", "explore.html"])
def test_a_file_that_exists_is_refused_before_the_work(files, tmp_path, existing):
    (tmp_path / existing).write_text("mine")
    said = call(*planning(files, "--epsilon", "0.1,1,10", "-o", tmp_path / "plan.toml"), code=1).stderr
    assert f"{existing} exists already" in said
    assert ("--page" if existing == "explore.html" else "-o") in said
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


def test_force_replaces_them(files, tmp_path):
    for name in ("plan-1.toml", "explore.html"):
        (tmp_path / name).write_text("mine")
    call(*planning(files, "--epsilon", "1,10", "-o", tmp_path / "plan.toml", "--force", "--effort", 0))
    assert all((tmp_path / name).read_text() != "mine" for name in ("plan-1.toml", "explore.html"))


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("more", "words", "code"),
    [
        (["--epsilon", "1,1.0"], "given twice", 1),
        (["--epsilon", "1,,2"], "epsilon is ''", 1),
        (["--epsilon", "1,much"], "epsilon is 'much'", 1),
        (["--epsilon", "0,1"], "budget is zero", 1),
        (["--epsilon", "1,2", "--rho", "1"], "give the budget as --epsilon", 2),
        (["--epsilon", "1,2", "--no-tune"], "compared by rehearsal", 2),
        (["--epsilon", "1,2", "--page", "no/such/folder.html"], "there is no folder", 1),
        (["--epsilon", "1", "--page", "x.html"], "for several budgets", 2),
        (["--epsilon", "1", "--no-page"], "for several budgets", 2),
    ],
)
def test_what_cannot_work_is_refused_before_the_work(files, tmp_path, more, words, code):
    said = call(*planning(files, *more, "-o", tmp_path / "plan.toml"), code=code).stderr
    assert words in said
    assert list(tmp_path.iterdir()) == []


def test_a_single_budget_writes_one_plan_and_no_page(files, tmp_path):
    said = call(*planning(files, "--epsilon", "1", "-o", tmp_path / "plan.toml")).stdout
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]
    assert said.rstrip().endswith(f"The plan is in {tmp_path / 'plan.toml'}.")


# ---------------------------------------------------------------- targets

TARGETS = """\
version = 1

[[target]]
tables = ["AGE x SEX", "TENURE"]
by = ["STATE", "PLACE"]
weight = 3

[[target]]
predicates = ["AGE >= 65"]
by = "all"
"""


def test_targets_are_in_the_plan_the_table_and_the_page(files, tmp_path):
    (tmp_path / "targets.toml").write_text(TARGETS)
    given = ["--targets", tmp_path / "targets.toml", "--epsilon", "1,10", "-o", tmp_path / "plan.toml"]
    said = call(*planning(files, "--effort", 0, *given)).stdout
    plan = Plan.load(tmp_path / "plan-10.toml")
    assert [target.weight for target in plan.targets] == [3, 1]
    errors = plan.expected.targets
    assert [(each.what, each.by) for each in errors] == [
        ("AGE x SEX", "STATE"),
        ("AGE x SEX", "STATE+PLACE"),
        ("TENURE", "STATE"),
        ("TENURE", "STATE+PLACE"),
        ("AGE >= 65", "all"),
    ]
    row = next(line for line in said.splitlines() if line.startswith("AGE >= 65"))
    assert row.split()[-3:] == [f"{errors[4].prior:.4f}", *(
        f"{Plan.load(tmp_path / f'plan-{epsilon}.toml').expected.targets[4].error:.4f}" for epsilon in (1, 10)
    )]  # fmt: skip
    page = (tmp_path / "explore.html").read_text()
    assert "<caption>Targets: expected errors</caption>" in page
    assert f"{errors[4].error:.4f}" in page


def test_a_target_that_the_task_lacks_is_refused_before_the_work(files, tmp_path):
    (tmp_path / "targets.toml").write_text(TARGETS.replace('"STATE", "PLACE"', '"COUNTY"'))
    given = ["--targets", tmp_path / "targets.toml", "--epsilon", 1, "-o", tmp_path / "plan.toml"]
    done = call(*planning(files, *given), code=1)
    assert (
        "target 1: by names COUNTY, which is not a level of the task; its levels are STATE, STATE+PLACE, all"
        in done.output
    )
    assert not (tmp_path / "plan.toml").exists()
