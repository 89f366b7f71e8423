"""Where work runs, how much of it, and who hears of its progress.

Tasks run in threads of this process, or on any `concurrent.futures.Executor`. A task is a function of a module with
small arguments; what is large and the same for many is a `Shared`. Results come in the order of the tasks.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
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

EFFORT = 30.0  # counted work of the tuner: 1 is about what two idle cores do in a second
AHEAD = 2  # tasks per worker that are submitted before their results are needed
MUST_AGREE = ("prade", "numpy", "scipy", "numba")  # what the last bit of a result may depend on
HEARTBEAT = 10.0  # seconds
MOST_OPENED = 2  # shared values that a worker process keeps: those of this run, and those of the one before


class WorkersError(PradeError):
    """Workers that are gone, that run other versions, or that cannot see the files they need."""


def cores() -> int:
    """The number of cores that this process may use; in a container or batch job, fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Execution:
    """Where tasks run: on an `executor`, or else in `threads` of this process (by default, one per core).

    ``progress(task, done, total)`` hears of public facts only. Private rows are counted by this process, whatever the
    executor.

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
        if (executor := self.executor) is None:
            return several(work, items, self.threads, ahead)
        ours = versions()
        return in_order(lambda item: executor.submit(_with_versions, ours, work, item), items, ahead * self.number)

    def tell(self, task: str, done: float, total: float) -> None:
        """Report progress, if anybody listens."""
        if self.progress is not None:
            self.progress(task, done, total)


def in_order(submit: Callable[[Item], Future[Result]], items: Iterable[Item], most: int) -> Iterator[Result]:
    """The results of tasks, at most `most` of them submitted before they are needed; the rest is cancelled."""
    remaining = iter(items)
    waiting = deque(submit(each) for each in islice(remaining, most))
    try:
        while waiting:
            result = _result_of(waiting.popleft())
            waiting.extend(submit(each) for each in islice(remaining, 1))
            yield result
    finally:
        for future in waiting:
            future.cancel()


def _result_of(future: Future[Result]) -> Result:
    try:
        return future.result()
    except Exception as error:
        # Dask has its own errors, for a task that took several workers down with it, or a scheduler that is gone
        if isinstance(error, BrokenExecutor) or type(error).__module__.startswith(("distributed", "dask")):
            stopped = f"the workers have stopped ({type(error).__name__})"
            raise WorkersError(f"{stopped}: look for full memory or disks, and run this again") from error
        raise


@contextmanager
def shutting_down(pool: Pool) -> Iterator[Pool]:
    """Shut a pool down after the block; if it raises, what has not started is cancelled. An interrupt does not wait."""
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()


def several(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int = AHEAD
) -> Iterator[Result]:
    """Yield work(item) for every item, in order, computed in threads that run at most `ahead` tasks each ahead."""
    if threads < 1:
        raise EstimationError(f"threads is {threads}: give a whole number, 1 or more")
    with shutting_down(ThreadPoolExecutor(threads, thread_name_prefix="prade-groups")) as pool:
        yield from in_order(lambda item: pool.submit(work, item), items, ahead * threads)


def finishing(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """[work(item) for every item], computed in threads, where an interrupt waits for the items that have begun.

    For work with Arrow, which may crash a process that ends meanwhile. Only the main thread can hold signals back.
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


# The matrices of this project are small (hundreds to two thousand cells). BLAS threads gain nothing on them, and on a
# busy machine they wait for each other for seconds. Instead, work runs in parallel over groups and over rows.
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


def _number_of(executor: Executor) -> int:
    """The number of workers of an executor, where it says so; `Executor` itself has no name for it."""
    if (client := getattr(executor, "_client", None)) is not None:  # Dask
        return max(1, int(sum(client.nthreads().values())))
    numbers = (getattr(executor, name, None) for name in ("num_workers", "_max_workers"))  # mpi4py, Python's own
    return max(1, int(next((number for number in numbers if number is not None), cores())))


@cache
def versions() -> tuple[str, ...]:
    """The versions of what results depend on, in this process."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return (python, *(f"{each} {version(each)}" for each in MUST_AGREE))


def _with_versions(senders: tuple[str, ...], work: Callable[[Item], Result], item: Item) -> Result:
    """What a worker does: make sure that it has the versions of those who sent the task, and do the task."""
    pairs = zip(senders, versions(), strict=True)
    if differ := [f"{here} here, {there} there" for here, there in pairs if here != there]:
        other = f"the worker on {socket.gethostname()} has other versions ({'; '.join(differ)})"
        raise WorkersError(f"{other}: install the same ones on all machines")
    return work(item)


_opening = threading.Lock()


class Shared(Generic[Value]):
    """Something large that tasks use wherever they run: `value` here, in other processes `opened(*arguments)`, once.

    The arguments name files that all workers see, and their version.
    """

    def __init__(self, value: Value | None, opened: Callable[..., Value], *arguments: Any) -> None:
        self._value = value  # None in another process, until it is opened
        self._opened = opened
        self._arguments = arguments

    @property
    def value(self) -> Value:
        """The thing itself."""
        if self._value is None:
            with _opening:  # a worker's threads must not open it twice
                self._value = _open(self._opened, self._arguments)
        value: Value = self._value
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return Shared, (None, self._opened, *self._arguments)


@lru_cache(maxsize=MOST_OPENED)
def _open(opened: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return opened(*arguments)
    except FileNotFoundError as error:
        absent = f"the worker on {socket.gethostname()} cannot find {error.filename}"
        shared = "all workers must see the folder under this name; use one on a disk that they share"
        raise WorkersError(f"{absent}: {shared}") from error


@contextmanager
def processes(number: int) -> Iterator[Executor]:
    """An executor with this many processes of its own, which end with the block or with this process."""
    import multiprocessing

    # not forked: a process with threads must not be
    with shutting_down(ProcessPoolExecutor(number, multiprocessing.get_context("spawn"), _begin)) as pool:
        yield pool


def _begin() -> None:
    """Leave Ctrl-C to the process that gives out the work, and end when it is gone."""
    import multiprocessing

    def end_with(parent: Any) -> None:
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


EXAMPLE = "tcp://10.0.0.1:8786"
PATIENCE = 10.0  # seconds to wait for a scheduler, and then for a first worker
RETRIES = 2  # of a task that a worker failed at: its disk may be full, another's is not


@contextmanager
def cluster(address: str, seconds: float = PATIENCE) -> Iterator[Executor]:
    """The executor of the cluster whose scheduler has this address; a WorkersError if it cannot be used."""
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError:
        raise WorkersError('a cluster needs Dask, which is not installed: run pip install "prade[cluster]"') from None
    try:
        _wait_for_port(*get_address_host_port(address, strict=True), seconds)
        client = Client(address, timeout=seconds, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:  # a TimeoutError is one
        start = f"start one with `dask scheduler`, and give the address that it prints, such as {EXAMPLE}"
        raise WorkersError(f"no scheduler answers at {address} within {seconds:g} seconds: {start}") from error
    except (ValueError, NotImplementedError) as error:
        wrong = f"{address!r} is not the address of a scheduler ({error})"
        raise WorkersError(f"{wrong}: give one such as {EXAMPLE}") from error
    with closing(client):
        try:
            client.wait_for_workers(1, timeout=seconds)
        except TimeoutError as error:
            start = f"start some with `dask worker {address}`, on machines that see the release folder"
            raise WorkersError(f"the cluster at {address} has no workers: {start}") from error
        yield client.get_executor(retries=RETRIES, pure=False)  # type: ignore[no-untyped-call]


def _wait_for_port(host: str, port: int, seconds: float) -> None:
    """Wait until something listens there; a Dask client that connects to nothing takes long to give up."""
    until = monotonic() + seconds
    while True:
        try:
            return socket.create_connection((host, port), timeout=max(until - monotonic(), 0.1)).close()
        except OSError:
            if monotonic() > until:
                raise
            sleep(0.2)


@contextmanager
def progress_bar(heartbeat: float = HEARTBEAT) -> Iterator[Progress]:
    """The `progress` of an `Execution`: bars on a terminal, elsewhere a line every `heartbeat` seconds.

    Each task has its own clock, which its first report starts. So no line tells how long private rows took to count:
    that task reports once, when it is done.
    """
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    percent = rich.TextColumn("{task.percentage:>3.0f} %")
    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), percent, rich.TimeElapsedColumn())
    tasks: dict[str, rich.TaskID] = {}
    latest: dict[str, float] = {}
    with rich.Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def progress(task: str, done: float, total: float) -> None:
            now = monotonic()
            if task not in tasks:
                tasks[task], latest[task] = bars.add_task(task, total=total), now
            elif now >= latest[task] + heartbeat and not console.is_terminal:
                latest[task] = now
                console.print(f"  {task} {min(done / total, 1) if total else 1:.0%}", highlight=False)
            bars.update(tasks[task], completed=min(done, total), total=total)

        yield progress
