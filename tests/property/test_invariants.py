"""Random tables, rules and published totals: estimates, answers, tables and synthetic rows meet them exactly."""

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prade import Budget, Column, Level, Plan, PublishedTotals, Rule, Schema, Settings, Unit, Workload
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.data.public.table import PublicTable
from prade.estimating.levels.estimates import Estimates
from prade.planning.invariants import ParsedRule
from prade.queries.query import parse
from prade.sampling.table import drawn_table, sample_groups
from worlds.releases import counted

COLUMNS = {"A": 3, "B": 2, "C": 4}
SCHEMA = Schema(
    [
        Column("A", "numeric", edges=[10, 20], min=0, max=40, integer=True),
        Column("B", "categorical", values=["x", "y"]),
        Column("C", "categorical", values=[1, 2, 3], missing=True),
    ]
)
GROUPS = {"S": ["s", "s", "t"], "P": ["p", "q", "r"]}
CONDITIONS = st.sampled_from(
    ["A < 10", "A >= 20", "10 <= A < 20", "B == 'x'", "B != 'x'", "C == 1", "C in [2, 3]", "C is missing", "not C == 2"]
)
RULES = st.one_of(
    st.builds("{} -> {}".format, CONDITIONS, CONDITIONS),
    st.builds("not ({} and {})".format, CONDITIONS, CONDITIONS),
    st.builds("{} or {}".format, CONDITIONS, CONDITIONS),
)
SEEDS = st.integers(0, 2**32 - 1)


def table_of(seed, rows):
    generator = np.random.default_rng(seed)
    place = generator.integers(3, size=rows)
    c = generator.integers(4, size=rows)
    return pa.table(
        {
            "S": np.array(GROUPS["S"])[place],
            "P": np.array(GROUPS["P"])[place],
            "A": generator.integers(41, size=rows),
            "B": np.where(generator.random(rows) < 0.4, "x", "y"),
            "C": pa.array([None if code == 3 else int(code) + 1 for code in c], pa.int64()),
        }
    )


def obeyed_by(codes, rules):
    return np.all([ParsedRule.of(Rule(text), SCHEMA).obeyed(codes) for text in rules], axis=0)


def plan_of(invariants, *, epsilon=2):
    levels = [Level("S", Workload.marginals(SCHEMA, ["B"])), Level("P", Workload.all_marginals(SCHEMA, 2))]
    return Plan("people", SCHEMA, Budget.pure(epsilon), Unit(1), levels, GROUPS, invariants=invariants)


@settings(max_examples=15)
@given(st.lists(RULES, min_size=1, max_size=2), SEEDS, st.sampled_from(["map", "ide", "two-stage"]))
def test_estimates_answers_tables_and_rows_obey_random_rules(rules, seed, estimator):
    public_table, private_table = table_of(seed, 150), table_of(seed + 1, 400)  # the private rows break the rules too
    public = Public.of(SCHEMA, public_table, ["S", "P"])
    assume(obeyed_by(public.prior.codes, rules).any())
    plan = plan_of([Rule(text) for text in rules])
    release = counted(plan, private_table, np.random.default_rng(seed))
    chosen = Settings(estimator=estimator)
    estimates = Estimates.of(release, public, chosen)
    for level, grouping in enumerate(plan.groupings):
        for group in range(len(grouping)):
            joint = estimates.joint(group, level)
            assert joint.weights[~obeyed_by(joint.codes, rules)].sum() == 0
            assert abs(joint.weights.sum() - 1) < 1e-9
    for text in rules:
        if "->" in text:
            when, then = text.split("->")
            broken = estimates.answer(f"({when}) and not ({then})", by="S")
            for name in ("count", "share", "sd", "low", "high"):
                assert broken[name].to_pylist() == [0.0, 0.0]
    domain = SCHEMA.shape(list(COLUMNS))
    cells = np.unravel_index(np.arange(np.prod(domain)), domain)
    impossible = ~obeyed_by(dict(zip(COLUMNS, cells, strict=True)), rules)
    table = estimates.marginal(list(COLUMNS), by="P")
    for name in ("count", "high"):
        assert (np.array(table[name]).reshape(3, -1)[:, impossible] == 0).all()
    coded, _ = sample_groups(estimates, seed % 1000)
    assert len(coded)
    assert obeyed_by(coded.codes, rules).all()


@settings(max_examples=12)
@given(
    st.lists(st.integers(0, 300), min_size=3, max_size=3),
    st.sampled_from(["S", "P", "both"]),
    st.sampled_from(["1/50", 2]),
    SEEDS,
)
def test_published_totals_are_met_from_the_plan_to_the_synthetic_rows(rows, where, epsilon, seed):
    assume(sum(rows))
    states = PublishedTotals.of({"S": ["t", "s"], "rows": [rows[2], rows[0] + rows[1]]}, "S")
    places = PublishedTotals.of({"P": ["q", "p", "r"], "rows": [rows[1], rows[0], rows[2]]}, "P")
    stated = {"S": [states], "P": [places], "both": [states, places]}[where]
    rule = "B == 'x' -> A >= 10"
    plan = Plan.from_toml(plan_of([*stated, Rule(rule)], epsilon=epsilon).to_toml())
    release = counted(plan, table_of(seed + 1, 400), np.random.default_rng(seed))
    public = PublicTable(table_of(seed, 150))
    estimates = Estimates.of(release, public.rows(SCHEMA, plan.groups))
    drawn = drawn_table(estimates, public, seed % 1000, like="pyarrow")
    by_state = [rows[0] + rows[1], rows[2]]
    assert [each.totals.tolist() for each in estimates.levels[:2]] == [[sum(rows)], by_state]
    assert (estimates.totals == np.round(estimates.totals)).all()
    assert [estimates.totals[:2].sum(), estimates.totals[2]] == by_state
    if where != "S":
        assert estimates.totals.tolist() == rows
    everybody = estimates.answer("B in ['x', 'y']", by="S")
    for name in ("count", "low", "high"):
        assert np.allclose(everybody[name], by_state, atol=0.02)
    counts = dict.fromkeys(GROUPS["P"], 0) | Counter(drawn["P"].to_pylist())
    assert [counts["p"] + counts["q"], counts["r"]] == by_state
    if where != "S":
        assert [counts[key] for key in "pqr"] == rows
    assert obeyed_by(encode(SCHEMA, drawn).codes, [rule]).all()
    assert not parse("B == 'x' and A < 10", SCHEMA).mask(encode(SCHEMA, drawn).codes).any()
