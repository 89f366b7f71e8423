"""Ctrl-C: held back where stopping would waste a budget, and heard everywhere else."""

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
    """Let the block come to its end before SIGINT or SIGTERM is heard; what came meanwhile is raised after it.

    If the block fails, its error is what is heard: that ends the work too, and says more. Python runs handlers of
    signals in the main thread only; in another thread there is nothing to hold back.

    >>> try:
    ...     with held_back():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("the block goes on")
    ... except KeyboardInterrupt:
    ...     print("and then it is heard")
    the block goes on
    and then it is heard
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: set[signal.Signals] = set()

    def hold(number: int, _: FrameType | None) -> None:
        came.add(signal.Signals(number))

    with ExitStack() as handlers:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) not in (None, signal.SIG_IGN):  # another language's handler cannot be put back
                handlers.callback(signal.signal, number, signal.getsignal(number))
                signal.signal(number, hold)
        yield
    for number in sorted(came, reverse=True):  # SIGTERM first: it may end the process, SIGINT may be caught
        signal.raise_signal(number)


@contextmanager
def second_ends() -> Iterator[None]:
    """For the command line: one SIGINT interrupts as ever, a second one ends the process, whatever it is waiting for.

    Every file is written whole or not at all, so this loses no more than a kill does: what was being worked on.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # whoever has another handler wants another end
        return

    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted() -> bool:
    """Whether SIGINT came within `second_ends`: libraries make errors of their own of it, or pass it over.

    >>> with second_ends():
    ...     try:
    ...         signal.raise_signal(signal.SIGINT)
    ...     except KeyboardInterrupt:
    ...         print(interrupted())
    True
    >>> interrupted()
    False
    """
    return signal.getsignal(signal.SIGINT) is _end


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, _end)
    raise KeyboardInterrupt


def _end(_: int, __: FrameType | None) -> NoReturn:
    os._exit(INTERRUPTED)
