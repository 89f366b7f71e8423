"""What all answers tell about all groups, level by level: sums, only children, several blocks, recurring groups."""

from functools import partial

import numpy as np
import pytest

from prade import Ask, Budget, Column, Level, PublishedTotals, Schema, Workload
from prade.core.execution import Execution
from prade.data.public.public import Public
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.totals import added_up, expected_rows
from prade.estimating.levels.tree import reachable_shares
from prade.estimating.levels.variation import blocks_of
from prade.planning.settings import Settings
from worlds.plans import plan_of
from worlds.releases import answered, counted
from worlds.survey import PLACE, STATE

SCHEMA = Schema([STATE, PLACE, Column("A", "categorical", values=[0, 1, 2]), Column("B", "categorical", values=[0, 1])])
A, AB = (Workload.marginals(SCHEMA, [columns]) for columns in (["A"], ["A", "B"]))
ONES = Workload.all_marginals(SCHEMA, 1)
GROUPS = {"STATE": [1, 1, 1, 2, 3, 3], "PLACE": ["p", "q", "r", "p", "s", "t"]}  # the second state has one place
MANY = {"STATE": [1 + k // 20 for k in range(60)], "PLACE": list(range(60))}
survey = partial(plan_of, SCHEMA, groups=GROUPS)


def rows_of(seed, rows=3_000, places=GROUPS, lean=0.1):
    """A differs from place to place, and B follows from it."""
    generator = np.random.default_rng(seed)
    place = generator.integers(0, len(places["STATE"]), rows)
    a = (generator.random(rows) * 3 * (0.8 + lean * place)).astype(int) % 3
    named = {name: np.array(values)[place] for name, values in places.items()}
    return {**named, "A": a, "B": (generator.random(rows) < 0.2 + 0.2 * a).astype(int)}


def public_of(table, schema=SCHEMA):
    return Public.of(schema, table, [name for name in ("STATE", "PLACE") if name in table])


PUBLIC = public_of(rows_of(0, places={"STATE": [5, 5, 6, 6, 7, 7], "PLACE": ["s", "t"] * 3}))


def tree_of(plan, table=None, public=PUBLIC, settings=None, threads=1, release=None):
    release = release or counted(plan, rows_of(1) if table is None else table, np.random.default_rng(9))
    return Descent(release, public, settings, execution=Execution(threads)).tree


def sums_and_parents(tree):
    """For each level but the first: its groups' shares added up, beside their parents'."""
    for number in (1, 2):
        parent, level, parent_of = tree.levels[number - 1], tree.levels[number], tree.foundation.parents(number)
        assert added_up(level.totals, parent_of, len(parent.totals)).tolist() == parent.totals.tolist()
        added = added_up(level.totals[:, None] * level.shares, parent_of, len(parent.totals))
        yield added / parent.totals[:, None], parent.shares


@pytest.mark.parametrize("budget", ["1/20", 1, Budget.zcdp("1/100")])
@pytest.mark.parametrize("first", [[Level((), A)], []], ids=["everybody is asked", "everybody is not"])
def test_groups_add_up_to_their_parents_and_an_only_child_is_its_parent(budget, first):
    tree = tree_of(survey(*first, Level("STATE", AB), Level("PLACE", ONES), budget=budget))
    assert [len(level.totals) for level in tree.levels] == [1, 3, 6]
    for added, shares in sums_and_parents(tree):
        # numbers of rows that are not known take a part of what is missing, and no share is next to nothing
        np.testing.assert_allclose(added, shares, atol=0.02)
    np.testing.assert_allclose(tree.levels[2].shares[3], tree.levels[1].shares[1], rtol=0.01)


def test_where_rows_are_published_they_are_met_and_shares_add_up_exactly():
    rows = [700, 600, 500, 400, 500, 300]
    schema = SCHEMA.with_invariants([PublishedTotals.of({**GROUPS, "rows": rows}, ["STATE", "PLACE"])])
    tree = tree_of(plan_of(schema, Level("STATE", A), Level("PLACE", ONES), groups=GROUPS))
    assert [level.totals.tolist() for level in tree.levels] == [[3000], [1800, 400, 800], rows]
    assert not any(level.rows_variance.any() for level in tree.levels)
    for added, shares in sums_and_parents(tree):
        np.testing.assert_allclose(added, shares, rtol=1e-9)


@pytest.mark.parametrize("settings", [Settings(), Settings(smooth=False)])
def test_results_do_not_depend_on_the_number_of_threads(settings):
    plan = plan_of(SCHEMA, Level("STATE", A), Level("PLACE", ONES), groups=MANY)
    table = rows_of(4, 20_000, MANY, 0.01)
    one, other = (tree_of(plan, table, settings=settings, threads=threads).levels for threads in (1, 3))
    for level, same in zip(one, other, strict=True):
        for name in ("totals", "rows_variance", "shares", "variance", "scale"):
            assert getattr(level, name).tobytes() == getattr(same, name).tobytes(), name
        assert repr(level.kinds) == repr(same.kinds)


def test_raw_answers_stay_raw():
    """Also in cells that no public row is in, and where they are negative."""
    schema = Schema.from_mbi({"a": 3, "b": 2})
    plan = plan_of(schema, Level((), Workload.all_marginals(schema, 1), total=0))
    noisy = {("a",): np.array([[70, -10, 60]]), ("b",): np.array([[50, 40]])}
    release = answered(plan, lambda _, part, __: noisy[part.columns])
    public = public_of({"a": [0, 0, 1], "b": [0, 1, 1]}, schema)
    level = tree_of(plan, None, public, Settings(smooth=False, unseen=False), release=release).levels[0]
    np.testing.assert_allclose(level.shares[0] * level.rows[0], [70, -10, 60, 50, 40])
    np.testing.assert_allclose(level.variance[0] * level.rows[0] ** 2, plan.questions[0].variance)


def test_mass_out_of_reach_is_handed_to_the_other_cells():
    """Half a table is in a cell that no public row is in; if it may be noise, it is nothing."""
    schema = Schema.from_mbi({"a": 3})
    plan = plan_of(schema, Level((), Workload.all_marginals(schema, 1)))
    release = answered(plan, lambda *_: np.array([[30, 20, 50]]))
    tree = tree_of(plan, None, public_of({"a": [0, 0, 0, 1]}, schema), Settings(unseen=False), release=release)
    shares, base, seen = np.array([[0.3, 0.2, 0.5]]), np.array([[0.75, 0.25, 0.0]]), np.ones(3, np.bool_)
    for noise, expected in ((0.01, [0.3 + 0.375, 0.2 + 0.125, 0.0]), (0.3, [0.3, 0.2, 0.0])):
        found = reachable_shares(tree.layout, shares, base, np.full((1, 3), noise), seen)
        np.testing.assert_allclose(found, [expected])


WIDE = Schema([PLACE, *[Column(name, "categorical", values=list(range(45))) for name in "UVW"]])
PAIRS = Workload.all_marginals(WIDE, 2)
TOWNS = list("pqrstu")


def wide(seed, names):
    generator = np.random.default_rng(seed)
    return {"PLACE": generator.choice(names, 6_000), **{name: generator.integers(0, 45, 6_000) for name in "UVW"}}


WIDE_PUBLIC = public_of(wide(1, list("abcdef")), WIDE)


def test_several_blocks_count_the_number_of_rows_once():
    """What each block tells about it is added up; what was counted is an answer of one block only."""
    assert len(blocks_of(PAIRS)) > 1
    plan = plan_of(WIDE, Level("PLACE", [Ask(PAIRS)], total="1/2"), groups={"PLACE": TOWNS}, budget="1/10")
    tree = tree_of(plan, wide(2, TOWNS), WIDE_PUBLIC)
    found, answers = tree.levels[-1].rows_variance, raw_answers(tree.release, 0)
    _, before = expected_rows(answers, np.zeros(6))
    # with what was expected, it is known to at most as well as from an answer and a half; each block has not its own
    assert (1 / (1.5 / answers.counted_variance + 1 / before) < found).all()
    assert (found < 1 / (1 / answers.counted_variance + 1 / before)).all()


def test_a_level_that_asks_for_numbers_of_rows_only_follows_its_parent_in_all_blocks():
    plan = plan_of(WIDE, Level((), PAIRS), Level("PLACE", total=1), groups={"PLACE": TOWNS}, budget=100)
    table = wide(2, TOWNS)
    everybody, places = tree_of(plan, table, WIDE_PUBLIC).levels
    np.testing.assert_allclose(places.shares, np.tile(everybody.shares, (6, 1)), atol=1e-9)
    assert np.abs(places.totals - np.unique(table["PLACE"], return_counts=True)[1]).max() <= 3


KNOWN = {"STATE": [1, 1, 2, 2, 3, 3], "PLACE": ["p", "q"] * 3}


def test_recurring_groups_carry_their_parents_change():
    """Only states are asked: their places differ from each other as their public rows do, and changed as the state."""
    plan = plan_of(SCHEMA, Level("STATE", A), Level("PLACE", total=1), groups=KNOWN, budget=1000)
    later = rows_of(2, 30_000, KNOWN)
    later["A"][(later["A"] == 2) & (np.arange(30_000) % 3 == 0)] = 0
    tree = tree_of(plan, later, public_of(rows_of(1, 30_000, KNOWN)))
    state, place, parent_of = tree.levels[1], tree.levels[2], tree.foundation.parents(2)
    assert tree.foundation.priors(2).recurs.all()
    before = tree.foundation.priors(2).masses(tree.foundation.support, tree.layout)[:, :3]
    rows = place.totals / state.totals[parent_of]
    change = (state.shares[:, :3] - added_up(rows[:, None] * before, parent_of, 3))[parent_of]
    assert np.abs(change).max() > 0.05
    np.testing.assert_allclose(place.shares[:, :3], before + change, atol=0.01)


def test_recurring_groups_and_others_have_models_of_their_own():
    """What recurring groups are expected to change by is a setting. Laplace noise tells more than Gaussian noise."""
    groups = {"STATE": KNOWN["STATE"] + [4, 4, 4], "PLACE": KNOWN["PLACE"] + list("xyz")}
    plan, table = plan_of(SCHEMA, Level("PLACE", ONES), groups=groups, budget="1/10"), rows_of(3, 9_000, groups)
    public, kinds = public_of(rows_of(1, 6_000, KNOWN)), []
    for change in (1e-4, 1.0):
        kinds.append(tree_of(plan, table, public, Settings(change=change)).levels[-1].kinds)
    assert 100 * kinds[0][True].scales[0].a < kinds[1][True].scales[0].a
    assert kinds[0][False].scales == kinds[1][False].scales
    assert 1.01 < kinds[0][False].told[0] < 2
