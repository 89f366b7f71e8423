"""`Prior`, the starting distribution of an estimate: a set of distinct rows (the support) with their probabilities.

The probabilities come from public data alone; an estimate changes them as little as possible to fit the noisy answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import mass_per_cell, smallest_unsigned
from prade.core.errors import DataError, names_of
from prade.data.encoding import Coded, encode, normalised
from prade.data.joint import Codes, Joint

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

LARGEST_FULL_DOMAIN = 2**22


class Prior(Coded):
    """A distribution p on distinct coded rows, the support.

    It is made from a public table, from a mixture of several, or from an earlier estimate, or it is uniform on a small
    domain. `complete` says that the support consists of all cells of the domain; otherwise estimates can give no
    weight to rows that are not in the support.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 2, "b": 3})
    >>> prior = Prior.from_table(schema, {"a": [0, 0, 1], "b": [2, 2, 1]})
    >>> len(prior), prior.project(["a"])
    (2, array([0.66666667, 0.33333333]))
    """

    def __init__(self, schema: Schema, codes: Codes, weights: NDArray[np.float64], *, complete: bool = False) -> None:
        super().__init__(schema, codes, weights)
        if len(self) == 0:
            raise DataError("the prior has no rows; give a public table with at least one row")
        self.complete = complete

    def __repr__(self) -> str:
        kind = "full domain" if self.complete else "support"
        return f"Prior({len(self)} rows of the {kind}, {len(self.codes)} columns)"

    def with_weights(self, weights: NDArray[np.float64]) -> Prior:
        """The same rows with other weights, which are scaled to sum to one; the codes are not checked again."""
        other = copy(self)
        other.weights = normalised(weights, len(self), "weights")
        return other

    @classmethod
    def from_joint(cls, *joints: Joint, mixing: Sequence[float] | None = None) -> Prior:
        """The mixture sum_i mixing_i * joint_i of coded tables, priors or estimates over the same columns."""
        from prade.core.arrays import distinct_rows

        if not joints:
            raise DataError("a prior needs at least one table or distribution; none was given")
        shares = np.full(len(joints), 1.0) if mixing is None else np.asarray(mixing, float)
        if shares.shape != (len(joints),) or not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
            raise DataError(
                f"mixing is {mixing!r}; give a weight for each of the {len(joints)} sources, not negative and not all 0"
            )
        schema, names = joints[0].schema, joints[0].columns
        for other in joints[1:]:
            if other.columns != names or other.schema.select(names) != schema.select(names):
                raise DataError("the sources of a prior must be coded with the same schema and columns")
        codes = {name: np.concatenate([joint.codes[name] for joint in joints]) for name in names}
        weights = np.concatenate([s * j.weights for s, j in zip(shares, joints, strict=True)])
        positive = weights > 0
        if not positive.all():
            codes, weights = {name: code[positive] for name, code in codes.items()}, weights[positive]
        if len(weights) == 0:
            raise DataError("the prior has no rows with a weight above 0; give a public table that has some")
        first, number = distinct_rows(list(codes.values()))
        merged = mass_per_cell(number, weights, len(first))
        return cls(schema, {name: code[first] for name, code in codes.items()}, merged)

    @classmethod
    def from_table(
        cls, schema: Schema, table: Any, *, columns: Sequence[str] | None = None, weight: str | None = None
    ) -> Prior:
        """The prior of a public table or file; `weight` names a column of survey weights."""
        return cls.from_joint(encode(schema, table, columns=columns, weight=weight))

    @classmethod
    def uniform(cls, schema: Schema, columns: str | Sequence[str] | None = None) -> Prior:
        """The uniform distribution on a small domain: a prior without any knowledge."""
        names = names_of(schema.coded if columns is None else columns)
        shape = schema.shape(names)
        size = schema.domain_size(names)
        if size > LARGEST_FULL_DOMAIN:
            raise DataError(
                f"the full domain of {len(names)} columns has {size:.3g} cells, more than {LARGEST_FULL_DOMAIN}; "
                "use fewer columns, coarser bins, or a prior from a public table"
            )
        grid = np.unravel_index(np.arange(size), shape)
        codes = {name: code.astype(smallest_unsigned(n - 1)) for name, n, code in zip(names, shape, grid, strict=True)}
        return cls(schema, codes, np.full(size, 1.0 / size), complete=True)

    def on_full_domain(self) -> Prior:
        """The same distribution with one row for every cell of its domain, most of them with weight zero."""
        uniform = Prior.uniform(self.schema, self.columns)
        return Prior(self.schema, uniform.codes, self.project(self.columns).ravel(), complete=True)
