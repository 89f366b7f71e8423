"""PrivBayes: a Bayesian network chosen privately, its conditional tables measured with Laplace noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.baselines.base import ask_total, check_settings, judged, number_of_rows
from prade.core.arrays import Floats, smallest_unsigned
from prade.core.errors import EstimationError
from prade.core.numbers import exact
from prade.data.public.joint import Coded, Prior, joint_codes
from prade.measuring.adaptive.session import Dependence, Door
from prade.privacy.budget import Budget
from prade.queries.parts import Marginal, Part

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema
    from prade.estimating.estimate import Estimate
    from prade.estimating.layout import Layout
    from prade.release.release import Measurement


@dataclass(frozen=True)
class PrivBayes:
    """Columns join a network one by one, each with the parents on which it depends most.

    The first of d columns is drawn at random. Each further column X is chosen together with its parents P, which are
    already in the network, by the exponential mechanism with score n R(X; P)
    (`prade.measuring.adaptive.scores.Dependence`). This costs `structure_share` of epsilon; the rest pays for the d
    tables (P, X):

        Pr(x_1, ..., x_d) = product over i of Pr(x_i | p_i)
        Pr(x | p) = max(y[p, x], 0) / sum over x max(y[p, x], 0)

    A column has as many parents as the noise allows: P qualifies if the table of (P, X) is theta-useful,

        n / cells(P, X)  >=  theta * b        the average count, compared with the noise scale b

    and that of no larger set of parents is; `most_parents` limits the running time. Rows are drawn along the network
    with `seed`; only the prior's columns matter.

    Zhang, Cormode, Procopiuc, Srivastava, Xiao: PrivBayes: Private Data Release via Bayesian Networks (2017). In that
    paper neighbouring tables differ by an exchanged row and n is known; here rows are added or removed, and n is
    measured.

    >>> from prade import Schema
    >>> from prade.release.release import Measurement
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> a, chain = Marginal.of(schema, ["a"]), Marginal.of(schema, ["a", "b"])
    >>> answers = [Measurement(a, [300, 100], 1.0), Measurement(chain, [300, -2, 0, 100], 1.0)]
    >>> PrivBayes(seed=1).fit(Prior.uniform(schema), answers, total=400).project(["a", "b"])[[0, 1], [1, 0]]
    array([0., 0.])
    """

    theta: float = 4.0
    structure_share: float = 0.3
    most_parents: int = 2
    seed: int = 0
    total_share: float = 0.05

    def __post_init__(self) -> None:
        shares = {"structure_share": self.structure_share, "total_share": self.total_share}
        check_settings(most_parents=self.most_parents, **shares)
        if not self.theta > 0:
            raise EstimationError(f"theta is {self.theta!r}; give a number above 0, such as 4")

    def parts(self, prior: Prior) -> Sequence[Part]:
        """Each column by itself; tables of several columns are counted when they become candidates."""
        return [Marginal.of(prior.schema, [name]) for name in prior.columns]

    def ask(self, prior: Prior, door: Door) -> Estimate:
        """Ask for the total, choose the network, and ask for its tables."""
        schema, columns = prior.schema, list(prior.columns)
        ask_total(prior, door, exact(self.total_share, "total_share"))
        total = number_of_rows(door.measurements)
        structure = door.left * exact(self.structure_share, "structure_share") if len(columns) > 1 else door.left * 0
        each = (door.left - structure) / len(columns)
        noise = float(Budget.pure(each).noise_scale(door.unit.rows, door.unit.rows**2))
        joined = [columns.pop(int(np.random.default_rng(self.seed).integers(len(columns))))]
        tables = [Marginal.of(schema, joined)]
        while columns:
            candidates = [
                Marginal.of(schema, [*parents, name])
                for name in columns
                for parents in self.parent_sets(schema, joined, name, total / noise)
            ]
            chosen = door.choose([Dependence(part) for part in candidates], structure / (len(prior.columns) - 1))
            tables.append(candidates[chosen])
            joined.append(tables[-1].columns[-1])
            columns.remove(joined[-1])
        answers = [door.answer(part, each) for part in tables]
        return self.fit(prior, answers, number_of_rows(door.measurements))

    def parent_sets(self, schema: Schema, joined: Sequence[str], name: str, signal: float) -> Iterator[tuple[str, ...]]:
        """The largest sets of parents whose tables with a column are theta-useful; `signal` is n / b.

        >>> from prade import Schema
        >>> schema = Schema.from_mbi({"a": 2, "b": 2, "c": 9, "x": 2})
        >>> list(PrivBayes(theta=4).parent_sets(schema, ["a", "b", "c"], "x", signal=80))
        [('a', 'b'), ('c',)]
        """
        largest: list[set[str]] = []
        for number in range(min(self.most_parents, len(joined)), -1, -1):
            for parents in itertools.combinations(joined, number):
                useful = signal >= self.theta * schema.domain_size([*parents, name])
                if (useful or not number) and not any(set(parents) <= larger for larger in largest):
                    largest.append(set(parents))
                    yield parents

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """Rows drawn along the network of the tables, in each of which the last column has the others as parents.

        (`layout` is not used, because the rows are new.)
        """
        _check_network(prior, measurements, total)
        generator = np.random.default_rng(self.seed)
        rows, codes = max(round(total), 1), dict[str, NDArray[Any]]()
        for measurement in measurements:
            *parents, name = measurement.part.columns
            given = joint_codes(prior.schema, codes, parents).astype(np.int64) if parents else np.zeros(rows, np.int64)
            size = prior.schema.size(name)
            edges = np.cumsum(_conditional(measurement, size), axis=1)
            edges[:, -1] = 1.0
            # each combination of parents gets its own unit interval, so that one search finds the codes of all rows
            line = (edges + np.arange(len(edges))[:, None]).ravel()
            drawn = np.searchsorted(line, given + generator.random(rows), side="right") - given * size
            codes[name] = np.clip(drawn, 0, size - 1).astype(smallest_unsigned(size))
        support = Prior.from_joint(Coded(prior.schema, {name: codes[name] for name in prior.columns}))
        return judged(self, support, support.weights, measurements, total)


def _conditional(measurement: Measurement, size: int) -> Floats:
    """Pr(x | p), one row per combination of parents; without positive counts, the distribution over all parents."""
    table = np.maximum(measurement.counts, 0.0).reshape(-1, size)
    overall = table.sum(axis=0) if table.any() else np.ones(size)
    table = np.where(table.any(axis=1, keepdims=True), table, overall)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _check_network(prior: Prior, measurements: Sequence[Measurement], total: float) -> None:
    if not 0 < total < np.inf:
        raise EstimationError(f"total is {total!r}: the number of rows to draw must be a positive number")
    joined = list[str]()
    for part in (measurement.part for measurement in measurements):
        *parents, name = part.columns
        if not isinstance(part, Marginal) or name in joined or not set(parents) <= set(joined):
            raise EstimationError(
                f"{part.name}: a network's tables must be marginals, each of columns of earlier tables and one new "
                "column at the end"
            )
        joined.append(name)
    if set(joined) != set(prior.columns):
        raise EstimationError(
            f"the network has {len(joined)} columns, but the prior has {len(prior.columns)}; the network needs all of "
            "them"
        )
