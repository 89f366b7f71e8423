"""Questions to a release: statistics, comparisons outside a column's range, edges around a number."""

import datetime

import numpy as np
import pytest

from prade import Column, Schema, WorkloadError
from prade.data.declare.kinds import OffEdge
from prade.queries.asked import asked_query, bracketing, statistic_of
from prade.queries.query import parse, simplified

SCHEMA = Schema(
    [
        Column("AGE", "numeric", edges=(18, 40, 65), integer=True, min=0, max=99),
        Column("WAGE", "numeric", edges=(10, 20)),
        Column("BORN", "numeric", edges=(datetime.date(1990, 1, 1), datetime.date(2000, 1, 1)), missing=True),
        Column("SEX", "categorical", values=(1, 2)),
        Column("HOURS", "numeric", edges=(20, 40), integer=True, min=1, max=99, missing=True),
        Column("hours a week", "numeric", edges=(20, 40)),
    ]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean(WAGE)", "mean(WAGE)"),
        (" Sum ( WAGE ) WHERE SEX = 2 ", "sum(WAGE) where SEX = 2"),
        ("median(AGE)where AGE >= 18", "quantile(AGE, 0.5) where AGE >= 18"),
        ("quantile(`hours a week`, .9)", "quantile(`hours a week`, 0.9)"),
        ("histogram(BORN)", "histogram(BORN)"),
    ],
)
def test_statistics_are_read(text, expected):
    assert statistic_of(text, SCHEMA).text == expected


@pytest.mark.parametrize("text", ["AGE >= 18", "mean == 1", "mean(AGE) and SEX == 1", "mean(AGE", "average(AGE)", ""])
def test_other_texts_are_left_to_the_queries(text):
    assert statistic_of(text, SCHEMA) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("mean(SEX)", "SEX is not a numeric column; these are: AGE, WAGE, BORN, HOURS, `hours a week`"),
        ("mean(AGES)", "did you mean 'AGE'"),
        ("mean(BORN)", "BORN contains dates; ask for its median"),
        ("quantile(AGE)", "write mean"),
        ("median(AGE, 0.5)", "write mean"),
        ("quantile(AGE, 90)", "a share from 0 to 1"),
        ("quantile(AGE, x)", "a share from 0 to 1"),
        ("mean(AGE) where ", "write mean"),
    ],
)
def test_statistics_that_make_no_sense_are_refused(text, named):
    with pytest.raises(WorkloadError, match=named):
        statistic_of(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("AGE > 99", "at least 0 and at most 99"),
        ("AGE < 0", "at least 0"),
        ("AGE in (100, 101)", "at most 99"),
        ("not AGE <= 99", "no row can satisfy not AGE <= 99"),
        ("SEX = 1 and not (SEX = 2 or AGE >= 0)", "no row can satisfy not AGE >= 0"),
    ],
)
def test_what_no_row_of_the_schema_can_satisfy_is_an_error(text, named):
    """A plan may still ask it: there it counts nobody."""
    parse(text, SCHEMA)
    with pytest.raises(WorkloadError, match=named):
        asked_query(text, SCHEMA)


@pytest.mark.parametrize("text", ["AGE <= 200", "AGE >= 0", "WAGE < 20", "not HOURS <= 99", "AGE != 200"])
def test_what_some_row_can_satisfy_is_not(text):
    """Rows whose hours are missing satisfy the negation of any comparison."""
    assert asked_query(text, SCHEMA) == parse(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "narrow", "wide"),
    [
        ("AGE >= 50", "AGE >= 65", "AGE >= 40"),
        ("AGE < 50", "AGE < 40", "AGE < 65"),
        ("not AGE < 50", "not AGE < 65", "not AGE < 40"),
        ("AGE between 20 and 70", "AGE >= 40 and AGE < 65", "AGE >= 18 and AGE <= 99"),
        ("AGE >= 70", None, "AGE >= 65"),
        ("AGE >= 5", "AGE >= 18", "AGE >= 0"),
        ("AGE < 70", "AGE < 65", "AGE <= 99"),
        ("WAGE >= 5", "WAGE >= 10", None),
        ("BORN >= '1995-06-30'", "BORN >= '2000-01-01'", "BORN >= '1990-01-01'"),
    ],
)
def test_edges_around_a_number(text, narrow, wide):
    with pytest.raises(OffEdge):
        asked_query(text, SCHEMA)
    found = [query.text for query in bracketing(text, SCHEMA)]
    assert found == [each for each in (narrow, wide) if each is not None]


def test_the_queries_at_the_edges_hold_the_asked_one_between_them():
    ages = np.arange(100)
    codes = {"AGE": np.searchsorted([18, 40, 65], ages, side="right"), "SEX": np.tile([0, 1], 50)}
    meant = (ages >= 20) & (ages <= 70) & ~((ages > 50) & (codes["SEX"] == 1))
    narrow, wide = bracketing("AGE between 20 and 70 and not (AGE > 50 and SEX = 2)", SCHEMA)
    assert not (narrow.mask(codes) & ~meant).any()
    assert not (meant & ~wide.mask(codes)).any()


@pytest.mark.parametrize("sex", [0, 1])
@pytest.mark.parametrize(
    "text",
    [
        "SEX = 1 and AGE >= 65",
        "SEX = 1 or AGE >= 65",
        "not (SEX = 1 and not AGE >= 65) or AGE < 18 and SEX = 2",
        "not SEX = 1 and SEX = 1",
    ],
)
def test_what_is_left_of_a_query_is_the_query_for_rows_with_known_codes(text, sex):
    query = parse(text, SCHEMA)
    codes = {"AGE": np.arange(4), "SEX": np.full(4, sex)}
    left = simplified(query.expression, {"SEX": sex})
    found = np.full(4, left) if isinstance(left, bool) else type(query)(left).mask(codes)
    assert found.tolist() == query.mask(codes).tolist()
    assert isinstance(left, bool) or "SEX" not in type(query)(left).columns
