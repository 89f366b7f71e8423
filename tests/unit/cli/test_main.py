"""The command line: from two files to synthetic rows, and what it says and leaves when something is wrong."""

import json
import os
import re
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from prade import Budget, Ledger, Plan, Release
from prade.cli import main as cli
from prade.cli import release_commands as commands_release
from prade.data.public.table import PublicFiles
from prade.data.read.tables import read_table, write_table
from prade.estimating.levels.estimates import kept_estimates
from prade.examples import census_like
from worlds.commands import call as called
from worlds.commands import commands

cli.every_command()

SECRET = "Atlantis"  # a place and a value that only private rows have
COLUMNS = ["PERSON", "STATE", "PLACE", "AGE", "SEX", "MARITAL"]
SPENT = "spent epsilon = 2"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A public table in two files, a private one, a schema and a list of groups, as a user has them."""
    folder = tmp_path_factory.mktemp("files")
    data = census_like(persons=1_500, places_per_state=2, years=(2023, 2024), seed=3)
    public, private = data.public.select(COLUMNS), data.private.select(COLUMNS)
    odd = pa.table({**private.slice(0, 1).to_pydict(), "PLACE": [SECRET], "MARITAL": [SECRET]}, schema=private.schema)
    write_table(public.slice(0, 1_000), folder / "public1.parquet")
    write_table(public.slice(1_000), folder / "public2.parquet")
    write_table(pa.concat_tables([private, odd]), folder / "private.parquet")
    write_table(data.groups.select(["STATE", "PLACE"]).group_by(["STATE", "PLACE"]).aggregate([]), folder / "g.csv")
    data.schema.select(COLUMNS[1:]).save(folder / "schema.toml")
    return folder


def named(files):
    """The public files by name, for a plan or a release that is in another folder."""
    return ["--public", files / "public1.parquet", "--public", files / "public2.parquet"]


def planning(files, *more, epsilon="2"):
    given = ["--schema", files / "schema.toml", "--groups", files / "g.csv", "--levels", "STATE,PLACE"]
    given += [*named(files), "--epsilon", epsilon]
    return [*given, "--max-rows-per-person", 2, "--person-id", "PERSON", "--no-tune", *more]


def call(*arguments, code=0):
    """Run a command; its exit code is as expected, and it never shows a traceback or a private value."""
    done = called(*arguments, code=code)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    assert SECRET not in done.output
    return done


def complaint(*arguments, code=1):
    """What a command says when it fails: nothing on the standard output, one screen on the other."""
    done = call(*arguments, code=code)
    assert done.stdout == ""
    assert len(done.stderr) < 1_000
    return done.stderr


def enter(cap, *more):
    """Enter the private table in a ledger."""
    return call("ledger", "open", "private", "--cap", cap, "--max-rows-per-person", 2, "--person-id", "PERSON", *more)


@pytest.fixture(scope="module")
def plan_file(files):
    place = files / "plan.toml"
    call("plan", *planning(files), "-o", place)
    return place


@pytest.fixture(scope="module")
def release(files, plan_file):
    place = files / "release"
    ledger = place.parent / "agency.ledger"
    assert f"{ledger}: data set 'private' with the cap epsilon = 3" in enter(3, "--ledger", ledger).stdout
    done = call("measure", plan_file, files / "private.parquet", "-o", place, "--ledger", ledger)
    assert SPENT in done.stdout
    assert f"left for 'private' in {ledger}" in done.stdout
    call("estimate", place)
    return place


def test_from_two_files_to_synthetic_rows(release):
    done = call("sample", release, "--seed", 1)
    table = read_table(release / "synthetic.parquet")
    assert f"{table.num_rows:,} rows" in done.stdout
    assert table.column_names == COLUMNS
    assert table.num_rows > 1_000
    assert "100 % of the rows have, in every column but those of groups and person ids" in done.stdout
    assert not pc.any(pc.equal(table["PLACE"], SECRET)).as_py()


def test_estimates_by_the_papers_estimators_are_those_that_are_drawn_from(files, plan_file, tmp_path):
    place = tmp_path / "release"
    enter(2)
    call("measure", plan_file, files / "private.parquet", "-o", place)
    for name in ("ide", "two-stage"):
        for command in (["estimate", place, "--estimator", name], ["sample", place]):
            call(*command, *named(files))
            assert kept_estimates(Release.load(place)).settings.estimator == name
    assert "nearest" in complaint("estimate", place, "--estimator", "nearest", code=2)


def test_nothing_in_the_release_is_private(release):
    found = [file for file in release.rglob("*") if file.is_file()]
    assert len(found) >= 6
    assert [file.name for file in found if SECRET.encode() in file.read_bytes()] == []


def test_a_release_says_no_path_of_this_machine_and_may_be_moved_with_its_files(files, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    for name in ("public1.parquet", "public2.parquet", "private.parquet", "g.csv", "schema.toml"):
        shutil.copy(files / name, here / name)
    call("plan", *planning(here), "-o", here / "plan.toml")
    enter(2)
    call("measure", here / "plan.toml", here / "private.parquet", "-o", here / "release")
    for file in [here / "plan.toml", *(here / "release").iterdir()]:
        assert str(tmp_path).encode() not in file.read_bytes(), file.name
    here.rename(tmp_path / "there")
    call("sample", tmp_path / "there" / "release")


def test_measuring_again_spends_nothing_and_looks_at_nothing(release, plan_file, tmp_path):
    ledger = Ledger(release.parent / "agency.ledger")
    before = ledger.entries("private")
    (tmp_path / "other.parquet").write_bytes(b"not even a parquet file")
    again = ["measure", plan_file, tmp_path / "other.parquet", "-o", release, "--ledger", ledger.path]
    said = call(*again).stdout
    assert "nothing was spent, because this folder has the release of this plan" in said
    assert "the private table given now was not looked at" in said
    facts = json.loads(call(*again, "--json").stdout)
    assert (facts["spent"], facts["private_table_read"]) == (None, False)
    assert facts["remaining"] == Budget.pure(1).to_dict()
    assert (facts["ledger"], facts["head"]) == (str(ledger.path), ledger.head().to_dict())
    assert ledger.entries("private") == before
    assert len(before) == 1


def test_a_failure_before_anything_is_spent_says_so(files, plan_file, tmp_path):
    enter(2)
    (tmp_path / "other.csv").write_text("AGE\n40\n")
    private, to = files / "private.parquet", ["-o", tmp_path / "r"]
    for code, command in (
        (1, ["measure", tmp_path / "no.toml", private, *to]),
        (1, ["measure", plan_file, tmp_path / "none.parquet", *to]),
        (1, ["measure", plan_file, tmp_path / "other.csv", *to]),
        (1, ["measure", plan_file, private, "-o", tmp_path / "no" / "r"]),
        (1, ["measure", plan_file, private, *to, "--ledger", tmp_path / "empty"]),
        (1, ["synthesize", private, *planning(files, "--weight", "AGES"), *to]),
        (2, ["measure", plan_file, private]),
        (2, ["synthesize", private, *planning(files, "--rho", "1"), *to]),
        (cli.TOO_MUCH, ["synthesize", private, *planning(files, epsilon="3"), *to]),
    ):
        assert call(*command, code=code).stderr.endswith("In this run nothing was spent\n")


def test_synthesize_does_all_and_a_second_run_pays_nothing(files, tmp_path, custodian):
    place = tmp_path / "all"
    enter(2)
    arguments = ["synthesize", files / "private.parquet", *planning(files), "-o", place]
    first = call(*arguments)
    assert SPENT in first.stdout
    assert f"left for 'private' in {custodian}" in first.stdout
    rows = (place / "synthetic.parquet").read_bytes()
    (place / "synthetic.parquet").unlink()
    second = call(*arguments)
    assert "nothing was spent" in second.stdout
    assert (place / "synthetic.parquet").read_bytes() == rows
    other = complaint("synthesize", files / "private.parquet", *planning(files, epsilon="1"), "-o", place)
    assert "another epsilon or delta" in other
    assert len(Ledger(custodian).entries("private")) == 1


def test_every_stage_speaks_json(files, tmp_path):
    """One value on the standard output, whatever is remarked beside it."""

    def said(*arguments):
        return json.loads(call(*arguments, "--json").stdout)

    found = said("schema", "infer", files / "public1.parquet", "--groups", "STATE,PLACE", "-o", tmp_path / "s.toml")
    assert found["groups"] == ["STATE", "PLACE"]
    tuned = [each for each in planning(files, "--effort", 0) if each != "--no-tune"]
    plan = said("plan", *tuned, "-o", tmp_path / "plan.toml")
    assert plan["plan"] == Plan.load(tmp_path / "plan.toml").hash
    assert plan["cost"] == Budget.pure(2).to_dict()
    assert 0 < plan["expected"]["error"] < 2
    assert f"{plan['expected']['error']:.3f}" in plan["advice"]
    place = tmp_path / "release"
    entered = said("ledger", "open", "private", "--cap", 2, "--max-rows-per-person", 2, "--person-id", "PERSON")
    assert (entered["cap"], entered["ledger"]) == (Budget.pure(2).to_dict(), os.environ["PRADE_LEDGER"])
    whole = said("synthesize", files / "private.parquet", *planning(files), "-o", place)
    assert whole["spent"] == whole["cost"] == Budget.pure(2).to_dict()
    assert whole["report"] == str(place / "report.html")
    assert whole["synthetic"]["rows"] == read_table(place / "synthetic.parquet").num_rows
    estimated = said("estimate", place, *named(files))
    assert estimated["level"] == "STATE+PLACE"
    assert sum(estimated["status"].values()) == estimated["groups"] > 2
    drawn = said("sample", place, "-o", tmp_path / "rows.csv", *named(files))
    assert estimated["public"] == drawn["public"] == [str(each) for each in named(files)[1::2]]
    assert drawn["columns"] == COLUMNS
    assert drawn["rows"] == read_table(tmp_path / "rows.csv").num_rows
    assert drawn["copied"] == whole["synthetic"]["copied"] == 1.0


def test_a_check_names_what_does_not_fit(files, tmp_path):
    table = read_table(files / "public1.parquet")
    sexes = pc.if_else(pc.equal(table["SEX"], 1), 9, table["SEX"]).cast(pa.int32())
    write_table(table.set_column(table.column_names.index("SEX"), "SEX", sexes), tmp_path / "odd.parquet")
    given = ["check", "--schema", files / "schema.toml", "--groups", files / "g.csv"]
    assert "all values fit" in call(*given, files / "public1.parquet", files / "public2.parquet").stdout
    assert "SEX: " in call(*given, tmp_path / "odd.parquet").stdout
    found = json.loads(call(*given, tmp_path / "odd.parquet", "--json").stdout)
    assert found["outside"]["SEX"] == {"9": pc.sum(pc.equal(table["SEX"], 1)).as_py()}
    assert found["not_in_schema"] == ["PERSON"]


@pytest.mark.parametrize("names", [(), *commands()], ids="-".join)
def test_help_has_an_example(names):
    said = call(*names, "--help").stdout
    assert f"Example:\n    prade {' '.join(names)}".rstrip() in said
    assert "\n  Options" not in said.partition("Example:")[0]


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom prade.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'pyarrow', 'numba', 'rich', 'duckdb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_weak_protection_has_to_be_said(files, tmp_path):
    """`plan` remarks on it; what spends refuses, and leaves nothing behind."""
    enter(100)
    weak = planning(files, epsilon="20.5")
    done = call("plan", *weak, "-o", tmp_path / "p.toml")
    assert "Weak protection: the release may change the odds that a given person is in the table by" in done.stderr
    assert "a factor of e^20.5" in done.stderr
    assert "Weak protection" not in call("plan", *planning(files, epsilon="20"), "-o", tmp_path / "q.toml").stderr
    before = sorted(tmp_path.iterdir())
    measuring = ["measure", tmp_path / "p.toml", files / "private.parquet", "-o", tmp_path / "r", *named(files)]
    synthesizing = ["synthesize", files / "private.parquet", *weak, "-o", tmp_path / "s"]
    for command in (measuring, synthesizing):
        said = complaint(*command)
        assert "weak protection" in said
        assert "to accept weak protection, add --yes-weak-protection" in said
    assert sorted(tmp_path.iterdir()) == before
    call(*measuring, "--yes-weak-protection")
    call(*synthesizing, "--yes-weak-protection", "--again")


def test_the_private_file_is_not_a_public_one(files, tmp_path):
    """By a copy of it: `measure` knows the plan's files, `synthesize` looks before it plans."""
    enter(2)
    shutil.copy(files / "public2.parquet", tmp_path / "private.parquet")
    private = [tmp_path / "private.parquet", f"{tmp_path}/priv*.parquet"]
    call("plan", *planning(files), "-o", tmp_path / "p.toml")
    before = sorted(tmp_path.iterdir())
    for each in private:
        said = complaint("measure", tmp_path / "p.toml", each, "-o", tmp_path / "r", *named(files))
        assert "private.parquet has the same content as the public file" in said
        assert "was reserved in" in said  # it took reading private rows
        assert "as the public file" in complaint("synthesize", each, *planning(files), "-o", tmp_path / "s")
    assert sorted(tmp_path.iterdir()) == before


def test_a_failing_measurement_leaves_things_as_they_were(files, plan_file, tmp_path):
    """There is no folder, and nothing is spent."""
    enter(2)
    write_table(read_table(files / "private.parquet").drop_columns(["SEX"]), tmp_path / "short.parquet")
    before = sorted(tmp_path.iterdir())
    said = complaint("measure", plan_file, tmp_path / "short.parquet", "-o", tmp_path / "r")
    assert "no column 'SEX'" in said
    assert "Rename or add it" in said
    assert "file none.db; give" in complaint("measure", plan_file, "sqlite://none.db/people", "-o", tmp_path / "r")
    assert not os.path.exists("none.db")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"--epsilon": "0"}, "the budget is zero"),
        ({"--epsilon": "much"}, "epsilon is 'much'; give a number such as 1, 0.1, 1e-9 or 1/3"),
        ({"--levels": "PLACE,STATE"}, "from coarse to fine"),
        ({"--schema": "none.toml"}, "no schema file at none.toml"),
        ({"--public": "none.parquet"}, "there is no public file none.parquet; check the path"),
        ({"--max-rows-per-person": "0"}, "write --max-rows-per-person 1"),
        ({"--output": "no/such/folder/plan.toml"}, "make it first"),
        ({"--output": "."}, ". is a folder; give the name of a file"),
    ],
)
def test_wrong_options_of_a_plan_are_explained(files, tmp_path, change, expected):
    arguments = [str(each) for each in planning(files, "--output", tmp_path / "plan.toml")]
    for option, value in change.items():
        place = arguments.index(option) if option in arguments else len(arguments)
        arguments[place : place + 2] = [option, value]
    said = complaint("plan", *arguments)
    assert expected in said
    assert not re.search(r"Fraction|Budget\.|None|Error\b|--public;", said)
    assert not (tmp_path / "plan.toml").exists()


def test_a_wrong_command_line_is_exit_code_2(files):
    assert "No such command" in complaint("plam", code=2)
    assert "--epsilon" in complaint("plan", "--schema", "s", "--public", "p", code=2)
    given = ["--schema", files / "schema.toml", "--public", files / "public1.parquet", "--epsilon", 1]
    assert "go together" in complaint("plan", *given, "--levels", "STATE", code=2)
    assert "--pairs" in complaint("score", "a", "b", "--schema", "s", "--by", "P", "--pairs", "some", code=2)


def test_what_is_no_release_is_said_to_be_none(tmp_path, release):
    for command in (["estimate"], ["sample"], ["answer", "AGE > 3"]):
        assert "is not a release" in complaint(command[0], tmp_path, *command[1:])
    assert "make it first" in complaint("sample", release, "-o", tmp_path / "no" / "rows.csv")
    assert "give a file that ends in" in complaint("sample", release, "-o", tmp_path / "rows.txt")


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (KeyboardInterrupt(), "run the command again", cli.INTERRUPTED),
        (PermissionError(13, "Permission denied", "/x/rows"), "/x/rows: Permission denied; choose a file that", 1),
    ],
)
def test_interruptions_and_errors_of_the_system_are_explained(monkeypatch, release, error, words, code):
    def fail(*_):
        raise error

    monkeypatch.setattr(commands_release, "_sampled", fail)
    assert words in complaint("sample", release, code=code)


def test_a_folder_that_is_there_but_read_only_is_said_to_be_so(monkeypatch, files, plan_file, release, tmp_path):
    """Before any work, and before anything is spent."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    for command in (
        ["plan", *planning(files), "-o", tmp_path / "p.toml"],
        ["measure", plan_file, files / "private.parquet", "-o", tmp_path / "r"],
        ["synthesize", files / "private.parquet", *planning(files), "-o", tmp_path / "r"],
        ["estimate", release, "--estimator", "ide"],
        ["sample", release],
        ["schema", "infer", files / "public1.parquet", "-o", tmp_path / "s.toml"],
    ):
        assert "you don't have permission to write to" in complaint(*command)
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_people_is_wondered_at(files, plan_file, tmp_path):
    write_table(read_table(files / "private.parquet").slice(0, 0), tmp_path / "empty.parquet")
    enter(4)
    said = call("measure", plan_file, tmp_path / "empty.parquet", "-o", tmp_path / "r").stderr
    assert "All groups look empty" in said  # noise is beyond its four standard deviations once in 20,000 runs
    given = ["measure", plan_file, files / "private.parquet", "-o", tmp_path / "full", "--again"]
    assert "look empty" not in call(*given).stderr


@pytest.mark.parametrize(
    ("other", "expected"),
    [("A,C\n1,x\n", r"lacks the column B, which .*a\.csv has"), ("A,B\nz,x\n", "incompatible types .* in A")],
)
def test_public_files_need_the_same_columns_and_types(tmp_path, other, expected):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, text in zip(paths, ("A,B\n1,x\n", "B,A\ny,2.5\n"), strict=True):
        path.write_text(text)
    assert PublicFiles.at(paths).source().to_pydict() == {"A": [1.0, 2.5], "B": ["x", "y"]}
    paths[1].write_text(other)
    with pytest.raises(ValueError, match=expected):
        PublicFiles.at(paths).source()
