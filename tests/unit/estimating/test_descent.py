"""Down the levels on simulated releases: what answers are put together, and what comes of them."""

from functools import partial

import numpy as np
import pytest

from prade import Ask, Budget, Column, EstimationError, Groups, Level, Schema, Workload
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.foundation import GroupPriors
from prade.examples import census_like
from prade.planning.settings import Settings
from worlds.plans import plan_of
from worlds.reference import pair_distances
from worlds.releases import answered, counted
from worlds.survey import PLACE, STATE

SCHEMA = Schema([STATE, PLACE, Column("A", "categorical", values=[0, 1, 2]), Column("B", "categorical", values=[0, 1])])
A, B, AB = (Workload.marginals(SCHEMA, [columns]) for columns in (["A"], ["B"], ["A", "B"]))
GROUPS = {"STATE": [1, 1, 1, 2], "PLACE": ["p", "q", "r", "p"]}  # unbalanced: three places and one


def rows_of(seed, rows=600, places=GROUPS):
    generator = np.random.default_rng(seed)
    place = generator.integers(0, len(places["STATE"]), rows)
    a = (generator.random(rows) * 3 * (0.6 + 0.1 * place)).astype(int) % 3
    b = (generator.random(rows) < 0.2 + 0.2 * a).astype(int)
    named = {name: [values[each] for each in place] for name, values in places.items()}
    return {**named, "A": a.tolist(), "B": b.tolist()}


survey = partial(plan_of, SCHEMA, groups=GROUPS)


def release_of(plan, table, seed):
    return counted(plan, table, np.random.default_rng([seed, 99]))


def estimated(release, public, settings=None, **how):
    return list(Descent(release, public, settings, **how).map(lambda each: each))


def filled(plan, value):
    """A release in which every count of question q, part k, group g, cell c is value(q, g, c)."""

    def answer(question, part, groups):
        q = plan.questions.index(question)
        return np.array([[value(q, g, c) for c in range(part.n_cells)] for g in range(groups)])

    return answered(plan, answer)


PUBLIC = Public.of(
    SCHEMA, rows_of(0, places={"STATE": [5, 5, 6, 6], "PLACE": ["s", "t", "s", "t"]}), ["STATE", "PLACE"]
)


def test_children_are_added_up_and_joined_by_inverse_variances():
    """A state's own answer of A has variance v0, the sum of its n places' n v1."""
    plan = survey(Level("STATE", Ask(A, 1), total=0), Level("PLACE", Ask(A, 2), total=0))
    b0, b1 = (float(question.scale) for question in plan.questions)
    assert (b0, b1) == (3.0, 1.5)
    release = filled(plan, lambda q, g, c: [100, 40][q] + 10 * g + c)
    found = raw_answers(release, 0)
    assert found.parts == A.parts
    # state 1 has places 0, 1, 2: 120 + 30 + 3c against 100 + c; state 2 has place 3: 40 + 30 + c against 110 + c
    v0, v1 = (1 / (2 * np.sinh(1 / (2 * b)) ** 2) for b in (b0, b1))
    own, below = 1 / v0, np.array([1 / (3 * v1), 1 / v1])
    for state, (direct, summed) in enumerate(
        [(np.array([100, 101, 102]), np.array([150, 153, 156])), (np.array([110, 111, 112]), np.array([70, 71, 72]))]
    ):
        expected = (own * direct + below[state] * summed) / (own + below[state])
        np.testing.assert_allclose(found.counts[0][state], expected, rtol=1e-14)
        assert found.variance[state, 0] == pytest.approx(1 / (own + below[state]), rel=1e-14)
        # the sum of three cells has three times the variance; nothing else tells the number of rows
        assert found.totals[state] == pytest.approx(expected.sum(), rel=1e-14)
        assert found.total_variance[state] == pytest.approx(3 / (own + below[state]), rel=1e-14)


def test_what_does_not_say_how_many_rows_there_are_cannot_be_estimated():
    some = Workload.queries(SCHEMA, ["A == 0"])
    plan = survey(Level("STATE", A), Level("PLACE", some, total=0))
    with pytest.raises(EstimationError, match="says how many rows there are"):
        estimated(filled(plan, lambda q, g, c: 10), PUBLIC)


def test_an_answer_of_the_level_itself_has_one_draw_of_noise():
    plan = survey(Level("STATE", Ask(A)), Level("PLACE", Ask(B)))
    release = filled(plan, lambda q, g, c: 50)
    assert raw_answers(release, 1).one_draw.tolist() == [[True]] * 4
    states = raw_answers(release, 0)
    assert states.parts == (*A, *B)
    # B is the sum of three places in the first state, and one place's answer in the second
    assert states.one_draw.tolist() == [[True, False], [True, True]]
    seen, variances = states.variances_of((*B, *AB, *A))
    assert seen.tolist() == [True] * 2 + [False] * 6 + [True] * 3
    assert np.isinf(variances).all(axis=0).tolist() == [not each for each in seen]
    np.testing.assert_array_equal(variances[:, [0, -1]], states.variance[:, ::-1])


@pytest.mark.parametrize("settings", [Settings(), Settings(smooth=False)])
def test_exact_answers_are_met(settings):
    """At epsilon 10^6 every estimate has the truth's cells, at all levels."""
    table = rows_of(5, rows=3000)
    plan = survey(Level("STATE", AB), Level("PLACE", AB), budget=Budget.pure(10**6))
    coded = encode(SCHEMA, table)
    group = [GROUPS["PLACE"].index(p) if s == 1 else 3 for s, p in zip(table["STATE"], table["PLACE"], strict=True)]
    for each in estimated(release_of(plan, table, 2), PUBLIC, settings):
        truth = coded.take(np.equal(group, each.group))
        assert each.total == pytest.approx(len(truth), abs=0.1)
        # MAP stops at a gap of 1e-3 of its objective, and the prior is worth 10 rows against 600
        np.testing.assert_allclose(each.estimate.project(["A", "B"]), truth.project(["A", "B"]), atol=0.01)


def test_what_only_the_top_level_asks_is_found_at_the_bottom_too():
    """A group is expected to be as its parent's posterior has it, but for a tenth of what the public rows say."""
    table = rows_of(6, rows=20_000)
    table["B"] = [a % 2 for a in table["A"]]  # A tells B: the public rows do not know that
    plan = survey(Level((), Ask(AB)), Level("STATE", Ask(A)), Level("PLACE", Ask(A)), budget=Budget.pure(1000))
    for each in estimated(release_of(plan, table, 3), PUBLIC):
        joint = each.estimate.project(["A", "B"])
        assert joint[0, 1] + joint[1, 0] + joint[2, 1] < 0.15  # half of the mass in the public rows
    flat = survey(Level("PLACE", Ask(A)), budget=Budget.pure(1000))
    for each in estimated(release_of(flat, table, 3), PUBLIC):
        joint = each.estimate.project(["A", "B"])
        assert joint[0, 1] + joint[1, 0] + joint[2, 1] > 0.2


COLUMNS = ("AGE", "SEX", "EDUC", "MARITAL", "TENURE")


def mean_errors(plan, public, table, release):
    """Mean L1 over pairs of columns and groups, of the estimates and of the priors that the groups start from."""
    truth = encode(plan.schema, table)
    group = plan.groups.keyed(plan.groups.names, plan.groupings[-1].number).numbers(table)
    priors = GroupPriors(public, plan.groupings[-1], Settings())
    errors = []
    for each in estimated(release, public):
        if (mine := group == each.group).any():
            guesses = (public.prior.with_weights(w) for w in (each.estimate.weights, priors.weights(each.group)))
            errors.append([pair_distances(truth.take(mine), guess).mean() for guess in guesses])
    return np.mean(errors, axis=0)


@pytest.mark.parametrize("relation", ["other states", "earlier years"])
def test_never_worse_than_the_prior_at_any_epsilon(relation):
    """Three worlds of 12 places: up to epsilon 1/10 within 2 % of the prior on average, better from epsilon 1 on."""
    found = {epsilon: [] for epsilon in ("1/1000", "1/100", "1/10", 1, 10)}
    for seed in range(3):
        world = census_like(persons=2500, places_per_state=6, years=(2021, 2022), relation=relation, seed=seed)
        schema = Schema([world.schema[name] for name in ("STATE", "PLACE", *COLUMNS)])
        groups = Groups.of(world.groups.group_by(["STATE", "PLACE"]).aggregate([]))
        public = Public.of(schema, world.public, ["STATE", "PLACE"])
        ones = Workload.all_marginals(schema, 1)
        for epsilon in found:
            levels = [Level("STATE", ones), Level("PLACE", Ask(ones, 3))]
            plan = plan_of(schema, *levels, groups=groups, budget=epsilon)
            release = release_of(plan, world.private, seed)
            found[epsilon].append(mean_errors(plan, public, world.private, release))
    ratio = {epsilon: np.mean(errors, axis=0)[0] / np.mean(errors, axis=0)[1] for epsilon, errors in found.items()}
    assert max(ratio["1/1000"], ratio["1/100"], ratio["1/10"]) < 1.02, ratio
    assert ratio[1] < 0.9, ratio
    assert ratio[10] < 0.75, ratio
