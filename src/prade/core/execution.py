"""Where work runs, how much of it, and who hears of its progress.

Tasks run in threads of this process, or on any `concurrent.futures.Executor` (processes, Dask, MPI). A task goes to
whichever worker is free, so it must be small: a function of a module with small arguments, bound by
`functools.partial`. What is large and the same for many tasks, such as the public rows, is a `Shared`: it does not
travel, and every worker process opens it once, from files that it can see. The order of results is that of the tasks,
and no sum depends on who worked on what, so results are the same for any executor and any number of workers.

The matrices of this project are small (hundreds to two thousand cells). BLAS threads gain nothing on them, and on a
busy machine they wait for each other for seconds. Instead, work runs in parallel over groups and over rows.
"""

from __future__ import annotations

import enum
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib.metadata import version
from itertools import islice
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

from prade.core.errors import EstimationError, PradeError
from prade.core.interrupts import held_back

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")
Pool = TypeVar("Pool", bound=Executor)
Progress = Callable[[str, float, float], None]  # task, done, total

AHEAD = 2  # tasks per worker that are submitted before their results are needed
MUST_AGREE = ("prade", "numpy", "scipy", "numba")  # what the last bit of a result may depend on
MOST_OPENED = 2  # shared values that a worker process keeps: those of this run, and those of the one before


class WorkersError(PradeError):
    """Workers that are gone, that run other versions, or that cannot see the files they need."""


def cores() -> int:
    """The number of cores that this process may use; in a container or batch job, fewer than the machine has.

    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Execution:
    """Where tasks run: on an `executor`, or else in `threads` of this process (by default, one per core).

    ``progress(task, done, total)`` is called as tasks are done. It sees public facts only: numbers of groups, seconds.
    Private rows are counted by this process, whatever the executor.

    >>> list(Execution(threads=2).map(abs, [-1, -2, 3]))
    [1, 2, 3]
    """

    threads: int = field(default_factory=cores)
    executor: Executor | None = None
    progress: Progress | None = None

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

    def tell(self, task: str, done: float, total: float) -> None:
        """Report progress, if anybody listens."""
        if self.progress is not None:
            self.progress(task, done, total)


# ---------------------------------------------------------------------- threads


@contextmanager
def shutting_down(pool: Pool) -> Iterator[Pool]:
    """Shut a pool down after the block. If the block raises an exception, tasks that have not started are cancelled.

    On an interrupt the pool does not wait for running tasks either. The same holds when a generator that uses the pool
    is closed early, because an interrupt may reach the code that consumes the generator instead.
    """
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()


def several(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int = AHEAD
) -> Iterator[Result]:
    """Yield work(item) for every item, in order, computed in threads that run at most `ahead` tasks each ahead.

    >>> list(several(abs, [-1, -2, 3], threads=2))
    [1, 2, 3]
    """
    if threads < 1:
        raise EstimationError(f"threads is {threads}: give a whole number, 1 or more")
    remaining = iter(items)
    with shutting_down(ThreadPoolExecutor(threads, thread_name_prefix="prade-groups")) as pool:
        waiting: list[Future[Result]] = [pool.submit(work, each) for each in islice(remaining, ahead * threads)]
        while waiting:
            result = waiting.pop(0).result()
            waiting.extend(pool.submit(work, each) for each in islice(remaining, 1))
            yield result


def finishing(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """[work(item) for every item], computed in threads, where an interrupt waits for the items that have begun.

    This is for work with Arrow, which may crash a process that ends meanwhile. Only the main thread can hold signals
    back, so any other does the work alone.

    >>> finishing(abs, [-1, -2, 3], threads=2)
    [1, 2, 3]
    """
    if threads == 1 or threading.current_thread() is not threading.main_thread():
        return [work(each) for each in items]
    results: list[Result] = []
    with shutting_down(ThreadPoolExecutor(threads, thread_name_prefix="prade-columns")) as pool:
        for first in range(0, len(items), 2 * threads):
            with held_back():
                begun = [pool.submit(work, each) for each in items[first : first + 2 * threads]]
                wait(begun)
            results += [each.result() for each in begun]
    return results


_blas_lock = threading.Lock()
_blas_users = 0
_blas_limit: Any = None


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - it has its own BLAS, which must be loaded before it can be controlled
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, in the whole process: the first caller to enter sets the limit, the last lifts it."""
    global _blas_users, _blas_limit
    with _blas_lock:
        if _blas_users == 0:
            _blas_limit = _controller().limit(limits=1, user_api="blas")
            _blas_limit.__enter__()
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                _blas_limit.__exit__(None, None, None)


# ---------------------------------------------------------------------- executors


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


# ---------------------------------------------------------------------- values that tasks share

_opening = threading.Lock()


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


# ---------------------------------------------------------------------- processes of this machine, and a Dask cluster


@contextmanager
def processes(number: int) -> Iterator[Executor]:
    """An executor with this many processes of its own, which end with the block or with this process."""
    import multiprocessing

    # not forked: a process with threads must not be
    with shutting_down(ProcessPoolExecutor(number, multiprocessing.get_context("spawn"), _begin)) as pool:
        yield pool


def _begin() -> None:
    """Leave Ctrl-C to the process that gives out the work, and end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


EXAMPLE = "tcp://10.0.0.1:8786"
PATIENCE = 10.0  # seconds to wait for a scheduler, and then for a first worker
RETRIES = 2  # of a task that a worker failed at: its disk may be full, another's is not


@contextmanager
def cluster(address: str, seconds: float = PATIENCE) -> Iterator[Executor]:
    """The executor of the cluster whose scheduler has this address, such as tcp://10.0.0.1:8786.

    Its workers must have the same versions, and see the folders that tasks name. A task whose worker is lost goes to
    another one. A cluster that cannot be used is a WorkersError.
    """
    client = _connected(address, seconds)
    try:
        _need_workers(client, address, seconds)
        yield client.get_executor(retries=RETRIES, pure=False)
    finally:
        client.close()


def _connected(address: str, seconds: float) -> Any:
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError:
        raise WorkersError('a cluster needs Dask, which is not installed: run pip install "prade[cluster]"') from None
    try:
        _wait_for_port(*get_address_host_port(address, strict=True), seconds)
        return Client(address, timeout=seconds, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:  # a TimeoutError is one
        raise WorkersError(
            f"no scheduler answers at {address} within {seconds:g} seconds: start one with `dask scheduler`, and give "
            f"the address that it prints, such as {EXAMPLE}"
        ) from error
    except (ValueError, NotImplementedError) as error:
        raise WorkersError(
            f"{address!r} is not the address of a scheduler ({error}): give one such as {EXAMPLE}"
        ) from error


def _wait_for_port(host: str, port: int, seconds: float) -> None:
    """Wait until something listens there; a Dask client that connects to nothing takes long to give up."""
    until = monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), timeout=max(until - monotonic(), 0.1)).close()
            return
        except OSError:
            if monotonic() > until:
                raise
            sleep(0.2)


def _need_workers(client: Any, address: str, seconds: float) -> None:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise WorkersError(
            f"the cluster at {address} has no workers: start some with `dask worker {address}`, on machines that see "
            "the release folder"
        ) from error


# ---------------------------------------------------------------------- progress and effort


@contextmanager
def progress_bar(*, shown: bool | None = None, quarters: bool = False) -> Iterator[Progress]:
    """The `progress` of an `Execution`: one bar for each task that is reported to it, on terminals only.

    `shown` says whether to show the bars; by default they appear if standard error is a terminal. With `quarters`, a
    line is printed after each quarter of a task where bars are not shown. How many rows there are shows in neither.

    >>> with progress_bar() as progress:
    ...     progress("estimating", 1, 2)
    """
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    visible = console.is_terminal if shown is None else shown
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.percentage:>3.0f} %"),
        rich.TimeElapsedColumn(),
    )
    tasks: dict[str, rich.TaskID] = {}
    reached: dict[str, int] = {}  # quarters
    with rich.Progress(*columns, console=console, disable=not visible) as bars:

        def progress(task: str, done: float, total: float) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total)
            passed = int(4 * min(done / total, 1)) if total else 4
            if quarters and not visible and passed > reached.get(task, 0):
                reached[task] = passed
                console.print(f"  {task} {25 * passed} %", highlight=False)
            bars.update(tasks[task], completed=min(done, total), total=total)

        yield progress


EFFORT = 120.0  # counted work: 1 is about what two idle cores do in a second
FEWEST_SECONDS = 600.0  # that it may take at most: the safety net of a machine that is slow or busy
SECONDS_PER_EFFORT = 5.0  # where that is more


def most_seconds(effort: float, seconds: float | None = None) -> float:
    """The seconds that the tuner may take at most, for an effort: those that are given, or enough for most machines.

    >>> most_seconds(120), most_seconds(1_000), most_seconds(120, 30)
    (600.0, 5000.0, 30)
    """
    return max(FEWEST_SECONDS, SECONDS_PER_EFFORT * effort) if seconds is None else seconds
