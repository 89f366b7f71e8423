"""Texts for readers: labels with a code where two cells would look alike, bins in words, headings, groups."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest

from prade.data.declare.display import group_texts
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Column, Schema


def test_a_label_is_shown_alone_unless_another_cell_looks_the_same() -> None:
    labels = {1: "white", 2: "other", 3: "other", None: "white"}
    column = Column("RACE", "categorical", values=(1, 2, 3, 4), missing=True, labels=labels)
    assert column.display_texts() == ["white (1)", "other (2)", "other (3)", "4", "white (missing)"]


def test_a_label_gives_way_to_a_value_of_the_same_text() -> None:
    column = Column("X", "categorical", values=("a", "b"), labels={"a": "b"})
    assert column.display_texts() == ["b (a)", "b"]


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"edges": [18, 65], "integer": True, "min": 0, "max": 99}, ["0 to 17", "18 to 64", "65 to 99"]),
        ({"edges": [18, 65], "integer": True}, ["under 18", "18 to 64", "65 or more"]),
        ({"edges": [0.5, 2, 3], "integer": True, "min": 0}, ["0", "1", "2", "3 or more"]),
        ({"edges": [1990, 2000], "integer": True, "max": 2024}, ["under 1990", "1990 to 1999", "2000 to 2024"]),
        ({"edges": [0, 20000], "integer": True, "min": -9}, ["-9 to -1", "0 to 19,999", "20,000 or more"]),
        ({"edges": [5000, 20000], "integer": True}, ["under 5,000", "5,000 to 19,999", "20,000 or more"]),
        ({"edges": [1, 2.5], "max": 4}, ["under 1", "1 to under 2.5", "2.5 to 4"]),
        ({"edges": [1, 2.5], "min": 0}, ["0 to under 1", "1 to under 2.5", "2.5 or more"]),
        ({"edges": [1, 4], "max": 4}, ["under 1", "1 to under 4", "4"]),
        ({"edges": [math.nextafter(20, 99), math.nextafter(40, 99)]}, ["up to 20", "over 20 to 40", "over 40"]),
        ({"edges": [math.nextafter(20, 99)], "min": 0, "max": 30}, ["0 to 20", "over 20 to 30"]),
        ({"edges": [1], "missing": True, "labels": {None: "no job"}}, ["under 1", "1 or more", "no job"]),
    ],
)  # fmt: skip
def test_bins_are_told_in_words(changes: dict[str, Any], texts: list[str]) -> None:
    assert Column("X", "numeric", **changes).display_texts() == texts


def test_bins_of_dates_name_their_first_and_last_day() -> None:
    edges = (datetime.date(1970, 1, 2), datetime.date(1971, 1, 1))
    column = Column("D", "numeric", edges=edges)
    assert column.display_texts() == ["before 1970-01-02", "1970-01-02 to 1970-12-31", "from 1971-01-01"]


def test_the_heading_has_the_title_and_the_unit() -> None:
    column = Column("WAGP", "numeric", edges=(1,))
    assert column.heading == "WAGP"
    assert Column("WAGP", "numeric", edges=(1,), unit="dollars").heading == "WAGP (dollars)"
    assert Column("WAGP", "numeric", edges=(1,), title="Wages", unit="dollars").heading == "Wages (dollars)"


def test_a_page_gets_every_word_about_a_column() -> None:
    column = Column("SEX", "categorical", values=(1, 2), description="as registered", labels={1: "male"})
    said = {"name": "SEX", "title": "SEX", "description": "as registered", "unit": "", "labels": ["male", "2"]}
    assert column.described() == said


def test_groups_are_named_by_their_labels_and_titles() -> None:
    state = Column("STATE", "group", labels={17: "Illinois", 39: "Ohio"})
    place = Column("PLACE", "group", title="Place", labels={"a": "Springfield", "b": "Springfield"})
    groups = Groups.of({"STATE": [17, 17, 39], "PLACE": ["a", "b", "c"], "YEAR": [1, 1, 1]})
    found = group_texts(Schema([state, place]), groups.level(["STATE", "PLACE", "YEAR"]))
    assert found == ["Illinois, Springfield (a), YEAR 1", "Illinois, Springfield (b), YEAR 1", "Ohio, Place c, YEAR 1"]
    assert group_texts(Schema([state]), groups.level([])) == ["all"]
