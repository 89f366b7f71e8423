"""Rows from a distribution by systematic sampling, along an order in which neighbours are alike.

Only rows with weight are ever taken, so what cannot occur does not. Everything here is post-processing: seeded, free of
privacy cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import systematic
from prade.core.errors import EstimationError
from prade.data.joint import Codes
from prade.sampling.pair_tables import Pairs, PairTables

if TYPE_CHECKING:
    from prade.data.schema import Schema

ROWS_FOR_ORDER = 20_000  # enough for mutual information: the order only needs to be good, not best


def draw(weights: NDArray[Any], n: int, seed: int, *, order: Ints | None = None) -> Ints:
    """Systematic sample: n row numbers, row j floor(n q_j) or ceil(n q_j) times, n q_j on average.

    The rows are laid end to end in `order` (see `ordering`; None keeps their own order), each as long as its weight,
    and n equally spaced marks with a random start each pick a row. Any stretch of the order gets its share to within
    one row: the closer alike rows are together, the less the sample's tables vary. The result is in random order.

    >>> sorted(draw([0.5, 0.0, 0.25, 0.25], 4, seed=7).tolist())
    [0, 0, 2, 3]
    """
    q = checked_weights(weights)
    check_whole(n=n, seed=seed)
    generator = np.random.default_rng(seed)
    if order is None:
        rows = systematic(q, n, generator.random())
    else:
        along = checked_order(order, len(q))
        rows = np.asarray(along[systematic(q[along], n, generator.random())])
    generator.shuffle(rows)
    return rows


def ordering(codes: Codes, schema: Schema, *, pairs: Pairs = "all") -> Ints:
    """An order of the rows in which neighbours are alike: sorted column after column, the most telling column first.

    A column tells sum_b I(a; b), its mutual information with all others, counted on some 20,000 rows. The order
    does not depend on weights: calculate it once for all distributions on the same rows. With `pairs`, only they and
    their columns count.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 3, "b": 2, "c": 2})
    >>> rows = {"a": np.array([2, 0, 1, 0]), "b": np.array([0, 1, 0, 1]), "c": np.array([1, 0, 0, 1])}
    >>> ordering(rows, schema)       # a determines b, b says less about a, c is independent
    array([1, 3, 2, 0])
    """
    tables = PairTables(schema, codes, pairs)
    sparse = np.arange(0, tables.rows, max(1, tables.rows // ROWS_FOR_ORDER))
    keys: list[NDArray[np.uint64]] = []
    room = 0
    for a in np.argsort(-tables.information(sparse), kind="stable"):
        name = tables.names[a]
        size, code = schema[name].size, codes[name].astype(np.uint64)
        if room < size:  # columns share a 64-bit key as long as they fit: few keys sort faster than many columns
            keys.append(code)
            room = 2**64
        else:
            keys[-1] = keys[-1] * np.uint64(size) + code
        room //= size
    return np.lexsort(keys[::-1])


def check_whole(**settings: int) -> None:
    """Refuse what is not a whole number, 0 or more."""
    for name, value in settings.items():
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 0:
            raise EstimationError(f"{name} is {value!r}: give a whole number, 0 or more")


def checked_weights(weights: NDArray[Any]) -> Floats:
    """Weights of rows, if that is what they are."""
    q = np.asarray(weights, dtype=np.float64)
    if q.ndim != 1 or not np.isfinite(q).all() or (q < 0).any() or not q.sum() > 0:
        raise EstimationError("weights must be one finite number per row, none negative and not all zero")
    return q


def checked_order(order: Ints, rows: int) -> Ints:
    """An order of this many rows, if that is what it is."""
    given = np.asarray(order)
    fits = given.shape == (rows,) and given.dtype.kind in "iu" and given.min() >= 0 and given.max() < rows
    if not fits or (np.bincount(given, minlength=rows) != 1).any():
        raise EstimationError(
            f"order must have each of the {rows} rows once: take it from prade.sampling.draw.ordering"
        )
    return given
