"""Workloads, budget split and settings chosen by rehearsal on public data, before any budget is spent.

A coordinate search (`prade.tuning.search`) finds a choice. Under (eps, delta) there is one with Laplace noise, the same
as under pure eps, and then one with Gaussian noise, whose choice is taken if it is better beyond chance. The chosen
plan is rehearsed once more with fresh noise, where possible in groups that had no part in the search: the best of many
trials was partly lucky, and the expected error must not be. Nothing here can see private rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import Any

from prade.core.arrays import Floats
from prade.core.execution import EFFORT, Execution, single_threaded_blas
from prade.data.public.public import Public, group_columns
from prade.planning.invariants import obeying
from prade.planning.plan import Plan
from prade.planning.settings import Expected, Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.noise_law import NoiseLaw
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.candidates import Candidates, Change, Choice, laws_within, with_least_noise
from prade.tuning.effort import Effort, work_of
from prade.tuning.rehearse import Rehearsal, mean_of
from prade.tuning.search import MOST_DRAWS, Draw, Draws, Search, Trial
from prade.tuning.stand_ins import WORDS

# Where the groups that choose a plan are also those that say its error, or where there is only one table of them.
SAME_GROUPS = "There are few public groups, so those that chose the plan also gave the error: it may be larger."
ONE_TABLE = "Only one public table stood in for the private one: how far other tables differ is not part of ±."
OWN_ALONE = 0.98  # weight of a group's own public rows where nothing but its number of rows is asked
ANOTHER_BUDGET = "what was best at another budget"
NOTABLE_RISK = 0.01  # of a number of rows that is far off: below it, the advice does not mention it
FEW_PREDICTED = 3  # predicted plans that are rehearsed: the best is mostly among them
MOST_PLANS = 64  # that are kept: a choice becomes the same plan for each of its draws
MOST_STAGES = 2  # that a worker keeps: that of this run, and that of the one before


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome: a plan with its settings, expected error and advice, and all that was tried."""

    plan: Plan
    trials: tuple[Trial, ...]
    worthwhile: bool  # whether private data are expected to improve on the public table, beyond chance
    finished: bool  # False: effort or time did not suffice for all candidates
    best: Choice  # whether or not it is worthwhile
    smoothed: Choice  # the best one whose answers are smoothed
    effort: float = 0.0  # the work of the search
    time_was_up: bool = False  # whether seconds ended it: another machine may find another plan

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


def tune(
    task: Task, public: Any, *, effort: float = EFFORT, seconds: float | None = None, execution: Execution = Execution()
) -> Tuned:
    """A plan for a task, chosen by rehearsal on the `public` table (a table, a file or a `Public`).

    The search does as much work as `effort` says, and at least two rehearsals: 1 is about what two idle cores do in a
    second. Under (eps, delta) there are two searches, for two laws of the noise, each with this effort. Work is
    counted, so the result is the same for the same seed on a busy machine and with any number of workers, unless
    `seconds` pass first (by default 600, or 5 for each 1 of effort). Rehearsals run in threads of this process, or on
    the workers of an executor: W of them end sooner, or do W times the effort in the same time.

    >>> from prade import Unit
    >>> from prade.examples import census_like
    >>> data = census_like(persons=2_000, places_per_state=4, seed=1)
    >>> groups = data.groups.select(["PLACE"]).group_by(["PLACE"]).aggregate([])
    >>> tuned = tune(Task("people", data.schema, "1/1000", Unit(4), ["PLACE"], groups), data.public, effort=0)
    >>> tuned.plan.advice.split(":")[0], tuned.finished, len(tuned.trials)
    ('Do not touch the private data at this budget', False, 1)
    """
    allowed = Effort.of(effort, seconds, execution.progress, searches=len(laws_within(task.budget)))
    return Tuner(task, public, execution=execution).tune(task.budget, allowed)


@dataclass(frozen=True, eq=False)
class Stage:
    """The stand-ins of a rehearsal, and the task whose plans are rehearsed: what a worker needs."""

    rehearsal: Rehearsal
    task: Task

    @cached_property
    def plan(self) -> Callable[[Choice], Plan]:
        """How a choice becomes a plan."""
        return lru_cache(maxsize=MOST_PLANS)(partial(_planned, self.task))

    def errors(self, draw: Draw) -> Floats:
        """The errors of a draw; linear algebra has one thread, so that they are the same everywhere."""
        plan, settings = self.plan(draw.choice), draw.choice.settings
        with single_threaded_blas():
            return self.rehearsal.errors(plan, settings, seed=draw.seed, stand_in=draw.stand_in, fresh=draw.fresh)

    def work(self, draw: Draw) -> float:
        """The work of a draw."""
        chosen = self.rehearsal.stand_ins[draw.stand_in]
        scored = len(self.rehearsal.groups_of(draw.stand_in, fresh=draw.fresh))
        settings, rows, pairs = draw.choice.settings, len(chosen.public), len(self.rehearsal.pairs)
        return work_of(self.plan(draw.choice), settings, chosen.groups, rows, scored, pairs)


def _planned(task: Task, choice: Choice) -> Plan:
    task = task if choice.budget is None else replace(task, budget=choice.budget)
    return Plan.of(task, choice.levels(task.schema, task.levels), settings=choice.settings, noise=choice.law)


class OnWorkers:
    """A stage on an executor's workers.

    A process gets it once: tasks name it by its hash, and those that do not find it there go out again with it.
    """

    def __init__(self, stage: Stage, execution: Execution) -> None:
        rehearsal = stage.rehearsal  # a draw is one task, and no rehearsal looks at the numbers of numeric columns
        alone = [replace(each, public=replace(each.public, numbers={})) for each in rehearsal.stand_ins]
        self.stage = Stage(replace(rehearsal, stand_ins=alone, threads=1), stage.task)
        self.execution = execution

    def errors(self, draws: Sequence[Draw]) -> Iterator[Floats]:
        """The errors of different draws, in their order."""
        if isinstance(self.execution.executor, ThreadPoolExecutor):
            return self.execution.map(self.stage.errors, draws)
        key, stage = self._pickled
        errors = dict(zip(draws, self.execution.map(partial(_rehearsed, key, None), draws), strict=True))
        unknown = [draw for draw in draws if errors[draw] is None]
        errors |= zip(unknown, self.execution.map(partial(_rehearsed, key, stage), unknown), strict=True)
        return iter([each for each in errors.values() if each is not None])

    @cached_property
    def _pickled(self) -> tuple[str, bytes]:
        stage = pickle.dumps(self.stage, protocol=5)
        return sha256(stage).hexdigest(), stage


_stages: dict[str, Stage] = {}  # of this worker process, by their hashes


def _rehearsed(key: str, pickled: bytes | None, draw: Draw) -> Floats | None:
    """One task: the errors of a draw; None where the stage has not come here yet."""
    stage: Stage | None = _stages.get(key)
    if stage is None:
        if pickled is None:
            return None
        stage = _stages[key] = pickle.loads(pickled)
        for oldest in list(_stages)[:-MOST_STAGES]:
            _stages.pop(oldest, None)
    return stage.errors(draw)


class Tuner:
    """What the searches for plans of one task share, whatever the budget: stand-ins, and what they tell of candidates.

    A group whose number of rows is off by `bias` or more counts as lost, as in the contest; with None only marginals
    count. A search makes at most `most_draws` of noise of a choice.
    """

    def __init__(
        self,
        task: Task,
        public: Any,
        *,
        bias: int | None = CONTEST_BIAS,
        seed: int = 0,
        execution: Execution = Execution(),
        most_draws: int = MOST_DRAWS,
    ) -> None:
        if not isinstance(public, Public):
            public = Public.of(task.schema, public, group_columns(task.groups, task.schema))
        self.task, self.seed, self.most_draws = task, seed, most_draws
        public = obeying(public, task.invariants)
        self.rehearsal = Rehearsal.of(
            public, task.groups, task.levels, bias=bias, seed=seed, threads=execution.threads, targets=task.targets
        )
        self.stage = Stage(self.rehearsal, task)
        self.workers = None if execution.executor is None else OnWorkers(self.stage, execution)
        with single_threaded_blas():
            self.candidates = Candidates(self.rehearsal, public, task.levels, self.stage.plan)

    def draws(self) -> Draws:
        """The draws of searches for one plan."""
        if self.workers is None:
            return Draws(partial(map, self.stage.errors), self.stage.work)
        execution = self.workers.execution  # whose workers may come and go
        return Draws(self.workers.errors, self.stage.work, lambda: execution.number)

    def tune(self, budget: Budget, effort: Effort, start: Choice | None = None, noise: int = 0) -> Tuned:
        """The plan for a budget.

        With `start`, the search starts from that choice, with a share for the totals that tells them well enough, and
        tries the simplest choice next, whatever effort is left: a bad start must not decide the plan. If there is
        effort left, a second search starts from the simplest choice, and the better one of the two is taken. `noise`
        numbers the noise of the trials: a start that was lucky with one must not be lucky again.
        """
        draws = self.draws()
        options: dict[str, Any] = {"seed": self.seed, "noise": noise, "most_draws": self.most_draws}
        new_search = partial(Search, self.rehearsal, self.stage.plan, draws, effort, **options)
        searches = _Searches(self.candidates, budget, effort, new_search)
        # linear algebra has one thread here too: what is chosen must not depend on what else runs
        with single_threaded_blas():
            search, finished = searches.of_all_laws(start)
            best, (expected, worthwhile) = search.best, search.expected()
            if not worthwhile and self.rehearsal.kind != "no groups":  # the prior is as good: do not spoil it by noise
                nothing, settings = ((Fraction(0), ()),) * (len(self.task.levels) - 1), Settings(own=OWN_ALONE)
                alone = replace(best, total=Fraction(1), above=nothing, settings=settings, first=())
                search.best = with_least_noise(self.candidates, alone)
                expected, _ = search.expected()
            plan = self.stage.plan(search.best)
            advice = _advice(self.rehearsal, plan, expected, worthwhile, "" if finished else _unfinished(effort))
        effort.end()
        plan = plan.changed(expected=replace(expected, advice=advice))
        trials = tuple(trial for each in searches.begun for trial in each.trials)
        return Tuned(plan, trials, worthwhile, finished, best, search.smoothed, draws.done, effort.time_was_up)


@dataclass(frozen=True, eq=False)
class _Searches:
    """The searches for the plan of one budget, one for each law of the noise or more."""

    candidates: Candidates
    budget: Budget
    effort: Effort
    new_search: Callable[..., Search]
    begun: list[Search] = field(default_factory=list)

    def of_all_laws(self, start: Choice | None) -> tuple[Search, bool]:
        """The best of all laws' searches, which have equal shares of the effort; False if one had too little of it.

        The law of the start comes first. Of laws that are equally good, the one that came first is taken.
        """
        laws = sorted(laws_within(self.budget), key=lambda law: start is not None and law != start.law)
        best, finished = self._of_law(laws[0], start, self.effort.allowed * (1 - 1 / len(laws)), None)
        for number, law in enumerate(laws[1:], start=2):
            best.reserved = 0.0  # its share is used
            if not best.effort_for_another():
                return best, False
            reserved = self.effort.allowed * (1 - number / len(laws))
            other, all_tried = self._of_law(law, start, reserved, best)
            finished = finished and all_tried
            best = best if self.effort.time_up() else best.or_better(other)
        return best, finished

    def _of_law(
        self, law: NoiseLaw | None, start: Choice | None, reserved: float, rival: Search | None
    ) -> tuple[Search, bool]:
        """The search with noise of a law; False if effort or time did not suffice for all candidates."""
        choice = self.candidates.simplest(self.budget, law)
        words = "all one-way tables" if choice.total < 1 else "numbers of rows alone"
        simplest = f"{words}, {self.candidates.plan_of(choice).law.words}" if law else words, choice
        elsewhere = start is not None and start.law == law
        first = simplest
        if start is not None and elsewhere:  # with a share for the totals that is large enough at this budget
            first = ANOTHER_BUDGET, replace(start, total=max(start.total, simplest[1].total), budget=self.budget)
        search = self._begun(first, reserved, rival)
        search.try_also(*simplest)
        if not elsewhere:
            error = mean_of(search.errors)
            search.try_some(self.candidates.predicted(choice, error)[:FEW_PREDICTED])
        finished = search.climb(self.candidates)
        if finished and elsewhere and search.effort_for_another():
            later = 0.0 if rival is None else 2 * rival.work_compared(rival.best)
            other = self._begun(simplest, reserved + later, search)
            finished = other.climb(self.candidates)
            search = search if self.effort.time_up() else other.or_better(search)
        if finished:
            search.climb_with_more_draws(self.candidates)
        return search, finished

    def _begun(self, first: Change, reserved: float, rival: Search | None) -> Search:
        self.begun.append(self.new_search(first, reserved=reserved, rival=rival))
        return self.begun[-1]


def _unfinished(effort: Effort) -> str:
    if effort.time_was_up:
        return (
            "The time was up before every candidate was tried: more seconds may find a better plan, and a quicker "
            "machine another one."
        )
    return f"Not every candidate was tried with effort {effort.allowed:g}: more effort may find a better plan."


def limits_of(rehearsal: Rehearsal) -> list[str]:
    """What a rehearsal does not show, in words."""
    few, one = not rehearsal.apart, len(rehearsal.stand_ins) == 1
    return [words for words, holds in ((SAME_GROUPS, few), (ONE_TABLE, one)) if holds]


def _advice(rehearsal: Rehearsal, plan: Plan, expected: Expected, worthwhile: bool, unfinished: str) -> str:
    if worthwhile:
        first = f"Measure: {expected}."
    elif rehearsal.kind == "no groups":
        first = f"The rehearsal showed no gain ({expected}), but it could not show how the private table differs."
    else:
        first = (
            f"Do not touch the private data at this budget: {expected}. The public table alone will be at least as "
            "good: give a larger budget, or use fewer and larger groups, or publish the public table."
        )
    risk, far = rehearsal.rehearsed_risk(plan), f"a number of rows that is off by {rehearsal.bias} or more"
    at_risk = f"About {risk:.0%} of the groups will have {far}." if risk > NOTABLE_RISK else ""
    return " ".join(filter(None, [first, WORDS[rehearsal.kind], *limits_of(rehearsal), at_risk, unfinished]))
