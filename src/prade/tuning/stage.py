"""What a worker needs to rehearse: the stand-ins and the task, which it opens once, from a folder of this run.

There is no release folder yet, so what is large goes to a scratch folder, which is removed in the end: under TMPDIR, or
where the system keeps temporary files. Workers on other machines must see it under the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from prade.core.arrays import Floats
from prade.core.execution import Execution, Shared, WorkersError, open_mapped, single_threaded_blas, write_mapped
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.tuning.choice import Choice
from prade.tuning.rehearse import Rehearsal
from prade.tuning.trials import Draw, Trials, TrialsAhead
from prade.tuning.work import work_of

MOST_PLANS = 64  # that are kept: a choice becomes the same plan for each of its draws
SCRATCH = "prade-rehearsal-"


class Stage:
    """The stand-ins of a rehearsal, and the task whose plans are rehearsed."""

    def __init__(self, rehearsal: Rehearsal, task: Task) -> None:
        self.rehearsal = rehearsal
        self.task = task
        self._plans: dict[Budget, Callable[[Choice], Plan]] = {}  # of the latest budget

    def plans(self, budget: Budget) -> Callable[[Choice], Plan]:
        """How a choice becomes a plan with this budget."""
        if (found := self._plans.get(budget)) is None:
            task = self.task if budget == self.task.budget else replace(self.task, budget=budget)
            found = lru_cache(maxsize=MOST_PLANS)(partial(_plan, task))
            self._plans = {budget: found}
        return found

    def errors(self, budget: Budget, draw: Draw) -> Floats:
        """The errors of a draw at a budget; linear algebra has one thread, so that they are the same everywhere."""
        plan, settings = self.plans(budget)(draw.choice), draw.choice.settings
        with single_threaded_blas():
            return self.rehearsal.errors(plan, settings, seed=draw.seed, stand_in=draw.stand_in, fresh=draw.fresh)

    def work(self, budget: Budget, draw: Draw) -> float:
        """The work of a draw at a budget."""
        plan, chosen = self.plans(budget)(draw.choice), self.rehearsal.stand_ins[draw.stand_in]
        scored = len(self.rehearsal.groups_of(draw.stand_in, fresh=draw.fresh))
        settings, rows, pairs = draw.choice.settings, len(chosen.public), len(self.rehearsal.pairs)
        return work_of(plan, settings, chosen.groups, rows, scored, pairs)


def _plan(task: Task, choice: Choice) -> Plan:
    return Plan.of(task, choice.levels(task.schema, task.levels), settings=choice.settings, noise=choice.law)


def opened_stage(folder: Path) -> Stage:
    """The stage in a scratch folder, for a worker."""
    stage: Stage = open_mapped(folder)
    return stage


def rehearsed(stage: Shared[Stage], budget: Budget, draw: Draw, number: int) -> Floats:
    """One task: the errors of a draw; its number only tells it from other tasks."""
    return stage.value.errors(budget, draw)


class Stages:
    """Where the draws of a task are made: here, in the rehearsal's own threads, or on an executor's workers."""

    def __init__(self, rehearsal: Rehearsal, task: Task, executor: Executor | None = None) -> None:
        self.here = Stage(rehearsal, task)
        self.executor = executor
        self._folder: TemporaryDirectory[str] | None = None
        if executor is None:
            return
        # a trial is a task, so its groups follow each other, and so do its stand-ins' public rows
        alone = Stage(rehearsal.changed(threads=1), task)
        if not isinstance(executor, ThreadPoolExecutor):
            self._folder = _scratch(alone)
        self._shared = Shared(alone, opened_stage, Path("" if self._folder is None else self._folder.name))

    def trials(self, budget: Budget) -> Trials:
        """The draws of searches for a plan with this budget."""
        if self.executor is None:
            return Trials(partial(self.here.errors, budget), partial(self.here.work, budget))
        task = partial(rehearsed, self._shared, budget)
        return TrialsAhead(task, partial(self.here.work, budget), Execution(executor=self.executor))

    def close(self) -> None:
        """Remove the scratch folder."""
        if self._folder is not None:
            self._folder.cleanup()


def _scratch(stage: Stage) -> TemporaryDirectory[str]:
    """A folder with what workers need, without the numbers of numeric columns, which no rehearsal looks at."""
    stand_ins = [replace(each, public=replace(each.public, numbers={})) for each in stage.rehearsal.stand_ins]
    sent = stage.rehearsal.changed(stand_ins)
    folder = None
    try:
        folder = TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True)
        write_mapped(Stage(sent, stage.task), Path(folder.name))
    except OSError as error:
        if folder is not None:
            folder.cleanup()
        raise WorkersError(
            f"the public rows for the workers could not be written to {gettempdir()} ({error.strerror}): set TMPDIR to "
            "a folder with more room that all workers see"
        ) from error
    return folder
