"""How many processor cores there are to work with."""

from __future__ import annotations

import os


def cores() -> int:
    """The cores that this process may use: in a container, or under a batch system, fewer than the machine has.

    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
