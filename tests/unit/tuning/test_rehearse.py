"""Rehearsals: who plays whom, that nothing else than public rows is used, and that errors are what they claim to be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from prade.core.errors import DataError
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public.joint import Prior
from prade.data.public.public import Public
from prade.estimating.levels.tree import LevelPosterior
from prade.examples import census_like
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.planning.settings import Settings
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from prade.queries.workload import Workload
from prade.tuning.gain import StandInLevel
from prade.tuning.rehearse import Rehearsal, _noisy, mean_of
from prade.tuning.stand_ins import StandIn
from worlds.plans import plan_of
from worlds.reference import pair_distances

LEVELS = ["STATE", "PLACE"]


def listed(table, columns=LEVELS):
    return table.select(columns).group_by(columns).aggregate([]).sort_by([(name, "ascending") for name in columns])


@pytest.fixture(scope="module")
def data():
    return census_like(persons=1_500, places_per_state=5, seed=1)


@pytest.fixture(scope="module")
def public(data):
    return Public.of(data.schema, data.public, LEVELS)


@pytest.fixture(scope="module")
def elsewhere(data, public):
    return Rehearsal.of(public, listed(data.groups), LEVELS)


@pytest.fixture(scope="module")
def same_places(data, public):
    return Rehearsal.of(public, listed(data.public), LEVELS)


def asking(data, epsilon, columns=("AGE", "RACE", "WAGE"), total="1/10", groups=None, budget=None, noise=None):
    ask = Ask(Workload.marginals(data.schema, columns), 1 - Fraction(total))
    levels = [Level("STATE"), Level("PLACE", ask, total)]
    places = groups or listed(data.groups)
    return plan_of(data.schema, *levels, groups=places, budget=budget or epsilon, noise=noise)


def error(rehearsal, plan, settings=None, **options):
    """The mean error over stand-ins and groups."""
    return mean_of([rehearsal.errors(plan, settings, stand_in=k, **options) for k in range(len(rehearsal.stand_ins))])


def later(places, years, **nation):
    """The list of these places in later years."""
    rows = [(state, place, year) for year in years for state, place in places]
    table = {name: [row[k] for row in rows] for k, name in enumerate((*LEVELS, "YEAR"))}
    return {name: [value] * len(rows) for name, value in nation.items()} | table


YEARLY = [*LEVELS, "YEAR"]
NATION = ["NATION", "STATE", ("PLACE", "YEAR")]  # the public table does not have the nation


@pytest.mark.parametrize(
    ("columns", "groups", "levels", "kind", "number", "recurs"),
    [
        (LEVELS, "elsewhere", LEVELS, "other groups", 2, False),  # the states take turns
        (LEVELS, "same", LEVELS, "recurring groups", 1, True),
        (LEVELS, "next years", NATION, "recurring groups", 1, True),  # each place once, of two years
        (YEARLY, "same", LEVELS, "other years", 4, True),
        (YEARLY, "next years", NATION, "other groups", 4, True),
        ([], "elsewhere", LEVELS, "no groups", 1, False),
    ],
)
def test_public_rows_stay_or_stand_in(data, public, columns, groups, levels, kind, number, recurs):
    listing = {
        "elsewhere": listed(data.groups),
        "same": listed(data.public),
        "next years": later(public.groups.values, [2030, 2031], NATION="US"),
    }
    known = Public.of(data.schema, data.public, columns)
    rehearsal = Rehearsal.of(known, listing[groups], levels)
    assert (rehearsal.kind, len(rehearsal.stand_ins)) == (kind, number)
    halves = kind == "recurring groups"
    for stand_in in rehearsal.stand_ins:
        assert len(stand_in.public) + len(stand_in.group) == len(public)
        assert stand_in.shrink == stand_in.noise == pytest.approx(0.5**0.5 if halves else 1)
        # one private table is one year: it gets the plan's noise, however many years the public table has
        assert stand_in.rows.tolist() == ((1 + halves) * np.bincount(stand_in.group)).tolist()
        assert stand_in.recurring.recurs.all() == recurs
        if kind == "no groups":  # dealt out among the plan's groups
            assert np.ptp(np.bincount(stand_in.group)) <= 1
            assert len(stand_in.groups) == len(listed(data.groups))
        elif columns == LEVELS and recurs:
            assert len(stand_in.groups) == len(known.groups)


def test_without_levels_single_public_groups_play_the_whole_table(data, public):
    rehearsal = Rehearsal.of(public, None, [])
    assert len(rehearsal.stand_ins) == 2  # the states, which are larger than places
    for stand_in in rehearsal.stand_ins:
        assert (len(stand_in.groups), stand_in.shrink, stand_in.rows.tolist()) == (1, 1, [len(public)])
        assert stand_in.noise == pytest.approx(len(stand_in.group) / len(public))  # its share is the same
    plan = Plan("x", data.schema, Budget.pure(1), Unit(1), [Level((), Workload.marginals(data.schema, ["AGE"]))])
    for question, played in zip(plan.questions, rehearsal.release(plan, 1).plan.questions, strict=True):
        assert float(played.scale / question.scale) == pytest.approx(stand_in.noise, rel=0.01)


@pytest.fixture(scope="module")
def many_places():
    made = census_like(persons=1_500, places_per_state=20, seed=3)
    rehearsal = Rehearsal.of(Public.of(made.schema, made.public, LEVELS), listed(made.groups), LEVELS, scored=8)
    return made, rehearsal


def test_other_groups_choose_a_plan_than_give_its_error_where_there_are_enough(many_places, elsewhere):
    data, rehearsal = many_places
    assert rehearsal.apart
    choosing, fresh = rehearsal.groups_of(0), rehearsal.groups_of(0, fresh=True)
    assert (choosing, fresh) == (range(8), range(8, 16))
    assert rehearsal.kept_back(0) == fresh
    assert not elsewhere.apart  # five groups
    assert elsewhere.groups_of(0) == elsewhere.groups_of(0, fresh=True) == range(5)
    assert not len(elsewhere.kept_back(0))
    plan = asking(data, 10, groups=listed(data.groups))
    together = replace(rehearsal, scored=16)
    together.__dict__["apart"] = False
    both = [rehearsal.errors(plan), rehearsal.errors(plan, fresh=True)]
    np.testing.assert_array_equal(np.concatenate(both), together.errors(plan))
    public = [rehearsal.public_errors(0), rehearsal.public_errors(0, fresh=True)]
    np.testing.assert_array_equal(np.concatenate(public), together.public_errors(0))


def test_fresh_groups_have_no_part_in_what_is_worth_asking(many_places):
    data, rehearsal = many_places
    stand_in = rehearsal.stand_ins[0]
    kept_back = np.isin(stand_in.group, rehearsal.kept_back(0))
    other_ages = {**stand_in.codes, "AGE": np.where(kept_back, 0, stand_in.codes["AGE"])}
    changed = replace(stand_in, codes=other_ages)
    by = ("STATE", "PLACE")
    for left_out, same in ((rehearsal.kept_back(0), True), (range(0), False)):
        found = [StandInLevel.of(each, by, left_out).shares(data.schema, ("AGE",))[0] for each in (stand_in, changed)]
        assert np.array_equal(*found) == same
        assert len(found[0]) == len(stand_in.groups) - len(left_out)


def test_every_row_that_is_used_is_a_public_one_and_used_once(elsewhere, same_places, public):
    def sorted_rows(*codes):
        rows = np.concatenate([np.stack([each[name] for name in public.prior.codes], axis=1) for each in codes])
        return rows[np.lexsort(rows.T)]

    for stand_in in [*elsewhere.stand_ins, *same_places.stand_ins]:
        used = sorted_rows(stand_in.public.prior.codes, stand_in.codes)
        assert np.array_equal(used, sorted_rows(public.prior.codes))


def test_too_small_a_table_is_refused():
    schema = Schema.from_mbi({"a": 2, "b": 2})
    with pytest.raises(DataError, match="too small"):
        Rehearsal.of(Public.of(schema, {"a": [0], "b": [1]}), None, [])
    assert Rehearsal.of(Public.of(Schema.from_mbi({"a": 2}), {"a": [0, 1, 1, 0]}), None, []).pairs == [("a", "a")]


def rows_of(stand_in, group):
    """The true rows of a group."""
    chosen = stand_in.group == group
    codes = {name: code[chosen] for name, code in stand_in.codes.items()}
    return Prior(stand_in.public.prior.schema, codes, np.ones(chosen.sum()))


def test_the_public_baseline_is_the_distance_of_the_public_rows(elsewhere):
    stand_in = elsewhere.stand_ins[0]
    expected = pair_distances(rows_of(stand_in, 2), stand_in.public.prior, elsewhere.pairs).mean()
    assert elsewhere.public_errors(0)[2] == pytest.approx(expected)


def test_more_budget_means_less_error(data, elsewhere):
    errors = [error(elsewhere, asking(data, epsilon)) for epsilon in ("1/100", 1, 100)]
    public = mean_of([elsewhere.public_errors(k) for k in range(len(elsewhere.stand_ins))])
    assert error(elsewhere, asking(data, 10_000, data.schema.coded), Settings(n0=1)) < 0.6 * public
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] == error(elsewhere, asking(data, 1)) != error(elsewhere, asking(data, 1), seed=4)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_noise_has_the_plans_scale_and_is_shared_between_plans_up_to_it(data, elsewhere, law):
    stand_in = elsewhere.stand_ins[0]

    def noise(epsilon, columns):
        budget = Budget.pure(epsilon) if law == "laplace" else Budget.zcdp(Fraction(epsilon) ** 2 / 2)
        noisy = asking(data, 1, columns, groups=stand_in.groups, budget=budget)
        exact = asking(data, 10**6, columns, groups=stand_in.groups)
        assert noisy.questions[1].law == law
        counts = zip(_noisy(noisy, stand_in, 5)[1], _noisy(exact, stand_in, 5)[1], strict=True)
        return noisy.questions[1], [one - other for one, other in counts]

    question, mine = noise("1/10", ("AGE",))
    other, theirs = noise("1/20", ("RACE", "AGE"))
    assert mine[0].std() == pytest.approx(question.variance**0.5, rel=0.25)
    ratio = float(other.scale / question.scale)
    assert np.abs(theirs[1] - ratio * mine[0]).max() <= ratio  # both are rounded to whole numbers


def one_stand_in(rows):
    schema = Schema.from_mbi({"a": 2, "b": 2})
    public = Public.of(schema, {"a": [0, 1], "b": [1, 0]})
    groups = Groups.of({"G": list(range(len(rows)))})
    codes = {"a": np.zeros(len(rows), np.int64), "b": np.zeros(len(rows), np.int64)}
    return schema, groups, StandIn(public, codes, np.arange(len(rows)), groups, np.asarray(rows, float))


def test_risk_is_the_tail_of_the_noise_where_groups_differ_much_and_small_where_they_are_alike():
    different, alike = np.linspace(1_000, 100_000, 40), np.full(40, 1_000.0)  # nothing to be drawn together, or all
    schema, groups, stand_in = one_stand_in(different)
    level = Level("G", Ask(Workload.marginals(schema, ["a"]), "1/1000000"), 1 - Fraction(1, 1_000_000))
    plan = Plan("x", schema, Budget.pure("1/100"), Unit(1), [level], groups)
    rehearsal = Rehearsal("other groups", [stand_in], [("a", "b")], bias=250)
    assert rehearsal.risk(plan) == pytest.approx(np.exp(-250 / 100), abs=0.01)  # P(|Laplace(b)| >= t) = exp(-t / b)
    *_, stand_in = one_stand_in(alike)
    assert Rehearsal("other groups", [stand_in], [("a", "b")], bias=250).risk(plan) < 0.02
    assert Rehearsal("other groups", [stand_in], [("a", "b")], bias=None).risk(plan) == 0


@pytest.mark.parametrize(("off_by", "deviation"), [(1.0, 100.0), (300.0, 300.0)])
def test_risk_knows_what_a_rehearsal_found_and_how_far_off_that_was(off_by, deviation):
    """Errors of 300 where 100 were thought to be usual make it 300; smaller ones are luck."""
    schema, groups, stand_in = one_stand_in(np.full(40, 1_000.0))
    plan = Plan("x", schema, Budget.pure("1/100"), Unit(1), [Level("G", Workload.marginals(schema, ["a"]))], groups)
    found = LevelPosterior(
        1 + off_by * np.resize([1, -1], 40), np.full(40, 1e4), *np.zeros((2, 40, 1)), np.ones(40), {}
    )
    rehearsal = Rehearsal("other groups", [stand_in], [("a", "b")], bias=250)
    expected = np.exp(-(2**0.5) * 250 / deviation)
    assert rehearsal.risk(plan, 0, found) == pytest.approx(expected, rel=1e-9)
    half = Rehearsal("other groups", [replace(stand_in, noise=0.5)], [("a", "b")], bias=250)
    assert half.risk(plan, 0, found) == pytest.approx(expected**0.5, rel=1e-9)  # the real noise is twice as large


def test_errors_of_halves_are_scaled_back(data, same_places):
    """The prior's error in a stand_in is that of half as many rows on either side, and sqrt(2) too large."""
    stand_in = same_places.stand_ins[0]
    truth, mine = rows_of(stand_in, 0), stand_in.recurring.rows(stand_in.public.group, 0)
    codes = {name: code[mine] for name, code in stand_in.public.prior.codes.items()}
    own = Prior(truth.schema, codes, np.ones(mine.sum()))
    found = pair_distances(truth, own, same_places.pairs).mean()
    assert same_places.public_errors(0)[0] == pytest.approx(found / 2**0.5)
    plan = asking(data, 10**6, data.schema.coded, groups=listed(data.public))
    unscaled = Rehearsal("recurring groups", [replace(stand_in, shrink=1.0)], same_places.pairs)
    exact, other = (each.errors(plan, Settings(n0=1e-3))[0] for each in (same_places, unscaled))
    assert exact == pytest.approx(other / 2**0.5)
