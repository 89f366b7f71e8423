"""Strategies for workloads of marginals: other marginals, each with its share of the budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.core.arrays import Floats
from prade.core.errors import EstimationError, WorkloadError
from prade.core.threads import single_threaded_blas
from prade.planning.strategy.base import Choice, Norm, Reconstruction, Strategy, check_norm, checked_importance, choose
from prade.planning.strategy.search import LARGEST_CLOSURE, Lattice, marginal_weights, members, subsets
from prade.queries.parts import Marginal, Part, everybody

if TYPE_CHECKING:
    from prade.data.schema import Schema
    from prade.planning.questions import Ask


@dataclass(frozen=True)
class Question:
    """Measure the marginal of `columns` (none: the total count) with `share` of the budget.

    With share s, sequential composition gives eps s or rho s to this marginal: Laplace noise of scale rows / (eps s),
    or Gaussian noise of variance rows^2 / (2 rho s), on whole counts.
    """

    columns: tuple[str | int, ...]
    sizes: tuple[int, ...]
    share: Fraction

    @property
    def n_cells(self) -> int:
        """Number of counts."""
        return math.prod(self.sizes)

    def part(self, schema: Schema) -> Part:
        """The question as a part of a workload."""
        if self.columns:
            return Marginal.of(schema, [str(name) for name in self.columns])
        return everybody(schema, schema.coded[0])


class MarginalStrategy(Strategy):
    """A weighted union of marginals: `questions`, whose shares of the budget add up to exactly 1."""

    questions: tuple[Question, ...]

    def __init__(
        self,
        names: Sequence[str | int],
        lattice: Lattice,
        asked: Sequence[tuple[int, ...]],
        shares: Mapping[int, Fraction],
        norm: Norm,
        choice: Choice,
        errors: Mapping[str, float],
    ) -> None:
        self.norm, self.choice, self.errors = norm, choice, dict(errors)
        self._names, self._lattice, self._asked, self._shares = tuple(names), lattice, tuple(asked), dict(shares)
        self.questions = tuple(
            Question(tuple(names[i] for i in members(mask)), tuple(lattice.sizes[i] for i in members(mask)), share)
            for mask, share in self._shares.items()
        )
        squares = _squares(lattice, self._shares, norm)
        self._lambda = dict(zip(lattice.closure, lattice.spectrum(squares).tolist(), strict=True))
        self._ranks = dict(zip(lattice.closure, lattice.ranks.tolist(), strict=True))
        self._squares = {mask: float(squares[lattice.place[mask]]) for mask in self._shares}
        unit = 2.0 if norm == 1 else 0.5
        variances = []
        for columns in self._asked:
            cells = math.prod(lattice.sizes[i] for i in columns)
            # by symmetry all cells of a marginal have the same variance: the trace, shared out
            parts = (self._ranks[t] / self._lambda[t] for t in subsets(_mask(columns)) if self._ranks[t])
            variances.append(np.full(cells, unit * sum(parts) / float(cells) ** 2))
        self.variances = np.concatenate(variances)

    def asks(self, schema: Schema) -> list[Ask]:
        """The questions as asks of a `Level`, one each: a release of them answers this strategy, in its order."""
        from prade.planning.questions import Ask
        from prade.queries.workload import Workload

        return [Ask(Workload(schema, [question.part(schema)]), question.share) for question in self.questions]

    def reconstruct(self, noisy: Sequence[ArrayLike], budget: float | Fraction = 1, rows: int = 1) -> Reconstruction:
        """One array of noisy counts a question -> answers of the asked marginals, laid end to end.

        The full table is never written out: with P_T y the marginal y summed down to T and centred along each column,

            answer_S = sum_{T subset S} N_T / (N_S lambda_T) sum_{Q superset T} u_Q / N_Q P_T y_Q.
        """
        if len(noisy) != len(self.questions):
            raise EstimationError(f"expected {len(self.questions)} arrays, one a question, got {len(noisy)}")
        tables: list[tuple[int, dict[int, Floats]]] = []
        for mask, question, given in zip(self._shares, self.questions, noisy, strict=True):
            values = np.asarray(given, dtype=np.float64)
            if values.size != question.n_cells or not np.isfinite(values).all():
                raise EstimationError(
                    f"the question on {question.columns} has {question.n_cells} counts, all finite; "
                    f"got an array of shape {values.shape}"
                )
            tables.append((mask, {mask: values.reshape(self._shape(mask))}))
        wanted = sorted({t for columns in self._asked for t in subsets(_mask(columns)) if self._ranks[t]})
        pieces = {t: self._piece(t, tables) for t in wanted}
        answers = []
        for columns in self._asked:
            mask = _mask(columns)
            total = np.zeros(self._shape(mask))
            for t in subsets(mask):
                if t in pieces:
                    total = total + pieces[t]
            total = total / self._lattice.cells_of(mask)
            absent = tuple(i for i in range(len(self._names)) if not mask >> i & 1)
            axes = members(mask)
            answers.append(total.squeeze(absent).transpose([axes.index(i) for i in columns]).ravel())
        return Reconstruction(np.concatenate(answers), self.expected_std(budget, rows))

    def exact(self, histogram: ArrayLike) -> list[NDArray[Any]]:
        """True counts of each question, from a histogram over all columns (C order)."""
        full = np.asarray(histogram).reshape(self._lattice.sizes)
        return [full.sum(axis=tuple(i for i in range(full.ndim) if not mask >> i & 1)).ravel() for mask in self._shares]

    def _shape(self, mask: int) -> tuple[int, ...]:
        return tuple(size if mask >> i & 1 else 1 for i, size in enumerate(self._lattice.sizes))

    def _piece(self, t: int, tables: list[tuple[int, dict[int, Floats]]]) -> Floats:
        """N_T / lambda_T sum_Q u_Q / N_Q P_T y_Q."""
        total = np.zeros(self._shape(t))
        for mask, sums in tables:
            if mask & t == t:
                total += self._squares[mask] / self._lattice.cells_of(mask) * _summed(sums, mask, t)
        for i in members(t):
            total -= total.mean(axis=i, keepdims=True)
        piece: Floats = self._lattice.cells_of(t) / self._lambda[t] * total
        return piece


def _summed(sums: dict[int, Floats], mask: int, t: int) -> Floats:
    """The table `sums[mask]` summed down to the columns t; sums on the way are kept for the next."""
    if t not in sums:
        i = (mask & ~t).bit_length() - 1
        sums[t] = _summed(sums, mask, t | 1 << i).sum(axis=i, keepdims=True)
    return sums[t]


def _mask(columns: Iterable[int]) -> int:
    return sum(1 << i for i in columns)


def _squares(lattice: Lattice, shares: Mapping[int, Fraction], norm: int) -> Floats:
    """u_S: inverse noise variances, up to the unit. Laplace noise falls as 1 / share, Gaussian as 1 / sqrt(share)."""
    squares = np.zeros(len(lattice.candidates))
    for mask, share in shares.items():
        squares[lattice.place[mask]] = float(share) ** (2 if norm == 1 else 1)
    return squares


def weighted_marginals(
    domain: Schema | Mapping[str, int] | Sequence[int],
    marginals: Iterable[str | Part | Sequence[str] | Sequence[int]],
    norm: Norm = 1,
    *,
    importance: Sequence[float] | None = None,
    max_cells: int = 2**22,
    seed: int = 0,
) -> MarginalStrategy:
    """Which marginals to measure, and with which shares of the budget, so that `marginals` are answered best.

    minimise over theta >= 0    ||A||^2 sum_T r_T mu_T / lambda_T(theta),    A = union of theta_S Q_S

    with ||A|| = sum theta (norm 1, Laplace) or sqrt(sum theta^2) (norm 2, Gaussian);
    `prade.planning.strategy.search.Lattice` explains the other letters. For norm 2 the result is the best weighted
    union of the candidate marginals; for norm 1 it is a local optimum. Never worse than the marginals themselves or the
    full table (where that has at most `max_cells` cells).

    `domain` is a schema, {name: size}, or sizes (columns are then numbers); `marginals` names columns, () is the total.
    `importance` weighs the squared errors of the marginals against each other in the search and in `errors`.

    >>> strategy = weighted_marginals({"a": 2, "b": 2, "c": 2}, [("a",), ("a", "b"), ("b", "c")])
    >>> strategy
    MarginalStrategy(identity, laplace, expected_error=48)
    >>> [(question.columns, str(question.share)) for question in strategy.questions]
    [(('a', 'b', 'c'), '1')]
    """
    check_norm(norm)
    asked_names = [_columns(entry) for entry in marginals]
    if not asked_names:
        raise WorkloadError("the list of marginals is empty; give at least one")
    names, sizes = _domain(domain, asked_names)
    place = {name: i for i, name in enumerate(names)}
    asked = [tuple(place[name] for name in columns) for columns in asked_names]
    weights = checked_importance(importance, len(asked))
    if len(names) > 62 or sum(2 ** len(columns) for columns in set(asked)) > LARGEST_CLOSURE:
        raise WorkloadError(
            f"{len(asked)} marginals on {len(names)} columns have too many sub-marginals; use at most 62 columns and "
            f"at most {LARGEST_CLOSURE:,} sub-marginals (a marginal of k columns has 2^k)"
        )
    lattice = Lattice(sizes, map(_mask, asked), max_cells)
    workload = np.zeros(len(lattice.candidates))
    for columns, weight in zip(asked, weights, strict=True):
        workload[lattice.place[_mask(columns)]] += weight
    spectrum = lattice.spectrum(workload)
    demand = lattice.ranks * spectrum
    with single_threaded_blas():
        theta = marginal_weights(lattice, demand, norm, workload, seed=seed)
    distinct = sorted({_mask(columns) for columns in asked})
    options: dict[Choice, dict[int, Fraction]] = {
        "workload": {mask: Fraction(1, len(distinct)) for mask in distinct},
        "identity": {lattice.full: Fraction(1)},
        "optimised": _rounded(lattice.candidates, theta if norm == 1 else theta**2),
    }
    unit = 2.0 if norm == 1 else 0.5
    errors: dict[str, float] = {
        name: unit * lattice.trace(demand, _squares(lattice, shares, norm))
        if set(shares) <= set(lattice.place)
        else math.inf
        for name, shares in options.items()
    }
    cells = sum(weight * lattice.cells_of(_mask(columns)) for columns, weight in zip(asked, weights, strict=True))
    errors["raw"] = unit * cells * len(asked) ** (2 if norm == 1 else 1)
    errors["bound"] = unit * float((lattice.ranks * np.sqrt(spectrum)).sum()) ** 2
    choice = choose(errors)
    return MarginalStrategy(names, lattice, asked, options[choice], norm, choice, errors)


def _rounded(candidates: Sequence[int], shares: Floats) -> dict[int, Fraction]:
    """Shares as fractions that add up to exactly 1: the largest takes what rounding leaves."""
    unit = 10**9
    parts = {mask: round(share * unit) for mask, share in zip(candidates, shares.tolist(), strict=True)}
    parts[max(parts, key=lambda mask: parts[mask])] += unit - sum(parts.values())
    return {mask: Fraction(part, unit) for mask, part in parts.items() if part}


def _columns(entry: Any) -> tuple[Any, ...]:
    if isinstance(entry, Part):
        if not isinstance(entry, Marginal):
            raise WorkloadError(
                f"part {entry.name!r} is no marginal; use p_identity or best_strategy for other queries"
            )
        return entry.columns
    columns = (entry,) if isinstance(entry, (str, int)) else tuple(entry)
    if len(set(columns)) < len(columns):
        raise WorkloadError(f"marginal {columns} names a column twice; name each once")
    return columns


def _domain(domain: Any, asked: Sequence[tuple[Any, ...]]) -> tuple[list[Any], list[int]]:
    """The columns that take part, in the domain's order, and their sizes. Columns nobody asks about drop out."""
    if hasattr(domain, "coded"):
        known: dict[Any, int] = {name: domain.size(name) for name in domain.coded}
    elif isinstance(domain, Mapping):
        known = dict(domain)
    else:
        known = dict(enumerate(domain))
    touched = {name for columns in asked for name in columns}
    if unknown := sorted(map(repr, touched - set(known))):
        raise WorkloadError(f"unknown column {unknown[0]}; the domain has {', '.join(map(str, known))}")
    names = [name for name in known if name in touched] or list(known)[:1]
    return names, [int(known[name]) for name in names]
