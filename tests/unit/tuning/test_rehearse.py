"""Rehearsals: who plays whom, that nothing else than public rows is used, and that errors are what they claim to be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from prade.core.errors import DataError
from prade.data.groups import Groups
from prade.data.invented import census_like
from prade.data.prior import Prior
from prade.data.public import Public
from prade.data.schema import Schema
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.planning.settings import Settings
from prade.privacy.budget import Budget, Unit
from prade.queries.workload import Workload
from prade.scoring.score import joint_errors
from prade.tuning.rehearse import Rehearsal, _noisy
from prade.tuning.stand_ins import Fold

LEVELS = ["STATE", "PLACE"]


def listed(table: pa.Table, columns=LEVELS) -> pa.Table:
    return table.select(columns).group_by(columns).aggregate([]).sort_by([(name, "ascending") for name in columns])


@pytest.fixture(scope="module")
def data():
    return census_like(persons=3_000, places_per_state=5, seed=1)


@pytest.fixture(scope="module")
def public(data):
    return Public.of(data.schema, data.public, LEVELS)


@pytest.fixture(scope="module")
def elsewhere(data, public):
    return Rehearsal.of(public, listed(data.groups), LEVELS)


@pytest.fixture(scope="module")
def same_places(data, public):
    return Rehearsal.of(public, listed(data.public), LEVELS)


def plan_of(data, epsilon, columns=("AGE", "RACE", "WAGE"), total="1/10", groups=None, budget=None):
    ask = Ask(Workload.marginals(data.schema, columns), 1 - Fraction(total))
    levels = [Level("STATE"), Level("PLACE", ask, total)]
    return Plan("x", data.schema, budget or Budget.pure(epsilon), Unit(1), levels, groups or listed(data.groups))


# ---------------------------------------------------------------------- who plays whom


def test_states_take_turns_where_the_plan_has_other_states(elsewhere, public):
    assert elsewhere.kind == "other groups"
    played = [{values[0] for values in fold.groups.level(LEVELS).values} for fold in elsewhere.folds]
    stayed = [{values[0] for values in fold.public.groups.values} for fold in elsewhere.folds]
    assert sorted(map(sorted, played)) == [[11], [12]]
    assert all(not one & other for one, other in zip(played, stayed, strict=True))
    for fold in elsewhere.folds:
        assert len(fold.public) + len(fold.group) == len(public)
        assert fold.shrink == 1
        assert sorted(np.bincount(fold.group)) == sorted(fold.rows)


def test_halves_of_each_group_play_where_the_plan_has_the_same_places(same_places, public):
    (fold,) = same_places.folds
    assert same_places.kind == "same groups"
    assert len(fold.public) + len(fold.group) == len(public)
    assert len(fold.groups) == len(fold.public.groups) == len(public.groups)
    assert fold.shrink == pytest.approx(0.5**0.5)
    rows = dict(zip(public.groups.values, np.bincount(public.group), strict=True))
    for values, number in zip(fold.groups.level(LEVELS).values, fold.rows, strict=True):
        assert number / rows[values] == pytest.approx(1, abs=0.5)


def test_years_take_turns_where_the_plan_has_other_years(data):
    columns = [*LEVELS, "YEAR"]
    public = Public.of(data.schema, data.public, columns)
    later = {"STATE": [11, 12], "PLACE": ["x", "x"], "YEAR": [2030, 2030]}
    names = {values[1] for values in public.groups.values}
    later["PLACE"] = sorted(names)[:2]
    rehearsal = Rehearsal.of(public, later, ["STATE", ("PLACE", "YEAR")])
    assert len(rehearsal.folds) == 4
    assert all(len({v[2] for v in fold.groups.level(columns).values}) == 1 for fold in rehearsal.folds)
    assert all(len(fold.groups) == 2 for fold in rehearsal.folds)  # no more than the plan has


def test_last_years_places_are_their_own_when_years_take_turns(data):
    columns = [*LEVELS, "YEAR"]
    public = Public.of(data.schema, data.public, columns)
    places = list(dict.fromkeys((state, place) for state, place, _ in public.groups.values))
    later = {
        "STATE": [state for state, _ in places],
        "PLACE": [place for _, place in places],
        "YEAR": [2030] * len(places),
    }
    rehearsal = Rehearsal.of(public, later, ["STATE", ("PLACE", "YEAR")])
    for fold in rehearsal.folds:
        assert fold.own.found.all()
        assert np.ptp(fold.sizes) > 0
    elsewhere = Rehearsal.of(Public.of(data.schema, data.public, LEVELS), listed(data.groups), LEVELS)
    assert rehearsal.prior_error < elsewhere.prior_error


def test_a_new_year_and_one_public_year_is_rehearsed_by_halves(data, public):
    """Each place once, though the plan has two years of it."""
    places = list(public.groups.values) * 2
    later = {
        "NATION": ["US"] * len(places),  # which the public table does not have
        "STATE": [state for state, _ in places],
        "PLACE": [place for _, place in places],
        "YEAR": [2030] * len(public.groups) + [2031] * len(public.groups),
    }
    rehearsal = Rehearsal.of(public, later, ["NATION", "STATE", ("PLACE", "YEAR")])
    assert rehearsal.kind == "same groups"
    (fold,) = rehearsal.folds
    assert len(fold.groups) == len(public.groups)
    assert fold.own.found.all()
    assert len(fold.group) + len(fold.public) == len(public)


def test_halves_of_the_groups_play_where_there_is_one_state(data, public):
    one = public.take(np.flatnonzero(np.array([values[0] for values in public.groups.values])[public.group] == 11))
    rehearsal = Rehearsal.of(one, listed(data.groups), LEVELS)
    assert rehearsal.kind == "other groups"
    first, second = (set(fold.groups.level(LEVELS).values) for fold in rehearsal.folds)
    assert not first & second


def test_without_levels_single_public_groups_play_the_whole_table(data, public):
    rehearsal = Rehearsal.of(public, None, [])
    assert len(rehearsal.folds) == 2  # the states, which are larger than places
    for fold in rehearsal.folds:
        assert len(fold.groups) == 1
        assert (fold.group == 0).all()
        assert fold.rows.tolist() == [len(public)]
        assert fold.noise == pytest.approx(len(fold.group) / len(public))  # as much of a share as in earnest
        plan = Plan("x", data.schema, Budget.pure(1), Unit(1), [Level((), Workload.marginals(data.schema, ["AGE"]))])
        for question, played in zip(plan.questions, rehearsal._plan(plan, fold).questions, strict=True):
            assert float(played.scale / question.scale) == pytest.approx(fold.noise, rel=0.01)
        assert fold.shrink == 1


def test_years_take_turns_where_the_public_table_has_several_of_the_same_places(data):
    public = Public.of(data.schema, data.public, [*LEVELS, "YEAR"])
    rehearsal = Rehearsal.of(public, listed(data.public), LEVELS)
    assert rehearsal.kind == "other years"
    assert len(rehearsal.folds) == 4
    for fold in rehearsal.folds:
        assert fold.own.found.all()
        assert len(fold.public) + len(fold.group) == len(public)
        assert fold.noise == pytest.approx(len(fold.group) / fold.rows.sum())


def test_a_few_known_places_do_not_make_it_last_years_table(data, public):
    elsewhere, here = listed(data.groups), listed(data.public)
    both = pa.concat_tables([elsewhere, here.slice(0, 1)])
    assert Rehearsal.of(public, both, LEVELS).kind == "other groups"


def test_played_rows_stand_for_as_many_people_as_their_weights_say(data):
    old = np.asarray(data.public["AGE"].to_numpy()) >= 50
    table = data.public.append_column("W", pa.array(np.where(old, 9.0, 1.0)))
    public = Public.of(data.schema, table, LEVELS, weight="W")
    fold = Rehearsal.of(public, listed(data.groups), LEVELS).folds[0]
    share = np.mean(fold.codes["AGE"] >= data.schema["AGE"].edges.index(50) + 1)
    assert share > 1.5 * old.mean()


def test_without_public_groups_rows_are_dealt_out(data):
    public = Public.of(data.schema, data.public)
    rehearsal = Rehearsal.of(public, listed(data.groups), LEVELS)
    assert rehearsal.kind == "no groups"
    (fold,) = rehearsal.folds
    assert np.ptp(np.bincount(fold.group)) <= 1
    assert len(fold.groups) == len(listed(data.groups))


def test_every_row_that_is_used_is_a_public_one_and_used_once(elsewhere, same_places, public):
    codes = np.stack(list(public.prior.codes.values()), axis=1)
    for fold in [*elsewhere.folds, *same_places.folds]:
        both = [
            np.stack([each[name] for name in public.prior.codes], axis=1)
            for each in (fold.public.prior.codes, fold.codes)
        ]
        used = np.concatenate(both)
        assert np.array_equal(used[np.lexsort(used.T)], codes[np.lexsort(codes.T)])


def test_too_small_a_table_is_refused():
    schema = Schema.from_mbi({"a": 2, "b": 2})
    with pytest.raises(DataError, match="too small"):
        Rehearsal.of(Public.of(schema, {"a": [0], "b": [1]}), None, [])
    with pytest.raises(DataError, match="only one column"):
        Rehearsal.of(Public.of(Schema.from_mbi({"a": 2}), {"a": [0, 1, 1, 0]}), None, [])


# ---------------------------------------------------------------------- errors


def test_the_priors_error_is_the_distance_of_the_rows_as_they_are(elsewhere):
    fold = elsewhere.folds[0]
    chosen = fold.group == 2
    truth = Prior(
        fold.public.prior.schema, {name: code[chosen] for name, code in fold.codes.items()}, np.ones(chosen.sum())
    )
    expected = joint_errors(truth, fold.public.prior, elsewhere.pairs).mean()
    assert elsewhere.prior_errors(0)[2] == pytest.approx(expected)


def test_with_hardly_any_noise_asking_everything_comes_near_the_truth(data, elsewhere):
    near = elsewhere.error(plan_of(data, 10_000, data.schema.coded), Settings(n0=1))
    assert near < 0.6 * elsewhere.prior_error


def test_more_budget_means_less_error(data, elsewhere):
    errors = [elsewhere.error(plan_of(data, epsilon)) for epsilon in ("1/100", 1, 100)]
    assert errors[0] > errors[1] > errors[2]


def test_the_same_seed_gives_the_same_errors_and_another_one_others(data, elsewhere):
    plan = plan_of(data, 1)
    first = elsewhere.errors(plan, seed=3)
    assert np.array_equal(first, elsewhere.errors(plan, seed=3))
    assert not np.array_equal(first, elsewhere.errors(plan, seed=4))


def test_noise_is_shared_between_plans_up_to_its_scale(data, elsewhere):
    fold = elsewhere.folds[0]
    few = plan_of(data, 1, ("AGE",), groups=fold.groups)
    many = plan_of(data, "1/2", ("RACE", "AGE"), groups=fold.groups)
    exact = plan_of(data, 10**6, ("AGE",), groups=fold.groups)
    truth = _noisy(exact, fold, 5)[1][0]
    one, other = _noisy(few, fold, 5)[1][0] - truth, _noisy(many, fold, 5)[1][1] - truth
    assert np.abs(other - 4 * one).max() <= 3  # both are rounded to whole numbers
    assert np.abs(one).max() > 3


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_noise_in_a_fold_has_the_plans_scale(data, elsewhere, law):
    fold = elsewhere.folds[0]
    budget = Budget.pure("1/10") if law == "laplace" else Budget.zcdp("1/200")
    noisy = plan_of(data, 1, groups=fold.groups, budget=budget)
    exact = plan_of(data, 10**6, groups=fold.groups)
    question = noisy.questions[1]
    assert question.law == law
    pairs = zip(_noisy(noisy, fold, 1)[1], _noisy(exact, fold, 1)[1], strict=True)
    noise = np.concatenate([(one - other).ravel() for one, other in pairs])
    assert noise.std() == pytest.approx(question.variance**0.5, rel=0.25)


def test_halves_are_rehearsed_with_less_noise(data, same_places):
    fold = same_places.folds[0]
    for budget in (Budget.pure(1), Budget.zcdp(1)):
        plan = plan_of(data, 1, groups=listed(data.public), budget=budget)
        played = same_places._plan(plan, fold)
        for question, other in zip(plan.questions, played.questions, strict=True):
            assert float(other.scale / question.scale) == pytest.approx(fold.shrink)


# ---------------------------------------------------------------------- numbers of rows


def one_fold(rows):
    schema = Schema.from_mbi({"a": 2, "b": 2})
    public = Public.of(schema, {"a": [0, 1], "b": [1, 0]})
    groups = Groups.of({"G": list(range(len(rows)))})
    codes = {"a": np.zeros(len(rows), np.int64), "b": np.zeros(len(rows), np.int64)}
    return schema, groups, Fold(public, codes, np.arange(len(rows)), groups, np.asarray(rows, float))


def test_risk_is_the_tail_of_the_noise_where_groups_differ_much():
    schema, groups, fold = one_fold(np.linspace(1_000, 100_000, 40))  # nothing to be drawn together
    rehearsal = Rehearsal("other groups", [fold], [("a", "b")], bias=250)
    level = Level("G", Ask(Workload.marginals(schema, ["a"]), "1/1000000"), 1 - Fraction(1, 1_000_000))
    plan = Plan("x", schema, Budget.pure("1/100"), Unit(1), [level], groups)
    assert rehearsal.risk(plan) == pytest.approx(np.exp(-250 / 100), abs=0.01)  # P(|Laplace(b)| >= t) = exp(-t / b)


def test_risk_is_small_where_groups_are_equally_large():
    schema, groups, fold = one_fold(np.full(40, 1_000.0))
    rehearsal = Rehearsal("other groups", [fold], [("a", "b")], bias=250)
    plan = Plan("x", schema, Budget.pure("1/100"), Unit(1), [Level("G", Workload.marginals(schema, ["a"]), 1)], groups)
    assert rehearsal.risk(plan) < 0.02
    assert Rehearsal("other groups", [fold], [("a", "b")], bias=None).risk(plan) == 0


def test_risk_enters_the_error(data, public):
    plan = plan_of(data, "1/10")
    with_bias = Rehearsal.of(public, listed(data.groups), LEVELS, bias=20)
    without = Rehearsal.of(public, listed(data.groups), LEVELS, bias=None)
    risk = with_bias.risk(plan)
    assert 0.1 < risk <= 1
    assert with_bias.errors(plan) == pytest.approx((1 - risk) * without.errors(plan) + 2 * risk)


def test_errors_of_halves_are_scaled_back(data, same_places):
    """The prior's error in a fold is that of half as many rows on either side, and sqrt(2) too large."""
    fold = same_places.folds[0]
    chosen = fold.group == 0
    truth = Prior(
        fold.public.prior.schema, {name: code[chosen] for name, code in fold.codes.items()}, np.ones(chosen.sum())
    )
    mine = fold.own.rows(fold.public, 0)
    own = Prior(truth.schema, {name: code[mine] for name, code in fold.public.prior.codes.items()}, np.ones(mine.sum()))
    found = joint_errors(truth, own, same_places.pairs).mean()
    assert same_places.prior_errors(0)[0] == pytest.approx(found / 2**0.5)
    plan = plan_of(data, 10**6, data.schema.coded, groups=listed(data.public))
    exact = same_places.errors(plan, Settings(n0=1e-3))[0]
    other = Rehearsal("same groups", [replace(fold, shrink=1.0)], same_places.pairs).errors(plan, Settings(n0=1e-3))[0]
    assert exact == pytest.approx(other / 2**0.5)
