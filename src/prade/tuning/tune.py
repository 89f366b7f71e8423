"""Workloads, budget split and settings chosen by rehearsal on public data, before any budget is spent.

A coordinate search (`prade.tuning.search`) finds a choice. Under (eps, delta) there is one with Laplace noise, the same
as under pure eps, and then one with Gaussian noise, whose choice is taken if it is better beyond chance. The chosen
plan is rehearsed once more with fresh noise, in groups that had no part in the search where there are enough: the best
of many trials was partly lucky, and the expected error must not be. With an executor, its workers rehearse what the
search will probably ask for next, so that it ends sooner and finds the same. Nothing here can see private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from prade.core.execution import EFFORT, Execution, single_threaded_blas
from prade.data.public.public import Public, group_columns
from prade.planning.invariants import obeying
from prade.planning.plan import Plan
from prade.planning.settings import Expected, Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.noise_law import NoiseLaw
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.candidates import Candidates
from prade.tuning.choice import Change, Choice
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
    execution: Execution = Execution(),
) -> Tuned:
    """A plan for a task, chosen by rehearsal on the `public` table (a table, a file or a `Public`).

    `weight` is a column of public weights. A group whose number of rows is off by `bias` or more counts as lost, as in
    the contest; with None only marginals count.

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
    >>> tuned.advice.split(":")[0], tuned.finished, len(tuned.trials)
    ('Do not touch the private data at this budget', False, 1)
    """
    allowed = Effort.of(effort, seconds, execution.progress, searches=len(laws_within(task.budget)))
    with Tuner(task, public, bias=bias, seed=seed, weight=weight, execution=execution) as tuner:
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
        execution: Execution = Execution(),
    ) -> None:
        if not isinstance(public, Public):
            public = Public.of(task.schema, public, group_columns(task.groups, task.schema), weight=weight)
        self.task, self.seed = task, seed
        self.public: Public = obeying(public, task.invariants)
        self.rehearsal = Rehearsal.of(
            self.public,
            task.groups,
            task.levels,
            bias=bias,
            seed=seed,
            threads=execution.threads,
            targets=task.targets,
        )
        self.stages = Stages(self.rehearsal, task, execution.executor)
        with single_threaded_blas():
            of_task = TargetCandidates if task.targets else Candidates
            self.candidates = of_task(self.rehearsal, self.public, task.levels, self._plans(task.budget))

    def __enter__(self) -> Tuner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was written for the workers."""
        self.stages.close()

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
        searches = _Searches(rehearsal, candidates, trials, effort, self.seed, noise)
        search, finished = searches.of_all_laws(laws_within(budget), start)
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
        return Tuned(plan, searches.trials, worthwhile, finished, found, search.smoothed)

    def _plans(self, budget: Budget) -> Callable[[Choice], Plan]:
        """How a choice becomes a plan with this budget."""
        return self.stages.here.plans(budget)


@dataclass(frozen=True, eq=False)
class _Searches:
    """The searches for the plan of one budget, one for each law of the noise or more."""

    rehearsal: Rehearsal
    candidates: Candidates
    draws: Trials
    effort: Effort
    seed: int
    noise: int
    made: list[Search] = field(default_factory=list)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """What all of them tried."""
        return tuple(trial for search in self.made for trial in search.trials)

    def of_all_laws(self, laws: Sequence[NoiseLaw | None], start: Choice | None) -> tuple[Search, bool]:
        """The best of all laws' searches, which have equal shares of the effort; False if one had too little of it.

        The law of the start comes first. Of laws that are equally good, the one that came first is taken.
        """
        in_turn = sorted(laws, key=lambda law: start is not None and law != start.law)
        best, finished = self._of_law(in_turn[0], start, self.effort.allowed * (1 - 1 / len(laws)), None)
        for number, law in enumerate(in_turn[1:], start=2):
            best.reserved = 0.0  # its share is used
            if not best.effort_for_another():
                return best, False
            reserved = self.effort.allowed * (1 - number / len(laws))
            other, other_finished = self._of_law(law, start, reserved, best)
            finished = finished and other_finished
            best = best if self.effort.time_up() else best.or_better(other)
        return best, finished

    def _of_law(
        self, law: NoiseLaw | None, start: Choice | None, reserved: float, rival: Search | None
    ) -> tuple[Search, bool]:
        """The search with noise of a law; False if effort or time did not suffice for all candidates."""
        simplest = _simplest(self.candidates, law)
        elsewhere = start is not None and start.law == law
        search = self._search(_taken_over(start, simplest[1]) if start and elsewhere else simplest, reserved, rival)
        search.try_also(*simplest)
        finished = search.climb(self.candidates)
        if finished and elsewhere and search.effort_for_another():
            later = 0.0 if rival is None else 2 * rival.work_compared(rival.best)
            other = self._search(simplest, reserved + later, search)
            finished = other.climb(self.candidates)
            search = search if self.effort.time_up() else other.or_better(search)
        if finished:
            search.climb_with_more_draws(self.candidates)
        return search, finished

    def _search(self, first: Change, reserved: float, rival: Search | None) -> Search:
        how: dict[str, Any] = {"seed": self.seed, "noise": self.noise, "reserved": reserved, "rival": rival}
        plan_of = self.candidates.plan_of
        search = Search(self.rehearsal, plan_of, self.draws, self.effort, first, candidates=self.candidates, **how)
        self.made.append(search)
        return search


def _simplest(candidates: Candidates, law: NoiseLaw | None) -> Change:
    """The simplest choice with noise of a law."""
    choice = candidates.simplest(law)
    words = "all one-way tables" if choice.total < 1 else "numbers of rows alone"
    return (f"{words}, {candidates.plan_of(choice).law.words}" if law else words), choice


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
