"""Where tasks run: in threads of this process, or on any `concurrent.futures.Executor` (processes, Dask, MPI).

A task goes to whichever worker is free, so it must be small: a function of a module with small arguments, bound by
`functools.partial`. What is large and the same for many tasks, such as the public rows, is a `Shared`: it does not
travel, and every worker process opens it once, from files that it can see. The order of results is that of the tasks,
and no sum depends on who worked on what, so results are the same for any executor and any number of workers.
"""

from __future__ import annotations

import enum
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice
from threading import Lock
from typing import Any, Generic, TypeVar

from prade.core.errors import PradeError
from prade.core.threads import AHEAD, cores, several

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")

MUST_AGREE = ("prade", "numpy", "scipy", "numba")  # what the last bit of a result may depend on
MOST_OPENED = 2  # shared values that a worker process keeps: those of this run, and those of the one before
_opening = Lock()


class WorkersError(PradeError):
    """Workers that are gone, that run other versions, or that cannot see the files they need."""


@dataclass(frozen=True)
class Workers:
    """An executor, or a number of threads of this process if there is none.

    >>> list(Workers(threads=2).map(abs, [-1, -2, 3]))
    [1, 2, 3]
    """

    threads: int = 1
    executor: Executor | None = None
    accelerator: bool = False  # whether this machine's accelerator takes what it can

    @classmethod
    def of(cls, threads: int | None = None, executor: Executor | None = None, *, accelerator: bool = False) -> Workers:
        """The executor that is given, or else threads: as many as there are cores, if not said otherwise."""
        return cls(cores() if threads is None else threads, executor, accelerator)

    @property
    def number(self) -> int:
        """How many tasks run at once."""
        return self.threads if self.executor is None else _number_of(self.executor)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item], ahead: int = AHEAD) -> Iterator[Result]:
        """Yield work(item) for every item, in order; each worker is at most `ahead` tasks ahead of what is used."""
        if self.executor is None:
            return several(work, items, self.threads, ahead)
        return _mapped(self.executor, _Sent(work, versions()), items, ahead * self.number)

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Start one task on the executor."""
        assert self.executor is not None
        return self.executor.submit(_Sent(work, versions()), *arguments)


THIS_THREAD = Workers()


def _mapped(executor: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int) -> Iterator[Result]:
    remaining = iter(items)
    waiting: list[Future[Result]] = [executor.submit(work, each) for each in islice(remaining, ahead)]
    try:
        while waiting:
            result = result_of(waiting[0])
            waiting.pop(0)
            waiting.extend(executor.submit(work, each) for each in islice(remaining, 1))
            yield result
    finally:
        for future in waiting:
            future.cancel()


def result_of(future: Future[Result]) -> Result:
    """The result of a task; a WorkersError if the workers are gone."""
    try:
        return future.result()
    except BrokenExecutor as error:
        raise WorkersError(f"the workers have stopped ({type(error).__name__}): run the same command again") from error
    except Exception as error:
        # Dask's own: a task that took several workers down with it, or a scheduler that is gone
        if type(error).__module__.split(".")[0] in ("distributed", "dask"):
            raise WorkersError(
                f"the cluster could not finish a task ({type(error).__name__}): look at the workers' logs for memory "
                "or disks that are full, and run the same command again"
            ) from error
        raise


def _number_of(executor: Executor) -> int:
    """The number of workers of an executor, where it says so; `Executor` itself has no name for it."""
    client = getattr(executor, "_client", None)  # Dask
    if client is not None:
        return max(1, int(sum(client.nthreads().values())))
    for name in ("num_workers", "_max_workers"):  # mpi4py, Python's own
        if (number := getattr(executor, name, None)) is not None:
            return max(1, int(number))
    return cores()


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """The versions of what results depend on, in this process."""
    return (
        f"Python {sys.version_info.major}.{sys.version_info.minor}",
        *(f"{each} {version(each)}" for each in MUST_AGREE),
    )


@dataclass(frozen=True)
class _Sent:
    """A task that first makes sure that it runs with the versions of those who sent it."""

    work: Callable[..., Any]
    versions: tuple[str, ...]

    @property
    def __name__(self) -> str:
        """What a cluster shows: the function, without its arguments."""
        function = self.work
        while isinstance(function, partial):
            function = function.func
        return getattr(function, "__name__", type(function).__name__)

    def __call__(self, *arguments: Any) -> Any:
        if self.versions != versions():
            differ = [
                f"{theirs} here, {ours} there"
                for ours, theirs in zip(versions(), self.versions, strict=True)
                if ours != theirs
            ]
            raise WorkersError(
                f"the worker on {socket.gethostname()} has other versions ({'; '.join(differ)}): install the same ones "
                "on all machines"
            )
        return self.work(*arguments)


class _Elsewhere(enum.Enum):
    """A value that was left behind in the process that sent the task."""

    VALUE = 0


class Shared(Generic[Value]):
    """Something large that tasks use wherever they run.

    Here it is `value`. To another process only `opened` and its arguments travel; there, `opened(*arguments)` is called
    once, by the first task that needs it. The arguments name files that all workers see, and say which version of them
    is meant, so that a worker does not take what it opened for an earlier run.
    """

    def __init__(self, value: Value | _Elsewhere, opened: Callable[..., Value], *arguments: Any) -> None:
        self._value = value
        self._opened = opened
        self._arguments = arguments

    @property
    def value(self) -> Value:
        """The thing itself."""
        if isinstance(self._value, _Elsewhere):
            with _opening:  # a worker's threads must not open it twice
                opened: Value = _open(self._opened, self._arguments)
            self._value = opened
        return self._value

    def __reduce__(self) -> tuple[Any, ...]:
        return Shared, (_Elsewhere.VALUE, self._opened, *self._arguments)


@lru_cache(maxsize=MOST_OPENED)
def _open(opened: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return opened(*arguments)
    except FileNotFoundError as error:
        raise WorkersError(
            f"the worker on {socket.gethostname()} cannot find {error.filename}: all workers must see the folder under "
            "this name; use one on a disk that they share"
        ) from error
