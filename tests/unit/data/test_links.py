"""Linked columns: what a schema may declare, its file, and what a public table suggests."""

import numpy as np
import pytest

from prade import Column, Plan, Schema, SchemaError, Task
from prade.data.declare.draft import proposed_links

PLACE = Column("PLACE", "group", values=["a", "b"])
WAGES, INCOME, AGE = (Column(name, "numeric", edges=(10, 100)) for name in ("WAGES", "INCOME", "AGE"))
SEX = Column("SEX", "categorical", values=(1, 2))
COLUMNS = [PLACE, WAGES, INCOME, AGE, SEX]
LINKED = Schema(COLUMNS, linked=[["INCOME", "WAGES"], ["AGE", "SEX"]])


def test_links_are_part_of_a_schema_its_file_and_its_plan(tmp_path):
    assert LINKED.linked == (("INCOME", "WAGES"), ("AGE", "SEX"))
    assert Schema(COLUMNS) != LINKED
    assert Schema(COLUMNS, linked=LINKED.linked) == LINKED
    assert LINKED.with_groups({"PLACE": ["c"]}).linked == LINKED.linked
    assert LINKED.select(["SEX", "WAGES", "AGE"]).linked == (("AGE", "SEX"),)
    assert 'linked = [["INCOME", "WAGES"], ["AGE", "SEX"]]\n' in LINKED.to_toml()
    assert Schema.from_toml(LINKED.to_toml()) == LINKED
    assert "linked" not in Schema(COLUMNS).to_toml()  # files and plans without links are those of earlier versions
    plan = Plan.simplest(Task("people", LINKED, 1, levels=["PLACE"], groups={"PLACE": ["a", "b"]}))
    plan.save(tmp_path / "plan.toml")
    assert Plan.load(tmp_path / "plan.toml").schema.linked == LINKED.linked


@pytest.mark.parametrize(
    ("linked", "message"),
    [
        ([["WAGES", "INCOM"]], r"'INCOM', which is not a column of the schema.*INCOME"),
        ([["WAGES", 3]], r"3, which is not a column of the schema"),
        ([["WAGES", "PLACE"]], r"'PLACE', which is not a column of the schema"),
        ([["WAGES"]], r"\['WAGES'\] has fewer than two columns"),
        ([["WAGES", "INCOME"], ["AGE", "WAGES"]], r"'WAGES' is listed twice; join the sets"),
        (["WAGES", "INCOME"], r"give a list of lists of column names"),
        (7, r"give a list of lists of column names"),
    ],
    ids=str,
)
def test_bad_links_are_refused(linked, message):
    with pytest.raises(SchemaError, match=message):
        Schema(COLUMNS, linked=linked)


def money(rows=2000, seed=0):
    """Wages up to income up to the household's income; ages far below all of them; rents without any order."""
    generator = np.random.default_rng(seed)
    wages = generator.integers(1000, 90_000, rows)
    income = wages + generator.integers(0, 2000, rows)
    return {
        "WAGES": wages,
        "AGE": generator.integers(0, 90, rows),
        "RENT": generator.integers(0, 90_000, rows),
        "INCOME": income,
        "HOUSEHOLD": income + generator.integers(0, 2000, rows),
    }


def bins(*names):
    return [Column(name, "numeric", edges=(100, 20_000, 50_000), integer=True) for name in names]


def test_an_order_that_drawing_alone_would_break_is_proposed():
    columns = bins("HOUSEHOLD", "AGE", "WAGES", "RENT", "INCOME")
    assert proposed_links(columns, money()) == (("HOUSEHOLD", "WAGES", "INCOME"),)


def test_an_order_with_too_many_exceptions_is_not():
    table = money()
    pair = bins("WAGES", "INCOME")
    for exceptions, proposed in ((10, (("WAGES", "INCOME"),)), (60, ())):  # 0.5 % and 3 % of the rows
        income = table["INCOME"].copy()
        income[:exceptions] = 0
        assert proposed_links(pair, {**table, "INCOME": income}) == proposed


def test_few_rows_prove_nothing_and_separate_sets_stay_separate():
    table = money()
    few = {name: cells[:90] for name, cells in table.items()}
    assert proposed_links(bins("WAGES", "INCOME"), few) == proposed_links([SEX], {"SEX": [1, 2]}) == ()
    table |= {"LOW": table["RENT"], "HIGH": table["RENT"] + 1}
    assert proposed_links(bins("LOW", "WAGES", "HIGH", "INCOME"), table) == (("LOW", "HIGH"), ("WAGES", "INCOME"))
