"""A coordinate search for a choice: one thing after another is changed, and the whole run is rehearsed.

A change is kept when the mean error falls by more than its standard error,

    mean(d) < -sd(d) / sqrt(number of groups),      d: difference of a group's error, with and without the change

Both sides have the same groups and the same noise up to its scale, so that d shows more than the errors themselves.
What concerns levels above the last must pay a second time, with other noise: groups share that noise, and so its luck.
Candidates come from simple to elaborate, so that ties stay simple. Where effort is left, the search goes on from the
best choice with more draws of noise, which tell smaller differences from luck. What it decides depends on errors and on
counted work (`prade.tuning.effort`): neither a busy machine nor workers that run ahead (`prade.tuning.trials`) change
it, unless it takes so long that its seconds are up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from prade.core.arrays import Floats
from prade.planning.plan import Plan
from prade.planning.settings import Expected
from prade.tuning.ahead import Ladders, Outlook, likely_draws
from prade.tuning.candidates import Candidates
from prade.tuning.choice import Change, Choice
from prade.tuning.effort import Effort
from prade.tuning.expectation import clearly_gain, expected_in_another
from prade.tuning.expected_targets import expected_of_targets
from prade.tuning.rehearse import Rehearsal, mean_of
from prade.tuning.trials import Draw, Trials

FEWEST_ERRORS = 8  # that a mean is taken of: with fewer groups, noise is drawn several times
MOST_DRAWS = 8  # of noise: beyond that, chance is in the groups rather than in the noise
FEWEST_MORE = 5  # trials that more draws must leave effort for
CLEARLY = 2.0  # standard errors: a candidate that is worse by more with one stand-in is not tried with the others
LARGE = 0.1  # of the error: with targets, what gains more does so with any noise
FRESH = 500  # distance from the seeds of the trials to the seed of the expected error: no search has as many repeats
COMPARED = 2  # draws of noise that decide between what two searches found
APART = 3 * MOST_DRAWS  # distance between the seeds of one search and those of another


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

    `trials` make the rehearsals. `candidates` tell workers what they may try while the first choice is rehearsed.
    `reserved` is left of the effort for others, and in the end the choice is compared with that of the `rival`.
    """

    def __init__(
        self,
        rehearsal: Rehearsal,
        plan_of: Callable[[Choice], Plan],
        trials: Trials,
        effort: Effort,
        first: Change,
        *,
        seed: int = 0,
        noise: int = 0,
        candidates: Candidates | None = None,
        reserved: float = 0.0,
        rival: Search | None = None,
    ) -> None:
        self.reserved, self.rival = reserved, rival
        self.rehearsal = rehearsal
        self.plan_of = plan_of
        self.draws = trials
        self.fresh = 2 * FRESH * seed + FRESH
        self.seed = 2 * FRESH * seed + noise * APART % FRESH
        self.effort = effort
        scored = sum(min(rehearsal.scored, len(stand_in.groups)) for stand_in in rehearsal.stand_ins)
        self.repeats = range(math.ceil(FEWEST_ERRORS / scored))
        self.compared = range(max(COMPARED, len(self.repeats)))
        self.stand_ins = range(len(rehearsal.stand_ins))
        words, start = first
        self.best = self.smoothed = start
        self.tried = {start}
        self.most = 0.0  # work of a trial so far
        self._ladders: dict[Choice, Ladders] = {}
        self._seen_from: Choice | None = None
        self.trials: list[Trial] = []
        self.errors: list[Floats] = []
        if candidates is not None:
            self._look_ahead(candidates, 0)
        self._begin(words)

    def _begin(self, words: str) -> None:
        """Rehearse the best choice with all draws of noise: what others are compared with."""
        done = self.draws.done
        self.errors = self._errors([self.best], self.seed)[0]
        mean = mean_of(self.errors)
        self._note(Trial(words, mean, mean, 0.0, True, self.draws.done - done))

    def try_also(self, words: str, choice: Choice) -> None:
        """Try another choice to start from, whatever effort is left."""
        if choice not in self.tried:
            self._attempt(words, choice, hurried=False)

    def effort_for_another(self) -> bool:
        """Whether there is effort left for a search of a few trials more, and for comparing the two."""
        return self._affordable(FEWEST_MORE * self.most + 2 * self.work_compared(self.best), self.best)

    def or_better(self, other: Search) -> Search:
        """This search, or another one if what that found is better beyond chance, with noise that neither has seen."""
        errors = self._errors([other.best, self.best], self._seed_compared, self.compared)
        mean, standard_error = _difference(*errors)
        return other if mean < -standard_error else self

    def climb(self, candidates: Candidates) -> bool:
        """Try every candidate, again as long as something changes; False if effort or time did not suffice for all."""
        improved = all_tried = True
        while improved:
            improved = False
            for number, ladder in enumerate(candidates.ladders(lambda: self.best)):
                for words, choice in ladder:
                    if choice in self.tried:
                        continue
                    if not self._affordable(self._work_of_trial(choice), choice):
                        all_tried = False
                        if self.effort.time_was_up:
                            return False
                        continue  # others may take less
                    self._look_ahead(candidates, number)
                    trial = self._attempt(words, choice)
                    if trial is None:
                        return False
                    improved |= trial.kept
                    if trial.error - trial.best > trial.standard_error:
                        break  # what is worse already does not become better further up
        return all_tried

    def climb_with_more_draws(self, candidates: Candidates) -> None:
        """Climb on with twice the draws of noise, and twice as many again, while that changes the choice."""
        changed = True
        while changed and (draws := 2 * len(self.repeats)) <= MOST_DRAWS:
            if not self._affordable(2 * FEWEST_MORE * self._last(self.best), self.best, times=2):
                return
            before = self.best
            self.repeats, self.tried, self.errors = range(draws), {before}, []
            self._look_ahead(candidates, 0)
            self._begin(f"{draws} draws of noise")
            changed = self.climb(candidates) and self.best != before

    def expected(self) -> tuple[Expected, bool]:
        """The error of the best choice with fresh noise and groups, beside that of the public baseline.

        And whether it is smaller than that, beyond chance.
        """
        fresh = [self._fresh(stand_in) for stand_in in self.stand_ins]
        self.draws.expect(iter(()), anew=True)
        self.draws.need(draw for draws in fresh for draw in draws)
        public = [self.rehearsal.public_errors(stand_in, fresh=True)[None] for stand_in in self.stand_ins]
        errors = [np.stack([self.draws.errors(draw) for draw in draws]) for draws in fresh]
        groups = len(self.plan_of(self.best).groupings[-1])
        error, error_spread = expected_in_another(errors, groups)
        gains = [before - after for before, after in zip(public, errors, strict=True)]
        _, spread = expected_in_another(gains, groups)
        prior = float(np.mean([each.mean() for each in public]))
        expected = Expected(round(error, 6), round(spread, 6), round(prior, 6), error_spread=round(error_spread, 6))
        if self.rehearsal.wanted is not None:
            seeds = [draw.seed for draw in fresh[0]]
            expected = expected_of_targets(self.rehearsal, self.plan_of(self.best), self.best.settings, seeds)
        return expected, clearly_gain(gains)

    # ---------------------------------------------------------------- trials

    def _attempt(self, words: str, choice: Choice, *, hurried: bool = True) -> Trial | None:
        """A trial; if `hurried`, None when the time is up before its end."""
        done = self.draws.done
        self.tried.add(choice)
        errors: list[Floats] = []
        for stand_in in self.stand_ins:
            drawn: list[Floats] = []
            for draw in self._draws(choice, stand_in):
                if hurried and self.effort.time_up():
                    return None
                drawn.append(self.draws.errors(draw))
            errors.append(np.concatenate(drawn))
            known = self.errors[: len(errors)]
            mean, standard_error = _difference(errors, known)
            if mean > CLEARLY * standard_error:
                break
        kept = len(errors) == len(self.stand_ins) and mean < -standard_error
        if kept and self._must_pay_twice(choice) and not self._beyond_luck(mean, known):
            kept = self._better_again(choice)
        if kept:
            self.best, self.errors = choice, errors
            self.smoothed = choice if choice.settings.smooth else self.smoothed
        trial = Trial(words, mean_of(errors), mean_of(known), standard_error, kept, self.draws.done - done)
        self._note(trial)
        return trial

    def _note(self, trial: Trial) -> None:
        self.trials.append(trial)
        self.most = max(self.most, trial.effort)

    def _must_pay_twice(self, choice: Choice) -> bool:
        """Whether groups share noise that decides about a choice, which standard errors do not show."""
        shared = (choice.above, choice.everybody) != (self.best.above, self.best.everybody)
        return shared or self.rehearsal.targets_above

    def _beyond_luck(self, mean: float, known: Sequence[Floats]) -> bool:
        """Whether a difference is larger than shared noise can explain: early steps towards targets are that large."""
        return self.rehearsal.wanted is not None and mean < -LARGE * mean_of(known)

    def _better_again(self, choice: Choice) -> bool:
        """Whether it pays with other noise too."""
        mean, standard_error = _difference(*self._errors([choice, self.best], self._other_seed))
        return mean < -standard_error

    @property
    def _other_seed(self) -> int:
        """The first seed of noise that the trials have not seen."""
        return self.seed + len(self.repeats)

    @property
    def _seed_compared(self) -> int:
        """The first seed of noise that no trial sees."""
        return self.seed + 2 * MOST_DRAWS

    def _errors(self, choices: Sequence[Choice], seed: int, repeats: range | None = None) -> list[list[Floats]]:
        """The errors of several choices with all stand-ins, which are all needed: [choices][stand-ins]."""
        draws = [[list(self._draws(each, stand_in, seed, repeats)) for stand_in in self.stand_ins] for each in choices]
        self.draws.need(draw for of_choice in draws for of_stand_in in of_choice for draw in of_stand_in)
        return [
            [np.concatenate([self.draws.errors(draw) for draw in of_stand_in]) for of_stand_in in of_choice]
            for of_choice in draws
        ]

    def _draws(
        self, choice: Choice, stand_in: int, seed: int | None = None, repeats: range | None = None
    ) -> Iterator[Draw]:
        first = self.seed if seed is None else seed
        return (Draw(choice, stand_in, first + repeat) for repeat in repeats or self.repeats)

    def _fresh(self, stand_in: int, choice: Choice | None = None) -> list[Draw]:
        """Draws of a choice, by default the best one, that the search has not seen."""
        chosen = choice or self.best
        return [Draw(chosen, stand_in, self.fresh + repeat, fresh=True) for repeat in self.repeats]

    def _every(self, choice: Choice, seed: int | None = None) -> Iterator[Draw]:
        """The draws of a choice with all stand-ins."""
        return (draw for stand_in in self.stand_ins for draw in self._draws(choice, stand_in, seed))

    # ---------------------------------------------------------------- effort

    def _affordable(self, needed: float, choice: Choice, times: int = 1) -> bool:
        """Whether this much may be done, and the last rehearsal after it: of the best choice, or of this one.

        The last one has `times` as many draws as now. Before it, the choice is compared with the rival's, if there is
        one.
        """
        last = times * max(self._last(self.best), self._last(choice))
        if self.rival is not None:
            last += max(map(self.work_compared, (self.best, choice))) + self.work_compared(self.rival.best)
        return self.effort.enough(self.draws.done, needed + last + self.reserved)

    def work_compared(self, choice: Choice) -> float:
        """The work of comparing a choice with another."""
        compared = (self._draws(choice, each, self._seed_compared, self.compared) for each in self.stand_ins)
        return self.draws.work(draw for draws in compared for draw in draws)

    def _work_of_trial(self, choice: Choice) -> float:
        """The most work that trying a choice may be."""
        draws = [*self._every(choice)]
        if self._must_pay_twice(choice):
            draws += [*self._every(choice, self._other_seed), *self._every(self.best, self._other_seed)]
        return self.draws.work(draws)

    def _last(self, choice: Choice) -> float:
        """The work of a choice's rehearsal with fresh noise."""
        return self.draws.work(draw for stand_in in self.stand_ins for draw in self._fresh(stand_in, choice))

    # ---------------------------------------------------------------- what workers do meanwhile

    def _look_ahead(self, candidates: Candidates, ladder: int) -> None:
        """Say what will probably be needed from this ladder on."""
        seen = Seen(self, candidates, self.best, self.errors, self.repeats)
        likely = self._likely(seen, ladder, frozenset(self.tried))
        self.draws.expect(likely, anew=self._seen_from != self.best)
        self._seen_from = self.best

    def ladders_of(self, candidates: Candidates, best: Choice) -> Ladders:
        """What may be changed in a choice, worked out once."""
        return self._ladders.setdefault(best, Ladders(candidates, best))

    def _likely(self, seen: Seen, ladder: int, tried: frozenset[Choice]) -> Iterator[Draw]:
        """What this climb probably asks for, then the expected error, then a climb with more draws of noise."""
        yield from likely_draws(seen, seen.ladders, ladder, tried)
        for stand_in in self.stand_ins:
            yield from self._fresh(stand_in)
        if (draws := 2 * len(self.repeats)) <= MOST_DRAWS:
            more = replace(seen, errors=[], repeats=range(draws))
            for stand_in in self.stand_ins:
                yield from more.draws(seen.best, stand_in)
            yield from likely_draws(more, seen.ladders, 0, {seen.best})


@dataclass(frozen=True, eq=False)
class Seen:
    """A search as it would go on from a best choice with these errors; without any where they are not known yet."""

    search: Search
    candidates: Candidates
    best: Choice
    errors: list[Floats]
    repeats: range

    @property
    def stand_ins(self) -> int:
        """How many there are."""
        return len(self.search.stand_ins)

    @property
    def ladders(self) -> Ladders:
        """What may be changed in the best choice."""
        return self.search.ladders_of(self.candidates, self.best)

    def draws(self, choice: Choice, stand_in: int) -> Iterator[Draw]:
        """The draws of a candidate with one stand-in."""
        return (Draw(choice, stand_in, self.search.seed + repeat) for repeat in self.repeats)

    def outlook(self, choice: Choice) -> Outlook:
        """What the draws that are there tell about a candidate, as the search will see it."""
        errors: list[Floats] = []
        for stand_in in range(self.stand_ins):
            draws = list(self.draws(choice, stand_in))
            if not self.errors or not all(map(self.search.draws.knows, draws)):
                return Outlook(stand_in)
            errors.append(np.concatenate([self.search.draws.seen(draw) for draw in draws]))
            mean, standard_error = _difference(errors, self.errors[: len(errors)])
            if mean > CLEARLY * standard_error:
                return Outlook(None)
        goes_on = mean_of(errors) - mean_of(self.errors) <= standard_error
        return Outlook(None, kept=mean < -standard_error, goes_on=goes_on)

    def after(self, choice: Choice) -> tuple[Seen, Ladders]:
        """The search once this candidate, whose draws are all there, is the best choice."""
        errors = [
            np.concatenate([self.search.draws.seen(draw) for draw in self.draws(choice, stand_in)])
            for stand_in in range(self.stand_ins)
        ]
        seen = replace(self, best=choice, errors=errors)
        return seen, seen.ladders


def _difference(errors: Sequence[Floats], others: Sequence[Floats]) -> tuple[float, float]:
    """Mean difference of groups' errors, and its standard error."""
    away = np.concatenate(errors) - np.concatenate(others)
    return float(away.mean()), float(away.std(ddof=1) / math.sqrt(len(away)))
