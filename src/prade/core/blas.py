"""One linear-algebra thread while estimates are being made.

The matrices here are small (hundreds to two thousand cells): BLAS threads gain nothing on them, and on a busy machine
they wait for each other for seconds. Parallel work is over groups and over rows instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_inside = 0
_limit: Any = None


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own, which must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread; the limit is the process's, so the first to enter sets it and the last lifts it."""
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
