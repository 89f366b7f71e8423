"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait

from prade.core.threads import shutting_down


@contextmanager
def processes(number: int) -> Iterator[Executor]:
    """An executor with this many processes of its own, which end with the block or with this process."""
    # not forked: a process with threads must not be
    with shutting_down(ProcessPoolExecutor(number, multiprocessing.get_context("spawn"), _begin)) as pool:
        yield pool


def _begin() -> None:
    """Leave Ctrl-C to the process that gives out the work, and end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
