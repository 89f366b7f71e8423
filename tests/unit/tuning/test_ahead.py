"""What workers do while a search waits: the likeliest draws first, each candidate worked out once."""

from fractions import Fraction
from itertools import islice
from types import SimpleNamespace

from prade.tuning.ahead import NEXT_LADDER, NEXT_RUNG, NEXT_STAND_IN, Ladders, likely_draws
from prade.tuning.candidates import Choice

BEST = Choice((("best",),))


def choice(ladder, rung):
    return Choice(((f"{ladder}{rung}",),), total=Fraction(rung, 10))


def three_ladders(looked_at=None):
    """Candidates with three ladders, of 3, 1 and 2 rungs; `looked_at` notes which were worked out."""

    def rungs(ladder, number):
        for rung in range(number):
            if looked_at is not None:
                looked_at.append((ladder, rung))
            yield f"{ladder}{rung}", choice(ladder, rung)

    return SimpleNamespace(ladders=lambda best: iter([rungs("a", 3), rungs("b", 1), rungs("c", 2)]))


def order(ladders, first=0, tried=(BEST,), stand_ins=2, number=100):
    """Names of draws in the order in which they are likely, each once."""
    draws = likely_draws(ladders, first, tried, stand_ins, lambda choice, stand_in: iter([(choice, stand_in)]))
    return list(dict.fromkeys(f"{each.parts[0][0]}-{stand_in}" for each, stand_in in islice(draws, number)))


def test_the_current_candidate_comes_first_and_all_others_follow_by_their_probability():
    found = order(Ladders(three_ladders(), BEST))
    assert found[0] == "a0-0"
    chance = {
        f"{ladder}{rung}-{stand_in}": NEXT_LADDER**number * NEXT_RUNG**rung * NEXT_STAND_IN**stand_in
        for number, (ladder, rungs) in enumerate((("a", 3), ("b", 1), ("c", 2)))
        for rung in range(rungs)
        for stand_in in range(2)
    }
    assert sorted(found) == sorted(chance)
    chances = [chance[name] for name in found]
    assert chances == sorted(chances, reverse=True)


def test_what_was_tried_is_left_out_and_ladders_before_the_first_one_come_last():
    found = order(Ladders(three_ladders(), BEST), first=1, tried=(BEST, choice("b", 0)), stand_ins=1)
    assert found == ["c0-0", "c1-0", "a0-0", "a1-0", "a2-0"]


def test_candidates_are_worked_out_when_they_are_looked_at_and_once():
    looked_at = []
    ladders = Ladders(three_ladders(looked_at), BEST)
    assert looked_at == []
    order(ladders, number=1)
    assert len(looked_at) <= 2
    order(ladders)
    order(ladders, first=1)
    assert sorted(looked_at) == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]


def test_a_best_choice_without_candidates_has_nothing_ahead():
    assert order(Ladders(SimpleNamespace(ladders=lambda best: iter([iter([])])), BEST)) == []
    assert order(Ladders(SimpleNamespace(ladders=lambda best: iter([])), BEST)) == []
