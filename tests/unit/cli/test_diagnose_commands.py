"""`prade diagnose`: on the screen, as JSON, in a file."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Budget
from prade.data.public.table import PublicFiles
from prade.data.read.tables import read_table, write_table
from worlds.commands import call
from worlds.drift import PLACES, SIZES, World, moved
from worlds.releases import write_folder


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diagnosed")
    world = World(1, Budget.pure(8))
    public = world.public
    groups = {
        name: pa.array([row[k] for row in public.groups.values]).take(pa.array(public.group))
        for k, name in enumerate(public.groups.by)
    }
    write_table(pa.table({**groups, **{name: public.prior.codes[name] for name in SIZES}}), folder / "public.parquet")
    plan = world.plan.with_public(PublicFiles.at([folder / "public.parquet"]).hashed())
    changed = {g: {"TEN": moved(world.places[g]["TEN"], 0.2)} for g in range(PLACES)}
    return write_folder(folder / "release", plan, world.answers(changed))


def test_it_prints_a_table_and_says_what_it_means(release):
    done = call("diagnose", release)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["level", "column", "groups", "wrong", "distance", "at_least"]
    assert len(lines) == 1 + 3 * len(SIZES)
    assert lines[1].split()[:4] == ["all", "TEN", "1", "1"]
    assert "The public table is wrong about 1 of 4 columns in the whole table; most about TEN." in done.stderr
    assert "The chance that any of these alarms is false is at most 5 %" in done.stderr


def test_json_has_the_same_and_the_groups_if_they_are_wanted(release):
    said = json.loads(call("diagnose", release, "--json").stdout)
    assert next(row["column"] for row in said["columns"] if row["level"] == "all") == "TEN"
    assert "groups" not in said
    with_groups = json.loads(call("diagnose", release, "--json", "--by-group").stdout)
    assert len(with_groups["groups"]) == (1 + 2 + PLACES) * len(SIZES)


@pytest.mark.parametrize("name", ["found.csv", "found.parquet"])
def test_a_file_has_the_table(release, tmp_path, name):
    assert call("diagnose", release, "--by-group", "-o", tmp_path / name).stdout.endswith(
        "found" + name[5:] + ": 60 rows\n"
    )
    table = read_table(tmp_path / name) if name.endswith("csv") else pq.read_table(tmp_path / name)
    assert table.column_names == ["level", "group", "column", "wrong", "chance", "distance", "at_least", "rows"]


def test_mistakes_are_said_before_the_work(release, tmp_path):
    assert "no folder" in call("diagnose", release, "-o", tmp_path / "gone" / "a.csv", code=1).stderr
    assert "give 1 for independent rows" in call("diagnose", release, "--design-effect", "0", code=1).stderr
    assert "not a release" in call("diagnose", tmp_path, code=1).stderr
