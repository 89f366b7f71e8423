"""Workloads, budget split and settings chosen by rehearsal on public data, before any budget is spent.

A coordinate search (`prade.tuning.search`) finds a choice. Under (eps, delta) there is one search with Laplace noise,
the same as under pure eps, and one with Gaussian noise; what the first found is taken if it is better beyond chance. If
the two are equally good, Gaussian noise is taken: it allows more tables, and private tables mostly differ from the
public one by more than their stand-ins do. The chosen plan is rehearsed once more with fresh noise, in groups that had
no part in the search where there are enough: the best of many trials was partly lucky, and the expected error must not
be. With an executor, its workers rehearse what the search will probably ask for next, so that it ends sooner and finds
the same. Nothing here can see private rows.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any

from prade.core.effort import EFFORT
from prade.core.progress import Progress
from prade.core.threads import single_threaded_blas
from prade.data.public import Public, group_columns
from prade.estimating.cuda import need_accelerator
from prade.planning.expected import Expected
from prade.planning.invariants import obeying
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget, Law
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.candidates import Candidates
from prade.tuning.choice import Change, Choice
from prade.tuning.device_errors import let_go
from prade.tuning.effort import Effort
from prade.tuning.one_way_candidates import laws_within, with_least_noise
from prade.tuning.rehearse import Rehearsal
from prade.tuning.search import Search, Trial
from prade.tuning.stage import Stages
from prade.tuning.stand_ins import WORDS
from prade.tuning.target_candidates import TargetCandidates
from prade.tuning.trials import Trials

if TYPE_CHECKING:
    import pyarrow as pa


# Where the groups that choose a plan are also those that say its error, or where there is only one table of them.
SAME_GROUPS = "There are few public groups, so those that chose the plan also gave the error: it may be larger."
ONE_TABLE = "Only one public table stood in for the private one: how far other tables differ is not part of ±."
OWN_ALONE = 0.98  # weight of a group's own public rows where nothing but its number of rows is asked
ANOTHER_BUDGET = "what was best at another budget"
NOTABLE_RISK = 0.01  # of a number of rows that is far off: below it, the advice does not mention it


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome: a plan with its settings and expected error, advice in plain words, and all that was tried."""

    plan: Plan
    trials: tuple[Trial, ...]
    worthwhile: bool  # whether private data are expected to improve on the public table, beyond chance
    finished: bool  # False: effort or time did not suffice for all candidates
    found: Choice  # the best choice, whether or not it is worthwhile
    smoothed: Choice  # the best one whose answers are smoothed
    effort: float = 0.0  # the work of the search
    time_was_up: bool = False  # whether seconds ended it: another machine may find another plan
    draws: int = 0  # rehearsals (a choice, a stand-in, a draw of noise) that the search asked for
    in_vain: int = 0  # rehearsals that workers made ahead, and that it did not ask for

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
    effort: float = EFFORT,
    seconds: float | None = None,
    bias: int | None = CONTEST_BIAS,
    seed: int = 0,
    weight: str | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    cuda: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """A plan for a task, chosen by rehearsal on the `public` table (a table, a file or a `Public`).

    `weight` is a column of public weights. A group whose number of rows is off by `bias` or more counts as lost, as in
    the contest; with None only marginals count.

    The search does as much work as `effort` says, and at least two rehearsals: 1 is about what two idle cores do in a
    second. Work is counted, so the result is the same for the same seed on a busy machine and with any number of
    workers, unless `seconds` pass first (by default 600, or 5 for each 1 of effort). `progress(what, done, all)`
    reports the work. Rehearsals run in threads of this process, or on the workers of an `executor`: W of them end
    sooner, or do W times the effort in the same time. With `cuda`, this process or each worker uses its machine's
    accelerator.

    >>> from prade import Unit
    >>> from prade.data.invented import census_like
    >>> data = census_like(persons=2_000, places_per_state=4, seed=1)
    >>> groups = data.groups.select(["PLACE"]).group_by(["PLACE"]).aggregate([])
    >>> tuned = tune(Task("people", data.schema, "1/1000", Unit(4), ["PLACE"], groups), data.public, effort=0)
    >>> tuned.advice.split(":")[0], tuned.finished, len(tuned.trials)
    ('Do not touch the private data at this budget', False, 1)
    """
    allowed = Effort.of(effort, seconds, progress)
    how: dict[str, Any] = {"threads": threads, "executor": executor, "cuda": cuda}
    with Tuner(task, public, bias=bias, seed=seed, weight=weight, **how) as tuner:
        return tuner.tune(task.budget, allowed)


class Tuner:
    """What the searches for plans of one task share, whatever the budget: stand-ins, and what they tell of candidates.

    The arguments are those of `tune`. In the end, `close` it, or use it in a `with` block.
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
        executor: Executor | None = None,
        cuda: bool = False,
    ) -> None:
        if cuda:
            need_accelerator()
        if not isinstance(public, Public):
            public = Public.of(task.schema, public, group_columns(task.groups, task.schema), weight=weight)
        self.task, self.seed = task, seed
        self.public: Public = obeying(public, task.invariants)
        how: dict[str, Any] = {"bias": bias, "seed": seed, "threads": threads, "targets": task.targets}
        how["accelerator"] = cuda
        self.rehearsal = Rehearsal.of(self.public, task.groups, task.levels, **how)
        self.stages = Stages(self.rehearsal, task, executor)
        with single_threaded_blas():
            of_task = TargetCandidates if task.targets else Candidates
            self.candidates = of_task(self.rehearsal, self.public, task.levels, self._plans(task.budget))

    def __enter__(self) -> Tuner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was written for the workers, and give the accelerator's memory back."""
        self.stages.close()
        if self.rehearsal.accelerator:
            let_go()

    def tune(self, budget: Budget, effort: Effort, start: Choice | None = None, noise: int = 0) -> Tuned:
        """The plan for a budget.

        With `start`, the search starts from that choice, with a share for the totals that tells them well enough, and
        tries the simplest choice next, whatever effort is left: a bad start must not decide the plan. If there is
        effort left, a second search starts from the simplest choice, and the better one of the two is taken. `noise`
        numbers the noise of the trials: a start that was lucky with one must not be lucky again.
        """
        trials = self.stages.trials(budget)
        try:
            # linear algebra has one thread here too: what is chosen must not depend on what else runs
            with single_threaded_blas():
                tuned = self._searched(budget, effort, start, noise, trials)
        finally:
            trials.close()
        return replace(
            tuned,
            effort=trials.done,
            time_was_up=effort.time_was_up,
            draws=trials.asked,
            in_vain=trials.made - trials.asked,
        )

    def _searched(self, budget: Budget, effort: Effort, start: Choice | None, noise: int, trials: Trials) -> Tuned:
        plan_of, rehearsal = self._plans(budget), self.rehearsal
        candidates = self.candidates.for_plans(plan_of)
        laws = laws_within(budget)
        first, *others = simplest = [_simplest(candidates, law) for law in laws]

        def search_from(first: Change) -> Search:
            how: dict[str, Any] = {"seed": self.seed, "noise": noise, "candidates": candidates}
            return Search(rehearsal, plan_of, trials, effort, first, **how)

        search = search_from(first if start is None else _taken_over(start, first[1]))
        search.try_also(*first)
        finished, by_law = search.climb(candidates), {search.best.law: search}
        for another in others if start is None else simplest:
            if not finished:
                break
            if not search.effort_for_another():
                finished = start is not None  # a second start only guards against a bad first one; a law needs a search
                break
            search = search_from(another)
            finished = search.climb(candidates)
            law = search.best.law
            by_law[law] = search.or_better(by_law[law]) if law in by_law else search
        if finished:
            for each in by_law.values():
                each.climb_with_more_draws(candidates)
        search = reduce(lambda earlier, later: later.or_better(earlier), (by_law[law] for law in laws if law in by_law))
        found = search.best
        expected, worthwhile = search.expected()
        if not worthwhile and rehearsal.kind != "no groups":  # the prior is as good: do not spoil it by noise
            nothing, settings = ((Fraction(0), ()),) * (len(self.task.levels) - 1), Settings(own=OWN_ALONE)
            alone = replace(found, total=Fraction(1), above=nothing, everybody=False, settings=settings, first=())
            search.best = with_least_noise(candidates, alone)
            expected, _ = search.expected()
        plan = plan_of(search.best)
        advice = _advice(rehearsal, plan, expected, worthwhile, "" if finished else _unfinished(effort))
        effort.end()
        plan = plan.with_expected(replace(expected, advice=advice))
        return Tuned(plan, tuple(search.trials), worthwhile, finished, found, search.smoothed)

    def _plans(self, budget: Budget) -> Callable[[Choice], Plan]:
        """How a choice becomes a plan with this budget."""
        return self.stages.here.plans(budget)


def _simplest(candidates: Candidates, law: Law | None) -> Change:
    """The simplest choice with noise of a law."""
    choice = candidates.simplest(law)
    words = "all one-way tables" if choice.total < 1 else "numbers of rows alone"
    return (f"{words}, {candidates.plan_of(choice).law.capitalize()} noise" if law else words), choice


def _taken_over(start: Choice, simplest: Choice) -> Change:
    """A choice that was best at another budget, with a share for the totals that is large enough at this one."""
    return ANOTHER_BUDGET, replace(start, total=max(start.total, simplest.total))


def _unfinished(effort: Effort) -> str:
    """Why not every candidate was tried."""
    if effort.time_was_up:
        return (
            "The time was up before every candidate was tried: more seconds may find a better plan, and a quicker "
            "machine another one."
        )
    return f"Not every candidate was tried with effort {effort.allowed:g}: more effort may find a better plan."


def _advice(rehearsal: Rehearsal, plan: Plan, expected: Expected, worthwhile: bool, unfinished: str) -> str:
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
    if (risk := rehearsal.rehearsed_risk(plan)) > NOTABLE_RISK:
        said.append(
            f"About {risk:.0%} of the groups will have a number of rows that is off by {rehearsal.bias} or more."
        )
    if unfinished:
        said.append(unfinished)
    return " ".join(said)
