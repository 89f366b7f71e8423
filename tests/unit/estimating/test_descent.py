"""Down the levels on simulated releases: what answers are put together, and what comes of them."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest

from prade import Ask, Budget, Column, EstimationError, Groups, Level, PradeError, Schema, Workload
from prade.core.execution import Execution, several
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.descent import Descent, LevelGroups, Parent
from prade.estimating.levels.foundation import GroupPriors
from prade.estimating.levels.level_smoothing import SMALLEST_SHARE
from prade.estimating.levels.totals import smooth_totals
from prade.estimating.levels.variation import blocks
from prade.estimating.paper_estimators import IDE, TwoStage
from prade.estimating.posterior_mode import MAP
from prade.examples import census_like
from prade.planning.settings import Settings
from worlds.plans import plan_of
from worlds.releases import answered, counted
from worlds.survey import PLACE, STATE

SCHEMA = Schema(
    [
        STATE,
        PLACE,
        Column("A", "categorical", values=[0, 1, 2]),
        Column("B", "categorical", values=[0, 1]),
    ]
)
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


def filled(plan, value):
    """A release in which every count of question q, part k, group g, cell c is value(q, g, c)."""

    def answer(question, part, groups):
        q = plan.questions.index(question)
        return np.array([[value(q, g, c) for c in range(part.n_cells)] for g in range(groups)])

    return answered(plan, answer)


PUBLIC = Public.of(
    SCHEMA, rows_of(0, places={"STATE": [5, 5, 6, 6], "PLACE": ["s", "t", "s", "t"]}), ["STATE", "PLACE"]
)


# ---------------------------------------------------------------- answers, by hand


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


def test_the_last_level_has_its_own_answers_only():
    plan = survey(Level("STATE", Ask(A, 1), total=0), Level("PLACE", Ask(A, 2), total=0))
    release = filled(plan, lambda q, g, c: [100, 40][q] + 10 * g + c)
    found = raw_answers(release, 1)
    np.testing.assert_allclose(found.counts[0], [[40, 41, 42], [50, 51, 52], [60, 61, 62], [70, 71, 72]])
    np.testing.assert_allclose(found.variance, plan.questions[1].variance)
    np.testing.assert_allclose(found.totals, [123, 153, 183, 213])


def test_totals_join_what_was_asked_and_what_adds_up():
    """Asked with share 1, and the sums of A (3 cells) and B (2 cells) with shares 2 and 1 of 4."""
    plan = survey(Level("STATE", [Ask(A, 2), Ask(B, 1)], total=1))
    variances = [question.variance for question in plan.questions]
    np.testing.assert_allclose(variances, np.array([32, 8, 32]) - 1 / 6, rtol=1e-3)
    release = filled(plan, lambda q, g, c: [300, 95, 160][q] + g)
    found = raw_answers(release, 0)
    weights = 1 / (np.array([1, 3, 2]) * variances)
    for g in range(2):
        said = np.array([300 + g, 3 * (95 + g), 2 * (160 + g)])
        assert found.totals[g] == pytest.approx(weights @ said / weights.sum(), rel=1e-14)
    np.testing.assert_allclose(found.total_variance, 1 / weights.sum())
    assert found.parts == (*A.parts, *B.parts)  # the total is no part to estimate from


def test_a_part_asked_twice_at_one_level_is_one():
    plan = survey(Level("STATE", [Ask(A, 1), Ask(A, 3)], total=0))
    found = raw_answers(filled(plan, lambda q, g, c: 100 * (q + 1)), 0)
    v = [question.variance for question in plan.questions]
    np.testing.assert_allclose(found.counts[0], (100 / v[0] + 200 / v[1]) / (1 / v[0] + 1 / v[1]))
    assert found.variance.shape == (2, 1)


def test_a_free_level_is_added_up_from_below():
    plan = survey(Level(()), Level("STATE"), Level("PLACE", Ask(A), total=0))
    release = filled(plan, lambda q, g, c: 10 * g + c)
    everybody, states = (raw_answers(release, level) for level in (0, 1))
    np.testing.assert_allclose(everybody.counts[0], [[60, 64, 68]])
    np.testing.assert_allclose(states.counts[0], [[30, 33, 36], [30, 31, 32]])
    v = plan.questions[0].variance
    np.testing.assert_allclose(everybody.variance, 4 * v)
    np.testing.assert_allclose(states.variance, [[3 * v], [v]])
    np.testing.assert_allclose(states.total_variance, [9 * v, 3 * v])


def test_three_levels_with_parts_at_some_of_them():
    """AB is asked of everybody only, A of places only, B of states only."""
    plan = survey(Level((), Ask(AB), total=0), Level("STATE", Ask(B), total=0), Level("PLACE", Ask(A), total=0))
    release = filled(plan, lambda q, g, c: 1000 * (q + 1) + 10 * g + c)
    found = [raw_answers(release, level) for level in range(3)]
    assert [each.parts for each in found] == [(*AB.parts, *B.parts, *A.parts), (*B.parts, *A.parts), A.parts]
    np.testing.assert_allclose(found[0].counts[1], [[4010, 4012]])
    np.testing.assert_allclose(found[1].counts[1], [[9030, 9033, 9036], [3030, 3031, 3032]])
    v = [question.variance for question in plan.questions]
    np.testing.assert_allclose(found[0].variance, [[v[0], 2 * v[1], 4 * v[2]]])


def test_a_last_level_with_nothing_to_it_is_no_plan():
    with pytest.raises(PradeError, match="the last level asks no question"):
        survey(Level("STATE", A), Level("PLACE"))


def test_numbers_of_rows_alone_leave_the_parents_distribution():
    plan = survey(Level("STATE", A, total=1), Level("PLACE", total=1))
    release = release_of(plan, rows_of(3), 5)
    settings = Settings(own=0.0)
    found = list(Descent(release, PUBLIC, settings).estimates())
    descent = Descent(release, PUBLIC, settings)
    parents = list(descent.level(0, descent.top, lambda each: each))
    for each, parent in zip(found, (0, 0, 0, 1), strict=True):
        handed = 0.95 * parents[parent].estimate.weights + 0.05 * PUBLIC.prior.weights
        assert np.abs(each.estimate.weights - handed).max() < 1e-9
        assert each.total > 1


def test_what_does_not_say_how_many_rows_there_are_cannot_be_estimated():
    some = Workload.queries(SCHEMA, ["A == 0"])
    plan = survey(Level("STATE", A), Level("PLACE", some, total=0))
    with pytest.raises(EstimationError, match="says how many rows there are"):
        list(Descent(filled(plan, lambda q, g, c: 10), PUBLIC).estimates())


def test_joined_answers_have_the_variance_that_is_said():
    """400 draws of noise around 0: squared errors over the variance average 1 (a standard error of 7 % each)."""
    plan = survey(Level("STATE", Ask(A, 1), total=1), Level("PLACE", Ask(A, 2), total=0), budget=Budget.zcdp("1/100"))
    empty = {"STATE": [1], "PLACE": ["none"], "A": [0], "B": [0]}
    draws = [raw_answers(release_of(plan, empty, seed), 0) for seed in range(400)]
    counts = np.mean([each.counts[0] ** 2 / each.variance for each in draws], axis=0)
    totals = np.mean([each.totals**2 / each.total_variance for each in draws], axis=0)
    assert np.abs(counts - 1).max() < 0.25
    assert np.abs(totals - 1).max() < 0.25


# ---------------------------------------------------------------- totals


def test_numbers_of_rows_are_drawn_towards_last_years_or_each_other():
    """Where every group has public rows, noise is judged against their numbers; else against the groups' mean.

    Raw answers tell numbers of rows by their sums alone.
    """
    sizes, said = np.array([400, 100, 50, 50]), np.array([390, 120, 33, 63])
    place = np.repeat(np.arange(4), sizes)
    table = {name: [values[each] for each in place] for name, values in GROUPS.items()}
    rows = np.arange(len(place))
    last_year = Public.of(SCHEMA, {**table, "A": (rows % 3).tolist(), "B": (rows % 2).tolist()}, ["STATE", "PLACE"])
    plan = survey(Level(("STATE", "PLACE"), Ask(A), total=0), budget=Budget.pure("1/2"))
    release = filled(plan, lambda q, g, c: int(said[g]) // 3)
    variance = np.full(4, 3 * plan.questions[0].variance)
    for public, expected in ((last_year, sizes * said.sum() / 600), (PUBLIC, np.full(4, said.mean()))):
        found = [each.total for each in Descent(release, public, Settings(smooth=False)).estimates()]
        assert found == np.rint(smooth_totals(said.astype(float), variance, expected)).tolist()


def test_a_group_without_rows_has_none():
    plan = survey(Level("PLACE", Ask(A, 1), total=0))
    release = filled(plan, lambda q, g, c: [-90, 300, 250, 200][g])
    found = list(Descent(release, PUBLIC).estimates())
    assert found[0].total == 0
    assert all(np.isfinite(each.estimate.weights).all() for each in found)


def test_totals_that_are_negative_throughout():
    plan = survey(Level("STATE", A), Level("PLACE", A))
    for settings in (Settings(), Settings(smooth=False)):
        found = list(Descent(filled(plan, lambda q, g, c: -50 + 7 * c), PUBLIC, settings).estimates())
        assert [each.total for each in found] == [0] * 4
        assert all(each.estimate.weights.sum() == pytest.approx(1.0) for each in found)


# ---------------------------------------------------------------- single draws of Laplace noise


def test_an_answer_of_the_level_itself_has_one_draw_of_noise():
    plan = survey(Level("STATE", Ask(A)), Level("PLACE", Ask(B)))
    release = filled(plan, lambda q, g, c: 50)
    assert raw_answers(release, 1).one_draw.tolist() == [[True]] * 4
    states = raw_answers(release, 0)
    assert states.parts == (*A, *B)
    # B is the sum of three places in the first state, and one place's answer in the second
    assert states.one_draw.tolist() == [[True, False], [True, True]]
    assert states.one_draw_cells().tolist() == [[True] * 3 + [False] * 2, [True] * 5]


def test_two_answers_to_one_question_are_no_single_draw():
    plan = survey(Level("STATE", Ask(A)), Level("PLACE", Ask(A)))
    release = filled(plan, lambda q, g, c: 50)
    assert not raw_answers(release, 0).one_draw.any()
    assert raw_answers(release, 1).one_draw.all()


def test_gaussian_noise_is_no_laplace_draw_and_the_posterior_does_not_matter():
    plan = survey(Level("STATE", A), Level("PLACE", AB), budget=Budget.zcdp(1))
    release = release_of(plan, rows_of(9), 6)
    assert raw_answers(release, 1).one_draw is None
    assert raw_answers(release, 1).one_draw_cells() is None
    one, other = (weights_of(release, posterior) for posterior in ("linear", "laplace"))
    np.testing.assert_array_equal(one, other)


def weights_of(release, posterior):
    return [each.estimate.weights for each in Descent(release, PUBLIC, Settings(posterior=posterior)).estimates()]


def test_the_posterior_changes_single_draws_only():
    """The level of states is added up from places, so its estimates are the same to the bit; those of places differ."""
    both = survey(Level("STATE"), Level("PLACE", A), groups={"STATE": [1, 1, 2, 2], "PLACE": ["p", "q", "p", "q"]})
    release = release_of(both, rows_of(9, places={"STATE": [1, 1, 2, 2], "PLACE": ["p", "q", "p", "q"]}), 6)
    for level, same in ((0, True), (1, False)):
        found = []
        for posterior in ("linear", "laplace"):
            descent = Descent(release, PUBLIC, Settings(posterior=posterior))
            parents = [Parent(100.0)] * (1 if level == 0 else 2)
            found.append(np.stack([each.estimate.weights for each in descent.level(level, parents, lambda e: e)]))
        assert np.array_equal(*found) == same


def test_linear_smoothing_is_gaussian_conditioning_and_nothing_else():
    plan = survey(Level("PLACE", AB))
    release = release_of(plan, rows_of(9), 6)
    groups = LevelGroups(Descent(release, PUBLIC, Settings(posterior="linear")), 0, [Parent()])
    smoothing = groups.smoothing
    ((block, smoother),) = smoothing.smoothers[False]
    share, deviation = smoothing.smoothed()
    prior = smoothing.prior_shares[2, block]
    mean, variance = smoother.posterior(smoothing.shares[2, block] - prior, smoothing.noise[2, block])
    np.testing.assert_allclose(share[2], np.maximum(prior + mean, SMALLEST_SHARE * prior), rtol=1e-12)
    np.testing.assert_allclose(deviation[2], np.sqrt(variance), rtol=1e-12)


# ---------------------------------------------------------------- estimates


@pytest.mark.parametrize("settings", [Settings(), Settings(smooth=False)])
def test_exact_answers_are_met(settings):
    """At epsilon 10^6 every estimate has the truth's cells, at all levels."""
    table = rows_of(5, rows=3000)
    plan = survey(Level("STATE", AB), Level("PLACE", AB), budget=Budget.pure(10**6))
    coded = encode(SCHEMA, table)
    group = np.array(
        [GROUPS["PLACE"].index(p) if s == 1 else 3 for s, p in zip(table["STATE"], table["PLACE"], strict=True)]
    )
    for each in Descent(release_of(plan, table, 2), PUBLIC, settings).estimates():
        truth = coded.take(group == each.group)
        assert each.total == pytest.approx(len(truth), abs=0.1)
        # MAP stops at a gap of 1e-3 of its objective, and the prior is worth 10 rows against 600
        np.testing.assert_allclose(each.estimate.project(["A", "B"]), truth.project(["A", "B"]), atol=0.01)


def test_three_levels_hand_on():
    """What only the top level asks is found at the bottom too: the prior of each level is the one before."""
    table = rows_of(6, rows=20_000)
    table["B"] = [a % 2 for a in table["A"]]  # A tells B: the public rows do not know that
    plan = survey(Level((), Ask(AB)), Level("STATE", Ask(A)), Level("PLACE", Ask(A)), budget=Budget.pure(1000))
    for each in Descent(release_of(plan, table, 3), PUBLIC).estimates():
        joint = each.estimate.project(["A", "B"])
        assert joint[0, 1] + joint[1, 0] + joint[2, 1] < 0.1  # half of the mass in the public rows
    flat = survey(Level("PLACE", Ask(A)), budget=Budget.pure(1000))
    for each in Descent(release_of(flat, table, 3), PUBLIC).estimates():
        joint = each.estimate.project(["A", "B"])
        assert joint[0, 1] + joint[1, 0] + joint[2, 1] > 0.2


@pytest.mark.parametrize("estimator", [IDE(), TwoStage(), MAP(n0=50.0)])
def test_any_estimator_takes_the_counts_as_they_are(estimator):
    table = rows_of(7, rows=2000)
    plan = survey(Level("STATE", AB), Level("PLACE", AB), budget=Budget.pure(200))
    release = release_of(plan, table, 4)
    for each in Descent(release, PUBLIC, estimator=estimator).estimates():
        assert each.estimate.report.estimator == type(estimator).__name__
        assert each.estimate.weights.sum() == pytest.approx(1.0)
        noisy = release.noisy[-1][0][each.group] / each.total
        np.testing.assert_allclose(each.estimate.project(["A", "B"]).ravel(), noisy, atol=0.05)


@pytest.mark.parametrize("settings", [Settings(), Settings(posterior="linear"), Settings(smooth=False)])
def test_threads_do_not_matter(settings):
    plan = survey(Level("STATE", AB), Level("PLACE", A), budget=Budget.pure(3))
    release = release_of(plan, rows_of(8), 5)
    one, three = (
        [each.estimate.weights for each in Descent(release, PUBLIC, settings, execution=Execution(threads)).estimates()]
        for threads in (1, 3)
    )
    assert all(np.array_equal(x, y) for x, y in zip(one, three, strict=True))


def test_threads_must_be_some():
    plan = survey(Level("STATE", A))
    with pytest.raises(EstimationError, match="threads is 0: give a whole number, 1 or more"):
        list(Descent(release_of(plan, rows_of(8), 5), PUBLIC, execution=Execution(0)).estimates())


def test_several_keeps_the_order_and_raises_what_happens():
    assert list(several(lambda number: number**2, range(20), 3)) == [number**2 for number in range(20)]
    assert list(several(lambda number: number, [], 2)) == []
    with pytest.raises(ZeroDivisionError):
        list(several(lambda number: 1 // (3 - number), range(20), 2))


# ---------------------------------------------------------------- blocks


@pytest.mark.parametrize("seed", range(20))
def test_blocks_hold_every_cell_once_and_no_more_than_they_may(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 40, 12).tolist()
    most, piece = 20, 6
    found = blocks(sizes, most, piece)
    cells = np.concatenate([np.arange(each.start, each.stop) for each in found])
    assert cells.tolist() == list(range(sum(sizes)))
    start = np.cumsum([0, *sizes])
    for each in found:
        assert each.stop - each.start <= most
        for k, size in enumerate(sizes):
            inside = min(each.stop, start[k + 1]) - max(each.start, start[k])
            # small parts are whole, large ones in pieces
            assert inside <= 0 or (inside == size if size <= most else inside <= piece)
    alone = [k for k in range(len(sizes) - 1) if sizes[k] <= most and sizes[k + 1] <= most]
    joined = sum(any(each.start <= start[k] and each.stop >= start[k + 2] for each in found) for k in alone)
    assert joined >= 1 or all(sizes[k] + sizes[k + 1] > most for k in alone)


def test_a_part_too_large_for_one_block_is_smoothed_in_pieces(monkeypatch):
    """And nearly to the same effect as in one: what it may not do is to stay as noisy as it came."""
    table = rows_of(9, rows=4000)
    plan = survey(Level("PLACE", AB), budget=Budget.pure("1/10"))
    release = release_of(plan, table, 6)
    whole = [each.estimate.project(["A", "B"]) for each in Descent(release, PUBLIC).estimates()]
    raw = [each.estimate.project(["A", "B"]) for each in Descent(release, PUBLIC, estimator=MAP(n0=10.0)).estimates()]
    monkeypatch.setattr("prade.estimating.levels.variation.MOST_SMOOTHED", 5)
    monkeypatch.setattr("prade.estimating.levels.variation.PIECE", 4)
    pieces = [each.estimate.project(["A", "B"]) for each in Descent(release, PUBLIC).estimates()]
    far = [np.abs(np.array(each) - np.array(whole)).sum() for each in (pieces, raw)]
    assert 0 < far[0] < 0.7 * far[1]


# ---------------------------------------------------------------- own public rows for some groups


def test_public_rows_of_one_group_do_not_change_how_others_are_smoothed():
    """Place p of state 1 is in the public table too: the other groups' answers are smoothed as if it were not."""
    places = {"STATE": [5, 5, 6, 6, 1], "PLACE": ["s", "t", "s", "t", "p"]}
    public = Public.of(SCHEMA, rows_of(0, rows=1500, places=places), ["STATE", "PLACE"])
    plan = survey(Level(("STATE", "PLACE"), AB), budget=Budget.pure("1/5"))
    found = list(Descent(release_of(plan, rows_of(1), 2), public).estimates())
    same = GroupPriors(public, plan, 0, Settings()).recurs
    assert same.tolist() == [True, False, False, False]
    spreads = np.stack([each.fitted for each in found])  # [groups, blocks, (a, w, shared)]
    assert (spreads[same, :, 0] < 0.3 * spreads[~same, :, 0].min()).all()  # a place changes less than places differ
    assert (spreads[1:] == spreads[1]).all()


def test_how_groups_vary_is_fitted_for_error_bars_too():
    """Also where answers are taken as they are, with the same result; not in a rehearsal, and not for the paper's."""
    plan = survey(Level(("STATE", "PLACE"), AB), budget=Budget.pure("1/5"))
    release = release_of(plan, rows_of(1), 2)

    def spread(settings, **more):
        return next(Descent(release, PUBLIC, settings, **more).estimates()).fitted

    np.testing.assert_array_equal(spread(Settings(smooth=False)), spread(Settings()))
    assert spread(Settings(smooth=False), rough=True) is None
    assert spread(Settings(), rough=True) is not None
    assert spread(Settings(estimator="ide")) is None


# ---------------------------------------------------------------- never worse than the prior

COLUMNS = ("AGE", "SEX", "EDUC", "MARITAL", "TENURE")


def mean_errors(plan, public, table, release):
    """Mean L1 over pairs of columns and groups, of the estimates and of the priors that the groups start from."""
    truth = encode(plan.schema, table)
    group = plan.groups.keyed(plan.groups.names, plan.groupings[-1].number).numbers(table)
    priors = GroupPriors(public, plan, len(plan.levels) - 1, Settings())
    errors = []
    for each in Descent(release, public).estimates():
        mine = group == each.group
        if mine.any():
            start = priors.weights(each.group, public.prior.weights)
            mine = truth.take(mine)
            errors.append([far(mine, public.prior, weights) for weights in (each.estimate.weights, start)])
    return np.mean(errors, axis=0)


def far(truth, prior, weights):
    total = 0.0
    for pair in combinations(COLUMNS, 2):
        cells = np.ravel_multi_index([prior.codes[name] for name in pair], prior.schema.shape(pair))
        mine = np.bincount(cells, weights, minlength=prior.schema.domain_size(pair))
        total += np.abs(mine - truth.project(pair).ravel()).sum()
    return total / 10


@pytest.mark.parametrize("relation", ["other states", "earlier years"])
def test_never_worse_than_the_prior_at_any_epsilon(relation):
    """Three worlds of 12 places: at tiny epsilon within 1 % of the prior on average, better from epsilon 1 on."""
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
    assert max(ratio["1/1000"], ratio["1/100"]) < 1.01, ratio
    assert ratio["1/10"] < 1.005, ratio
    assert ratio[1] < 0.9, ratio
    assert ratio[10] < 0.75, ratio


def test_rehearsals_climb_fewer_steps_than_releases():
    release = release_of(survey(Level(("STATE", "PLACE"), AB)), rows_of(1), 2)
    steps = [
        next(Descent(release, PUBLIC, rough=rough).estimates()).estimate.report.settings["max_steps"]
        for rough in (True, False)
    ]
    assert steps == [25, 200]
