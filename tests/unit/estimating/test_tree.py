"""What all answers tell about all groups, level by level: sums, only children, several blocks, recurring groups."""

from functools import partial

import numpy as np
import pytest

from prade import Ask, Budget, Column, Level, PublishedTotals, Schema, Workload
from prade.core.execution import Execution
from prade.data.public.public import Public
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.random_effects import Scales
from prade.estimating.levels.totals import added_up, expected_rows
from prade.estimating.levels.tree import Kind, reachable_shares
from prade.estimating.levels.variation import MOST_SMOOTHED, blocks_of
from prade.planning.settings import Settings
from worlds.plans import plan_of
from worlds.releases import answered, counted
from worlds.survey import PLACE, STATE

SCHEMA = Schema([STATE, PLACE, Column("A", "categorical", values=[0, 1, 2]), Column("B", "categorical", values=[0, 1])])
A, B, AB = (Workload.marginals(SCHEMA, [columns]) for columns in (["A"], ["B"], ["A", "B"]))
ONES = Workload.all_marginals(SCHEMA, 1)
GROUPS = {"STATE": [1, 1, 1, 2, 3, 3], "PLACE": ["p", "q", "r", "p", "s", "t"]}  # the second state has one place
survey = partial(plan_of, SCHEMA, groups=GROUPS)


def rows_of(seed, rows=3_000, places=GROUPS, lean=0.1):
    generator = np.random.default_rng(seed)
    place = generator.integers(0, len(places["STATE"]), rows)
    a = (generator.random(rows) * 3 * (0.8 + lean * place)).astype(int) % 3
    b = (generator.random(rows) < 0.2 + 0.2 * a).astype(int)
    named = {name: [values[each] for each in place] for name, values in places.items()}
    return {**named, "A": a.tolist(), "B": b.tolist()}


PUBLIC = Public.of(
    SCHEMA,
    rows_of(0, places={"STATE": [5, 5, 6, 6, 7, 7], "PLACE": ["s", "t", "s", "t", "s", "t"]}),
    ["STATE", "PLACE"],
)


def tree_of(plan, seed=1, settings=None, public=PUBLIC, threads=1, table=None, release=None):
    release = release or counted(plan, table or rows_of(seed), np.random.default_rng([seed, 9]))
    return Descent(release, public, settings, execution=Execution(threads)).tree


@pytest.mark.parametrize("budget", ["1/20", 1, Budget.zcdp("1/100")])
@pytest.mark.parametrize("first", [[Level((), A)], []])
def test_groups_add_up_to_their_parents_and_an_only_child_is_its_parent(budget, first):
    """Everybody is the root, whether or not the plan asks anything about all of them."""
    tree = tree_of(survey(*first, Level("STATE", AB), Level("PLACE", ONES), budget=budget))
    assert [len(level.totals) for level in tree.levels] == [1, 3, 6]
    for number in (1, 2):
        parent, level, parent_of = tree.levels[number - 1], tree.levels[number], tree.foundation.parents(number)
        assert added_up(level.totals, parent_of, len(parent.totals)).tolist() == parent.totals.tolist()
        added = added_up(level.totals[:, None] * level.shares, parent_of, len(parent.totals))
        # numbers of rows that are not known take a part of what is missing, and no share is next to nothing
        np.testing.assert_allclose(added / parent.totals[:, None], parent.shares, atol=0.02)
    assert tree.levels[2].totals[3] == tree.levels[1].totals[1]
    np.testing.assert_allclose(tree.levels[2].shares[3], tree.levels[1].shares[1], rtol=0.01)


def test_where_rows_are_known_shares_add_up_exactly():
    places = PublishedTotals.of({**GROUPS, "rows": [700, 600, 500, 400, 500, 300]}, ["STATE", "PLACE"])
    schema = SCHEMA.with_invariants([places])
    plan = plan_of(schema, Level("STATE", A), Level("PLACE", ONES), groups=GROUPS, budget=1)
    tree = tree_of(plan)
    assert tree.levels[2].totals.tolist() == [700, 600, 500, 400, 500, 300]
    assert tree.levels[1].totals.tolist() == [1800, 400, 800]
    assert tree.levels[0].totals.tolist() == [3000]
    for level in tree.levels:
        assert (level.rows_variance == 0).all()
    for number in (1, 2):
        parent, level, parent_of = tree.levels[number - 1], tree.levels[number], tree.foundation.parents(number)
        sums = added_up(level.totals[:, None] * level.shares, parent_of, len(parent.totals))
        np.testing.assert_allclose(sums, parent.totals[:, None] * parent.shares, rtol=1e-9)


@pytest.mark.parametrize("settings", [Settings(), Settings(smooth=False)])
def test_results_do_not_depend_on_the_number_of_threads(settings):
    groups = {"STATE": [1 + k // 20 for k in range(60)], "PLACE": list(range(60))}
    plan = plan_of(SCHEMA, Level("STATE", A), Level("PLACE", ONES), groups=groups)
    table = rows_of(4, 20_000, groups, 0.01)
    one, other = (tree_of(plan, settings=settings, threads=threads, table=table).levels for threads in (1, 3))
    for level, same in zip(one, other, strict=True):
        for name in ("totals", "rows_variance", "shares", "variance"):
            assert getattr(level, name).tobytes() == getattr(same, name).tobytes(), name
        assert [vars(level.kinds[own]) for own in level.kinds] == [vars(same.kinds[own]) for own in same.kinds]


def test_raw_answers_stay_raw():
    """Also in cells that no public row is in, and where they are negative."""
    schema = Schema.from_mbi({"a": 3, "b": 2})
    public = Public.of(schema, {"a": [0, 0, 1], "b": [0, 1, 1]})
    plan = plan_of(schema, Level((), Workload.all_marginals(schema, 1), total=0))
    noisy = {("a",): np.array([[70, -10, 60]]), ("b",): np.array([[50, 40]])}
    release = answered(plan, lambda question, part, groups: noisy[part.columns])
    raw = Settings(smooth=False, unseen=False)
    level = tree_of(plan, public=public, release=release, settings=raw).levels[0]
    rows = level.rows[0]
    np.testing.assert_allclose(level.shares[0] * rows, [70, -10, 60, 50, 40])
    scale = float(plan.questions[0].scale)
    np.testing.assert_allclose(np.sqrt(level.variance[0]) * rows, scale * 2**0.5, rtol=0.02)


@pytest.mark.parametrize("estimator", ["ide", "two-stage"])
def test_the_papers_estimators_take_raw_answers_of_the_last_level(estimator):
    plan = survey(Level("STATE", A), Level("PLACE", ONES), budget=1000)
    release = counted(plan, rows_of(1, lean=0.0), np.random.default_rng(1))
    descent = Descent(release, PUBLIC, Settings(estimator=estimator))
    answers, start = raw_answers(release, 1), descent.foundation.layout.masses_of(descent.foundation.layout.base)
    for each in descent.map(lambda each: each):
        raw = np.concatenate([counts[each.group] for counts in answers.counts]) / answers.totals[each.group]
        found = np.concatenate([each.estimate.project(list(part.columns)).ravel() for part in answers.parts])
        np.testing.assert_allclose(found, raw, atol=0.03)
        assert np.abs(start - raw).max() > 0.05


def test_mass_out_of_reach_is_handed_to_the_other_cells():
    """Half a table is in cells that no public row is in; a little of it, within noise, is left where it is."""
    schema = Schema.from_mbi({"a": 3})
    public = Public.of(schema, {"a": [0, 0, 0, 1]})
    plan = plan_of(schema, Level((), Workload.all_marginals(schema, 1)))
    tree = Descent(answered(plan, lambda *_: np.array([[30, 20, 50]])), public, Settings(unseen=False)).tree
    base, seen = np.array([[0.75, 0.25, 0.0]]), np.ones(3, np.bool_)
    for share, noise, expected in (
        (0.5, 0.01, [0.3 + 0.375, 0.2 + 0.125, 0.0]),
        (0.5, 0.3, [0.3, 0.2, 0.0]),
    ):
        found = reachable_shares(tree.layout, np.array([[0.3, 0.2, share]]), base, np.full((1, 3), noise), seen)
        np.testing.assert_allclose(found, [expected])


# ---------------------------------------------------------------- several blocks

WIDE = Schema([PLACE, *[Column(name, "categorical", values=list(range(45))) for name in "UVW"]])
PAIRS = Workload.all_marginals(WIDE, 2)
TOWNS = {"PLACE": list("pqrstu")}


def wide_rows(seed, names, rows=6_000):
    generator = np.random.default_rng(seed)
    return {"PLACE": generator.choice(names, rows), **{name: generator.integers(0, 45, rows) for name in "UVW"}}


def test_several_blocks_count_the_number_of_rows_once():
    """What each block tells about it is added up; what was counted is an answer of one block only."""
    plan = plan_of(WIDE, Level("PLACE", [Ask(PAIRS)], total="1/2"), groups=TOWNS, budget="1/10")
    blocks = blocks_of(PAIRS)
    assert len(blocks) > 1
    assert sum(part.n_cells for part in PAIRS) > MOST_SMOOTHED
    public = Public.of(WIDE, wide_rows(1, list("abcdef")), ["PLACE"])
    tree = tree_of(plan, public=public, table=wide_rows(2, list("pqrstu")))
    level, answers = tree.levels[-1], raw_answers(tree.release, 0)
    counted_alone = answers.counted_variance
    assert (level.rows_variance < counted_alone).all()  # tables tell something, too
    # with what was expected, it is known to at most as well as from an answer and a half; each block has not its own
    _, before = expected_rows(answers, np.zeros(6))
    assert (level.rows_variance > 1 / (1.5 / counted_alone + 1 / before)).all()
    off = level.totals - answers.counted
    assert np.abs(off).max() < 4 * np.sqrt(counted_alone.max())


# ---------------------------------------------------------------- recurring groups

STATES, KNOWN = [1, 2, 3], {"STATE": [1, 1, 2, 2, 3, 3], "PLACE": ["p", "q", "p", "q", "p", "q"]}


def test_recurring_groups_carry_their_parents_change():
    """Only states are asked: their places differ from each other as their public rows do, and changed as the state."""
    plan = plan_of(SCHEMA, Level("STATE", A), Level("PLACE", total=1), groups=KNOWN, budget=1000)
    public = Public.of(SCHEMA, rows_of(1, 30_000, KNOWN), ["STATE", "PLACE"])
    later = rows_of(2, 30_000, KNOWN)
    later["A"] = [0 if a == 2 and k % 3 == 0 else a for k, a in enumerate(later["A"])]  # a third of all moved
    tree = tree_of(plan, public=public, table=later)
    state, place, parent_of = tree.levels[1], tree.levels[2], tree.foundation.parents(2)
    assert tree.foundation.priors(2).recurs.all()
    before = tree.foundation.priors(2).masses(tree.foundation.support, tree.layout)[:, :3]
    rows = place.totals / state.totals[parent_of]
    of_states = added_up(rows[:, None] * before, parent_of, 3)
    change = (state.shares[:, :3] - of_states)[parent_of]
    assert np.abs(change).max() > 0.05
    np.testing.assert_allclose(place.shares[:, :3], before + change, atol=0.01)


def test_recurring_groups_and_others_have_models_of_their_own():
    groups = {name: KNOWN[name] + GROUPS[name][-3:] for name in KNOWN} | {
        "PLACE": ["p", "q", "p", "q", "p", "q", *"xyz"]
    }
    plan = plan_of(SCHEMA, Level("PLACE", ONES), groups=groups)
    public = Public.of(SCHEMA, rows_of(1, 6_000, KNOWN), ["STATE", "PLACE"])
    level = tree_of(plan, public=public, table=rows_of(3, 9_000, groups)).levels[-1]
    assert set(level.kinds) == {True, False}
    assert level.kinds[True].scales != level.kinds[False].scales


def test_blocks_that_a_level_asked_nothing_of_follow_the_parent():
    plan = plan_of(WIDE, Level((), PAIRS), Level("PLACE", total=1), groups=TOWNS, budget=100)
    public = Public.of(WIDE, wide_rows(1, list("abcdef")), ["PLACE"])
    tree = tree_of(plan, public=public, table=wide_rows(2, list("pqrstu")))
    everybody, places = tree.levels
    np.testing.assert_allclose(places.shares, np.tile(everybody.shares, (6, 1)), atol=1e-9)
    exact = np.bincount([list("pqrstu").index(each) for each in wide_rows(2, list("pqrstu"))["PLACE"]])
    assert np.abs(places.totals - exact).max() <= 3


def test_laplace_noise_tells_more_than_gaussian_noise():
    told = {}
    for name, budget in (("laplace", 1), ("gaussian", Budget.zcdp("1/8"))):
        tree = tree_of(survey(Level("PLACE", ONES), budget=budget))
        told[name] = tree.levels[-1].kinds[False].told
    assert told["gaussian"] == pytest.approx((1.0,))
    assert 1 < told["laplace"][0] < 2


def test_rehearsals_of_raw_answers_fit_nothing():
    release = counted(survey(Level("PLACE", ONES)), rows_of(1), np.random.default_rng(1))
    rough = Descent(release, PUBLIC, Settings(smooth=False), rough=True).tree.levels[-1]
    full = Descent(release, PUBLIC, Settings(smooth=False)).tree.levels[-1]
    assert vars(rough.kinds[False]) == vars(Kind((), ()))
    assert isinstance(full.kinds[False].scales[0], Scales)
    assert np.array_equal(rough.shares, full.shares)


def test_nearer_to_the_truth_than_raw_answers_and_than_the_prior():
    """Mean squared error of all cells of places, at a budget where neither is much better than the other."""
    groups = {"STATE": [1 + k // 20 for k in range(60)], "PLACE": list(range(60))}
    plan = plan_of(SCHEMA, Level("STATE", A), Level("PLACE", ONES), groups=groups, budget="1/4")
    public = Public.of(SCHEMA, rows_of(6, 20_000, groups | {"STATE": [9] * 60}, 0.01), ["STATE", "PLACE"])
    table = rows_of(5, 20_000, groups, 0.01)
    tree = tree_of(plan, table=table, public=public)
    place, level = np.array(table["PLACE"]), tree.levels[-1]
    true = np.stack(
        [np.bincount(np.array(table["A"])[place == k], minlength=3) / np.sum(place == k) for k in range(60)]
    )
    raw = raw_answers(tree.release, 1)
    at = tree.layout.part(tree.parts.index(A[0]))
    start = tree.foundation.priors(2).masses(tree.foundation.support, tree.layout)[:, at]
    noisy = raw.counts[raw.parts.index(A[0])] / raw.totals[:, None]
    found, by_noise, by_prior = (np.mean((each - true) ** 2) for each in (level.shares[:, at], noisy, start))
    assert found < 0.8 * min(by_noise, by_prior), (found, by_noise, by_prior)
