"""What `schema infer`, `check` and `plan` say and refuse before anything private is read."""

import json

import pyarrow as pa
import pytest

from prade import Ledger, Plan, Schema, Unit
from prade.data.read.tables import write_table
from prade.examples import census_like
from worlds.commands import call

COLUMNS = ["STATE", "PLACE", "AGE", "SEX"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    data = census_like(persons=300, places_per_state=2, seed=3)
    rows = data.public.select(COLUMNS)
    write_table(rows, folder / "public.csv")
    write_table(rows.drop(["AGE"]), folder / "ageless.csv")
    for name, cell in (("text", "heavy"), ("negative", "-3"), ("empty", "")):
        weights = pa.array(["1"] * 4 + [cell] + ["1"] * (rows.num_rows - 5))
        write_table(rows.append_column("WEIGHT", weights), folder / f"{name}.csv")
    data.schema.select(COLUMNS).save(folder / "schema.toml")
    known = sorted({(row["STATE"], row["PLACE"]) for row in rows.to_pylist()})
    places = {"STATE": [known[0][0], 98, 99], "PLACE": [known[0][1], "a", "b"]}
    write_table(pa.table(places), folder / "places.csv")
    return folder


def planning(files, public, *more):
    given = ["plan", "--schema", files / "schema.toml", "--groups", files / "places.csv", "--levels", "STATE,PLACE"]
    public = [each for name in public for each in ("--public", files / name)]
    return [*given, *public, "--epsilon", 1, "--no-tune", *more]


# ---------------------------------------------------------------- what `sample` could not read


@pytest.mark.parametrize(
    ("public", "more", "expected"),
    [
        (["ageless.csv"], [], "ageless.csv: the table has no column 'AGE'"),
        (["public.csv", "ageless.csv"], [], "ageless.csv lacks the column AGE, which "),
        (["ageless.csv", "public.csv"], [], "ageless.csv lacks the column AGE, which "),
        (["public.csv"], ["--weight", "WEIGHT"], "public.csv: the table has no column 'WEIGHT'"),
        (
            ["text.csv"],
            ["--weight", "WEIGHT"],
            "text.csv: column 'WEIGHT': the weight of row 5 is 'heavy' (1 such row)",
        ),
        (["negative.csv"], ["--weight", "WEIGHT"], "column 'WEIGHT': the weight of row 5 is '-3'"),
        (["empty.csv"], ["--weight", "WEIGHT"], "column 'WEIGHT': the weight of row 5 is None"),
    ],
)
def test_a_plan_refuses_what_sample_cannot_read_and_names_the_file(files, tmp_path, public, more, expected):
    said = call(*planning(files, public, *more), "-o", tmp_path / "plan.toml", code=1).stderr
    assert expected in said
    assert not (tmp_path / "plan.toml").exists()


def test_a_plan_makes_sure_that_values_can_be_drawn(files, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise ValueError("no values")

    monkeypatch.setattr("prade.data.public.decode.Decoder.fit", refuse)
    call(*planning(files, ["public.csv"]), "-o", tmp_path / "plan.toml", code=1)
    assert not (tmp_path / "plan.toml").exists()


def test_a_check_names_the_file_too(files):
    given = ["check", "--schema", files / "schema.toml"]
    assert "ageless.csv: the table has no column 'AGE'" in call(*given, files / "ageless.csv", code=1).stderr


# ---------------------------------------------------------------- what a plan covers


def test_check_and_plan_say_how_many_groups_have_public_rows(files, tmp_path):
    given = ["check", "--schema", files / "schema.toml", "--groups", files / "places.csv", files / "public.csv"]
    assert "1 of 3 groups occurs among the public rows" in call(*given).stdout
    assert json.loads(call(*given, "--json").stdout)["groups_with_public_rows"] == 1
    made = planning(files, ["public.csv"], "-o", tmp_path / "plan.toml", "--force")
    assert "1 of 3 groups occurs among the public rows" in call(*made).stdout
    assert json.loads(call(*made, "--json").stdout)["groups_with_public_rows"] == 1
    (tmp_path / "new.csv").write_text("STATE,PLACE\n98,a\n99,b\n")
    given[4] = tmp_path / "new.csv"
    assert "0 of 2 groups occur among the public rows" in call(*given).stdout


def test_check_and_plan_say_what_will_not_be_measured(files, tmp_path):
    (tmp_path / "states.csv").write_text("STATE\n98\n99\n")
    given = ["check", "--schema", files / "schema.toml", "--groups", tmp_path / "states.csv", files / "public.csv"]
    unlisted = "not in the list of groups, so that synthetic rows will lack them: PLACE"
    assert unlisted in call(*given).stdout
    assert json.loads(call(*given, "--json").stdout)["not_in_groups"] == ["PLACE"]
    made = ["plan", *given[1:5], "--levels", "STATE", "--public", files / "public.csv", "-o", tmp_path / "plan.toml"]
    assert unlisted in call(*made, "--epsilon", 1, "--no-tune").stdout
    tuned = ["--epsilon", "1/1000", "--effort", 0, "--force"]  # so little that only numbers of rows are asked for
    assert "not measured, so that their values follow the public table: AGE, SEX" in call(*made, *tuned).stdout
    assert json.loads(call(*made, *tuned, "--json").stdout)["not_measured"] == ["AGE", "SEX"]


# ---------------------------------------------------------------- whom a plan is about


def test_the_people_are_those_of_the_release_before(files, tmp_path, custodian):
    """--dataset and the unit need not be repeated, and another one has to be meant."""
    given = ["--max-rows-per-person", 2, "--person-id", "PERSON", "--dataset", "people"]
    first = tmp_path / "first"
    call("ledger", "open", "people", "--cap", 9, *given[:4])
    people = {"STATE": [98] * 400, "PLACE": ["a"] * 400, "AGE": [4] * 400, "SEX": [1] * 400, "PERSON": range(400)}
    write_table(pa.table(people), tmp_path / "p.csv")
    call("synthesize", tmp_path / "p.csv", *planning(files, ["public.csv"], *given)[1:], "-o", first)
    named = ["--public", files / "public.csv"]  # it lies outside the release's folder
    following = planning(files, [], "--previous", first, "--force", "-o", tmp_path / "next.toml")
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
    assert "--other-people" in call(*planning(files, ["public.csv"], "--other-people"), code=2).stderr
    again = ["synthesize", tmp_path / "p.csv", *following[1:-3], *named, "-o", tmp_path / "second"]
    assert "--other-people" in call(*again, "--dataset", "private", code=1).stderr
    call(*again)
    assert [entry.dataset for entry in Ledger(custodian).entries("people")] == ["people"] * 2


def test_without_a_release_before_the_usual_name_and_unit_are_taken(files, tmp_path):
    call(*planning(files, ["public.csv"]), "-o", tmp_path / "plan.toml")
    assert (Plan.load(tmp_path / "plan.toml").dataset, Plan.load(tmp_path / "plan.toml").unit) == ("private", Unit())


# ---------------------------------------------------------------- what is not overwritten


@pytest.mark.parametrize("command", ["plan", "infer"])
def test_an_existing_file_is_replaced_with_force_only(files, tmp_path, command):
    infer = ["schema", "infer", files / "public.csv", "--groups", "STATE,PLACE"]
    given = planning(files, ["public.csv"]) if command == "plan" else infer
    place = tmp_path / "made.toml"
    place.write_text("by hand")
    said = call(*given, "-o", place, code=1).stderr
    assert "exists already; give another name with -o, or add --force to replace it" in said
    assert place.read_text() == "by hand"
    call(*given, "-o", place, "--force")
    assert place.read_text() != "by hand"
    if command == "infer":
        assert Schema.load(place).coded == ("AGE", "SEX")


# ---------------------------------------------------------------- what a draft takes for missing


def test_infer_says_what_it_took_for_missing(tmp_path):
    """As in the NIST files, where "N" stands for a question that was not asked."""
    rows = [f"{age},{'N' if age < 15 else 1000.0 * age},{'N' if age % 3 else age % 2}" for age in range(80)]
    (tmp_path / "public.csv").write_text("\n".join(["AGEP,PAY,KIND", *rows]) + "\n")
    done = call("schema", "infer", tmp_path / "public.csv", "-o", tmp_path / "s.toml")
    assert "'N' is not a number and was taken for missing (68 cells): PAY, KIND" in done.stderr
    given = ["schema", "infer", tmp_path / "public.csv", "-o", tmp_path / "s.toml", "--force", "--json"]
    assert json.loads(call(*given).stdout)["read_as_missing"] == {"PAY": {"N": 15}, "KIND": {"N": 53}}


def test_a_draft_of_whole_cells_says_nothing_of_missing(files, tmp_path):
    done = call("schema", "infer", files / "public.csv", "--groups", "STATE,PLACE", "-o", tmp_path / "s.toml")
    assert "taken for missing" not in done.stderr


def test_a_public_table_too_small_for_a_rehearsal_is_said_to_be_so(files, tmp_path):
    (tmp_path / "public.csv").write_text("STATE,PLACE,AGE,SEX\n98,a,30,1\n")
    given = [each for each in planning(tmp_path, ["public.csv"]) if each != "--no-tune"]
    given[2], given[4] = files / "schema.toml", files / "places.csv"
    done = call(*given, "-o", tmp_path / "plan.toml")
    assert "The public table is too small for a rehearsal. This is the simplest plan" in done.stderr
