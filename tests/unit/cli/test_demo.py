"""The demonstration: it does what it says, with the commands that it shows, and can be run again."""

import os
import re
import shlex
from pathlib import Path

import pytest

from prade import Ledger, Release
from prade.cli.demo import EPSILON
from worlds.commands import call
from worlds.releases import fixed_noise


@pytest.fixture(scope="module", autouse=True)
def fixed():
    """One demonstration, which takes long, for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prade.measuring.run.add_noise", fixed_noise)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory, fixed):
    folder = tmp_path_factory.mktemp("demo") / "here"
    return folder, call("demo", "-o", folder, "--persons", 1500, *LITTLE).stdout


LITTLE = ("--effort", "0")


def errors(said):
    found = re.findall(r"^  (the public table|the published algorithm|prade).* (\d\.\d{3})   \(", said, re.M)
    return {name: float(error) for name, error in found}


def test_it_ends_with_what_was_achieved_and_where_the_files_are(finished):
    folder, said = finished
    found = errors(said)
    assert list(found) == ["the public table", "the published algorithm", "prade"]
    assert found["prade"] < found["the public table"]  # with other noise, by 4.6 standard deviations, in 28 runs
    assert found["prade"] < found["the published algorithm"]
    for name in ("explore.html", "release/synthetic.parquet", "release/report.html", "release-not-private.html"):
        assert str(folder / name) in said
        assert (folder / name).stat().st_size > 1_000


def test_the_private_table_was_paid_for_once(finished):
    folder, _ = finished
    entry, comparison = Ledger(folder / "prade.ledger").entries("census")
    assert entry.cost == comparison.cost == Release.load(folder / "release").plan.budget
    assert entry.plan_hash == Release.load(folder / "release").plan.hash
    assert str(entry.cost).startswith(f"epsilon = {EPSILON}")


def test_what_it_shows_are_commands_that_work(finished):
    _, said = finished
    lines = [line[2:] for line in said.splitlines() if line.startswith("$ ")]
    assert [shlex.split(line)[1] for line in lines] == [
        "plan", "ledger", "measure", "estimate", "sample", "answer", "report", "score", "report",
    ]  # fmt: skip
    answer = next(line for line in lines if " answer " in line)
    call(*shlex.split(answer)[1:])


def test_a_second_run_spends_nothing_and_says_the_same(finished):
    folder, said = finished
    assert "\nInventing 1,500 people" in said
    again = call("demo", "-o", folder, "--persons", 5000, *LITTLE).stdout
    assert again.startswith(f"Using the tables in {folder};")
    assert "nothing was spent" in again
    assert errors(again) == errors(said)
    assert len(Ledger(folder / "prade.ledger").entries("census")) == 2
    assert not Path(os.environ["PRADE_LEDGER"]).exists()  # the user's own ledger is left alone


def test_it_stops_where_a_command_fails(tmp_path):
    (tmp_path / f"plan-{EPSILON}.toml").write_text("this is no plan")
    done = call("demo", "-o", tmp_path, "--persons", 300, *LITTLE, code=1)
    assert "$ prade estimate" not in done.stdout
