"""Tuning: what it chooses is as good as it says, it keeps to its effort, and it says when not to measure at all."""

import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, takewhile
from types import SimpleNamespace

import numpy as np
import pytest

from prade import Task
from prade.core.errors import DataError, PradeError, many
from prade.core.execution import Execution
from prade.data.declare.schema import Schema
from prade.data.public.public import Public
from prade.planning.plan import Plan
from prade.planning.questions import Level
from prade.planning.settings import Expected, Settings
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from prade.queries.workload import Workload
from prade.tuning.candidates import (
    FEWEST_ROWS,
    MOST_CELLS,
    OWN,
    RAW_PAIRS,
    Candidates,
    Choice,
    laws_within,
    out_of_reach,
    predicted_best,
    with_least_noise,
)
from prade.tuning.effort import Effort
from prade.tuning.expectation import clearly_gain, expected_in_another
from prade.tuning.gain import (
    StandInLevel,
    off_by,
    predicted_gain,
    predicted_rest,
    scaled_to_one_way,
    shrunk_moments,
    telling_parts,
)
from prade.tuning.rehearse import Rehearsal
from prade.tuning.search import Draws, Search
from prade.tuning.tune import ONE_TABLE, OWN_ALONE, SAME_GROUPS, Tuner, tune
from worlds.plans import plan_of

LEVELS = ["STATE", "PLACE"]
COLUMNS = ["STATE", "PLACE", "AGE", "SEX", "RACE", "EMPLOY"]


def tuned(task, data, *, effort=600, seconds=None, progress=None, **options):
    """The outcome with at most two draws of noise: eight take four times as long."""
    tuner = Tuner(task, data.public, execution=Execution(1), most_draws=2, **options)
    return tuner.tune(task.budget, Effort.of(effort, seconds, progress, searches=len(laws_within(task.budget))))


def tuned_for(data, epsilon, **options):
    return tuned(Task("people", data.schema, epsilon, Unit(1), LEVELS, data.groups), data, **options)


@pytest.fixture(scope="module")
def at_five(data):
    return tuned_for(data, 5)


# ---------------------------------------------------------------------- the outcome


def test_a_large_budget_is_worth_spending(at_five):
    assert at_five.finished
    assert at_five.worthwhile
    assert at_five.expected.error < at_five.public_error - at_five.expected.spread
    assert at_five.advice.startswith("Measure: expected error")


def test_a_hopeless_budget_is_said_to_be_so(data):
    found = tuned_for(data, "1/10000", effort=5)
    assert not found.worthwhile
    assert [question.is_total for question in found.plan.questions] == [True]  # the prior is kept as it is
    assert found.settings == Settings(own=OWN_ALONE)
    assert found.advice.startswith("Do not touch the private data at this budget: expected error")


def test_the_expected_error_was_rehearsed_with_fresh_noise(data, at_five):
    rehearsal = Rehearsal.of(Public.of(data.schema, data.public, LEVELS), data.groups, LEVELS, threads=1)
    draws = [int(trial.what.split()[0]) for trial in at_five.trials if trial.what.endswith("draws of noise")]
    fresh = [rehearsal.error(at_five.plan, at_five.settings, seed=500 + draw) for draw in range(max([1, *draws]))]
    assert np.mean(fresh) == pytest.approx(at_five.expected.error, abs=1e-6)
    assert rehearsal.public_error == pytest.approx(at_five.public_error, abs=1e-6)


def test_few_groups_choose_the_plan_and_give_its_error_and_that_is_said(at_five):
    assert SAME_GROUPS in at_five.advice
    assert ONE_TABLE not in at_five.advice


def test_one_stand_in_table_is_said_to_be_one(data):
    found = tune(Task("x", data.schema.select(data.schema.coded), 1), data.public, effort=0)
    assert ONE_TABLE in found.advice


def search_of(rehearsal, start, *, effort=1e6, plan_of=lambda choice: choice, work=lambda draw: 1.0):
    """A search whose draws are made by a rehearsal, and take so much work."""

    def errors(draw):
        fresh = {"fresh": True} if draw.fresh else {}
        return rehearsal.errors(
            plan_of(draw.choice), draw.choice.settings, seed=draw.seed, stand_in=draw.stand_in, **fresh
        )

    return Search(rehearsal, plan_of, Draws(partial(map, errors), work), Effort.of(effort), ("start", start))


class _Rehearsed:
    """Two tables of four groups: two choose the plan, the others give the expected error, and are worse."""

    scored, apart, stand_ins = 2, True, [SimpleNamespace(groups=range(4))] * 2
    wanted, targets_above = None, False

    def errors(self, plan, settings, *, seed, stand_in, fresh=False):
        generator = np.random.default_rng([seed, stand_in])
        return (0.3 if fresh else 0.2) + 0.1 * stand_in + 0.01 * generator.random(2)

    def public_errors(self, stand_in, *, fresh=False):
        return np.full(2, 0.5 if fresh else 0.9)


def test_the_expected_error_comes_from_groups_that_chose_nothing_and_its_precision_from_tables():
    plan = SimpleNamespace(groupings=[range(100)])
    search = search_of(_Rehearsed(), Choice((("a",),)), plan_of=lambda choice: plan)
    expected, worthwhile = search.expected()
    assert worthwhile
    assert 0.35 < expected.error < 0.361  # the mean of 0.3 and 0.4, and noise of up to 0.01
    assert expected.prior == 0.5
    # tables are 0.1 apart: s = 0.1 / sqrt(2), and with one degree of freedom t = 1.84
    assert expected.spread == pytest.approx(1.84 * 0.1 / 2**0.5 * 1.5**0.5, rel=0.1)
    assert expected.error_spread == pytest.approx(expected.spread, rel=1e-6)  # the public table's errors are all alike
    assert str(expected).startswith("expected error 0.35")


def test_repeats_of_one_group_are_no_further_groups():
    """By hand: groups 0.1 and 0.3 of each table, whatever the number of draws."""
    few, many_draws = ([np.tile([0.1, 0.3], (draws, 1))] * 2 for draws in (1, 50))
    assert expected_in_another(few, 10) == pytest.approx(expected_in_another(many_draws, 10))
    mean, off = expected_in_another(few, 10)
    assert mean == pytest.approx(0.2)
    assert off == pytest.approx(1.32 * (0.02 * (1 / 10 + 1 / 4)) ** 0.5, rel=0.01)  # t = 1.32 for two degrees


def test_tables_may_differ_in_their_gains_but_none_may_lose():
    few, much = np.array([[0.02, 0.03, 0.04]]), np.array([[0.3, 0.31, 0.32]])
    assert clearly_gain([few, much])  # though the next gain may be anything
    assert expected_in_another([few, much], 10)[1] > 0.2
    assert not clearly_gain([few - 0.035, much])
    assert not clearly_gain([np.array([[-0.2, 0.3]]), np.array([[-0.3, 0.4]])])  # chance between groups
    assert clearly_gain([np.array([[0.2]]), np.array([[0.3]])])  # single groups: between tables
    assert not clearly_gain([np.array([[0.02]]), np.array([[0.3]])])
    one_large = np.array([[1e-3, 2e-3, 1e-3, 3e-3, 1e-3, 0.9]])  # a mean of 0.15, to within 0.15, but all six gain
    assert clearly_gain([one_large])
    assert not clearly_gain([one_large * [1, 1, 1, -1, 1, 1]])  # five of six do so once in nine times
    assert clearly_gain([np.array([[0.2], [0.25]])])  # one group: between draws of noise
    assert not clearly_gain([np.array([[-0.1], [0.25]])])


def test_the_stated_precision_holds_two_times_in_three():
    """2,000 lots of tables and another one of the same kind: 68.3 % to within 1 %, five of which are the limits."""
    generator = np.random.default_rng(0)
    for tables, between in ((2, 0.1), (4, 0.1), (4, 0.0)):
        held = 0
        for _ in range(2_000):
            means = between * generator.standard_normal(tables + 1)
            groups = [mean + 0.05 * generator.standard_normal((1, 16)) for mean in means]
            expected, off = expected_in_another(groups[:-1], 16)
            held += abs(groups[-1].mean() - expected) <= off
        share = held / 2_000
        assert share > 0.63
        assert share < (0.73 if between else 0.9)  # the larger of two is on the safe side where tables are alike


def test_trials_only_ever_improve_by_more_than_their_standard_error(at_five):
    start, *others = at_five.trials
    assert start.kept
    best = start.error
    for trial in others:
        if trial.what.endswith("draws of noise"):  # the best choice so far once more
            best = trial.error
        elif trial.kept:
            assert trial.best == pytest.approx(best)
            assert trial.best - trial.error > trial.standard_error
            best = trial.error
    assert best < start.error
    assert at_five.table().num_rows == len(at_five.trials)


def test_the_same_seed_finds_the_same_and_another_may_not(few):
    found, again = (tuned_for(few, 5) for _ in range(2))
    assert found.finished
    assert again.plan == found.plan
    assert again.settings == found.settings
    assert again.trials == found.trials
    assert tuned_for(few, 5, seed=1, effort=0).expected != tuned_for(few, 5, effort=0).expected


def test_no_effort_is_the_simplest_plan(data):
    told = []
    found = tuned_for(data, 5, effort=0, execution=Execution(progress=lambda *news: told.append(news)))
    assert not found.finished
    assert len(found.trials) == 1
    assert "Not every candidate was tried with effort 0: more effort" in found.advice
    assert set(told[:-1]) == {("rehearsing", 0, 0)}
    assert told[-1] == ("rehearsing", 1, 1)  # the bar ends at 100 %


def test_when_the_time_is_up_the_plan_says_so(data):
    found = tuned_for(data, 5, seconds=0)
    assert found.time_was_up
    assert len(found.trials) == 1
    assert "The time was up before every candidate was tried: more seconds" in found.plan.expected.advice


def test_a_slow_machine_finds_the_same_plan(data, monkeypatch):
    """Each rehearsal waits: the search ends where it ended before, by its effort and not by its seconds."""
    quick = tuned_for(data, 5, effort=0.6)
    assert not quick.finished
    assert len(quick.trials) > 3
    assert quick.effort <= 0.6
    rehearsed = Rehearsal.errors

    def slowly(self, *given, **options):
        time.sleep(0.02)
        return rehearsed(self, *given, **options)

    monkeypatch.setattr(Rehearsal, "errors", slowly)
    slow = tuned_for(data, 5, effort=0.6)
    assert slow.plan.to_toml() == quick.plan.to_toml()
    assert (slow.trials, slow.effort, slow.finished) == (quick.trials, quick.effort, quick.finished)


def test_progress_says_how_much_of_the_effort_is_done(data):
    told = []
    found = tuned_for(
        data, 5, effort=0.5, execution=Execution(progress=lambda what, done, whole: told.append((done, whole)))
    )
    done = [each for each, _ in told[:-1]]
    assert {whole for _, whole in told[:-1]} == {0.5}
    assert done == sorted(done)
    assert 0 < done[0] < done[-1] <= found.effort <= 0.5


@pytest.mark.parametrize(("effort", "draws"), [(83, 0), (84, 4)])
@pytest.mark.parametrize("stand_ins", [4, 1])
def test_a_trial_that_takes_too_much_is_not_begun(effort, draws, stand_ins):
    """A draw takes 10: 4 draws, and 4 once more in the end, are 80 after the 4 of the first trial."""
    played = []

    def errors(choice, settings, *, seed, stand_in):
        played.append(choice.total > 0)
        return np.linspace(0.1, 0.2, 2) - 0.05 * (choice.total > 0)

    tables = [SimpleNamespace(groups=range(2))] * stand_ins
    rehearsal = SimpleNamespace(
        scored=2, stand_ins=tables, errors=errors, apart=False, targets_above=False, wanted=None
    )
    start = Choice((("a",),))
    heavy = replace(start, total=Fraction(1, 5))
    search = search_of(rehearsal, start, effort=effort, work=lambda draw: 10.0 if draw.choice == heavy else 1.0)
    assert len(search.repeats) == 4 / stand_ins
    candidates = SimpleNamespace(ladders=lambda best: iter([iter([("heavy", heavy)])]))
    assert search.climb(candidates) == (draws == 4)
    assert sum(played) == draws
    assert search.best == (heavy if draws == 4 else start)


def test_a_heavy_candidate_does_not_end_the_search():
    """With effort 100: one choice takes 30 a draw, of which there are four; those after it are tried."""
    start, pairs, heavy, light = (Choice((("a",),), total=Fraction(k, 5)) for k in range(4))
    gain = {start: 0.0, pairs: 0.1, heavy: 0.3, light: 0.2}

    def errors(choice, settings, *, seed, stand_in):
        return 0.5 - gain[choice] + np.linspace(0, 0.001, 2)

    rehearsal = SimpleNamespace(
        scored=2,
        stand_ins=[SimpleNamespace(groups=range(2))],
        errors=errors,
        apart=False,
        targets_above=False,
        wanted=None,
    )
    search = search_of(rehearsal, start, effort=100, work=lambda draw: 30.0 if draw.choice == heavy else 1.0)
    every = {"pairs": pairs, "heavy": heavy, "light": light}
    assert not search.climb(SimpleNamespace(ladders=lambda best: iter([iter([each]) for each in every.items()])))
    assert [trial.what for trial in search.trials if trial.kept] == ["start", "pairs", "light"]
    assert search.best == light
    assert search.draws.done == 12


@pytest.mark.parametrize(("effort", "found"), [(1_000, "good"), (10, "lucky")])
def test_more_draws_of_noise_tell_luck_from_gain_where_effort_is_left(effort, found):
    """A draw takes 1. In the first one, a choice that is worse looks better, and the best one looks worse."""
    start, lucky, good = (Choice((("a",),), total=Fraction(k, 5)) for k in range(3))
    gain = {start: (0.0, 0.0), lucky: (0.03, -0.02), good: (-0.01, 0.05)}  # in the first draw, and in the others

    def errors(choice, settings, *, seed, stand_in):
        return 0.5 - gain[choice][min(seed, 1)] + np.linspace(0, 0.001, 16)

    tables = [SimpleNamespace(groups=range(16))]
    rehearsal = SimpleNamespace(
        scored=16, stand_ins=tables, errors=errors, apart=False, targets_above=False, wanted=None
    )
    search = search_of(rehearsal, start, effort=effort)
    every = {"start": start, "lucky": lucky, "good": good}
    candidates = SimpleNamespace(ladders=lambda best: iter([iter([each]) for each in every.items()]))
    assert search.climb(candidates)
    assert search.best == lucky
    search.climb_with_more_draws(candidates)
    assert search.best == every[found]
    draws = [trial.what for trial in search.trials if trial.what.endswith("draws of noise")]
    assert draws == {"good": ["2 draws of noise", "4 draws of noise"], "lucky": []}[found]


def test_no_engine_and_no_door_is_loaded():
    code = (
        "import sys, prade\n"
        "from prade.examples import census_like\n"
        "from prade.tuning.tune import tune\n"
        "d = census_like(persons=300, places_per_state=3, seed=1)\n"
        "groups = d.groups.select(['PLACE']).group_by(['PLACE']).aggregate([])\n"
        "tune(prade.Task('x', d.schema, 1, prade.Unit(4), ['PLACE'], groups), d.public, effort=0)\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('opendp', 'duckdb') or 'prade.measuring.' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_everybody_as_one_group_and_other_budgets(data):
    for budget in (Budget.zcdp(1), Budget.approx(1, "1e-6")):
        found = tune(Task("x", data.schema, budget, Unit(2)), data.public, effort=0)
        assert len(found.plan.levels) == 1
        assert "other public groups stood in" in found.advice  # the schema's group columns tell public groups apart
        plain = data.schema.select(data.schema.coded)
        found = tune(Task("x", plain, budget, Unit(2)), data.public, effort=0)
        assert "not rehearsed" in found.advice  # without any, nothing says how far private rows may differ


@pytest.mark.parametrize("lucky", [True, False])
def test_what_is_asked_above_must_pay_with_other_noise_too(lucky):
    def errors(choice, settings, *, seed, stand_in):
        better = choice.above != ((Fraction(0), ()),) and (seed == 0 or not lucky)
        return np.full(16, 0.2 - 0.1 * better) + np.linspace(0, 0.01, 16)

    tables = [SimpleNamespace(groups=range(16))]
    rehearsal = SimpleNamespace(
        scored=16, stand_ins=tables, errors=errors, apart=False, targets_above=False, wanted=None
    )
    start = Choice((("a",),), ((Fraction(0), ()),))
    search = search_of(rehearsal, start)
    asked = replace(start, above=((Fraction(1, 10), (("a",),)),))
    assert search._attempt("more above", asked).kept != lucky
    assert search.best == (start if lucky else asked)


@pytest.mark.parametrize("name", ["effort", "seconds"])
def test_effort_and_seconds_are_checked(data, name):
    for wrong in (-1, "long", float("nan"), True):
        with pytest.raises(PradeError, match=f"{name} is"):
            tuned_for(data, 1, **{name: wrong})


# ---------------------------------------------------------------------- candidates


def test_a_choice_adds_up_to_the_whole_budget():
    schema = Schema.from_mbi({"a": 2, "b": 3})
    choice = Choice((("a",), ("a", "b")), ((Fraction(1, 10), (("b",),)), (Fraction(0), ())), Fraction(1, 5))
    levels = choice.levels(schema, [("X",), ("Y",), ("Z",)])
    assert sum(level.share for level in levels) == 1
    assert [level.total for level in levels] == [0, 0, Fraction(9, 50)]
    assert [len(level.asks) for level in levels] == [1, 0, 1]
    weighted = replace(choice, weighted=True).levels(schema, [("X",), ("Y",), ("Z",)])
    assert [level.share for level in weighted] == [level.share for level in levels]
    assert [ask.share for ask in weighted[-1].asks] == [
        Fraction(18, 25) * Fraction(root, 1414 + 2449) for root in (1414, 2449)
    ]


def test_numbers_of_rows_alone_ask_no_part():
    schema = Schema.from_mbi({"a": 2, "b": 3})
    choice = Choice((("a",),), ((Fraction(1, 10), (("b",),)),), Fraction(1))
    *_, last = choice.levels(schema, [("X",), ("Y",)])
    assert last.asks == ()
    assert last.total == Fraction(9, 10)


def test_a_level_of_everybody_costs_nothing_and_is_no_part_of_the_task(data):
    choice = Choice((("AGE",), ("SEX",)))
    task = Task("people", data.schema, 1, levels=["PLACE"], groups=data.groups)
    alone, below = (
        Plan.of(task, replace(choice, everybody=each).levels(data.schema, task.levels)) for each in (False, True)
    )
    assert [level.by for level in below.levels] == [(), ("PLACE",)]
    assert not below.levels[0].share
    assert [question.scale for question in below.questions] == [question.scale for question in alone.questions]
    assert alone.task == below.task == task == Task("people", data.schema, 1, levels=[(), "PLACE"], groups=data.groups)


def test_a_level_of_everybody_is_tried_where_several_groups_stand_in_below_it(data):
    start = Choice((("AGE",),))
    ladders = candidates_for(data, 4, [("STATE", "PLACE")]).ladders(lambda: start)
    found = [(words, choice) for ladder in ladders for words, choice in ladder if choice.everybody]
    assert found == [("a level of everybody first", replace(start, everybody=True))]
    start = replace(start, everybody=True)
    ladders = candidates_for(data, 4, [("STATE", "PLACE")]).ladders(lambda: start)
    assert ("no level of everybody", replace(start, everybody=False)) in [each for ladder in ladders for each in ladder]


def candidates_for(data, epsilon, nest=(("STATE",), ("STATE", "PLACE"))):
    public = Public.of(data.schema, data.public, LEVELS)
    rehearsal = Rehearsal.of(public, data.groups, LEVELS, threads=1)

    def asking(choice):
        levels = choice.levels(data.schema, nest)
        return plan_of(data.schema, *levels, groups=data.groups, budget=epsilon, noise=choice.law)

    return Candidates(rehearsal, public, nest, asking)


def test_ladders_change_one_thing_at_a_time(data):
    candidates = candidates_for(data, 4)
    start = candidates.simplest()
    seen = [(words, choice) for ladder in candidates.ladders(lambda: start) for words, choice in ladder]
    for words, choice in seen:
        different = [
            name
            for name in ("parts", "above", "total", "settings", "weighted")
            if vars(choice)[name] != vars(start)[name]
        ]
        assert len(different) <= 1 or (different == ["parts", "settings"] and "raw answers" in words), words
        assert candidates.plan_of(choice).budget == Budget.pure(4)
    assert not any(words.startswith("own") for words, _ in seen)  # no public rows of the same places
    words = " ".join(each for each, _ in seen)
    for part in ("totals", "one-way", "two-way", "level 1", "mixture", "n0", "raw answers", "larger shares"):
        assert part in words


def test_the_posterior_is_a_candidate_under_laplace_noise_only(data):
    for epsilon, offered in ((4, ["laplace", "linear"]), (Budget.zcdp(1), [])):
        candidates = candidates_for(data, epsilon)
        start = candidates.simplest()
        seen = [change for ladder in candidates.ladders(lambda chosen=start: chosen) for change in ladder]
        found = [(words, choice.settings) for words, choice in seen if words.startswith("posterior")]
        assert found == [(f"posterior {name}", replace(start.settings, posterior=name)) for name in offered]


APPROX = Budget.approx(4, "1e-9")


def test_least_noise_decides_the_law_of_a_choice(data):
    """At delta 1e-9 ten tables have less Laplace noise, at delta 1/100 ten have less Gaussian noise, and four not."""
    candidates, risky = candidates_for(data, APPROX), candidates_for(data, Budget.approx(4, "1/100"))
    start = candidates.simplest()
    many_tables = replace(start, parts=candidates.single + candidates.pairs)
    assert len(many_tables.parts) == 10
    assert with_least_noise(candidates, many_tables).law == "laplace"
    assert with_least_noise(risky, many_tables).law is None
    assert with_least_noise(risky, start).law == "laplace"
    assert with_least_noise(candidates, replace(start, total=Fraction(1))).law == "laplace"
    assert with_least_noise(candidates_for(data, Budget.zcdp(1)), start).law is None


def test_each_law_comes_with_the_tables_that_suit_it(data):
    """At a budget where noise drowns most tables, fewer of them are predicted to be better than all."""
    budget = Budget.approx("1/50", "1e-9")
    candidates = candidates_for(data, budget)
    for law in laws_within(budget):
        start = Choice(candidates.single, ((Fraction(0), ()),), law=law)
        ((words, choice),) = predicted_best(candidates, lambda start=start: start)
        assert words == f"{many(len(choice.parts), 'one-way table')} predicted to be best"
        assert 0 < len(choice.parts) < len(start.parts)
        assert choice == replace(start, parts=choice.parts)
    rich = candidates_for(data, 10_000)
    assert not list(predicted_best(rich, lambda: replace(start, law=None)))  # all of them: nothing changes


def test_what_is_left_after_asking_is_predicted_as_parts_are_taken():
    """By conditioning on all cells at once, where `telling_parts` takes one part after the other."""
    generator = np.random.default_rng(3)
    factors = generator.normal(size=(6, 6))
    moments, cells, variance = factors @ factors.T, [slice(0, 2), slice(2, 5), slice(5, 6)], 0.7
    rests = [predicted_rest(moments, cells, variance, asked) for asked in ([0], [0, 2], [0, 1, 2])]
    assert rests == sorted(rests, reverse=True)
    precision = np.linalg.inv(moments) + np.diag([1, 1, 0, 0, 0, 1]) / variance
    assert rests[1] == pytest.approx(np.sqrt(np.diag(np.linalg.inv(precision))).sum())


@pytest.fixture
def tuner_of(data):
    """A tuner whose rehearsals take work 1 and have made-up errors: those of the law and of the number of tables.

    The usual law is as much better in some groups as it is worse in others.
    """
    task = Task("people", data.schema, APPROX, Unit(1), LEVELS, data.groups)
    tuner = Tuner(task, data.public, execution=Execution(1), most_draws=2)

    def of(error):
        def errors(draw):
            number = len(tuner.rehearsal.groups_of(draw.stand_in, fresh=draw.fresh))
            usual = 0.02 if draw.choice.law is None else 0.0
            among = np.linspace(0, 0.01, number) + usual * np.cos(np.arange(number))
            return error(draw.choice.law, len(draw.choice.parts)) + among - among.mean() + 0.005

        tuner._draws = lambda budget: Draws(partial(map, errors), lambda draw: 1.0)
        return tuner

    return of


@pytest.mark.parametrize(
    ("gaussian", "law"), [(0.14, "gaussian"), (0.1495, "laplace"), (0.15, "laplace"), (0.1505, "laplace")]
)
def test_each_law_has_a_search_of_its_own(tuner_of, gaussian, law):
    """Unless Gaussian noise is better beyond chance, Laplace noise is taken: that plan is the one of pure epsilon."""
    tuner = tuner_of(lambda law, tables: 0.15 if law == "laplace" else gaussian)
    found = tuner.tune(APPROX, Effort.of(1e6))
    assert (found.plan.law, found.finished) == (law, True)
    hurried = tuner.tune(APPROX, Effort.of(10))
    assert (hurried.plan.law, hurried.finished) == ("laplace", False)


def test_both_laws_together_do_no_more_work_than_they_may_and_the_first_as_much_as_alone(tuner_of):
    """Whatever the effort is, also one that ends within the second search."""
    tuner = tuner_of(lambda law, tables: 0.15 if law == "laplace" else 0.16)
    shortest = tuner.tune(Budget.pure(4), Effort.of(0)).effort
    ended = set()
    for effort in (*range(12, 120, 4), 200, 400):
        found, pure = tuner.tune(APPROX, Effort.of(effort, searches=2)), tuner.tune(Budget.pure(4), Effort.of(effort))
        assert found.effort <= max(2 * effort, shortest)
        assert found.plan.law == "laplace"
        alone = [trial.what for trial in pure.trials]
        assert [trial.what.removesuffix(", Laplace noise") for trial in found.trials][: len(alone)] == alone
        assert pure.finished or not found.finished
        ended.add((pure.finished, found.finished))
    assert ended >= {(False, False), (True, True)}


@pytest.mark.parametrize("started", ["laplace", None])
def test_a_law_that_was_not_searched_is_not_finished(tuner_of, started):
    """The search starts from what was best at another budget, and the other law is better, but not its first choice."""
    tuner = tuner_of(lambda law, tables: 0.15 if law == started else 0.151 if tables == 4 else 0.1)
    start = tuner.candidates.simplest(started)
    for effort in range(10, 300, 5):
        found = tuner.tune(APPROX, Effort.of(effort), start)
        assert not found.finished or found.expected.error == pytest.approx(0.105, abs=1e-3)
    assert found.finished


def test_a_start_has_a_share_for_totals_that_suits_its_law(data):
    small = Budget.approx("1/20", "1e-9")
    candidates = candidates_for(data, small)
    shares = [candidates.simplest(law).total for law in laws_within(small)]
    assert shares[0] < shares[1]
    tuner = Tuner(Task("people", data.schema, small, Unit(1), LEVELS, data.groups), data.public, execution=Execution(1))
    seen = []

    def errors(draw):
        seen.append(draw.choice)
        return np.full(len(tuner.rehearsal.groups_of(draw.stand_in, fresh=draw.fresh)), 0.1)

    tuner._draws = lambda budget: Draws(partial(map, errors), lambda draw: 1.0)
    for law, share in zip(laws_within(small), shares, strict=True):
        seen.clear()
        tuner.tune(small, Effort.of(0), replace(candidates.simplest(law), total=Fraction(0)))
        assert next(each for each in seen if each.law == law).total == share


def test_within_epsilon_and_delta_the_first_search_is_that_of_pure_epsilon(data, at_five):
    approx = tuned_for(data, Budget.approx(5, "1e-9"))
    pure = [(trial.what, trial.error) for trial in at_five.trials]
    first = [(trial.what.removesuffix(", Laplace noise"), trial.error) for trial in approx.trials]
    assert first[: len(pure)] == pure
    assert first[len(pure)][0] == "all one-way tables"
    assert approx.expected.error < at_five.expected.error + at_five.expected.spread


def test_shares_differ_only_where_sizes_do_and_can_be_made_equal_again(data):
    candidates = candidates_for(data, 4)
    start = candidates.simplest()
    ((_, weighted),) = candidates._other_shares(lambda: start)
    ((words, again),) = candidates._other_shares(lambda: weighted)
    assert (words, again) == ("equal shares for the parts", start)
    assert weighted.weighted
    assert not list(candidates._other_shares(lambda: replace(start, parts=start.parts[:1])))


def test_larger_shares_for_larger_tables_pay_and_are_kept(data):
    """AGE has 20 cells, SEX has 2: with equal shares AGE's table gets too little of the budget."""
    candidates = candidates_for(data, 10)
    search = search_of(candidates.rehearsal, candidates.simplest(), plan_of=candidates.plan_of)
    (change,) = candidates._other_shares(lambda: search.best)
    trial = search._attempt(*change)
    assert trial.kept
    assert trial.best - trial.error > 2 * trial.standard_error
    scales = {part.name: q.scale for q in candidates.plan_of(search.best).questions for part in q.parts}
    assert scales["AGE"] < scales["RACE"] < scales["SEX"]


def test_raw_pairs_are_for_cells_that_stand_out_from_the_noise(data):
    """Rows a cell beside the noise of so many pairs: none at a small budget, some at a larger one, then all."""

    def numbers(epsilon):
        candidates = candidates_for(data, epsilon)
        start = Choice(candidates.single, ((Fraction(0), ()),))
        found = list(candidates._raw_pairs(lambda: start, RAW_PAIRS))
        for words, choice in found:
            assert words == f"{len(choice.parts)} two-way tables, raw answers"
            assert not choice.settings.smooth
            assert choice.parts == candidates.pairs[: len(choice.parts)]
        return [len(choice.parts) for _, choice in found]

    assert numbers(1) == []
    assert numbers(4) == [3, 2, 1]
    assert numbers(100) == [6, 3, 2, 1]


def test_trust_is_a_candidate_where_answers_stay_raw(data):
    candidates = candidates_for(data, 4)
    start = candidates.simplest()
    for smooth in (True, False):
        choice = replace(start, settings=Settings(smooth=smooth))
        seen = [words for ladder in candidates.ladders(lambda each=choice: each) for words, _ in ladder]
        assert any(words.startswith("trust") for words in seen) != smooth
        assert any(words.startswith("n0") for words in seen) == smooth


@pytest.fixture(scope="module")
def one_table(data):
    """Plans for everybody as one group, by epsilon: each is searched once."""
    return cache(lambda epsilon: tuned(Task("people", data.schema, epsilon), data))


@pytest.mark.parametrize(("epsilon", "columns", "left"), [(2, 2, 0.9), (20, 4, 0.1)], ids=["pairs", "all columns"])
def test_a_large_table_is_asked_all_tables_of_several_columns_and_they_pay(data, one_table, epsilon, columns, left):
    """One table of some thousand rows at a large budget: what is smoothed cannot be worth as much.

    At the larger budget almost no noise falls on the table of all columns.
    """
    found = one_table(epsilon)
    (level,) = found.plan.levels
    asked = [part.columns for ask in level.asks for part in ask.workload]
    assert sorted(asked) == sorted(combinations(data.schema.coded, columns))
    assert not found.settings.smooth
    before = takewhile(lambda trial: "raw answers" not in trial.what, found.trials)
    assert found.expected.error < left * min(trial.error for trial in before)


def test_a_domain_that_can_be_counted_is_counted_whole(data, one_table):
    """960 cells and next to no noise: one table of all columns, and rows for the cells that no public row is in."""
    found = one_table(20)
    (level,) = found.plan.levels
    assert [part.columns for ask in level.asks for part in ask.workload] == [data.schema.coded]
    assert found.settings.extra > 0
    assert found.expected.error < 0.001 < found.public_error / 100


def test_all_columns_at_once_are_tried_only_where_few_cells_get_noise(data):
    def tried(epsilon, schema=None):
        candidates = candidates_for(data, epsilon)
        candidates.schema = schema or candidates.schema
        start = candidates.simplest()
        return len(list(candidates._joint_table(lambda: start)))

    wide = Schema.from_mbi({**dict.fromkeys("abcdefghi", 4), **dict.fromkeys(data.schema.coded, 8)})
    assert [tried(each) for each in (1, 20)] == [0, 1]
    assert tried(20, wide) == 0


def test_what_stand_ins_have_out_of_reach_is_counted():
    """Of four rows, one has a value that stays public nowhere, and two a pair that does not."""
    schema = Schema.from_mbi({"a": 3, "b": 2})
    public = Public.of(schema, {"a": [0, 1], "b": [0, 1]})
    codes = {"a": np.array([0, 0, 1, 2]), "b": np.array([0, 1, 1, 0])}
    stand_in = SimpleNamespace(public=public, codes=codes)
    level = SimpleNamespace(stand_in=stand_in, group=np.array([0, 0, 0, 0]), left_out=range(0))
    found = [out_of_reach([level], schema, [part]) for part in (("a",), ("b",), ("a", "b"))]
    assert found == [0.25, 0.0, 0.5]
    assert out_of_reach([level], schema, [("a",), ("b",)]) == 0.125


def test_where_numbers_of_rows_need_everything_nothing_else_is_asked(data):
    found = tuned_for(data, "1/10000", effort=0, bias=20)
    assert found.trials[0].what == "numbers of rows alone"
    assert [level.asks for level in found.plan.levels] == [(), ()]
    assert found.plan.levels[-1].total == 1


def asked_above(candidates, parts):
    choice = Choice(parts, ((Fraction(0), ()),))
    (words, found), *_ = candidates._shares_above(lambda: choice, 0)
    assert words.startswith(f"level 1: {many(len(found.above[0][1]), 'table')} for 1/30")
    return found.above[0][1]


def test_what_the_last_level_tells_is_not_asked_above(data):
    candidates = candidates_for(data, 10)
    told = candidates.single[:2]
    assert not set(told) & set(asked_above(candidates, told))
    assert set(asked_above(candidates, candidates.single[2:])) & set(told)


def test_the_more_noise_the_fewer_parts_are_asked_above(data):
    numbers = [len(asked_above(candidates_for(data, epsilon), (("SEX",),))) for epsilon in ("1/100", 1, 100)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_large_tables_need_many_rows_and_little_noise(data):
    candidates = candidates_for(data, 1)
    largest = {
        (place, variance): max(map(data.schema.domain_size, candidates._small_pairs(place, variance)), default=0)
        for place in (0, 1)
        for variance in (1.0, 30.0**2, 1e6)
    }
    rows = [float(np.median(np.concatenate([level.rows for level in each]))) for each in candidates.levels]
    for (place, variance), cells in largest.items():
        assert cells <= min(rows[place] / max(variance**0.5, FEWEST_ROWS), MOST_CELLS)
    assert largest[0, 1.0] > largest[1, 1.0] > largest[1, 1e6]
    assert largest[0, 1.0] > largest[0, 30.0**2] > largest[0, 1e6]


def test_own_is_a_candidate_where_public_rows_of_the_same_places_are(few):
    groups = few.public.select(["PLACE"]).group_by("PLACE").aggregate([])
    found = tuned(Task("x", few.schema, 5, levels=["PLACE"], groups=groups), few)
    assert any(trial.what.startswith("own") for trial in found.trials)


def test_weights_of_own_rows_are_tried_from_the_usual_one_down_and_up():
    down, up = OWN
    assert down[0] == up[0] == Settings().own
    assert list(down) == sorted(down, reverse=True)
    assert list(up) == sorted(up)


def test_a_part_that_others_tell_is_not_asked():
    rng = np.random.default_rng(0)
    same, other = rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) * 0.7
    deviations = np.concatenate([same, same + 0.01 * rng.normal(size=(200, 2)), other], axis=1)
    cells = [slice(0, 2), slice(2, 4), slice(4, 6)]
    assert sorted(telling_parts(shrunk_moments(deviations), cells, 0.01, 2)) in ([0, 2], [1, 2])
    assert sorted(telling_parts(shrunk_moments(deviations), cells, 0.01, 3)) == [0, 1, 2]


def test_correlations_of_few_groups_are_taken_for_chance():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(400, 1))
    deviations = rng.normal(size=(400, 30)) + common  # every correlation is 1/2
    apart = ~np.eye(30, dtype=bool)

    def kept(groups):
        raw = deviations[:groups].T @ deviations[:groups] / groups
        return float(np.median(shrunk_moments(deviations[:groups])[apart] / raw[apart]))

    assert kept(4) < kept(20) < kept(400) < 1
    assert kept(4) < 0.8
    assert kept(400) > 0.95


@pytest.fixture(scope="module")
def stand_ins(data):
    return Rehearsal.of(Public.of(data.schema, data.public, LEVELS), data.groups, LEVELS, threads=1).stand_ins


def test_more_noise_makes_a_part_worth_less(data, stand_ins):
    off = off_by(
        [StandInLevel.of(stand_in, ("STATE", "PLACE")) for stand_in in stand_ins], data.schema, ("AGE", "EMPLOY")
    )
    gains = [predicted_gain(off, variance) for variance in (1e-12, 1e-4, 1.0, 1e6)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0.01 > gains[-1] >= 0
    assert predicted_gain(off, 1e-4, known=1e-4) < predicted_gain(off, 1e-4, known=1e6) <= gains[1]


def test_a_prior_is_scaled_until_both_one_way_shares_are_the_true_ones(data, stand_ins):
    """One sweep leaves the shares of the first column off; a pair is then worth what one-way tables tell of it, too."""
    level = StandInLevel.of(stand_ins[0], ("STATE", "PLACE"))
    truth, prior = level.shares(data.schema, ("AGE", "EMPLOY"))
    found = scaled_to_one_way(prior, truth)
    for axis in (1, 2):
        np.testing.assert_allclose(found.sum(axis=axis), truth.sum(axis=axis), atol=1e-5)
    np.testing.assert_allclose(
        off_by([level], data.schema, ("AGE", "EMPLOY")), np.mean((truth - found) ** 2, axis=0), rtol=1e-12
    )


def test_groups_of_a_level_are_those_of_the_last_one_together(data, stand_ins):
    for stand_in in stand_ins:
        places, states = (StandInLevel.of(stand_in, by) for by in (("STATE", "PLACE"), ("STATE",)))
        assert len(states) == 1
        assert len(places) == len(stand_in.groups)
        assert states.rows.sum() == places.rows.sum() == len(stand_in.group)
        each, _ = places.shares(data.schema, ("AGE",))
        together, prior = states.shares(data.schema, ("AGE",))
        np.testing.assert_allclose(together[0], places.rows / places.rows.sum() @ each)
        assert prior.sum() == pytest.approx(1)


# ---------------------------------------------------------------------- the plan's file


def test_the_outcome_is_in_the_plans_file(at_five, tmp_path):
    at_five.plan.save(tmp_path / "plan.toml")
    text = (tmp_path / "plan.toml").read_text()
    assert "[settings]" in text
    assert f"# {at_five.expected}" in text
    found = Plan.load(tmp_path / "plan.toml")
    assert (found, found.settings, found.expected) == (at_five.plan, at_five.settings, at_five.expected)


@pytest.fixture
def small():
    schema = Schema.from_mbi({"a": 2, "b": 3})
    level = Level((), Workload.marginals(schema, ["a"]))
    return Plan(
        "x", schema, Budget.pure(1), Unit(1), [level], settings=Settings(n0=3.0), expected=Expected(0.2, 0.01, 0.3)
    )


def test_settings_and_expectations_are_not_what_is_measured(small):
    text = small.to_toml().replace("n0 = 3.0", "n0 = 30").replace("error = 0.2", "error = 0.25")
    edited = Plan.from_toml(text)
    assert edited.settings == Settings(n0=30)
    assert edited.expected == Expected(0.25, 0.01, 0.3)
    assert edited.hash == small.hash
    bare = Plan("x", small.schema, small.budget, small.unit, small.levels)
    assert bare.hash == small.hash
    assert "settings" not in bare.to_dict()
    assert Plan.from_toml(bare.to_toml()).settings is None


def test_a_file_has_all_settings_or_none(small):
    """Their usual values change between versions."""
    text = small.to_toml()
    assert Plan.from_toml(text).settings == small.settings
    with pytest.raises(DataError, match=r"settings leave out posterior: .* before version 0\.9"):
        Plan.from_toml(text.replace('posterior = "laplace"\n', ""))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n0 = 3", "n_0 = 3", "settings: unknown key 'n_0'"),
        ("n0 = 3.0", 'n0 = "3"', "settings: n0 is '3'; write a number"),
        ("n0 = 3.0", "n0 = true", "settings: n0 is 'True'; write a number"),
        ('posterior = "laplace"', "posterior = 1", "settings: posterior is '1'; write a name"),
        ('posterior = "laplace"', 'posterior = "cubic"', "settings: posterior is 'cubic': give 'laplace' or 'linear'"),
        ("n0 = 3.0", "n0 = -1", "settings: n0 is -1: give a positive"),
        ("smooth = true", "smooth = 1", "settings: smooth is '1'; write true or false"),
        ("support = 200000", "support = 2e5", "settings: support is '200000.0'; write a whole number"),
        ("support = 200000", "support = true", "settings: support is 'True'; write a whole number"),
        ("support = 200000", "support = -1", "settings: support is -1: give a number of public rows"),
        ("spread = 0.01", "", "expected: spread is missing"),
        ("spread = 0.01", "spread = -1", "expected: spread is -1: give a number"),
        ("[expected]", "[[expected]]", "write a \\[expected\\] table"),
    ],
)
def test_an_edit_gone_wrong_is_answered(small, old, new, message):
    text = small.to_toml()
    assert old in text
    with pytest.raises((PradeError, DataError), match=message):
        Plan.from_toml(text.replace(old, new, 1))
