"""The page about rehearsed budgets as a file; tests/browser opens it."""

import pytest
from jinja2 import UndefinedError

from prade.core.errors import DataError
from prade.reporting.explore_page import explore_page, write_explore
from worlds.rehearsals import explored


def test_it_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "explore.html"
    path.write_text("an earlier page")
    broken = explored() | {"budgets": [{}]}
    with pytest.raises(UndefinedError, match=r"has no attribute"):
        write_explore(broken, path)
    assert path.read_text() == "an earlier page"
    assert write_explore(explored(), path) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [each.name for each in tmp_path.iterdir()] == ["explore.html"]


def test_without_budgets_it_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"rehearse at least one: prade plan --epsilon 0\.1,1,10"):
        write_explore(explored() | {"budgets": []}, tmp_path / "explore.html")


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"the folder .*nowhere does not exist"):
        write_explore(explored(), tmp_path / "nowhere" / "explore.html")


def test_it_can_be_read_without_its_script():
    """Budgets, errors, caveats and the elbow are in the page itself."""
    data = explored()
    read = explore_page(data).split('<script type="application/json"')[0]
    for text in (data["elbow"], *data["caveats"], data["rehearsal"], data["unit"]):
        assert text in read
    for budget in data["budgets"]:
        assert f"{budget['expected']['error']:.3f}" in read


def test_it_names_public_files_but_not_their_folders():
    data = explored()
    data["public"]["files"] = ["/home/agency/people/public.parquet"]
    read = explore_page(data)
    assert "public.parquet" in read
    assert "agency/people" not in read


def test_an_improvement_below_zero_has_a_minus_sign():
    data = explored()
    data["budgets"][0]["expected"].update(gain=-0.004)
    assert "\u22120.004" in explore_page(data)
