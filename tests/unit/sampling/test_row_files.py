"""Synthetic rows in files: one file and a data set have the same rows, and programs read both alike."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import prade
from prade import Column, DataError, Level, Release, Schema, Workload
from prade.core.execution import Execution
from prade.data.public.table import PublicTable
from prade.data.read.files import parts_of, schema_of
from prade.data.read.tables import read_table, write_table
from prade.pipeline import sample, write_sample
from prade.release.derived_files import KEPT_ROWS, check_kept, is_kept, kept_rows
from prade.sampling.row_files import Output, write_drawn_rows
from prade.sampling.table import seed_of
from worlds.commands import call
from worlds.plans import plan_of
from worlds.releases import invented, write_folder
from worlds.survey import FIVE_PLACES, PERHAPS_WORK, PLACE, SEX, YEARS

GROUPS = {"STATE": ["06", "17", "06", "17", "06"], "PLACE": FIVE_PLACES["PLACE"]}  # states are not in one piece
STATES = Column("STATE", "group", values=["06", "17"])
SCHEMA = Schema([STATES, PLACE, YEARS, SEX, PERHAPS_WORK])
ONES = Workload.all_marginals(SCHEMA, 1)


def public_frame(rows=600):
    """Types that only pandas' notes tell: categories, whole numbers that may be missing."""
    generator = np.random.default_rng(0)
    age = generator.integers(0, 90, rows)
    work = pd.Series(generator.choice(["none", "part", "full"], rows)).mask(age < 18)
    return pd.DataFrame(
        {
            "STATE": generator.choice(["06", "17"], rows),
            "PLACE": generator.choice(["u", "v"], rows),
            "AGE": pd.array(age, dtype="Int16"),
            "SEX": generator.integers(1, 3, rows).astype(np.int32),
            "WORK": work.astype("category"),
        }
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A release whose plan names its public file, with small batches."""
    folder = tmp_path_factory.mktemp("home")
    public_frame().to_parquet(folder / "public.parquet")
    levels = [Level("STATE", ONES), Level("PLACE", ONES)]
    plan = plan_of(SCHEMA, *levels, groups=GROUPS, budget=2)
    made = invented(plan, rows=(300, 500), path=Path("nowhere"))
    named = plan.with_public(PublicTable(folder / "public.parquet").hashed_files)
    write_folder(folder / "release", named, made.noisy)
    prade.estimate(folder / "release")
    return folder


@pytest.fixture
def place(home, tmp_path):
    shutil.copytree(home, tmp_path / "home")
    return tmp_path / "home" / "release"


def written(place, output=None, seed=3, **settings):
    """Rows in batches of 150, as `write_sample` writes them in larger ones."""
    estimates = prade.estimate(place)
    public = PublicTable(place.parent / "public.parquet")
    return write_drawn_rows(estimates, public, seed, output, rows_of_batch=150, **settings)


@pytest.fixture
def data_set(place):
    written(place, Output.of(Release.load(place), partitioned=True))
    return place / "synthetic"


def sorted_rows(frame):
    return frame.sort_values(list(frame.columns)).reset_index(drop=True)


def test_a_data_set_has_the_rows_of_the_one_file_by_the_groups_of_the_first_level(place, data_set):
    assert {path.parent.name for path in parts_of(data_set)} == {"STATE-06", "STATE-17"}
    assert len(parts_of(data_set)) > 2
    for path in parts_of(data_set):
        assert set(pq.read_table(path)["STATE"].to_pylist()) == {path.parent.name[-2:]}
    one = place.parent / "one.parquet"
    files = written(place, Output(one))
    assert (files.rows, files.copied) == (pq.read_metadata(one).num_rows, 1.0)
    assert sorted_rows(pd.read_parquet(data_set)).equals(sorted_rows(pd.read_parquet(one)))
    assert read_table(data_set).schema.equals(read_table(one).schema, check_metadata=True)
    assert read_table(one).equals(sample(place, seed=3, like="pyarrow"))


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_csv_files_are_written_in_batches_too(place, name):
    written(place, Output(place.parent / name))
    write_table(sample(place, seed=3, like="pyarrow"), place.parent / "whole.csv")
    assert read_table(place.parent / name).equals(read_table(place.parent / "whole.csv"))


def test_the_number_of_rows_decides_the_form_in_the_releases_folder(place):
    assert write_sample(place).path == place / "synthetic.parquet"
    assert written(place, largest_file=100).path == place / "synthetic"
    assert not (place / "synthetic.parquet").exists()  # one set of rows
    assert is_kept(Release.load(place), KEPT_ROWS)
    write_sample(place)
    assert not (place / "synthetic").exists()
    check_kept(Release.load(place), KEPT_ROWS)


def test_report_score_and_evaluation_read_a_data_set(place, data_set):
    private = place.parent / "private.parquet"
    public_frame().assign(STATE="06", PLACE=GROUPS["PLACE"][0]).to_parquet(private)
    page = prade.report(place)
    parts = page.read_text()
    shutil.rmtree(data_set)
    write_sample(place, seed=3)
    assert prade.report(place).read_text() == parts
    one = prade.score(private, place / "synthetic.parquet", SCHEMA, ["STATE"])
    write_sample(place, partitioned=True, seed=3)
    assert prade.score(private, data_set, SCHEMA, ["STATE"]).mean == one.mean
    prade.report(place, truth=private)


def test_the_command_writes_a_data_set_and_says_so(place):
    said = call("sample", place, "--seed", "3", "--partitioned").stdout
    assert said.startswith(f"{place}/synthetic/: ")
    facts = json.loads(call("sample", place, "--seed", "3", "-o", f"{place.parent}/elsewhere/", "--json").stdout)
    assert facts["file"] == f"{place.parent}/elsewhere/"
    assert facts["rows"] == read_table(place / "synthetic").num_rows == read_table(place.parent / "elsewhere").num_rows
    call("report", place)
    call("sample", place, "--seed", "4", "-o", f"{place.parent}/elsewhere/")  # its own data set is replaced
    assert seed_of(schema_of(place.parent / "elsewhere")) == 4


def test_a_part_that_has_changed_is_missing_or_is_new_is_refused(place, data_set):
    release, part = Release.load(place), parts_of(data_set)[0]
    check_kept(release, KEPT_ROWS)
    assert kept_rows(release) == data_set
    content = part.read_bytes()
    part.write_bytes(content + b"x")
    with pytest.raises(DataError, match=r"part-00000\.parquet has changed since it was made"):
        check_kept(release, KEPT_ROWS)
    part.unlink()
    with pytest.raises(DataError, match=r"part-00000\.parquet has changed since it was made"):
        check_kept(release, KEPT_ROWS)
    part.write_bytes(content)
    shutil.copy(part, part.with_name("part-99999.parquet"))
    with pytest.raises(DataError, match=r"part-99999\.parquet has changed since it was made"):
        prade.report(place)


def test_a_crash_leaves_the_earlier_data_set_or_none(place, data_set):
    before = {path: path.read_bytes() for path in parts_of(data_set)}

    def crash(task, done, number):
        if done == 3:
            raise OSError(28, "No space left on device")

    output = Output.of(Release.load(place), partitioned=True)
    with pytest.raises(OSError, match="No space left"):
        written(place, output, seed=9, execution=Execution(1, progress=crash))
    assert {path: path.read_bytes() for path in parts_of(data_set)} == before
    assert not list(place.glob(".synthetic*"))
    assert not is_kept(Release.load(place), KEPT_ROWS)  # the record is written last


@pytest.mark.parametrize("other", ["notes.txt", "public.parquet"])
def test_a_folder_with_other_files_is_not_replaced(place, tmp_path, other):
    target = tmp_path / "target" / other
    target.parent.mkdir(parents=True)
    public_frame().to_parquet(target) if other.endswith("parquet") else target.write_text("mine")
    with pytest.raises(DataError, match="has other files than a data set of synthetic rows"):
        write_sample(place, f"{tmp_path}/target/")
    assert target.exists()


@pytest.mark.parametrize(
    ("output", "settings", "message"),
    [
        ("rows.csv", {"partitioned": True}, "name of a file; a data set needs the name of a folder"),
        ("rows/", {"spreadsheet_safe": True}, "spreadsheet-safe is for CSV files only"),
        ("{release}", {}, "has other files than a data set"),
    ],
)
def test_forms_that_do_not_go_together_are_refused_before_the_work(home, output, settings, message):
    release = Release.load(home / "release")
    with pytest.raises(DataError, match=message):
        Output.of(release, output and output.format(release=release.path), **settings)
