"""JAM-PGM: in each round, either a noisy private table or a public one joins a graphical model.

Fuentes, Mullins, McKenna, Miklau, Sheldon: Joint Selection: Adaptively Incorporating Public Information for Private
Synthetic Data (2024). A round's candidates are all tables of a workload, each once to be asked for and once to be taken
from the public rows, scaled to the number of private rows. A candidate's score is the model's error, less the error
that the candidate would have:

    asked for    sum |true - model|  -  cells * b                  b: the expected absolute value of the noise
    public       sum |true - model|  -  sum |true - public|

What is left of the budget is divided by the rounds that are left; `choosing` of a round's share pays for the choice
and the rest for an answer. A public table costs no more than the choice, so later rounds have more. Candidates with
which the model would be too large are left out; it may grow with what has been spent.

What differs from the paper: a pure budget, so Laplace noise and epsilons that add up (the paper has zCDP); rows are
added or removed, not exchanged, and the number of rows is measured (there it is known); one person moves a score by at
most 2 (`gain`); private selection is permute-and-flip; the workload is that of all scored pairs with their
one-way tables (there: three-way tables); and in the first round the model is the uniform distribution (in the authors'
program there is none, and candidates are compared by their own errors).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from compare.asking import Table, gain
from prade import Part, Workload
from prade.core.numbers import exact
from prade.data.declare.schema import Schema
from prade.data.public.joint import Coded, Prior

Known = Sequence[tuple[Part, np.ndarray]]


class Model(Protocol):
    """A distribution fitted to tables, whose counts add up to `total`."""

    def fit(self, known: Known, total: float) -> None:
        """Start from the last fit, and meet these tables as well as possible, with equal weights; uniform if none."""

    def counts(self, part: Part) -> np.ndarray:
        """The fitted counts of a part."""

    def megabytes(self, parts: Sequence[Part]) -> float:
        """How large a model of these parts would be."""


@dataclass(frozen=True)
class Jam:
    """The settings are those of the authors' program."""

    workload: Workload
    rounds: int = 30
    choosing: str = "0.2"
    total_share: float = 0.05
    most_megabytes: float = 80.0

    def ask(self, prior: Prior, table: Table, model: Model) -> tuple[float, list[str]]:
        """Fit a model in all rounds; the number of rows, and what was taken, a public table with "(public)" behind it.

        If the last rounds take public tables, the answers that they do not ask for are paid for and not used.
        """
        table.ask_total(self.total_share)
        whole = table.left
        shares = {part: prior.project(part.columns).ravel() for part in self.workload}
        taken: list[tuple[Part, np.ndarray | None]] = []  # counts of an answer, None for a public table
        model.fit([], table.total)
        for turn in range(self.rounds):
            total = table.total
            share = table.left / (self.rounds - turn)
            choosing = share * exact(self.choosing, "choosing")
            asking = share - choosing
            noise = table.noise(asking)
            used = max(1 - float(table.left / whole), 1 / self.rounds)
            parts = self._affordable(model, [part for part, _ in taken], used * self.most_megabytes)
            guesses = {part: np.rint(model.counts(part)).astype(np.int64) for part in parts}
            scores = [gain(part, guesses[part], None, math.ceil(part.n_cells * noise)) for part in parts]
            scores += [gain(part, guesses[part], np.rint(total * shares[part]).astype(np.int64)) for part in parts]
            index = table.choose(scores, choosing)  # the first half of the scores is of tables to ask for
            chosen = scores[index]
            answer = table.answer(chosen.part, asking).counts if index < len(parts) else None
            taken.append((chosen.part, answer))
            total = table.total
            model.fit([(part, total * shares[part] if each is None else each) for part, each in taken], total)
        return total, [part.name + " (public)" * (each is None) for part, each in taken]

    def _affordable(self, model: Model, taken: Sequence[Part], megabytes: float) -> list[Part]:
        """Parts that are in the model already, or with which it is not too large; without any, the smallest part."""
        found = [part for part in self.workload if part in taken or model.megabytes([*taken, part]) <= megabytes]
        return found or [min(self.workload, key=lambda part: part.n_cells)]


class Graphical:
    """mbi's graphical model of some columns, fitted by mirror descent."""

    def __init__(self, mbi: Any, schema: Schema, steps: int) -> None:
        from mbi.estimation import MirrorDescent

        self.mbi, self.schema, self.steps, self.estimator = mbi, schema, steps, MirrorDescent()
        self.domain = mbi.Domain(schema.coded, schema.shape(schema.coded))
        self.sizes = dict[frozenset[tuple[str, ...]], float]()
        self.model, self.total, self.factors = None, 0.0, list[tuple[tuple[str, ...], np.ndarray]]()

    def fit(self, known: Known, total: float) -> None:
        """Mirror descent from the last potentials."""
        self.total = total
        tables = [self.mbi.LinearMeasurement(counts, part.columns, 1.0) for part, counts in known]
        if tables:
            self.model = self.estimator.estimate(
                self.domain, tables, known_total=total, iters=self.steps, warm_start=self.model
            )
            logs = {names: np.asarray(each.values) for names, each in self.model.potentials.tables.items()}
            self.factors = [(names, np.exp(values - values.max())) for names, values in logs.items()]

    def counts(self, part: Part) -> np.ndarray:
        """The model's table of some columns; before the first fit, uniform.

        The sum of the product of all factors, by `opt_einsum`: mbi's own `project` compiles a program for each table
        and each model, which takes most of the time.
        """
        from opt_einsum import contract

        number = {name: k for k, name in enumerate(self.schema.coded)}
        columns, given = [number[name] for name in part.columns], []
        for name in part.columns:  # which may be in no factor
            given += [np.ones(self.schema.size(name)), [number[name]]]
        for names, values in self.factors:
            given += [values, [number[name] for name in names]]
        table = np.asarray(contract(*given, columns, optimize="greedy")).ravel()
        return table * (self.total / table.sum())

    def megabytes(self, parts: Sequence[Part]) -> float:
        """Of the junction tree's tables."""
        cliques = frozenset(part.columns for part in parts)
        if cliques not in self.sizes:
            self.sizes[cliques] = float(self.mbi.junction_tree.hypothetical_model_size(self.domain, sorted(cliques)))
        return self.sizes[cliques]

    def rows(self, number: int) -> Coded:
        """Rows of the model, rounded at random along its junction tree."""
        found = self.model.synthetic_data(number).to_dict()
        return Coded(self.schema, {name: np.asarray(found[name]) for name in self.schema.coded})
