"""The examples run, and what they write is what they measured."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from prade import Budget, Ledger

EXAMPLES = Path(__file__).parents[2] / "examples"
PERSONS = 2500


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def figure():
    return load("paper_figure")


@pytest.fixture(scope="module")
def folder(figure, tmp_path_factory):
    place = tmp_path_factory.mktemp("figure")
    figure.main(["--output", str(place), "--persons", str(PERSONS), "--seed", "3", "--effort", "0"])
    return place


def test_the_table_has_every_group_and_each_error(figure, folder):
    table = pyarrow.csv.read_csv(folder / "figure.csv").to_pandas()
    job = figure.invented(PERSONS, 3)
    assert list(table.columns) == ["STATE", "PLACE", "YEAR", "true_rows", "paper's system", "public table", "prade"]
    assert len(table) == job.groups.num_rows
    assert table["true_rows"].sum() == job.private.num_rows
    errors = table[["paper's system", "public table", "prade"]].to_numpy()
    assert ((errors >= 0) & (errors <= 2) | np.isnan(errors)).all()
    assert (table["true_rows"] == 0).sum() == 1  # the list has a group that nobody is in
    assert np.isfinite(errors[table["true_rows"] > 0]).all()


def test_a_second_run_spends_nothing_and_finds_the_same(figure, folder, capsys):
    before = (folder / "figure.csv").read_text(), (folder / "figure.svg").read_text()
    figure.main(["--output", str(folder), "--persons", str(PERSONS), "--seed", "3"])
    assert ((folder / "figure.csv").read_text(), (folder / "figure.svg").read_text()) == before
    assert Ledger(folder / "ledger").remaining("invented people") == Budget.pure(0)
    printed = capsys.readouterr().out
    assert "epsilon = 2.5" in printed
    assert "paper's system" in printed


def test_the_paper_s_own_experiment_has_one_table_for_both(figure, folder, tmp_path):
    """With the private rows as the prior, both systems are far better than from other people."""
    figure.main(["--output", str(tmp_path), "--persons", str(PERSONS), "--seed", "3", "--effort", "0", "--same-table"])
    same, other = (pyarrow.csv.read_csv(each / "figure.csv").to_pandas() for each in (tmp_path, folder))
    assert same["true_rows"].tolist() == other["true_rows"].tolist()
    assert same["public table"].mean() < other["public table"].mean()
    assert "the same table as public and private" in (tmp_path / "figure.svg").read_text()
