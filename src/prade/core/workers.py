"""Threads that work for an iterator, and that Ctrl-C does not have to wait for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from prade.estimating import kernels


@contextmanager
def workers(threads: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads; when its block is broken off, what has not begun is not begun any more.

    An interrupt does not wait for what has begun either. It may come to the consumer of an iterator, which is then
    closed: that counts as one.

    >>> with workers(2) as pool:
    ...     list(pool.map(abs, [-1, -2]))
    [1, 2]
    """
    _load()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="prade-groups")
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()


@cache
def _load() -> None:
    """Load the compiler before there are threads.

    It loads its parts with the first kernel that is called; an interrupt amid such an import can leave threads waiting
    for the import's lock for ever.
    """
    kernels.wright_omega(0.0)
