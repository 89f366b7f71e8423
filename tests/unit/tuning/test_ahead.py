"""What workers do while a search waits: the likeliest draws first, each candidate worked out once."""

from fractions import Fraction
from itertools import islice
from types import SimpleNamespace

from prade.tuning.ahead import NEXT_LADDER, NEXT_RUNG, NEXT_STAND_IN, Ladders, Outlook, likely_draws
from prade.tuning.choice import Choice

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


class Scene:
    """A search of which nothing is known, or the outcomes of some candidates."""

    def __init__(self, stand_ins=2, outlooks=None, ladders=None):
        self.stand_ins, self.outlooks, self.ladders = stand_ins, outlooks or {}, ladders or {}

    def draws(self, choice, stand_in):
        yield f"{choice.parts[0][0]}-{stand_in}"

    def outlook(self, choice):
        return self.outlooks.get(choice, Outlook(0))

    def after(self, choice):
        return self, self.ladders[choice]


def order(ladders, first=0, tried=(BEST,), scene=None, number=100):
    """Names of draws in the order in which they are likely, each once."""
    return list(dict.fromkeys(islice(likely_draws(scene or Scene(), ladders, first, tried), number)))


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
    found = order(Ladders(three_ladders(), BEST), 1, (BEST, choice("b", 0)), Scene(stand_ins=1))
    assert found == ["c0-0", "c1-0", "a0-0", "a1-0", "a2-0"]


def test_a_candidate_that_is_known_to_be_worse_ends_its_ladder():
    worse = Scene(stand_ins=1, outlooks={choice("a", 0): Outlook(None)})
    assert order(Ladders(three_ladders(), BEST), scene=worse) == ["b0-0", "c0-0", "c1-0"]


def test_a_candidate_that_makes_no_difference_leads_to_the_next_rung():
    same = Scene(stand_ins=1, outlooks={choice("a", 0): Outlook(None, goes_on=True)})
    assert order(Ladders(three_ladders(), BEST), scene=same)[0] == "a1-0"


def test_what_was_made_with_one_stand_in_goes_on_with_the_next():
    half = Scene(stand_ins=3, outlooks={choice("a", 0): Outlook(1)})
    found = order(Ladders(three_ladders(), BEST), scene=half)
    assert found[0] == "a0-1"
    assert "a0-0" not in found


def test_from_a_candidate_that_will_be_kept_the_search_goes_on_with_changes_of_it():
    kept = choice("a", 0)
    after = SimpleNamespace(ladders=lambda best: iter([iter([]), iter([("next", Choice((("changed",),)))])]))
    scene = Scene(stand_ins=1, outlooks={kept: Outlook(None, kept=True)}, ladders={kept: Ladders(after, kept)})
    found = order(Ladders(three_ladders(), BEST), scene=scene)
    assert found[0] == "changed-0"
    assert "b0-0" in found  # in case it is not kept after all


def test_candidates_are_worked_out_when_they_are_looked_at_and_once():
    looked_at = []
    ladders = Ladders(three_ladders(looked_at), BEST)
    assert looked_at == []
    order(ladders, number=1)
    assert len(looked_at) <= 3
    order(ladders)
    order(ladders, first=1)
    assert sorted(looked_at) == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]


def test_a_best_choice_without_candidates_has_nothing_ahead():
    assert order(Ladders(SimpleNamespace(ladders=lambda best: iter([iter([])])), BEST)) == []
    assert order(Ladders(SimpleNamespace(ladders=lambda best: iter([])), BEST)) == []
