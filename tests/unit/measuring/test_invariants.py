"""Measuring does not know of invariants: counts, noise and messages are the same with and without them."""

import numpy as np
import pyarrow as pa
import pytest

from prade import Budget, Column, Level, PublishedTotals, Rule, Schema, Unit, Workload
from prade.measuring.run import measure
from prade.planning.plan import Plan
from prade.release.release import read_account
from worlds.plans import ledger_for

SCHEMA = Schema([Column("AGE", "numeric", edges=[15, 65]), Column("MAR", "categorical", values=[1, 5])])
LEVELS = [Level("PLACE", Workload.all_marginals(SCHEMA, 2))]
GROUPS = {"PLACE": ["a", "b"]}
RULE = Rule("AGE < 15 -> MAR == 5", "private")
TOTALS = PublishedTotals.of({"PLACE": ["a", "b"], "rows": [7, 9]}, "PLACE", source="private")
OBEDIENT = pa.table({"PLACE": ["a", "b", "b"], "AGE": [3, 70, 30], "MAR": [5, 1, 1]})
DISOBEDIENT = pa.table({"PLACE": ["a", "a", "c"], "AGE": [3, 3, 3], "MAR": [1, 1, 1]})


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr("prade.measuring.run.add_noise", lambda counts, law, scale, **_: np.array(counts))


def measured(folder, table, *invariants):
    plan = Plan("people", SCHEMA, Budget.pure(1), Unit(1), LEVELS, GROUPS, invariants=invariants)
    return measure(plan, table, folder / "release", ledger_for(plan, folder / "ledger"))


@pytest.mark.parametrize("table", [OBEDIENT, DISOBEDIENT], ids=["obedient", "disobedient"])
def test_rows_that_break_a_rule_are_counted_like_all_others(tmp_path, no_noise, table, recwarn, caplog):
    (tmp_path / "plain").mkdir()
    (tmp_path / "with").mkdir()
    plain = measured(tmp_path / "plain", table)
    stated = measured(tmp_path / "with", table, RULE, TOTALS)
    for ours, theirs in zip(plain.noisy, stated.noisy, strict=True):
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]
    assert plain.noisy[-1][-1].sum() == sum(place in GROUPS["PLACE"] for place in table["PLACE"].to_pylist())
    assert not recwarn.list
    assert not caplog.records


def test_the_ledgers_entry_names_what_is_not_protected(tmp_path):
    measured(tmp_path, OBEDIENT, RULE, TOTALS)
    (asked,) = (line for line in read_account(tmp_path / "release") if line.startswith("  asked"))
    words = "Not protected, because taken from the private table and published exactly: the rule AGE < 15 -> MAR == 5; "
    assert asked.endswith(f"{words}the numbers of rows of PLACE.")
