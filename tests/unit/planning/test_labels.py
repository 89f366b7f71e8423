"""Labels cost nothing: they are in a plan's file, but not in its hash, its ledger record or what is measured."""

from dataclasses import replace

import pytest

from prade import BudgetError, Column, Level, Release, Schema, SchemaError, Task, Workload
from prade.measuring.run import measure
from prade.planning.plan import measured_to_dict
from prade.release.release import measurement_table
from worlds.plans import ledger_for, plan_of

AGE = Column("AGE", "numeric", edges=[18, 65], missing=True)
SEX = Column("SEX", "categorical", values=[1, 2])
PLACE = Column("PLACE", "group")
BARE = Schema([PLACE, AGE, SEX])
LABELLED = Schema(
    [
        replace(PLACE, title="Place", labels={"a": "Alpha"}),
        replace(AGE, title="Age", description="at the last birthday", unit="years", labels={None: "not known"}),
        replace(SEX, labels={1: "male", 2: "female"}),
    ]
)
ROWS = {"PLACE": ["a", "b"] * 30, "AGE": [5, 30, 70] * 20, "SEX": [1, 2, 2, 1, 1, 2] * 10}


def plan_with(schema):
    return plan_of(schema, Level("PLACE", Workload.all_marginals(schema, 2)), groups={"PLACE": ["a", "b"]})


def test_the_hash_equality_and_tasks_leave_labels_out_but_not_values():
    bare, labelled = plan_with(BARE), plan_with(LABELLED)
    assert (labelled.hash, labelled, labelled.describe()) == (bare.hash, bare, bare.describe())
    assert measured_to_dict(labelled) == measured_to_dict(bare)
    other = Schema([LABELLED["PLACE"], LABELLED["AGE"], replace(SEX, values=(1, 3), labels={1: "male"})])
    assert plan_with(other).hash != labelled.hash
    given = {"levels": ["PLACE"], "groups": {"PLACE": ["a", "b"]}}
    assert Task("survey", LABELLED, 1, **given).differs_from(Task("survey", BARE, 1, **given)) is None


def test_a_plan_takes_the_labels_of_a_schema_with_its_columns():
    found = plan_with(BARE).with_labels(LABELLED)
    assert found == plan_with(BARE)
    assert found.schema["SEX"].label_of(1) == "male"
    with pytest.raises(SchemaError, match="must have the plan's columns"):
        found.with_labels(LABELLED.select(["AGE", "SEX"]))


def test_a_plan_that_was_paid_for_is_not_paid_for_again_with_labels(tmp_path):
    """And a labelled release records and stores what one without labels does."""
    bare, labelled = plan_with(BARE), plan_with(LABELLED)
    ledger = ledger_for(bare, tmp_path / "prade.ledger", cap=3)
    release = measure(labelled, ROWS, tmp_path / "release", ledger)
    assert Release.load(tmp_path / "release").plan.schema["SEX"].label_of(2) == "female"
    assert measurement_table(labelled, release.noisy) == measurement_table(bare, release.noisy)
    again = measure(bare, ROWS, tmp_path / "release", ledger)
    assert again.fingerprint == release.fingerprint
    with pytest.raises(BudgetError, match="already"):  # elsewhere, it is refused as the plan that it is
        measure(bare, ROWS, tmp_path / "elsewhere", ledger)
    (entry,) = ledger.entries("survey")
    assert entry.plan_hash == bare.hash
