"""A coordinate search for a choice: one thing after another is changed, and the whole run is rehearsed.

A change is kept when the mean error falls by more than its standard error,

    mean(d) < -sd(d) / sqrt(number of groups),      d: difference of a group's error, with and without the change

Both sides have the same groups and the same noise up to its scale. What concerns levels above the last must pay a
second time, with other noise: groups share that noise, and so its luck. Candidates come from simple to elaborate, so
that ties stay simple. Where effort is left, the search goes on from the best choice with more draws of noise. What it
decides depends on errors and on counted work (`prade.tuning.effort`): neither a busy machine nor the number of workers
changes it, unless its seconds are up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from prade.core.arrays import Floats
from prade.planning.plan import Plan
from prade.planning.settings import Expected
from prade.tuning.candidates import Candidates, Change, Choice
from prade.tuning.effort import Effort
from prade.tuning.expectation import clearly_gain, expected_in_groups, expected_of_targets
from prade.tuning.rehearse import Rehearsal, mean_of

FEWEST_ERRORS = 8  # that a mean is taken of: with fewer groups, noise is drawn several times
MOST_DRAWS = 8  # of noise: beyond that, chance is in the groups rather than in the noise
FEWEST_MORE = 5  # trials that more draws must leave effort for
CLEARLY = 2.0  # standard errors: a candidate that is worse by more with one stand-in is not tried with the others
LARGE = 0.1  # of the error: with targets, what gains more does so with any noise
FRESH = 500  # distance from the seeds of the trials to the seed of the expected error: no search has as many repeats
COMPARED = 2  # draws of noise that decide between what two searches found
APART = 3 * MOST_DRAWS  # distance between the seeds of one search and those of another


@dataclass(frozen=True)
class Draw:
    """A choice rehearsed with one stand-in and the noise of one seed; `fresh` is that of `Rehearsal.errors`."""

    choice: Choice
    stand_in: int
    seed: int
    fresh: bool = False


class Draws:
    """The errors of draws, each made once, and the work of all that the search has needed (`done`).

    As many as `together` says are rehearsed at a time: the one that is needed, and those that are expected next. What a
    search finds does not depend on it.
    """

    def __init__(
        self,
        rehearsed: Callable[[Sequence[Draw]], Iterable[Floats]],
        work: Callable[[Draw], float],
        together: Callable[[], int] = lambda: 1,
    ) -> None:
        self._rehearsed, self._work_of, self._together = rehearsed, work, together
        self._errors: dict[Draw, Floats] = {}
        self._needed: set[Draw] = set()
        self.expected: Iterator[Draw] = iter(())  # what is likely to be needed next
        self.done = 0.0

    def errors(self, draw: Draw) -> Floats:
        """The errors of a draw."""
        if draw not in self._needed:
            self.done += self.work([draw])
            self._needed.add(draw)
        if draw not in self._errors:
            others = (each for each in self.expected if each not in self._errors and each != draw)
            self.make([draw, *islice(others, self._together() - 1)])
        return self._errors[draw]

    def make(self, draws: Iterable[Draw]) -> None:
        """Rehearse all of these that have not been, which will be needed."""
        new = [each for each in dict.fromkeys(draws) if each not in self._errors]
        self._errors.update(zip(new, self._rehearsed(new), strict=True))

    def work(self, draws: Iterable[Draw]) -> float:
        """The work of those of some draws that were not needed yet."""
        return sum(self._work_of(draw) for draw in draws if draw not in self._needed)


@dataclass(frozen=True)
class Trial:
    """One rehearsal: what was changed, its error, and that of the best choice so far with the same stand-ins.

    `standard_error` is that of the difference between the two, `effort` the work that the trial took.
    """

    what: str
    error: float
    best: float
    standard_error: float
    kept: bool
    effort: float


class Search:
    """The best choice so far with its errors, and how it came about.

    `draws` make the rehearsals, with at most `most_draws` of noise. `reserved` is left of the effort for others, and in
    the end the choice is compared with that of the `rival`.
    """

    def __init__(
        self,
        rehearsal: Rehearsal,
        plan_of: Callable[[Choice], Plan],
        draws: Draws,
        effort: Effort,
        first: Change,
        *,
        seed: int = 0,
        noise: int = 0,
        most_draws: int = MOST_DRAWS,
        reserved: float = 0.0,
        rival: Search | None = None,
    ) -> None:
        self.rehearsal, self.plan_of, self.draws, self.effort = rehearsal, plan_of, draws, effort
        self.reserved, self.rival, self.most_draws = reserved, rival, most_draws
        self.fresh = 2 * FRESH * seed + FRESH
        self.seed = 2 * FRESH * seed + noise * APART % FRESH
        self.unseen = self.seed + 2 * MOST_DRAWS  # the first seed of noise that no trial sees
        scored = sum(min(rehearsal.scored, len(stand_in.groups)) for stand_in in rehearsal.stand_ins)
        self.repeats = range(math.ceil(FEWEST_ERRORS / scored))
        self.compared = range(max(COMPARED, len(self.repeats)))
        self.stand_ins = range(len(rehearsal.stand_ins))
        words, start = first
        self.best = self.smoothed = start
        self.tried = {start}
        self.most = 0.0  # work of a trial so far
        self.trials: list[Trial] = []
        self.errors: list[Floats] = []
        self.runner_up: tuple[float, Choice, list[Floats]] | None = None  # how much worse it is, and its errors
        self._begin(words)

    def _begin(self, words: str) -> None:
        """Rehearse the best choice with all draws of noise: what others are compared with."""
        self.draws.expected, done, self.runner_up = iter(()), self.draws.done, None
        self.errors = self._errors([self.best], self.seed)[0]
        mean = mean_of(self.errors)
        self._note(Trial(words, mean, mean, 0.0, True, self.draws.done - done))

    def try_also(self, words: str, choice: Choice) -> None:
        """Try another choice to start from, whatever effort is left."""
        if choice not in self.tried:
            self._attempt(words, choice, hurried=False)

    def try_some(self, changes: Iterable[Change]) -> None:
        """Try some choices, as far as there is effort for them."""
        for words, choice in changes:
            if choice not in self.tried and self._affordable(self._work_of_trial(choice), choice):
                self._attempt(words, choice)

    def effort_for_another(self) -> bool:
        """Whether there is effort left for a search of a few trials more, and for comparing the two."""
        return self._affordable(FEWEST_MORE * self.most + 2 * self.work_compared(self.best), self.best)

    def or_better(self, other: Search) -> Search:
        """This search, or another one if what that found is better beyond chance, with noise that neither has seen."""
        mean, standard_error = _difference(*self._errors([other.best, self.best], self.unseen, self.compared))
        return other if mean < -standard_error else self

    def climb(self, candidates: Candidates) -> bool:
        """Try every candidate, again as long as something changes; False if effort or time did not suffice for all."""
        improved = all_tried = True
        while improved:
            improved = False
            for number, ladder in enumerate(candidates.ladders(lambda: self.best)):
                self.draws.expected = self._likely(candidates, number)
                for words, choice in ladder:
                    if choice in self.tried:
                        continue
                    if not self._affordable(self._work_of_trial(choice), choice):
                        all_tried = False
                        if self.effort.time_was_up:
                            return False
                        continue  # others may take less
                    trial = self._attempt(words, choice)
                    if trial is None:
                        return False
                    improved |= trial.kept
                    if trial.error - trial.best > trial.standard_error:
                        break  # what is worse already does not become better further up
        return all_tried

    def _likely(self, candidates: Candidates, number: int) -> Iterator[Draw]:
        """The draws of the candidates of a ladder, which are all needed if none is kept or clearly worse."""
        best, tried = self.best, frozenset(self.tried)
        ladder = next(islice(candidates.ladders(lambda: best), number, None), ())
        new = (choice for _, choice in ladder if choice not in tried)
        able = (each for each in new if self._affordable(self._work_of_trial(each), each))
        return (draw for each in able for draws in self._draws(each) for draw in draws)

    def climb_with_more_draws(self, candidates: Candidates) -> None:
        """Climb on with twice the draws of noise, and twice as many again: what drowned in noise may stand out then.

        One change after another may each be better by less than chance, and all together by more. So the climb is also
        tried from the candidate that came closest to the best choice, or was better, but not beyond chance.
        """
        while (draws := 2 * len(self.repeats)) <= self.most_draws:
            if not self._affordable(2 * FEWEST_MORE * self._last(self.best), self.best, times=2):
                return
            self.repeats, self.tried, self.errors = range(draws), {self.best}, []
            self._begin(f"{draws} draws of noise")
            if not (self.climb(candidates) and self._climb_from_runner_up(candidates)):
                return

    def _climb_from_runner_up(self, candidates: Candidates) -> bool:
        """Climb from the runner-up, and stay there if that ends better beyond chance; False as for `climb`."""
        if self.runner_up is None:
            return True
        best, errors, smoothed = self.best, self.errors, self.smoothed
        _, self.best, self.errors = self.runner_up
        all_tried = self.climb(candidates)
        mean, standard_error = _difference(self.errors, errors)
        if mean >= -standard_error:
            self.best, self.errors, self.smoothed = best, errors, smoothed
        return all_tried

    def expected(self) -> tuple[Expected, bool]:
        """The error of the best choice with fresh noise and groups, beside that of the public baseline.

        And whether it is smaller than that, beyond chance.
        """
        fresh = self._draws(self.best, fresh=True)
        self.draws.make(chain.from_iterable(fresh))
        public = [self.rehearsal.public_errors(stand_in, fresh=True)[None] for stand_in in self.stand_ins]
        errors = [np.stack([self.draws.errors(draw) for draw in draws]) for draws in fresh]
        worthwhile = clearly_gain([before - after for before, after in zip(public, errors, strict=True)])
        plan, seeds = self.plan_of(self.best), [draw.seed for draw in fresh[0]]
        if self.rehearsal.wanted is not None:
            return expected_of_targets(self.rehearsal, plan, self.best.settings, seeds), worthwhile
        return expected_in_groups(errors, public, len(plan.groupings[-1])), worthwhile

    # ---------------------------------------------------------------- trials

    def _attempt(self, words: str, choice: Choice, *, hurried: bool = True) -> Trial | None:
        """A trial; if `hurried`, None when the time is up before its end."""
        done = self.draws.done
        self.tried.add(choice)
        errors: list[Floats] = []
        for draws in self._draws(choice):
            drawn: list[Floats] = []
            for draw in draws:
                if hurried and self.effort.time_up():
                    return None
                drawn.append(self.draws.errors(draw))
            errors.append(np.concatenate(drawn))
            known = self.errors[: len(errors)]
            mean, standard_error = _difference(errors, known)
            if mean > CLEARLY * standard_error:
                break
        kept = len(errors) == len(self.stand_ins) and mean < -standard_error
        # early steps towards targets are larger than shared noise can explain
        beyond_luck = self.rehearsal.wanted is not None and mean < -LARGE * mean_of(known)
        if kept and self._must_pay_twice(choice) and not beyond_luck:  # with other noise too
            again, its_error = _difference(*self._errors([choice, self.best], self.seed + len(self.repeats)))
            kept = again < -its_error
        if kept:
            self.best, self.errors, self.runner_up = choice, errors, None
            self.smoothed = choice if choice.settings.smooth else self.smoothed
        elif len(errors) == len(self.stand_ins) and (self.runner_up is None or mean < self.runner_up[0]):
            self.runner_up = mean, choice, errors
        trial = Trial(words, mean_of(errors), mean_of(known), standard_error, kept, self.draws.done - done)
        self._note(trial)
        return trial

    def _note(self, trial: Trial) -> None:
        self.trials.append(trial)
        self.most = max(self.most, trial.effort)

    def _must_pay_twice(self, choice: Choice) -> bool:
        """Whether groups share noise that decides about a choice, which standard errors do not show."""
        return choice.above != self.best.above or self.rehearsal.targets_above

    def _errors(self, choices: Sequence[Choice], seed: int, repeats: range | None = None) -> list[list[Floats]]:
        """The errors of several choices with all stand-ins, which are all needed: [choices][stand-ins]."""
        draws = [self._draws(each, seed, repeats) for each in choices]
        self.draws.make(draw for of_choice in draws for of_stand_in in of_choice for draw in of_stand_in)
        return [
            [np.concatenate([self.draws.errors(draw) for draw in of_stand_in]) for of_stand_in in of_choice]
            for of_choice in draws
        ]

    def _draws(
        self, choice: Choice, seed: int | None = None, repeats: range | None = None, *, fresh: bool = False
    ) -> list[list[Draw]]:
        """The draws of a choice with each stand-in, by default those of its trial."""
        first = self.fresh if fresh else self.seed if seed is None else seed
        return [[Draw(choice, k, first + repeat, fresh) for repeat in repeats or self.repeats] for k in self.stand_ins]

    # ---------------------------------------------------------------- effort

    def _affordable(self, needed: float, choice: Choice, times: int = 1) -> bool:
        """Whether this much may be done, and after it the comparison with the rival and the last rehearsal.

        The last rehearsal is that of the best choice, or of this one, with `times` as many draws as now.
        """
        last = times * max(self._last(self.best), self._last(choice))
        if self.rival is not None:
            last += max(map(self.work_compared, (self.best, choice))) + self.work_compared(self.rival.best)
        return self.effort.enough(self.draws.done, needed + last + self.reserved)

    def work_compared(self, choice: Choice) -> float:
        """The work of comparing a choice with another."""
        return self._work(self._draws(choice, self.unseen, self.compared))

    def _work_of_trial(self, choice: Choice) -> float:
        draws = self._draws(choice)
        if self._must_pay_twice(choice):
            draws += [each for one in (choice, self.best) for each in self._draws(one, self.seed + len(self.repeats))]
        return self._work(draws)

    def _last(self, choice: Choice) -> float:
        return self._work(self._draws(choice, fresh=True))

    def _work(self, draws: list[list[Draw]]) -> float:
        return self.draws.work(chain.from_iterable(draws))


def _difference(errors: Sequence[Floats], others: Sequence[Floats]) -> tuple[float, float]:
    away = np.concatenate(errors) - np.concatenate(others)
    return float(away.mean()), float(away.std(ddof=1) / math.sqrt(len(away)))
