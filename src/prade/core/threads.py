"""Threads: the number of cores, thread pools that Ctrl-C stops at once, and single-threaded linear algebra.

The matrices of this project are small (hundreds to two thousand cells). BLAS threads gain nothing on them, and on a
busy machine they wait for each other for seconds. Instead, work runs in parallel over groups and over rows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from prade.core.errors import EstimationError
from prade.core.interrupts import held_back

Item = TypeVar("Item")
Result = TypeVar("Result")
Pool = TypeVar("Pool", bound=Executor)

_lock = threading.Lock()
_inside = 0
_limit: Any = None


def cores() -> int:
    """The number of cores that this process may use; in a container or batch job, fewer than the machine has.

    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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


AHEAD = 2  # tasks for each worker that are begun before their results are wanted


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
    found: list[Result] = []
    with shutting_down(ThreadPoolExecutor(threads, thread_name_prefix="prade-columns")) as pool:
        for first in range(0, len(items), 2 * threads):
            with held_back():
                begun = [pool.submit(work, each) for each in items[first : first + 2 * threads]]
                wait(begun)
            found += [each.result() for each in begun]
    return found


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - it has its own BLAS, which must be loaded before it can be controlled
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, in the whole process: the first caller to enter sets the limit, the last lifts it."""
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
            _limit.__enter__()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.__exit__(None, None, None)
