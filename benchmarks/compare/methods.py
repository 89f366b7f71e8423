"""MWEM, PMW^Pub, PrivBayes and the Laplace histogram, from their papers: a table in, a distribution and a total out.

They are not meant to be improved. Where they depart from their papers: MWEM and PMW^Pub choose among whole tables, and
a score is reduced by the noise to be expected in the answer (McKenna, Sheldon, Miklau 2019); after the last round they
learn all answers once more, with the best number of rows. PrivBayes measures the number of rows and allows two parents.
In the papers rows are exchanged; here they are added or removed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from compare.asking import TOTAL_SHARE, Table, dependence, joint, misfit
from prade import Schema, Workload
from prade.core.arrays import Floats, mass_per_cell
from prade.core.numbers import exact
from prade.data.public.joint import Coded, Prior, distinct_rows, joint_codes
from prade.queries.parts import Marginal
from prade.release.release import Measurement


class Method(Protocol):
    """What spends all epsilon of a table."""

    def ask(self, prior: Prior, table: Table) -> tuple[Prior, float]:
        """The estimated distribution, and the number of rows."""
        ...


@dataclass(frozen=True)
class MWEM:
    """Multiplicative weights with the exponential mechanism, on the prior's rows, from equal weights of distinct rows.

    In each of T rounds the table that q answers worst is chosen and asked for, each for half of the round's epsilon,

        score_k = sum over cells |true count - n q_k| - (cells of k) b        b: the noise scale of the next answer
        q_j <- q_j exp(rate (y_i - q_i)), renormalised, for all answers so far, `passes` times        j in cell i

    Hardt, Ligett, McSherry: A Simple and Practical Algorithm for Differentially Private Data Release (2012). With
    `public`, q starts from the prior's weights: PMW^Pub (Liu, Vietri, Steinke, Ullman, Wu 2021). The estimate is the
    average of the rounds' q, as in the papers, or the last one.
    """

    workload: Workload
    rounds: int = 20
    passes: int = 20
    rate: float = 0.5
    public: bool = False
    last: bool = False
    total_share: float = TOTAL_SHARE

    def start(self, prior: Prior) -> Floats:
        """The first weights."""
        if self.public:
            return np.array(prior.weights)
        first, kind = distinct_rows(list(prior.codes.values()))
        mass = mass_per_cell(kind, prior.weights, len(first))
        share = np.divide(prior.weights, mass[kind], out=np.zeros_like(prior.weights), where=prior.weights > 0)
        return np.asarray(share / (mass > 0).sum(), np.float64)

    def ask(self, prior: Prior, table: Table) -> tuple[Prior, float]:
        table.ask_total(self.total_share)
        half = table.left / (2 * self.rounds)
        noise = math.ceil(table.noise(half))
        learner = Learner(self, prior)
        for _ in range(self.rounds):
            scores = [
                misfit(part, np.rint(table.total * learner.masses(part)).astype(np.int64), part.n_cells * noise)
                for part in self.workload
            ]
            chosen = self.workload[table.choose(scores, half)]
            learner.learn(table.answer(chosen, half), table.total)
        learner = Learner(self, prior)
        for measurement in table.answers[1:]:
            learner.learn(measurement, table.total)
        return joint(prior.schema, prior.codes, learner.weights if self.last else learner.sum), table.total


class Learner:
    """The current weights q, and the sum of the weights of all rounds."""

    def __init__(self, settings: MWEM, prior: Prior) -> None:
        self.settings, self.prior, self.weights = settings, prior, settings.start(prior)
        self.sum = np.zeros_like(self.weights)
        self.answers: list[Measurement] = []
        self.cells: dict[Any, Any] = {}

    def masses(self, part: Any) -> Floats:
        """The estimated share of each cell."""
        if part not in self.cells:
            self.cells[part] = part.cells(self.prior.schema, self.prior.codes)
        return mass_per_cell(self.cells[part], self.weights, part.n_cells + 1)[: part.n_cells]

    def learn(self, measurement: Measurement, total: float) -> None:
        """One round: add the new answer to the old ones, then learn from all of them."""
        self.answers.append(measurement)
        for _ in range(self.settings.passes):
            for each in self.answers:
                step = self.settings.rate * (each.counts / total - self.masses(each.part))
                factor = np.exp(np.append(step, 0.0) - step.max(initial=0.0))  # the largest is 1: nothing overflows
                self.weights *= factor[self.cells[each.part]]
                self.weights /= self.weights.sum()
        self.sum += self.weights


@dataclass(frozen=True)
class Histogram:
    """Every cell of the full domain with Laplace noise, q_i = max(y_i, 0) / sum max(y, 0); Dwork et al. 2006."""

    most_cells: int = 2**20

    def ask(self, prior: Prior, table: Table) -> tuple[Prior, float]:
        if (cells := prior.schema.domain_size(prior.columns)) > self.most_cells:
            raise ValueError(
                f"the full domain of {len(prior.columns)} columns has {cells:.3g} cells, but a histogram may have at "
                f"most {self.most_cells:,}"
            )
        table.ask_total()
        positive = np.maximum(table.answer(Marginal.of(prior.schema, prior.columns), table.left).counts, 0.0)
        domain = Prior.uniform(prior.schema, prior.columns)
        return joint(prior.schema, domain.codes, positive if positive.any() else domain.weights), table.total


@dataclass(frozen=True)
class PrivBayes:
    """Columns join a network one by one, each with the parents on which it depends most (`dependence`).

        Pr(x_1, ..., x_d) = product over i of Pr(x_i | p_i)        Pr(x | p) = max(y[p, x], 0) / sum over x

    Parents qualify if their table with the column is theta-useful, n / cells >= theta b, and no larger set's is.
    `structure_share` of epsilon pays for the choices, the rest for the d tables; rows are drawn with `seed`.

    Zhang, Cormode, Procopiuc, Srivastava, Xiao: PrivBayes (2017).
    """

    theta: float = 4.0
    structure_share: float = 0.3
    most_parents: int = 2
    seed: int = 0

    def ask(self, prior: Prior, table: Table) -> tuple[Prior, float]:
        schema, columns = prior.schema, list(prior.columns)
        table.ask_total()
        total = table.total
        structure = table.left * exact(self.structure_share, "structure_share") if len(columns) > 1 else table.left * 0
        each = (table.left - structure) / len(columns)
        noise = float(table.noise(each))
        joined = [columns.pop(int(np.random.default_rng(self.seed).integers(len(columns))))]
        network = [Marginal.of(schema, joined)]
        while columns:
            candidates = [
                Marginal.of(schema, [*parents, name])
                for name in columns
                for parents in self.parent_sets(schema, joined, name, total / noise)
            ]
            chosen = table.choose([dependence(part) for part in candidates], structure / (len(prior.columns) - 1))
            network.append(candidates[chosen])
            joined.append(network[-1].columns[-1])
            columns.remove(joined[-1])
        answers = [table.answer(part, each) for part in network]
        return self.drawn(prior, answers, table.total), table.total

    def parent_sets(self, schema: Schema, joined: Sequence[str], name: str, signal: float) -> Iterator[tuple[str, ...]]:
        """The largest sets of parents whose tables with a column are theta-useful; `signal` is n / b."""
        largest: list[set[str]] = []
        for number in range(min(self.most_parents, len(joined)), -1, -1):
            for parents in itertools.combinations(joined, number):
                useful = signal >= self.theta * schema.domain_size([*parents, name])
                if (useful or not number) and not any(set(parents) <= larger for larger in largest):
                    largest.append(set(parents))
                    yield parents

    def drawn(self, prior: Prior, answers: Sequence[Measurement], total: float) -> Prior:
        """Rows drawn along the network of the tables, in each of which the last column has the others as parents."""
        generator = np.random.default_rng(self.seed)
        rows, codes = max(round(total), 1), dict[str, Any]()
        for measurement in answers:
            *parents, name = measurement.part.columns
            given = joint_codes(prior.schema, codes, parents).astype(np.int64) if parents else np.zeros(rows, np.int64)
            size = prior.schema.size(name)
            counts = np.maximum(measurement.counts, 0.0).reshape(-1, size)
            overall = counts.sum(axis=0) if counts.any() else np.ones(size)
            counts = np.where(counts.any(axis=1, keepdims=True), counts, overall)
            edges = np.cumsum(np.asarray(counts / counts.sum(axis=1, keepdims=True)), axis=1)
            edges[:, -1] = 1.0
            # each combination of parents gets its own unit interval, so that one search finds the codes of all rows
            line = (edges + np.arange(len(edges))[:, None]).ravel()
            found = np.searchsorted(line, given + generator.random(rows), side="right") - given * size
            codes[name] = np.clip(found, 0, size - 1).astype(np.min_scalar_type(size))
        return Prior.from_joint(Coded(prior.schema, {name: codes[name] for name in prior.columns}))
