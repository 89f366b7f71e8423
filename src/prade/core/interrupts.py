"""Ctrl-C: postponed where stopping would waste privacy budget, and obeyed everywhere else."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # the exit code of a command that was interrupted: 128 + SIGINT


@contextmanager
def held_back() -> Iterator[None]:
    """Postpone SIGINT and SIGTERM until the block has finished; signals that arrived meanwhile are then raised.

    An error of the block is raised instead: it ends the work as well, and says more. Signal handlers run in the main
    thread only, so in any other thread there is nothing to postpone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    postponed: set[signal.Signals] = set()

    def postpone(number: int, _: FrameType | None) -> None:
        postponed.add(signal.Signals(number))

    with ExitStack() as handlers:
        for number in (signal.SIGINT, signal.SIGTERM):
            # None: the handler was not installed from Python, so Python could not restore it.
            if signal.getsignal(number) not in (None, signal.SIG_IGN):
                handlers.callback(signal.signal, number, signal.getsignal(number))
                signal.signal(number, postpone)
        yield
    for number in sorted(postponed, reverse=True):  # SIGTERM first: it may end the process, SIGINT may be caught
        signal.raise_signal(number)


@contextmanager
def second_ends() -> Iterator[None]:
    """For the command line: the first SIGINT interrupts as usual, a second one ends the process like a kill."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # respect a handler that the caller installed
        return

    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted() -> bool:
    """Whether SIGINT arrived within `second_ends`; a library may have replaced the KeyboardInterrupt, or hidden it."""
    return signal.getsignal(signal.SIGINT) is _end


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, _end)
    raise KeyboardInterrupt


def _end(_: int, __: FrameType | None) -> NoReturn:
    os._exit(INTERRUPTED)
