"""Uneven shares: how to divide a budget among tables of different sizes.

Give table k, with n_k cells, the share s_k. The noise in each of its counts has a scale proportional to 1 / s_k
(Laplace) or a variance proportional to 1 / s_k (Gaussian). Summed over all counts of all tables, both are

    sum over k of n_k / s_k,        least, for shares that add up to 1, where s_k is proportional to sqrt(n_k)

So these shares give the least sum of standard errors under Laplace noise, and the least sum of variances under Gaussian
noise. Equal shares spend too much on a table of two cells and too little on one of twenty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from prade.core.errors import WorkloadError
from prade.data.declare.schema import Schema
from prade.planning.questions import Ask
from prade.privacy.budget import Number
from prade.queries.parts import Part
from prade.queries.workload import Workload

PRECISION = 1000  # square roots are whole multiples of 1 / PRECISION, so that shares are exact fractions


def weighted_asks(workload: Workload, share: Number = 1) -> tuple[Ask, ...]:
    """The tables of a workload as asks of a `Level`; each gets a part of `share` proportional to sqrt(its cells).

    Tables of one size go into one ask. Each table must have a cell for every row, as one-way and two-way tables do:
    tables that exclude each other would cost less in a single ask.

    >>> from prade.data.declare.schema import Schema
    >>> schema = Schema.from_mbi({"sex": 4, "age": 16, "work": 4})
    >>> for ask in weighted_asks(Workload.all_marginals(schema, 1)):
    ...     print([part.name for part in ask.workload], ask.share)
    ['sex', 'work'] 1/2
    ['age'] 1/2
    """
    if partial := [part for part in workload if not part.covers]:
        raise WorkloadError(
            f"part {partial[0].name!r} may have no cell for a row; weighted shares are for tables in which every row "
            "has a cell: ask the other queries in an Ask of their own"
        )
    by_size: dict[int, list[Part]] = {}
    for part in workload:
        by_size.setdefault(part.n_cells, []).append(part)
    weights = {size: len(parts) * math.isqrt(size * PRECISION**2) for size, parts in by_size.items()}
    unit = Ask(workload, share).share / sum(weights.values())  # the ask refuses an empty workload and a wrong share
    return tuple(Ask(Workload(workload.schema, by_size[size]), unit * weights[size]) for size in sorted(by_size))


def favoured_asks(
    schema: Schema, parts: Sequence[Part], first: Sequence[Part], times: Number, share: Number = 1, *, weighted: bool
) -> tuple[Ask, ...]:
    """Asks for some parts, of which each of the `first` gets `times` the part of `share` that another one gets.

    If `weighted`, parts also grow with the square root of their cells. Parts with equal shares go into one ask, the
    smallest shares first.

    >>> from prade.data.declare.schema import Schema
    >>> schema = Schema.from_mbi({"sex": 4, "age": 16, "work": 4})
    >>> sex, age, work = Workload.all_marginals(schema, 1)
    >>> for ask in favoured_asks(schema, [sex, age, work], [age], 4, weighted=False):
    ...     print([part.name for part in ask.workload], ask.share)
    ['sex', 'work'] 1/3
    ['age'] 2/3
    """
    whole, favour = Fraction(share), Fraction(times)
    by_weight: dict[Fraction, list[Part]] = {}
    for part in dict.fromkeys([*parts, *first]):
        weight = favour if part in first else Fraction(1)
        size = math.isqrt(part.n_cells * PRECISION**2) if weighted else 1
        by_weight.setdefault(weight * size, []).append(part)
    unit = whole / sum(weight * len(alike) for weight, alike in by_weight.items())
    asked = sorted(by_weight.items(), key=lambda each: each[0])
    return tuple(Ask(Workload(schema, alike), unit * weight * len(alike)) for weight, alike in asked)
