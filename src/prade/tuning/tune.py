"""Workloads, budget split and settings chosen by rehearsal on public data, before any budget is spent.

A coordinate search: one choice after another is changed, the whole run is rehearsed (`prade.tuning.rehearse`), and a
change is kept when the mean error falls by more than its standard error,

    mean(d) < -sd(d) / sqrt(number of groups),      d: difference of a group's error, with and without the change

Both sides have the same groups and the same noise up to its scale, so that d shows more than the errors themselves.
What concerns levels above the last must pay a second time, with other noise: groups share that noise, and so its luck.
Candidates come from simple to elaborate, so that ties stay simple. Where there is time left, the search goes on from
the best choice with more draws of noise, which tell smaller differences from luck. The chosen plan is rehearsed once
more with fresh noise, in groups that had no part in the search where there are enough: the best of many trials was
partly lucky, and the expected error must not be. Nothing here can see private rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.progress import Progress
from prade.data.public import Public, group_columns
from prade.planning.expected import Expected
from prade.planning.invariants import obeying
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.candidates import Candidates, Change, Choice
from prade.tuning.clock import Clock
from prade.tuning.expectation import clearly_gain, expected_in_another
from prade.tuning.rehearse import Rehearsal, mean_of
from prade.tuning.stand_ins import WORDS

if TYPE_CHECKING:
    import pyarrow as pa


FEWEST_ERRORS = 8  # that a mean is taken of: with fewer groups, noise is drawn several times
MOST_DRAWS = 8  # of noise: beyond that, chance is in the groups rather than in the noise
FEWEST_MORE = 5  # trials that more draws must leave time for
CLEARLY = 2.0  # standard errors: a candidate that is worse by more with one stand-in is not tried with the others
# Where the groups that choose a plan are also those that say its error, or where there is only one table of them.
SAME_GROUPS = "There are few public groups, so those that chose the plan also gave the error: it may be larger."
ONE_TABLE = "Only one public table stood in for the private one: how far other tables differ is not part of ±."
FRESH = 500  # distance from the seeds of the trials to the seed of the expected error: no search has as many repeats
OWN_ALONE = 0.98  # weight of a group's own public rows where nothing but its number of rows is asked
APART = 2 * MOST_DRAWS  # distance between the seeds of one search and those of another
ANOTHER_BUDGET = "what was best at another budget"
NOTABLE_RISK = 0.01  # of a number of rows that is far off: below it, the advice does not mention it


@dataclass(frozen=True)
class Trial:
    """One rehearsal: what was changed, its error, and that of the best choice so far with the same stand-ins.

    `standard_error` is that of the difference between the two.
    """

    what: str
    error: float
    best: float
    standard_error: float
    kept: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome: a plan with its settings and expected error, advice in plain words, and all that was tried."""

    plan: Plan
    trials: tuple[Trial, ...]
    worthwhile: bool  # whether private data are expected to improve on the public table, beyond chance
    finished: bool  # False: the time was up before all candidates had their turn
    found: Choice  # the best choice, whether or not it is worthwhile
    smoothed: Choice  # the best one whose answers are smoothed

    @property
    def settings(self) -> Settings:
        """How to estimate."""
        assert self.plan.settings is not None
        return self.plan.settings

    @property
    def expected(self) -> Expected:
        """The error to expect, and that of the public baseline."""
        assert self.plan.expected is not None
        return self.plan.expected

    @property
    def advice(self) -> str:
        """What to do, in plain words."""
        return self.expected.advice

    @property
    def public_error(self) -> float:
        """The error of the public baseline."""
        return self.expected.prior

    def table(self) -> pa.Table:
        """The trials, one per row."""
        import pyarrow as pa

        return pa.Table.from_pylist([asdict(trial) for trial in self.trials])


def tune(
    task: Task,
    public: Any,
    *,
    seconds: float = 120,
    bias: int | None = CONTEST_BIAS,
    seed: int = 0,
    weight: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """A plan for a task, chosen by rehearsal on the `public` table (a table, a file or a `Public`).

    `weight` is a column of public weights. A group whose number of rows is off by `bias` or more counts as lost, as in
    the contest; with None only marginals count. It takes about `seconds`, and at least two rehearsals; the
    result is the same for the same seed, unless the time is up first. `progress(what, done, all)` reports the seconds.

    >>> from prade import Unit
    >>> from prade.data.invented import census_like
    >>> data = census_like(persons=2_000, places_per_state=4, seed=1)
    >>> groups = data.groups.select(["PLACE"]).group_by(["PLACE"]).aggregate([])
    >>> tuned = tune(Task("people", data.schema, "1/1000", Unit(4), ["PLACE"], groups), data.public, seconds=0)
    >>> tuned.advice.split(":")[0], tuned.finished, len(tuned.trials)
    ('Do not touch the private data at this budget', False, 1)
    """
    clock = Clock.of(seconds, progress)
    return Tuner(task, public, bias=bias, seed=seed, weight=weight, threads=threads).tune(task.budget, clock)


class Tuner:
    """What the searches for plans of one task share, whatever the budget: stand-ins, and what they tell of candidates.

    The arguments are those of `tune`.
    """

    def __init__(
        self,
        task: Task,
        public: Any,
        *,
        bias: int | None = CONTEST_BIAS,
        seed: int = 0,
        weight: str | None = None,
        threads: int | None = None,
    ) -> None:
        if not isinstance(public, Public):
            public = Public.of(task.schema, public, group_columns(task.groups, task.schema), weight=weight)
        self.task, self.seed = task, seed
        self.public: Public = obeying(public, task.invariants)
        self.rehearsal = Rehearsal.of(self.public, task.groups, task.levels, bias=bias, seed=seed, threads=threads)
        self.candidates = Candidates(self.rehearsal, self.public, task.levels, self._plans(task.budget))

    def tune(self, budget: Budget, clock: Clock, start: Choice | None = None, noise: int = 0) -> Tuned:
        """The plan for a budget.

        With `start`, the search starts from that choice, with a share for the totals that tells them well enough, and
        tries the simplest choice next, whatever time is left: a bad start must not decide the plan. If there is time,
        a second search starts from the simplest choice, and the better one of the two is taken. `noise` numbers the
        noise of the trials: a start that was lucky with one must not be lucky again.
        """
        plan_of, rehearsal = self._plans(budget), self.rehearsal
        candidates = self.candidates.for_plans(plan_of)
        simplest = candidates.simplest()
        words = "all one-way tables" if simplest.total < 1 else "numbers of rows alone"
        first = (words, simplest) if start is None else _taken_over(start, simplest)
        search = _Search(rehearsal, plan_of, self.seed, clock, first, noise)
        search.try_also(words, simplest)
        finished = search.climb(candidates)
        if finished and start is not None and search.time_for_another():
            other = _Search(rehearsal, plan_of, self.seed, clock, (words, simplest), noise)
            finished = other.climb(candidates)
            search = other.or_better(search)
        if finished:
            search.climb_with_more_draws(candidates)
        found = search.best
        expected, worthwhile = search.expected()
        if not worthwhile and rehearsal.kind != "no groups":  # the prior is as good: do not spoil it by noise
            nothing, settings = ((Fraction(0), ()),) * (len(self.task.levels) - 1), Settings(own=OWN_ALONE)
            search.best = replace(found, total=Fraction(1), above=nothing, everybody=False, settings=settings)
            expected, _ = search.expected()
        plan = plan_of(search.best)
        advice = _advice(rehearsal, plan, expected, worthwhile, finished)
        clock.end()
        plan = plan.with_expected(replace(expected, advice=advice))
        return Tuned(plan, tuple(search.trials), worthwhile, finished, found, search.smoothed)

    def _plans(self, budget: Budget) -> Callable[[Choice], Plan]:
        """How a choice becomes a plan with this budget."""
        task = self.task if budget == self.task.budget else replace(self.task, budget=budget)
        return lambda choice: Plan.of(task, choice.levels(task.schema, task.levels), settings=choice.settings)


class _Search:
    """The best choice so far with its errors, and how it came about."""

    def __init__(
        self,
        rehearsal: Rehearsal,
        plan_of: Callable[[Choice], Plan],
        seed: int,
        clock: Clock,
        first: Change,
        noise: int = 0,
    ) -> None:
        self.rehearsal = rehearsal
        self.plan_of = plan_of
        self.fresh = 2 * FRESH * seed + FRESH
        self.seed = 2 * FRESH * seed + noise * APART % FRESH
        self.clock = clock
        scored = sum(min(rehearsal.scored, len(stand_in.groups)) for stand_in in rehearsal.stand_ins)
        self.repeats = range(math.ceil(FEWEST_ERRORS / scored))
        self.stand_ins = range(len(rehearsal.stand_ins))
        words, start = first
        self.best = self.smoothed = start
        self.tried = {start}
        began = time.monotonic()
        self.errors = [self._errors(start, stand_in, self.seed) for stand_in in self.stand_ins]
        mean = mean_of(self.errors)
        self.trials = [Trial(words, mean, mean, 0.0, True, time.monotonic() - began)]

    def try_also(self, words: str, choice: Choice) -> None:
        """Try another choice to start from, even if the time is up."""
        if choice not in self.tried:
            self._attempt(words, choice, hurried=False)

    def time_for_another(self) -> bool:
        """Whether there is time for a search of a few trials more."""
        return self.clock.enough((FEWEST_MORE + 1) * max(trial.seconds for trial in self.trials))

    def or_better(self, earlier: _Search) -> _Search:
        """This search, or an earlier one if what that found is better with noise that neither has seen."""
        better = earlier if self._better_again(earlier.best) else self
        better.trials = [*earlier.trials, *self.trials]
        return better

    def climb(self, candidates: Candidates) -> bool:
        """Try every candidate, again as long as something changes; False when the time is up first."""
        improved = True
        while improved:
            improved = False
            for ladder in candidates.ladders(lambda: self.best):
                for words, choice in ladder:
                    if choice in self.tried:
                        continue
                    if not self.clock.enough(self._one_more()):
                        return False
                    trial = self._attempt(words, choice)
                    if trial is None:
                        return False
                    improved |= trial.kept
                    if trial.error - trial.best > trial.standard_error:
                        break  # what is worse already does not become better further up
        return True

    def climb_with_more_draws(self, candidates: Candidates) -> None:
        """Climb on with twice the draws of noise, and twice as many again, while that changes the choice in time."""
        changed = True
        while changed and (draws := 2 * len(self.repeats)) <= MOST_DRAWS:
            if not self.clock.enough(2 * (FEWEST_MORE + 1) * self._of_the_best()):
                return
            before, began = self.best, time.monotonic()
            self.repeats, self.tried = range(draws), {before}
            self.errors = [self._errors(before, stand_in, self.seed) for stand_in in self.stand_ins]
            mean = mean_of(self.errors)
            self.trials.append(Trial(f"{draws} draws of noise", mean, mean, 0.0, True, time.monotonic() - began))
            changed = self.climb(candidates) and self.best != before

    def expected(self) -> tuple[Expected, bool]:
        """The error of the best choice with fresh noise and groups, beside that of the public baseline.

        And whether it is smaller than that, beyond chance.
        """
        errors = [self._fresh_errors(stand_in) for stand_in in self.stand_ins]
        public = [self.rehearsal.public_errors(stand_in, fresh=True)[None] for stand_in in self.stand_ins]
        groups = len(self.plan_of(self.best).groupings[-1])
        error, error_spread = expected_in_another(errors, groups)
        gains = [before - after for before, after in zip(public, errors, strict=True)]
        _, spread = expected_in_another(gains, groups)
        prior = float(np.mean([each.mean() for each in public]))
        expected = Expected(round(error, 6), round(spread, 6), round(prior, 6), error_spread=round(error_spread, 6))
        return expected, clearly_gain(gains)

    def _fresh_errors(self, stand_in: int) -> Floats:
        """Errors that the search has not seen: [draws of noise, groups]."""
        plan, seeds = self.plan_of(self.best), [self.fresh + repeat for repeat in self.repeats]
        settings = self.best.settings
        return np.stack(
            [self.rehearsal.errors(plan, settings, seed=seed, stand_in=stand_in, fresh=True) for seed in seeds]
        )

    def _one_more(self) -> float:
        """Seconds for another trial, and for the last one: the best again, with fresh noise."""
        return max(trial.seconds for trial in self.trials) + self._of_the_best()

    def _of_the_best(self) -> float:
        """Seconds of the trial of the best choice."""
        return next(trial.seconds for trial in reversed(self.trials) if trial.kept)

    def _attempt(self, words: str, choice: Choice, *, hurried: bool = True) -> Trial | None:
        """A trial; if `hurried`, None when it is too slow to finish it and rehearse it once more in time."""
        began = time.monotonic()
        self.tried.add(choice)
        errors: list[Floats] = []
        draws = len(self.stand_ins) * len(self.repeats)
        for stand_in in self.stand_ins:
            drawn: list[Floats] = []
            for repeat in self.repeats:
                done = stand_in * len(self.repeats) + repeat
                if hurried and done and not self.clock.enough((time.monotonic() - began) / done * (2 * draws - done)):
                    return None
                drawn.append(self._draw(choice, stand_in, self.seed + repeat))
            errors.append(np.concatenate(drawn))
            known = self.errors[: len(errors)]
            mean, standard_error = _difference(errors, known)
            if mean > CLEARLY * standard_error:
                break
        kept = len(errors) == len(self.stand_ins) and mean < -standard_error
        if kept and (choice.above, choice.everybody) != (self.best.above, self.best.everybody):
            kept = self._better_again(choice)
        took = time.monotonic() - began
        self.trials.append(Trial(words, mean_of(errors), mean_of(known), standard_error, kept, took))
        if kept:
            self.best, self.errors = choice, errors
            self.smoothed = choice if choice.settings.smooth else self.smoothed
        return self.trials[-1]

    def _better_again(self, choice: Choice) -> bool:
        """Whether it pays with other noise too: groups share a level's noise, and standard errors do not show that."""
        again = self.seed + len(self.repeats)
        both = [[self._errors(each, stand_in, again) for stand_in in self.stand_ins] for each in (choice, self.best)]
        mean, standard_error = _difference(*both)
        return mean < -standard_error

    def _errors(self, choice: Choice, stand_in: int, seed: int) -> Floats:
        return np.concatenate([self._draw(choice, stand_in, seed + repeat) for repeat in self.repeats])

    def _draw(self, choice: Choice, stand_in: int, seed: int) -> Floats:
        return self.rehearsal.errors(self.plan_of(choice), choice.settings, seed=seed, stand_in=stand_in)


def _taken_over(start: Choice, simplest: Choice) -> Change:
    """A choice that was best at another budget, with a share for the totals that is large enough at this one."""
    return ANOTHER_BUDGET, replace(start, total=max(start.total, simplest.total))


def _difference(errors: Sequence[Floats], others: Sequence[Floats]) -> tuple[float, float]:
    """Mean difference of groups' errors, and its standard error."""
    away = np.concatenate(errors) - np.concatenate(others)
    return float(away.mean()), float(away.std(ddof=1) / math.sqrt(len(away)))


def _advice(rehearsal: Rehearsal, plan: Plan, expected: Expected, worthwhile: bool, finished: bool) -> str:
    """What to do, in plain words."""
    if worthwhile:
        said = [f"Measure: {expected}."]
    elif rehearsal.kind == "no groups":
        said = [f"The rehearsal showed no gain ({expected}), but it could not show how the private table differs."]
    else:
        said = [
            f"Do not touch the private data at this budget: {expected}. The public table alone will be at least as "
            "good: give a larger budget, or use fewer and larger groups, or publish the public table."
        ]
    said.append(WORDS[rehearsal.kind])
    if not rehearsal.apart:
        said.append(SAME_GROUPS)
    if len(rehearsal.stand_ins) == 1:
        said.append(ONE_TABLE)
    risk = float(np.mean([rehearsal.risk(plan, stand_in) for stand_in in range(len(rehearsal.stand_ins))]))
    if risk > NOTABLE_RISK:
        said.append(
            f"About {risk:.0%} of the groups will have a number of rows that is off by {rehearsal.bias} or more."
        )
    if not finished:
        said.append("The time was up before every candidate was tried: more seconds may find a better plan.")
    return " ".join(said)
