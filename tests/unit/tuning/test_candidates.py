"""Candidates: what may be changed, what suits the noise, and what is predicted to be worth its noise."""

from copy import copy
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from prade.core.errors import many
from prade.data.declare.schema import Schema
from prade.data.public.public import Public
from prade.planning.settings import Settings
from prade.privacy.budget import Budget
from prade.tuning.candidates import Candidates, Choice, with_least_noise
from prade.tuning.gain import left_by_noise
from worlds.plans import plan_of

LEVELS = ["STATE", "PLACE"]


@pytest.fixture(scope="module")
def candidates_for(data, rehearsal):
    """The candidates of a budget; what they know of the public table is made once."""
    public, known = Public.of(data.schema, data.public, LEVELS), {}

    def of(epsilon, nest=(("STATE",), ("STATE", "PLACE"))):
        def plan(choice):
            levels = choice.levels(data.schema, nest)
            return plan_of(data.schema, *levels, groups=data.groups, budget=epsilon, noise=choice.law)

        if nest not in known:
            known[nest] = Candidates(rehearsal, public, nest, plan)
        candidates = copy(known[nest])
        candidates.plan_of = plan
        return candidates

    return of


def changes(candidates, choice):
    """All changes of a choice, in words."""
    return [change for ladder in candidates.ladders(lambda: choice) for change in ladder]


def test_a_choice_adds_up_to_the_whole_budget():
    schema = Schema.from_mbi({"a": 2, "b": 3})
    choice = Choice((("a",), ("a", "b")), ((Fraction(1, 10), (("b",),)), (Fraction(0), ())), Fraction(1, 5))
    levels = choice.levels(schema, [("X",), ("Y",), ("Z",)])
    assert sum(level.share for level in levels) == 1
    assert [level.total for level in levels] == [0, 0, Fraction(9, 50)]
    assert [len(level.asks) for level in levels] == [1, 0, 1]
    weighted = replace(choice, weighted=True).levels(schema, [("X",), ("Y",), ("Z",)])
    assert [level.share for level in weighted] == [level.share for level in levels]
    shares = [Fraction(18, 25) * Fraction(root, 1414 + 2449) for root in (1414, 2449)]
    assert [ask.share for ask in weighted[-1].asks] == shares


def test_ladders_change_one_thing_at_a_time(candidates_for):
    candidates = candidates_for(4)
    start = candidates.simplest()
    seen = changes(candidates, start)
    for words, choice in seen:
        names = ("parts", "above", "total", "settings", "weighted")
        different = [name for name in names if vars(choice)[name] != vars(start)[name]]
        assert len(different) <= 1 or (different == ["parts", "settings"] and "raw answers" in words), words
        assert candidates.plan_of(choice).budget == Budget.pure(4)
    words = " ".join(each for each, _ in seen)
    for part in ("totals", "one-way", "two-way", "level 1", "n0", "raw answers", "larger shares"):
        assert part in words
    assert not any(each.startswith(("own", "trust")) for each, _ in seen)  # other places, and answers are smoothed
    raw = [each for each, _ in changes(candidates, replace(start, settings=Settings(smooth=False)))]
    assert any(each.startswith("trust") for each in raw)
    assert not any(each.startswith("n0") for each in raw)


def test_least_noise_decides_the_law_of_a_choice(candidates_for):
    """At delta 1e-9 ten tables have less Laplace noise, at delta 1/100 ten have less Gaussian noise, and four not."""
    candidates, risky = candidates_for(Budget.approx(4, "1e-9")), candidates_for(Budget.approx(4, "1/100"))
    start = candidates.simplest()
    many_tables = replace(start, parts=candidates.single + candidates.pairs)
    assert len(many_tables.parts) == 10
    assert with_least_noise(candidates, many_tables).law == "laplace"
    assert with_least_noise(risky, many_tables).law is None
    assert with_least_noise(risky, start).law == "laplace"
    assert with_least_noise(candidates, replace(start, total=Fraction(1))).law == "laplace"
    assert with_least_noise(candidates_for(Budget.zcdp(1)), start).law is None


def test_what_is_left_after_asking_is_predicted_as_parts_are_taken():
    """By conditioning on all cells at once, where `telling_parts` takes one part after the other."""
    factors = np.random.default_rng(3).normal(size=(6, 6))
    moments, cells, variance = factors @ factors.T, [slice(0, 2), slice(2, 5), slice(5, 6)], 0.7
    precision = np.linalg.inv(moments) + np.diag([1, 1, 0, 0, 0, 1]) / variance
    left = left_by_noise(moments, cells, variance, [0, 2])
    np.testing.assert_allclose(left, np.diag(np.linalg.inv(precision)))
    fewer, more = (left_by_noise(moments, cells, variance, asked).sum() for asked in ([0], [0, 1, 2]))
    assert fewer > left.sum() > more


def test_plans_are_ranked_by_what_noise_leaves_of_their_columns(candidates_for):
    """The simplest plan has the error that was rehearsed, and more budget pays for more tables."""
    numbers = []
    for budget in ("1/50", "1", "100"):
        candidates = candidates_for(Budget.pure(budget))
        simplest = candidates.simplest(Budget.pure(budget))
        if simplest.total == 1:
            assert candidates.predicted(simplest, 0.2) == []
            continue
        ranked = candidates.predicted(simplest, 0.2)
        assert sorted(len(choice.parts) for _, choice in ranked) == sorted(set(candidates._numbers()))
        numbers.append(len(ranked[0][1].parts))
    assert numbers == sorted(numbers)
    assert numbers[-1] == len(candidates.single)


def test_what_stand_ins_have_out_of_reach_is_counted():
    """Of four rows, one has a value that stays public nowhere, and two a pair that does not."""
    schema = Schema.from_mbi({"a": 3, "b": 2})
    codes = {"a": np.array([0, 0, 1, 2]), "b": np.array([0, 1, 1, 0])}
    stand_in = SimpleNamespace(public=Public.of(schema, {"a": [0, 1], "b": [0, 1]}), codes=codes)
    level = SimpleNamespace(stand_in=stand_in, group=np.zeros(4, np.int64), left_out=range(0))
    candidates = SimpleNamespace(levels=[[level]], schema=schema)
    asked = {"a": [["a"]], "b": [["b"]], "a x b": [["a", "b"]], "a, b": [["a"], ["b"]]}
    shares = {name: Candidates.out_of_reach(candidates, parts) for name, parts in asked.items()}
    assert shares == {"a": 0.25, "b": 0.0, "a x b": 0.5, "a, b": 0.125}


def asked_above(candidates, parts):
    choice = Choice(parts, ((Fraction(0), ()),))
    (words, found), *_ = candidates._shares_above(lambda: choice, 0)
    assert words.startswith(f"level 1: {many(len(found.above[0][1]), 'table')} for 1/30")
    return found.above[0][1]


def test_what_the_last_level_tells_is_not_asked_above(candidates_for):
    candidates = candidates_for(10)
    told = candidates.single[:2]
    assert not set(told) & set(asked_above(candidates, told))
    assert set(asked_above(candidates, candidates.single[2:])) & set(told)
    few, more = (len(asked_above(candidates_for(epsilon), (("SEX",),))) for epsilon in ("1/100", 100))
    assert few < more
