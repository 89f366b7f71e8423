"""Draws that workers make ahead: the search finds the same, ends sooner, and stops at once."""

import threading
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest

from prade.core.errors import DataError
from prade.core.execution import Execution, WorkersError
from prade.tuning.choice import Choice
from prade.tuning.effort import Effort
from prade.tuning.search import Search
from prade.tuning.trials import Draw, Trials, TrialsAhead

START = Choice((("a",),))
STAND_INS = 2


def numbered(ladder, rung):
    return replace(START, parts=((f"{ladder}",),), total=Fraction(rung, 100))


def errors(draw):
    """Errors of 16 groups that depend on the choice, the stand-in and the seed; some changes pay, most do not."""
    number = 0 if draw.choice == START else crc32(f"{draw.choice.parts} {draw.choice.total}".encode())
    level = 0.02 * np.random.default_rng(number).normal(0.5)
    return 0.5 + level + 0.01 * np.random.default_rng([number, draw.stand_in, draw.seed]).random(16)


class Candidates:
    """Forty ladders of five rungs, the same for every best choice."""

    def ladders(self, best):
        for ladder in range(40):
            yield iter([(f"{ladder}-{rung}", numbered(ladder, rung)) for rung in range(1, 6)])


def one(draw):
    """The work of any draw."""
    return 1.0


def search_with(work, workers, effort, seconds=600):
    """A search whose draws are made by `work` on workers; without workers, here."""
    tables = [SimpleNamespace(groups=range(16))] * STAND_INS
    rehearsal = SimpleNamespace(
        scored=16,
        stand_ins=tables,
        public_errors=lambda stand_in, *, fresh: np.full(16, 0.9),
        apart=False,
        targets_above=False,
        wanted=None,
    )
    trials = Trials(work, one) if workers is None else TrialsAhead(work, one, workers)
    allowed = Effort.of(effort, seconds)
    return Search(rehearsal, lambda choice: choice, trials, allowed, ("start", START), candidates=Candidates())


def made(draw, number=0):
    return errors(draw)


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("effort", [100_000, 50])
def test_workers_that_run_ahead_do_not_change_what_is_found(number, effort):
    """Neither where all candidates are tried nor where the effort ends the search."""
    alone = search_with(made, None, effort)
    assert alone.climb(Candidates()) == (effort > 50)
    assert alone.best != START
    alone.climb_with_more_draws(Candidates())
    with ThreadPoolExecutor(number) as pool:
        ahead = search_with(made, Execution(executor=pool), effort)
        assert ahead.climb(Candidates()) == (effort > 50)
        ahead.climb_with_more_draws(Candidates())
        assert (ahead.trials, ahead.best) == (alone.trials, alone.best)
        assert ahead.draws.asked == alone.draws.asked
        assert ahead.draws.done == alone.draws.done <= effort
        assert ahead.draws.made >= ahead.draws.asked
        ahead.draws.close()


def test_more_workers_do_the_same_sooner():
    """A draw sleeps, so that the number of cores does not matter, and for so long that a busy machine does not."""

    def slow(draw, number=0):
        time.sleep(0.1)
        return errors(draw)

    took, tried = {}, {}
    for number in (1, 4):
        with ThreadPoolExecutor(number) as pool:
            began = time.monotonic()
            search = search_with(slow, Execution(executor=pool), 60)
            search.climb(Candidates())
            took[number], tried[number] = time.monotonic() - began, search.trials
            search.draws.close()
    assert tried[4] == tried[1]
    assert took[4] < 0.7 * took[1]


def test_a_slow_machine_finds_the_same():
    def slow(draw, number=0):
        time.sleep(0.005)
        return errors(draw)

    quick, slowly = (search_with(work, None, 50) for work in (made, slow))
    for search in (quick, slowly):
        assert not search.climb(Candidates())
    assert len(quick.trials) > 10
    assert (slowly.trials, slowly.best) == (quick.trials, quick.best)
    assert not slowly.effort.time_was_up


def test_seconds_are_a_safety_net():
    def slow(draw, number=0):
        time.sleep(0.02)
        return errors(draw)

    search = search_with(slow, None, 100_000, seconds=0.2)
    assert not search.climb(Candidates())
    assert search.effort.time_was_up
    assert time.monotonic() - search.effort.began < 5
    assert 1 < len(search.trials) < 11


def test_a_draw_is_made_once_and_only_free_workers_make_what_is_merely_likely():
    made, hold = [], threading.Event()

    def work(draw, number):
        made.append(draw)
        hold.wait(10)
        return np.zeros(1)

    with ThreadPoolExecutor(2) as pool:
        trials = TrialsAhead(work, one, Execution(executor=pool))
        draws = [Draw(START, 0, seed) for seed in range(50)]
        trials.expect(iter(draws[1:]))
        in_hand = []
        threading.Timer(0.5, lambda: (in_hand.extend(made), hold.set())).start()
        trials.errors(draws[0])
        trials.errors(draws[0])
        assert sorted(draw.seed for draw in in_hand) == [0, 1]
        assert trials.asked == 1
        trials.close()
    assert len(made) == len(set(made))


def test_when_the_best_choice_changes_what_has_not_begun_is_let_go():
    began, hold = [], threading.Event()

    def work(draw, number):
        began.append(draw.seed)
        hold.wait(10)
        return np.zeros(1)

    class TwoAnnounced(ThreadPoolExecutor):
        _max_workers = 2

        def __init__(self):
            super().__init__(1)
            self.real, self._max_workers = self._max_workers, 2

        def _adjust_thread_count(self):  # one thread works, though two are announced: the second draw waits
            self._max_workers = self.real
            super()._adjust_thread_count()
            self._max_workers = 2

    with TwoAnnounced() as pool:
        trials = TrialsAhead(work, one, Execution(executor=pool))
        trials.need([Draw(START, 0, 0)])
        trials.expect(Draw(START, 0, seed) for seed in range(10, 20))
        trials._fill()  # number 10 waits behind number 0
        trials.expect(iter([Draw(START, 0, 30)]), anew=True)
        hold.set()
        trials.errors(Draw(START, 0, 0))
        trials.errors(Draw(START, 0, 30))
    assert began == [0, 30]


def test_a_draw_that_fails_matters_only_if_it_is_asked_for():
    def work(draw, number):
        if draw.seed == 1:
            raise DataError("bad")
        return np.zeros(1)

    with ThreadPoolExecutor(1) as pool:
        trials = TrialsAhead(work, one, Execution(executor=pool))
        trials.expect(Draw(START, 0, seed) for seed in range(4))
        for seed in (0, 2, 3):
            trials.errors(Draw(START, 0, seed))
        with pytest.raises(DataError, match="bad"):
            trials.errors(Draw(START, 0, 1))


def test_workers_that_are_gone_or_were_shut_down_are_an_error_in_words():
    def gone(draw, number):
        raise BrokenExecutor("a process died")

    with ThreadPoolExecutor(1) as pool, pytest.raises(WorkersError, match="the workers have stopped"):
        TrialsAhead(gone, one, Execution(executor=pool)).errors(Draw(START, 0, 0))

    class Broken(ThreadPoolExecutor):
        def submit(self, *arguments):
            raise BrokenExecutor("a process died earlier")

    with Broken(1) as pool, pytest.raises(WorkersError, match="the workers have stopped"):
        TrialsAhead(gone, one, Execution(executor=pool)).errors(Draw(START, 0, 0))

    hold = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        trials = TrialsAhead(lambda draw, number: hold.wait(10), one, Execution(executor=pool))
        trials.need([Draw(START, 0, 0), Draw(START, 0, 1)])
        pool.shutdown(wait=False, cancel_futures=True)
        with pytest.raises(WorkersError, match="the workers were shut down"):
            trials.errors(Draw(START, 0, 1))
        hold.set()
