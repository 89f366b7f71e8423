"""What one person can change in a whole release, by exhaustion: never more than the budget pays for.

For neighbouring tables and the counts c_q, c'_q of question q with noise of scale s_q, as it reaches the sampler,

    pure    sum_q |c_q - c'_q|_1 / s_q  <=  epsilon          zCDP    sum_q |c_q - c'_q|_2^2 / (2 s_q^2)  <=  rho

whichever law the noise has under zCDP. An (epsilon, delta) budget is spent as a pure one or as a zCDP one within it.
All neighbours of a table are measured in one go, without noise: each is a "world", an outer group of one big table.
Sums are exact fractions.
"""

from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade import Budget, Task, Unit, Workload
from prade.baselines.algorithm_2 import Algorithm2
from prade.data.public.public import Public
from prade.measuring.run import measure
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from worlds.every_row import PARTS as EVERY_PART
from worlds.every_row import ROWS, SCHEMA, one_table, persons
from worlds.plans import ledger_for

BASE = [("p", ROWS[0]), ("q", ROWS[4]), ("r", ROWS[10])]
PARTS = list(EVERY_PART.values())
BUDGETS = [Budget.pure(1), Budget.pure("0.3"), Budget.zcdp("1/7"), Budget.approx(1, 1e-6)]
# with the usual law of its kind; and Laplace noise under the other kinds
SPENT = [*((each, None) for each in BUDGETS), (Budget.zcdp("1/7"), "laplace"), (Budget.approx(1, 1e-6), "laplace")]
NAMES = [f"{budget.kind} {float(budget.amounts[0]):.2g} {noise or ''}".strip() for budget, noise in SPENT]


def worlds_with(everybody, others=BASE):
    """One table a person: the others' rows and the person's."""
    return [[*others, *(("new", row) for row in rows)] for rows in everybody]


def measured(levels, budget, unit, tables, noise=None):
    """The plan, and for each question the scale that the sampler got and the true counts, [worlds, counts]."""
    table, groups = one_table(tables)
    worlds = len(tables)
    plan = Plan("worlds", SCHEMA, budget, unit, levels, groups, noise=noise)
    scales = []

    def no_noise(counts, law, scale, *, threads=None):
        assert law == (noise or budget.law)
        scales.append(scale)
        return counts

    with TemporaryDirectory() as folder, patch("prade.measuring.run.add_noise", no_noise):
        noisy = measure(plan, table, Path(folder) / "release", ledger_for(plan, Path(folder) / "ledger")).noisy
    drawn = iter(scales[-sum(map(len, noisy)) :])  # before it spends, `measure` tries the sampler out
    found = []
    for answers in noisy:
        (scale,) = {next(drawn) for _ in answers}
        found.append((scale, np.concatenate([answer.reshape(worlds, -1) for answer in answers], axis=1)))
    return plan, found


def largest_loss(plan, found):
    """Over all pairs of worlds that are neighbours: the first world and any other, or any two for "replace"."""
    moved, pure = [], plan.noise_budget.kind == "pure"
    for _, counts in found:
        others = counts[None, :, :] if plan.unit.neighbours == "replace" else counts[None, :1, :]
        change = np.abs(counts[:, None, :] - others)
        moved.append((change if pure else change**2).sum(axis=2).ravel())
    prices = [1 / scale if pure else 1 / (2 * scale**2) for scale, _ in found]
    distinct = np.unique(np.stack(moved, axis=1), axis=0).tolist()
    return max(sum((price * each for price, each in zip(prices, row, strict=True)), Fraction(0)) for row in distinct)


def promised(plan):
    return plan.noise_budget.amounts[0]


shares = st.sampled_from(["1", "0.1", "1/3", "5"])
asks = st.builds(
    lambda parts, share: Ask(Workload(SCHEMA, [PARTS[part] for part in sorted(parts)]), share),
    st.sets(st.sampled_from(range(len(PARTS))), min_size=1, max_size=4),
    shares,
)
totals = st.one_of(st.none(), st.just(0), shares)


def levels_of(by):
    return st.builds(lambda own, total: Level(by, own, total), st.lists(asks, min_size=1, max_size=2), totals)


plans = st.tuples(levels_of("WORLD"), levels_of("PLACE")).map(list)


@settings(max_examples=20)
@given(
    levels=plans,
    spent=st.sampled_from(SPENT),
    unit=st.sampled_from([Unit(most, neighbours=each) for most in (1, 2) for each in ("add-remove", "replace")]),
)
def test_no_neighbour_changes_a_release_by_more_than_the_budget(levels, spent, unit):
    budget, noise = spent
    plan, found = measured(levels, budget, unit, worlds_with(persons(unit.max_rows)), noise)
    assert 0 < largest_loss(plan, found) <= promised(plan)
    assert sum((question.share for question in plan.questions), plan.noise_budget * 0) == plan.noise_budget
    if budget.kind == "approx":
        assert plan.noise_budget.as_approx(budget.delta) <= budget


@settings(max_examples=15)
@given(
    levels=plans,
    budget=st.sampled_from(BUDGETS),
    bound=st.sampled_from([(1, None), (2, None), (3, None), (2, 1), (3, 2)]),
    others=st.lists(st.sampled_from(ROWS), max_size=4),
    crowd=st.lists(st.lists(st.sampled_from(ROWS), max_size=9), min_size=1, max_size=5),
    neighbours=st.sampled_from(["add-remove", "replace"]),
)
def test_an_enforced_bound_keeps_a_person_with_any_rows_within_the_budget(
    levels, budget, bound, others, crowd, neighbours
):
    """Each of the others has one row, so that only the new person's rows are chosen at random: by level anew."""
    unit = Unit(bound[0], "PERSON", bound[1], neighbours)
    known = [(str(number), row) for number, row in enumerate(others)]
    plan, found = measured(levels, budget, unit, worlds_with([[], *crowd], known))
    assert largest_loss(plan, found) <= promised(plan)


TWO_LEVELS = [
    Level("WORLD", [Ask(Workload(SCHEMA, PARTS[:2]), 3)], total="0.5"),
    Level("PLACE", [Ask(Workload(SCHEMA, PARTS[:1])), Ask(Workload(SCHEMA, PARTS[3:5]), "1/3")], total=1),
]


@pytest.mark.parametrize("most", [1, 2])
def test_the_budget_is_used_up_by_a_row_that_is_in_every_part(most):
    plan, found = measured(TWO_LEVELS, Budget.pure(1), Unit(most), worlds_with(persons(most)))
    assert 1 - Fraction(1, 10**12) < largest_loss(plan, found) <= 1


@pytest.mark.parametrize(("budget", "noise"), SPENT, ids=NAMES)
@pytest.mark.parametrize(
    "fault",
    [
        patch.object(Workload, "per_row", 1),
        patch.object(Unit, "rows", 1),
        patch("prade.measuring.person_bound.bounded", lambda rows, unit: rows),
        nullcontext(),
    ],
    ids=["forgets the parts", "forgets max_rows", "forgets the bound", "none"],
)
def test_broken_copies_exceed_the_budget(fault, budget, noise):
    """The checks above can fail. The fault is in the code, the budget is the one promised."""
    alike = [[ROWS[0]] * 5]
    with fault:
        plan, found = measured(TWO_LEVELS, budget, Unit(2, "PERSON"), worlds_with([[], *alike]), noise)
    assert (largest_loss(plan, found) <= promised(plan)) == isinstance(fault, nullcontext)


def algorithm_2_levels(budget, unit):
    """The two levels of Algorithm 2, with several parts at each."""
    workloads = Workload.marginals(SCHEMA, [("A", "B"), "A"]), Workload.marginals(SCHEMA, ["A", "B"])
    groups, public = {"WORLD": [0], "PLACE": ["here"]}, Public.of(SCHEMA, {"A": [0, 1], "B": [1, 7]})
    task = Task("worlds", SCHEMA, budget, unit, ["WORLD", "PLACE"], groups)
    return Algorithm2().plan(task, public, workloads).levels


@pytest.mark.parametrize("unit", [Unit(1), Unit(2)], ids=["1 row", "2 rows"])
def test_algorithm_2_is_epsilon_differentially_private(unit):
    """Four Laplace mechanisms of epsilon / 4 each, on all groups at once: no neighbour changes more, and one does."""
    budget = Budget.pure("1/3")
    plan, found = measured(algorithm_2_levels(budget, unit), budget, unit, worlds_with(persons(unit.max_rows)))
    assert [question.share for question in plan.questions] == [budget / 4] * 4
    assert [question.law for question in plan.questions] == ["laplace"] * 4
    assert budget.epsilon * (1 - Fraction(1, 10**12)) < largest_loss(plan, found) <= budget.epsilon


@pytest.mark.parametrize(("budget", "noise"), SPENT, ids=NAMES)
def test_dp_accounting_composes_the_questions_to_no_more_than_the_budget(budget, noise):
    accounting = pytest.importorskip("dp_accounting")
    pytest.importorskip("dp_accounting.pld")
    plan = Plan("d", SCHEMA, budget, Unit(3), TWO_LEVELS, {"WORLD": [1], "PLACE": ["here"]}, noise=noise)
    events = []
    for question in plan.questions:
        most = 1 if question.is_total else Workload(SCHEMA, question.parts).per_row
        if question.law == "laplace" and budget.kind == "zcdp":  # count by count: each moves by 3 rows
            events += [accounting.LaplaceDpEvent(float(question.scale) / 3)] * most
        elif question.law == "laplace":
            events.append(accounting.LaplaceDpEvent(float(question.scale) / (3 * most)))
        else:
            events.append(accounting.GaussianDpEvent(float(question.scale) / (3 * np.sqrt(most))))
    assert len(events) >= 5
    together = accounting.ComposedDpEvent(events)
    if plan.noise_budget.kind == "pure":
        accountant = accounting.pld.PLDAccountant().compose(together)
        assert accountant.get_epsilon(1e-12) <= float(budget.epsilon) * (1 + 1e-3)  # it works on a grid of losses
        return
    claim = budget if budget.kind == "approx" else budget.as_approx(1e-6)
    accountant = accounting.rdp.RdpAccountant().compose(together)
    least = 0.99 if plan.law == "gaussian" else 0.4  # few counts with Laplace noise lose less than their rho allows
    assert least < accountant.get_epsilon(1e-6) / float(claim.epsilon) < 1.01  # a grid of orders
    exact = accounting.pld.PLDAccountant().compose(together)
    assert exact.get_epsilon(1e-6) < float(claim.epsilon)
