"""Draws that workers make ahead: the search finds the same, gets further in its time, and stops at once."""

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
from prade.core.workers import Workers, WorkersError
from prade.tuning.choice import Choice
from prade.tuning.clock import Clock
from prade.tuning.search import Search
from prade.tuning.trials import Draw, TrialsAhead

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


def search_with(work, workers, seconds):
    """A search whose draws are made by `work` on workers; without workers, here."""
    tables = [SimpleNamespace(groups=range(16))] * STAND_INS
    rehearsal = SimpleNamespace(
        scored=16,
        stand_ins=tables,
        errors=lambda choice, settings, *, seed, stand_in: work(Draw(choice, stand_in, seed))[0],
        public_errors=lambda stand_in, *, fresh: np.full(16, 0.9),
        apart=False,
    )
    trials = None if workers is None else TrialsAhead(work, workers)
    clock = Clock.of(seconds, None)
    return Search(rehearsal, lambda choice: choice, 0, clock, ("start", START), trials=trials, candidates=Candidates())


def told(search):
    return [(trial.what, trial.error, trial.kept) for trial in search.trials]


@pytest.mark.parametrize("number", [1, 2, 5])
def test_workers_that_run_ahead_do_not_change_what_is_found(number):
    alone = search_with(lambda draw, number=0: (errors(draw), 0.0), None, 600)
    assert alone.climb(Candidates())
    assert alone.best != START
    alone.climb_with_more_draws(Candidates())
    with ThreadPoolExecutor(number) as pool:
        ahead = search_with(lambda draw, number=0: (errors(draw), 0.0), Workers.of(executor=pool), 600)
        assert ahead.climb(Candidates())
        ahead.climb_with_more_draws(Candidates())
        assert (told(ahead), ahead.best) == (told(alone), alone.best)
        assert ahead.draws.asked == alone.draws.asked
        assert ahead.draws.made >= ahead.draws.asked
        ahead.draws.close()


def test_more_workers_try_more_in_the_same_time():
    """A draw sleeps, so that the number of cores does not matter."""

    def slow(draw, number=0):
        time.sleep(0.05)
        return errors(draw), 0.05

    tried = {}
    for number in (1, 4):
        with ThreadPoolExecutor(number) as pool:
            search = search_with(slow, Workers.of(executor=pool), 1.5)
            assert not search.climb(Candidates())
            tried[number] = len(search.trials)
            search.draws.close()
            assert search.clock.began + search.clock.seconds + 0.5 > time.monotonic()
    assert tried[4] > 2 * tried[1] > 10


def test_a_draw_is_made_once_and_only_free_workers_make_what_is_merely_likely():
    made, hold = [], threading.Event()

    def work(draw, number):
        made.append(draw)
        hold.wait(10)
        return np.zeros(1), 0.1

    with ThreadPoolExecutor(2) as pool:
        trials = TrialsAhead(work, Workers.of(executor=pool))
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
        return np.zeros(1), 0.1

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
        trials = TrialsAhead(work, Workers.of(executor=pool))
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
        return np.zeros(1), 0.1

    with ThreadPoolExecutor(1) as pool:
        trials = TrialsAhead(work, Workers.of(executor=pool))
        trials.expect(Draw(START, 0, seed) for seed in range(4))
        for seed in (0, 2, 3):
            trials.errors(Draw(START, 0, seed))
        with pytest.raises(DataError, match="bad"):
            trials.errors(Draw(START, 0, 1))


def test_workers_that_are_gone_or_were_shut_down_are_an_error_in_words():
    def gone(draw, number):
        raise BrokenExecutor("a process died")

    with ThreadPoolExecutor(1) as pool, pytest.raises(WorkersError, match="the workers have stopped"):
        TrialsAhead(gone, Workers.of(executor=pool)).errors(Draw(START, 0, 0))

    class Broken(ThreadPoolExecutor):
        def submit(self, *arguments):
            raise BrokenExecutor("a process died earlier")

    with Broken(1) as pool, pytest.raises(WorkersError, match="the workers have stopped"):
        TrialsAhead(gone, Workers.of(executor=pool)).errors(Draw(START, 0, 0))

    hold = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        trials = TrialsAhead(lambda draw, number: hold.wait(10), Workers.of(executor=pool))
        trials.need([Draw(START, 0, 0), Draw(START, 0, 1)])
        pool.shutdown(wait=False, cancel_futures=True)
        with pytest.raises(WorkersError, match="the workers were shut down"):
            trials.errors(Draw(START, 0, 1))
        hold.set()


def test_time_is_that_of_the_workers_not_of_a_wait_for_what_is_there_already():
    """Draws take 10 s each, but were made ahead: the search must still not begin what it cannot finish."""
    with ThreadPoolExecutor(2) as pool:
        search = search_with(lambda draw, number=0: (errors(draw), 10.0), Workers.of(executor=pool), 35)
        assert not search.climb(Candidates())
        # two draws of a trial on two workers are a round, and one round is in hand: 20 s, and 20 s for the last one
        assert len(search.trials) < 5
        search.draws.close()
    with ThreadPoolExecutor(2) as pool:
        search = search_with(lambda draw, number=0: (errors(draw), 10.0), Workers.of(executor=pool), 60)
        assert search.climb(Candidates())
        search.draws.close()
