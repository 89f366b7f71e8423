"""What a release's folder keeps is what was written: no changed bit passes, and each file knows where it belongs."""

import random
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Budget, Column, DataError, Level, Plan, Release, Schema, Unit, Workload
from prade.data.public.table import PublicFiles
from prade.estimating.levels.estimates import kept_estimates
from prade.pipeline import sample
from prade.release.derived_files import KEPT_ESTIMATES, KEPT_ROWS, check_kept, is_kept, recorded
from prade.release.release import sealed_text
from prade.reporting.report import report
from worlds.commands import call
from worlds.releases import write_folder, write_rows
from worlds.survey import PLACE, SEX

SCHEMA = Schema([PLACE, Column("AGE", "numeric", edges=[18, 65]), SEX])
FILES = (*KEPT_ESTIMATES.files, KEPT_ESTIMATES.name, *KEPT_ROWS.files, KEPT_ROWS.name)
FLIPS = 100  # bits of each file


def public(seed=0):
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "PLACE": generator.choice(["p", "q"], 60),
            "AGE": generator.integers(0, 90, 60),
            "SEX": generator.integers(1, 3, 60),
        }
    )


def released(place, seed=0):
    """A release with invented counts, as `measure` leaves it, and all that is made from it."""
    pq.write_table(public(seed), place.parent / "public.parquet")
    ones = Workload.all_marginals(SCHEMA, 1)
    files = PublicFiles((str(place.parent / "public.parquet"),)).hashed()
    plan = Plan("survey", SCHEMA, Budget.pure(3), Unit(1), [Level("PLACE", ones)], {"PLACE": ["p", "=r"]}, public=files)
    generator = np.random.default_rng(seed)
    noisy = [[generator.integers(5, 40, (2, part.n_cells)) for part in q.parts] for q in plan.questions]
    release = Release.load(write_folder(place, plan, noisy))
    write_rows(sample(release, public(seed)), release)
    return release


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return released(tmp_path_factory.mktemp("world") / "release")


@pytest.fixture
def release(sound, tmp_path):
    return Release.load(shutil.copytree(sound.path.parent, tmp_path / "world") / "release")


def flipped(data, rng):
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def answered(release):
    """All that is read of the folder's kept files, to the last bit."""
    check_kept(release, KEPT_ROWS)
    rows = pq.read_table(release.path / "synthetic.parquet")
    estimates = kept_estimates(release)
    return estimates.answer("AGE >= 65", by="PLACE"), estimates.marginal(["AGE", "SEX"], by="PLACE"), rows


@pytest.mark.parametrize("name", FILES)
def test_no_changed_bit_passes(release, name):
    expected, rng = answered(release), random.Random(name)
    path = release.path / name
    data, passed, complaints = path.read_bytes(), 0, []
    for _ in range(FLIPS):
        path.write_bytes(flipped(data, rng))
        try:
            found = answered(Release(release.path, release.plan, release.noisy))
        except DataError as error:
            complaints.append(str(error))
        else:
            passed += 1
            assert all(one.equals(other) for one, other in zip(found, expected, strict=True))
    command = "sample" if name.startswith("synthetic") else "estimate"
    assert all(f"run `prade {command} {release.path}`, which spends nothing" in each for each in complaints)
    assert passed == 0 if name.endswith(".parquet") else passed < FLIPS / 4  # blanks between words of JSON
    path.write_bytes(data)
    answered(release)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another release of the same plan."""
    return released(tmp_path_factory.mktemp("other") / "release", seed=1)


@pytest.mark.parametrize("record", [KEPT_ESTIMATES, KEPT_ROWS], ids=lambda record: record.command)
def test_all_files_of_another_release_are_refused(release, other, record):
    for name in (*record.files, record.name):
        sound = (release.path / name).read_bytes()
        shutil.copy(other.path / name, release.path / name)
        with pytest.raises(DataError, match=rf": run `prade {record.command} "):
            check_kept(release, record)
        (release.path / name).write_bytes(sound)
    for name in (*record.files, record.name):
        shutil.copy(other.path / name, release.path / name)
    with pytest.raises(DataError, match=rf"{record.name} belongs to another release: run `prade {record.command}"):
        check_kept(release, record)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"format": 3}, r"estimates\.json has format 3, this version reads 2: update prade"),
        ({}, r"estimates\.json is damaged: run `prade estimate"),
        ({"format": 1, "release": 3, "files": []}, r"estimates\.json is damaged: run `prade estimate"),
    ],
    ids=str,
)
def test_records_that_cannot_be_read(release, content, words):
    (release.path / KEPT_ESTIMATES.name).write_text(sealed_text(content))
    with pytest.raises(DataError, match=words):
        kept_estimates(release)


def test_damaged_estimates_are_never_used_and_made_again_by_the_command(release):
    expected, path = answered(release), release.path / "estimates.parquet"
    data = path.read_bytes()
    path.write_bytes(flipped(data, random.Random(1)))
    with pytest.raises(DataError, match=r"estimates\.parquet has changed since it was made .* run `prade estimate"):
        sample(release, public())
    for command in (["answer", release.path, "AGE >= 65"], ["sample", release.path]):
        assert "run `prade estimate" in call(*command, code=1).stderr
    assert "damaged; they will be replaced" in call("estimate", release.path).stderr
    assert path.read_bytes() == data
    (release.path / KEPT_ESTIMATES.name).unlink()  # as of earlier versions: estimates are made again
    assert not is_kept(release, KEPT_ESTIMATES)
    assert sample(release, public()).equals(expected[-1])
    assert all(one.equals(other) for one, other in zip(answered(release), expected, strict=True))


def test_while_files_are_written_there_is_no_record(release):
    def broken_off():
        with recorded(release, KEPT_ESTIMATES):
            assert not is_kept(release, KEPT_ESTIMATES)
            raise KeyboardInterrupt

    assert is_kept(release, KEPT_ESTIMATES)
    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert not is_kept(release, KEPT_ESTIMATES)


def test_a_report_needs_sound_rows(release):
    path = release.path / "synthetic.parquet"
    path.write_bytes(flipped(path.read_bytes(), random.Random(1)))
    with pytest.raises(DataError, match=r"synthetic\.parquet has changed since it was made .* run `prade sample"):
        report(release)
    (release.path / KEPT_ROWS.name).unlink()
    with pytest.raises(DataError, match=r"has no synthetic\.json yet: run `prade sample"):
        report(release)


def test_rows_for_a_spreadsheet(release, tmp_path):
    """The group "=r" would be a formula: it is quoted on request, and everything else is as without the option."""
    plain, safe = tmp_path / "plain.csv", tmp_path / "safe.csv"
    for path, option in ((plain, []), (safe, ["--spreadsheet-safe"])):
        call("sample", release.path, "-o", path, *option)
    assert '"=r"' in plain.read_text()
    assert safe.read_text() == plain.read_text().replace('"=r"', '"\'=r"')
    assert "spreadsheet-safe is for CSV files" in call("sample", release.path, "--spreadsheet-safe", code=1).stderr
