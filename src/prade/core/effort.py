"""How much the tuner may do, unless somebody says otherwise."""

from __future__ import annotations

EFFORT = 120.0  # counted work: 1 is about what two idle cores do in a second
FEWEST_SECONDS = 600.0  # that it may take at most: the safety net of a machine that is slow or busy
SECONDS_PER_EFFORT = 5.0  # where that is more


def most_seconds(effort: float, seconds: float | None = None) -> float:
    """The seconds that the tuner may take at most, for an effort: those that are given, or enough for most machines.

    >>> most_seconds(120), most_seconds(1_000), most_seconds(120, 30)
    (600.0, 5000.0, 30)
    """
    return max(FEWEST_SECONDS, SECONDS_PER_EFFORT * effort) if seconds is None else seconds
