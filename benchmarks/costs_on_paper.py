"""What a job would cost that is too large to run here, from what smaller ones use and how that grows.

Of each stage, what is the same for every job (starting Python, loading compiled code) is taken off first. The rest is

    used = measured * (groups / measured groups)^a * (public rows / measured ones)^b * (parts / measured ones)^c

with exponents from runs in which one of the three was halved and quartered. Rows per group stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from common import table

NOTHING = 1e-3  # seconds or GiB: less cannot be told from what every job needs


@dataclass(frozen=True)
class Size:
    """How large a job is: groups of the last level, public rows, parts (columns, each with its one-way table)."""

    groups: float
    rows: float
    parts: float


NAMES = tuple(each.name for each in fields(Size))


def exponents(runs: Sequence[tuple[Size, float]], fixed: float = 0.0) -> dict[str, float]:
    """The exponents in groups, rows and parts: in each, from the runs that differ from the first one in it alone.

    >>> runs = [(Size(4, 9, 5), 3 + 72.0), (Size(2, 9, 5), 3 + 36.0), (Size(4, 3, 5), 3 + 8.0), (Size(4, 9, 10), 75.0)]
    >>> {name: round(each, 3) for name, each in exponents(runs, fixed=3).items()}
    {'groups': 1.0, 'rows': 2.0, 'parts': 0.0}
    """
    base, _ = runs[0]
    found = {}
    for name in NAMES:
        others = [each for each in NAMES if each != name]
        alike = [(size, used) for size, used in runs if all(getattr(size, o) == getattr(base, o) for o in others)]
        sizes = [getattr(size, name) for size, _ in alike]
        if len(set(sizes)) > 1:
            used = [max(each - fixed, NOTHING) for _, each in alike]
            found[name] = float(np.polyfit(np.log(sizes), np.log(used), 1)[0])
    return found


def on_paper(used: float, fixed: float, grows: Mapping[str, float], measured: Size, wanted: Size) -> float:
    """What a job of the wanted size would use.

    >>> on_paper(101.0, 1.0, {"groups": 1.0, "rows": 0.5}, Size(10, 100, 5), Size(20, 400, 5))
    401.0
    """
    factor = 1.0
    for name, exponent in grows.items():
        factor *= (getattr(wanted, name) / getattr(measured, name)) ** exponent
    return fixed + max(used - fixed, 0.0) * factor


def cost_table(
    stages: Mapping[str, tuple[float, float]],
    fixed: Mapping[str, tuple[float, float]],
    grows: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]],
    measured: Size,
    wanted: Sequence[Size],
) -> str:
    """Processor hours and GiB of every stage, as measured and on paper; each stage has (processor seconds, GiB)."""
    head = ["stage", "measured"]
    head += [f"on paper: {size.groups:,.0f} groups, {size.rows / 1e6:.1f} million public rows" for size in wanted]
    lines, sums = [], np.zeros(1 + len(wanted))
    for stage, used in stages.items():
        each = [used] + [
            tuple(on_paper(used[k], fixed[stage][k], grows[stage][k], measured, size) for k in (0, 1))
            for size in wanted
        ]
        lines.append([stage, *(f"{seconds / 3600:,.2f} h, {gib:,.1f} GiB" for seconds, gib in each)])
        sums += np.array([seconds / 3600 for seconds, _ in each])
    lines.append(["together", *(f"{hours:,.2f} h" for hours in sums)])
    return table(head, lines)
