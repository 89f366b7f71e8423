"""Plans from outside: a public file is used by its hash and its folder, or because the custodian names it."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prade
from prade import DataError, Ledger, Plan, Release, Synthesizer, Task
from prade.core.files import content_hash
from prade.data.public.table import PublicFiles
from worlds.commands import call
from worlds.plans import SCHEMA
from worlds.releases import invented, write_folder

PUBLIC = pa.table({"AGE": [3, 20, 40, 70] * 20})
SALARIES = pa.table({"AGE": [33, 44, 55] * 20, "SALARY": [91_234] * 60})
SECRET = "salaries.parquet"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The custodian's own folder with two private tables, and beside it a plan that came with its public file."""
    for name in ("own", "incoming"):
        (tmp_path / name).mkdir()
    pq.write_table(SALARIES, tmp_path / "own" / SECRET)
    pq.write_table(pa.table({"AGE": [5, 30, 80] * 30}), tmp_path / "own" / "private.parquet")
    pq.write_table(PUBLIC, tmp_path / "incoming" / "public.parquet")
    plan = prade.plan(Task("private", SCHEMA, 1), tmp_path / "incoming" / "public.parquet", tune=False)
    plan.save(tmp_path / "incoming" / "plan.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measuring(*more):
    return ["measure", "incoming/plan.toml", "own/private.parquet", "-o", "incoming/release", *more]


def enter(cap=1):
    call("ledger", "open", "private", "--cap", cap)


def attack(world, way):
    """Public files of a plan in the folder `incoming`, by which it might get at another private table."""
    incoming, secret = world / "incoming", world / "own" / SECRET
    path, digest = "", content_hash(str(secret))
    if way == "dots":
        path = f"../own/{SECRET}"
    elif way == "absolute":
        path = str(secret)
    elif way == "link":
        os.symlink(secret, incoming / "more.parquet")
        path = "more.parquet"
    elif way == "link to a folder":
        os.symlink("../own", incoming / "data")
        path = f"data/{SECRET}"
    else:  # the custodian keeps a private table in this very folder
        path = shutil.copy(secret, incoming / "copy.parquet").name
        digest = "0" * 64 if way == "wrong hash" else None
    return PublicFiles((path,), sha256=(digest,) if digest else ())


OUTSIDE = "lies outside the plan's folder"
NAME_IT = "look at it, and name it with --public FILE if it is public"
WAYS = {
    "dots": OUTSIDE,
    "absolute": OUTSIDE,
    "link": OUTSIDE,
    "link to a folder": OUTSIDE,
    "no hash": "the plan has no hash of",
    "wrong hash": "is not the public file that the plan was made with",
}


@pytest.mark.parametrize("way", WAYS)
def test_measure_does_not_use_a_file_that_only_the_plan_names(world, way, custodian):
    enter()
    plan = Plan.load("incoming/plan.toml").with_public(attack(world, way))
    (world / "incoming" / "plan.toml").write_text(plan.to_toml())  # as it stands, not relative to anything
    done = call(*measuring(), code=1)
    assert WAYS[way] in done.stderr
    assert done.stderr.endswith("In this run nothing was spent\n")
    assert way == "wrong hash" or NAME_IT in done.stderr
    with pytest.raises(DataError, match=WAYS[way]):
        prade.measure(Plan.load("incoming/plan.toml"), "own/private.parquet", "incoming/release")
    assert Ledger(custodian).entries("private") == []
    assert not (world / "incoming" / "release").exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_release_does_not_get_at_it_either(world, way):
    """Whatever makes something of a release: nothing is drawn from the other table, and it says why."""
    files = attack(world, way).found_from(world / "incoming")
    plan = Plan.load("incoming/plan.toml").with_public(files)
    folder = write_folder(world / "incoming" / "release", plan, invented(plan).noisy)
    for command in (["estimate"], ["sample"], ["answer", "AGE >= 65"], ["diagnose"]):
        assert WAYS[way] in call(command[0], folder, *command[1:], code=1).stderr
    release = Release.load(folder)
    for stage in (prade.estimate, prade.sample, Release.diagnosis, lambda each: Synthesizer.load(each.path)):
        with pytest.raises(DataError, match=WAYS[way]):
            stage(release)
    prade.estimate(release, PUBLIC)  # by a table that the caller gives; then the release has estimates
    call("answer", folder, "AGE >= 65")
    loaded, task = Synthesizer.load(folder), Task("private", SCHEMA, 1)
    for use in (loaded.sample, loaded.plan, lambda: prade.plan(task, release, tune=False)):
        with pytest.raises(DataError, match=WAYS[way]):
            use()
    assert WAYS[way] in call("sample", folder, code=1).stderr


def test_the_custodian_may_name_a_file_that_lies_elsewhere(world):
    """Then it must still be the plan's own, and the release says the same of it."""
    os.rename("incoming/public.parquet", "own/public.parquet")
    enter(2)
    assert "there is no public file" in call(*measuring(), code=1).stderr
    said = call(*measuring("--public", f"own/{SECRET}"), code=1).stderr
    assert "is not one of the public files that the plan was made with" in said
    named = ["--public", "own/public.parquet"]
    facts = json.loads(call(*measuring(*named, "--json")).stdout)
    assert facts["public"] == [str(world / "own" / "public.parquet")]
    assert facts["plan"] == Plan.load("incoming/plan.toml").hash == Release.load("incoming/release").plan.hash
    for command in ("estimate", "sample"):
        assert NAME_IT in call(command, "incoming/release", code=1).stderr
        said = call(command, "incoming/release", *named).stderr
        assert f"Public files: {world}/own/public.parquet\n" in said
    assert prade.sample("incoming/release", "own/public.parquet").num_rows > 0
    call("diagnose", "incoming/release", *named)


def test_naming_one_file_leaves_the_others(world):
    """The plan has two files, of which one has moved: the table is still that of both."""
    pq.write_table(PUBLIC.slice(0, 7), "incoming/more.parquet")
    both = ["incoming/public.parquet", "incoming/more.parquet"]
    prade.plan(Task("private", SCHEMA, 1), both, tune=False).save("incoming/plan.toml")
    os.rename("incoming/more.parquet", "own/more.parquet")
    enter()
    named = ["--public", "own/more.parquet"]
    used = json.loads(call(*measuring(*named, "--json")).stdout)["public"]
    assert used == [str(world / "incoming" / "public.parquet"), str(world / "own" / "more.parquet")]
    call("estimate", "incoming/release", *named)
    support = pq.read_table("incoming/release/support.parquet", columns=["prade:weight"])
    assert support.num_rows == 87


def test_files_in_the_plans_folder_are_used_and_said(world):
    enter()
    public = f"{world}/incoming/public.parquet"
    assert f"Public files: {public}\n" in call(*measuring()).stderr
    for command in ("estimate", "sample"):
        done = call(command, "incoming/release", "--json")
        assert json.loads(done.stdout)["public"] == [public]
        assert f"Public files: {public}\n" in done.stderr
    assert Plan.load("incoming/release/plan.toml").public.checked().files == (public,)
    assert len(Synthesizer.load("incoming/release").sample(5)) == 5


def test_what_was_named_in_this_run_need_not_be_named_again(world):
    """Through all stages, in Python and by `synthesize`; a later run has to name it."""
    plan = prade.plan(Task("private", SCHEMA, 1), f"own/{SECRET}", tune=False)
    release = prade.measure(plan, pa.table({"AGE": [5, 30] * 100}), "incoming/release", cap=2)
    assert prade.sample(prade.estimate(release)).num_rows > 0
    prade.plan(Task("private", SCHEMA, 1), release, tune=False)
    with pytest.raises(DataError, match=OUTSIDE):
        prade.sample("incoming/release")
    SCHEMA.save("schema.toml")
    given = ["own/private.parquet", "--schema", "schema.toml", "--public", "incoming/public.parquet", "--epsilon", 1]
    for _ in range(2):  # the second run finds the plan and the release
        call("synthesize", *given, "--no-tune", "-o", "own/release")
    assert OUTSIDE in call("sample", "own/release", code=1).stderr
    call("sample", "own/release", "--public", "incoming/public.parquet")


def test_guessed_hashes_tell_nothing_about_the_private_file(world, custodian):
    """One plan lists the hash of the private file itself, the other does not: the outcome is the same."""
    enter(4)
    said = []
    for guess in (content_hash("own/private.parquet"), "0" * 64):
        files = PublicFiles(
            ("public.parquet", "guess.parquet"), sha256=(content_hash("incoming/public.parquet"), guess)
        )
        plan = Plan.load("incoming/plan.toml").with_public(files)
        (world / "incoming" / "plan.toml").write_text(plan.to_toml())
        said.append([call(*measuring(*more), code=1).stderr for more in ([], ["--public", "incoming/public.parquet"])])
    assert said[0] == said[1]
    assert "there is no public file" in said[0][0]
    assert Ledger(custodian).entries("private") == []
