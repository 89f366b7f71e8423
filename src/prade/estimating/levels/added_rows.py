"""Rows of no public person, added to the public table so that estimates can give weight to them.

An estimate gives weight to rows of its support only. Where private rows are of kinds that no public row is, three
sorts of rows are added; all are made from public rows and the plan, or from answers that are already paid for:

    the rest of a small domain    every combination of values that no public row has. Half of their weight is spread
                                  evenly, half as by the tree of the strongest links between columns (Chow and Liu)
    crossings                     on large domains: the columns on one side of a link of that tree come from one public
                                  row, those on the other side from another that has the same value at the link
    shown cells                   if the answers show private rows in a cell of a measured marginal that has no public
                                  row (`prade.estimating.levels.added_rows`): each of its columns, and those that
                                  are linked to it most, come from a public row that has the cell's value in it

`extra` of the settings is the weight of the first two together. Shown cells get about the share that their answers
have. A row that breaks a rule of the plan is not added. Added rows have the public group of the row that most of
their values come from. Nothing here is random: the draws have a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats, Ints, drawn_in_runs, mass_per_cell
from prade.core.compiled import systematic
from prade.data.declare.schema import Schema
from prade.data.public.joint import Information, Prior, RowIndex, distinct_rows
from prade.data.public.public import Public, middles_of_bins
from prade.estimating.levels.answers import RawAnswers, raw_answers
from prade.planning.invariants import ParsedRule, possible_cells
from prade.queries.parts import Marginal

if TYPE_CHECKING:
    from prade.privacy.noise_law import NoiseLaw
    from prade.queries.parts import Part
    from prade.release.release import Release

LARGEST_DOMAIN = 2**20  # cells of a domain that is added whole: about as many rows as a large public table has
MOST_CROSSED = 50_000  # rows: as many as a support of 200,000 can take without getting much slower
ROWS_FOR_LINKS = 20_000  # enough for mutual information: the tree only needs to be good, not best
# Rows of a shown cell, per public row that would have its share. With fewer, the tables of all other columns get
# coarse: on the ACS with a tenth of the people in a new value, an error of 0.215 rose to 0.219 with 200 rows for it.
ROWS_PER_ROW = 2
FEWEST_OF_CELL, MOST_OF_CELLS = 200, 60_000  # rows of a shown cell, and of all together
MOST_SHOWN = 0.5  # of the prior's weight, for all shown cells together
EVENLY = 0.5  # of the weight of the rest of a domain
SMOOTHING = 1.0  # rows that a simpler distribution counts for: that of all rows, and the uniform one beside it
SEED = 17


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows to add: codes by column, the numbers of numeric columns, public groups, and weights of any scale."""

    codes: Mapping[str, NDArray[Any]]
    numbers: Mapping[str, Floats]
    group: Ints
    weights: Floats

    def some(self, wanted: Flags) -> NewRows:
        """Some of the rows."""
        codes, numbers = ({name: each[wanted] for name, each in of.items()} for of in (self.codes, self.numbers))
        return NewRows(codes, numbers, self.group[wanted], self.weights[wanted])


def is_small(schema: Schema) -> bool:
    """Whether the domain is small enough to be added whole."""
    return schema.domain_size(schema.coded) <= LARGEST_DOMAIN


def with_extra(public: Public, share: float, rules: Sequence[ParsedRule]) -> Public:
    """The public table and, with this share of the weight, the rest of its domain if that is small, or crossings."""
    new = _rest_of_domain(public) if is_small(public.prior.schema) else _crossings(public)
    return _joined(public, _obeying(new, rules), share)


def with_shown(public: Public, shown: Sequence[ShownCell], rules: Sequence[ParsedRule]) -> Public:
    """The public table and rows in all shown cells.

    One kind of people may show in several marginals. Together the added rows have the weight of the marginal that has
    most, and the cells have it in proportion to their shares.
    """
    information = _information(public)
    wanted = [max(FEWEST_OF_CELL, ROWS_PER_ROW * cell.share * len(public)) for cell in shown]
    fitting = min(1.0, MOST_OF_CELLS / sum(wanted))
    new, of_part = list[NewRows](), dict[object, float]()
    for cell, number in zip(shown, wanted, strict=True):
        rows = _obeying(_in_cell(public, cell, math.ceil(fitting * number), information), rules)
        if size := len(rows.weights):
            new.append(replace(rows, weights=np.full(size, cell.share / size)))
            of_part[cell.part] = of_part.get(cell.part, 0.0) + cell.share
    return _joined(public, reduce(_and, new), min(max(of_part.values()), MOST_SHOWN)) if new else public


def _joined(public: Public, new: NewRows, share: float) -> Public:
    """The public table with new rows after its own, which have this share of the weight."""
    if (total := float(new.weights.sum())) <= 0:
        return public
    prior = public.prior
    codes = {name: np.concatenate([code, new.codes[name].astype(code.dtype)]) for name, code in prior.codes.items()}
    weights = np.concatenate([(1 - share) * prior.weights, share / total * new.weights])
    numbers = {name: np.concatenate([each, new.numbers[name]]) for name, each in public.numbers.items()}
    group = np.concatenate([public.group, new.group])
    return Public(Prior(prior.schema, codes, weights), public.groups, group, numbers, public.added + len(new.weights))


def _and(one: NewRows, other: NewRows) -> NewRows:
    return NewRows(
        {name: np.concatenate([each, other.codes[name]]) for name, each in one.codes.items()},
        {name: np.concatenate([each, other.numbers[name]]) for name, each in one.numbers.items()},
        np.concatenate([one.group, other.group]),
        np.concatenate([one.weights, other.weights]),
    )


def _obeying(new: NewRows, rules: Sequence[ParsedRule]) -> NewRows:
    return new.some(np.logical_and.reduce([rule.obeyed(new.codes) for rule in rules])) if rules else new


# ---------------------------------------------------------------------- the rest of a small domain


def _rest_of_domain(public: Public) -> NewRows:
    """Every row of the domain that no public row is."""
    prior = public.prior
    names = prior.columns
    domain = Prior.uniform(prior.schema, names)
    absent = prior.project(names).ravel() <= 0
    codes = {name: code[absent] for name, code in domain.codes.items()}
    by_tree = _tree_mass(prior, codes)
    evenly = np.full(len(by_tree), 1.0 / max(len(by_tree), 1))
    weights = EVENLY * evenly + (1 - EVENLY) * by_tree / max(float(by_tree.sum()), 1e-300)
    # groups take turns in proportion to their weights, so that each has rows from all over the domain
    order = np.random.default_rng(SEED).permutation(len(weights))
    group = np.empty(len(weights), np.int64)
    group[order] = systematic(public.group_weights, len(weights), 0.5)
    numbers = {name: _typical_numbers(public, name)[codes[name]] for name in public.numbers}
    return NewRows(codes, numbers, group, weights)


def _tree_mass(prior: Prior, codes: Mapping[str, NDArray[Any]]) -> Floats:
    """The probability of some rows if each column depends only on the one that it is linked to in the tree."""
    information = Information.of(prior)
    names, rows = information.columns, len(prior)

    def alone(name: str) -> Floats:
        return np.asarray((rows * prior.project((name,)) + SMOOTHING / prior.schema.size(name)) / (rows + SMOOTHING))

    mass = alone(names[0])[codes[names[0]]]
    for known, new in information.tree():
        both, own = prior.project((names[known], names[new])), alone(names[new])
        given = (rows * both + SMOOTHING * own) / (rows * both.sum(axis=1, keepdims=True) + SMOOTHING)
        mass = mass * given[codes[names[known]], codes[names[new]]]
    return np.asarray(mass)


def _typical_numbers(public: Public, name: str) -> Floats:
    """A number for each code of a numeric column: the mean of the public rows, or the bin's middle if it has none."""
    column, codes = public.prior.schema[name], public.prior.codes[name]
    known = codes < column.present
    weights, numbers = public.prior.weights[known], public.numbers[name][known]
    mass = mass_per_cell(codes[known], weights, column.present)
    mean = mass_per_cell(codes[known], weights * numbers, column.present) / np.maximum(mass, 1e-300)
    return np.append(np.where(mass > 0, mean, middles_of_bins(column)), np.full(column.size - column.present, np.nan))


# ---------------------------------------------------------------------- crossings


def _information(public: Public) -> Information:
    """What columns tell about each other, from some of the rows."""
    rows = np.arange(0, len(public), max(1, len(public) // ROWS_FOR_LINKS))
    return Information.of(public.take(rows).prior)


def _crossings(public: Public) -> NewRows:
    """Crossings of two public rows, as many at each link of the tree; those that are public rows are left out."""
    information, prior = _information(public), public.prior
    links = information.tree()
    if not links:
        return _copies(public, np.empty(0, np.int64), {})
    each = max(1, min(MOST_CROSSED, len(public)) // len(links))
    generator = np.random.default_rng(SEED)
    crossings = []
    for k, (known, _) in enumerate(links):
        name = information.columns[known]
        one = systematic(prior.weights, each, (k + 0.5) / len(links))
        index = RowIndex([prior.codes[name]], [prior.schema.size(name)])
        first, stop = index.runs([prior.codes[name][one]])
        place = drawn_in_runs(np.cumsum(prior.weights[index.order]), first, stop, generator.random(each))
        far = {links[k][1]}  # the columns on the far side of the link
        for near, beyond in links[k + 1 :]:  # a column comes after the one that it is linked to
            if near in far:
                far.add(beyond)
        other = {information.columns[c]: index.order[place].astype(np.int64) for c in far}
        crossings.append(_copies(public, one, other))
    crossed = reduce(_and, crossings)
    return crossed.some(_new(public, crossed))


def _copies(public: Public, rows: Ints, others: Mapping[str, Ints]) -> NewRows:
    """Rows whose values come from public rows, in some columns from other ones; all have the same weight."""
    codes = {name: code[others.get(name, rows)] for name, code in public.prior.codes.items()}
    numbers = {name: each[others.get(name, rows)] for name, each in public.numbers.items()}
    return NewRows(codes, numbers, public.group[rows], np.ones(len(rows)))


def _new(public: Public, rows: NewRows) -> Flags:
    """Which rows are like no public row and like no row before them."""
    first, _ = distinct_rows([np.concatenate([code, rows.codes[n]]) for n, code in public.prior.codes.items()])
    return np.isin(np.arange(len(public), len(public) + len(rows.weights)), first)


# ---------------------------------------------------------------------- shown cells


def _in_cell(public: Public, shown: ShownCell, number: int, information: Information) -> NewRows:
    """Rows in a cell; all have the same weight."""
    part = shown.part
    wanted = dict(zip(part.columns, (int(code) for code in np.unravel_index(shown.cell, part.sizes)), strict=True))
    donors = {name: _donors(public, name, code, number) for name, code in wanted.items()}
    linked = information.nats[[information.index(name) for name in part.columns]]
    nearest = [part.columns[k] for k in np.argmax(linked, axis=0)]
    from_whom = {name: donors[near] for name, near in zip(information.columns, nearest, strict=True)}
    from_whom |= donors
    most = max(part.columns, key=nearest.count)
    rows = _copies(public, donors[most], from_whom)
    codes, numbers = dict(rows.codes), dict(rows.numbers)
    for name, code in wanted.items():
        if (codes[name] != code).any():  # no public row has the value
            codes[name] = np.full(number, code).astype(codes[name].dtype)
            if name in numbers:
                numbers[name] = np.full(number, _typical_numbers(public, name)[code])
    return replace(rows, codes=codes, numbers=numbers)


def _donors(public: Public, name: str, code: int, number: int) -> Ints:
    """Public rows with a code, or any if there are none: with a value, if the code is one."""
    codes, weights = public.prior.codes[name], public.prior.weights
    has = codes == code
    if not has.any() and code < public.prior.schema[name].present:
        has = codes < public.prior.schema[name].present
    return systematic(np.where(has, weights, 0.0) if has.any() else weights, number, 0.5)


# ---------------------------------------------------------------------- cells that only the answers show

# An answer about an absent cell is noise alone unless private rows are in the cell. A chance of a false alarm is set
# for all that is looked at together and divided by the number of answers (Bonferroni); an answer shows private rows if
# noise alone exceeds it less often. The noise X of an answer is a sum of independent draws with weights of at most 1,
# and its variance v is known. For every s > 0, P(X >= t) <= E[exp(s X)] exp(-s t) (Chernoff), where
#
#     discrete Laplace draws     E[exp(s X)] <= 1 / (1 - v (cosh(s) - 1))     equal for one draw
#     discrete Gaussian draws    E[exp(s X)] <= exp(s^2 v / 2)
#
# (A sum of Laplace draws has thinner tails than one draw of the same variance. A discrete Gaussian of a variance below
# 1 has tails that v does not bound so well, but no wider ones than a discrete Laplace of the same variance.)


FALSE_ALARM = 0.01  # chance that any cell is shown that no private row is in
LARGEST_SHARE = 0.25  # of one cell: answers of a small table may be anything


@dataclass(frozen=True)
class ShownCell:
    """A cell of a marginal that answers show, and its share of all rows, as a power of 1/2 (it is a rough figure)."""

    part: Marginal
    cell: int
    halvings: int

    @property
    def share(self) -> float:  # of all rows
        return float(0.5**self.halvings)


def shown_cells(release: Release, absent_in: Callable[[Part], Flags]) -> tuple[ShownCell, ...]:
    """Cells of the measured marginals that are absent, but that the answers about all rows or about a group show.

    `absent_in(part)` says which cells of a part no public row is in. Cells that the rules forbid are not shown.
    """
    plan, cells = release.plan, list[ShownCell]()
    parts = [part for each in plan.questions if not each.is_total for part in each.parts]
    absent = {part: absent_in(part) for part in parts if isinstance(part, Marginal)}
    absent = {part: each for part, each in absent.items() if each.any()}
    if not absent:
        return ()
    looked_at = sum(int(each.sum()) for each in absent.values())
    first, last = (raw_answers(release, level) for level in (0, len(plan.levels) - 1))
    law, rows = plan.law, max(float(first.totals.sum()), 1.0)
    for part, none in absent.items():
        number = first.parts.index(part)
        counts = first.counts[number].sum(axis=0)
        limit = law.bound(float(first.variance[:, number].sum()), FALSE_ALARM / 2 / looked_at)
        estimate = np.where(counts > limit, counts, 0.0)
        if part in last.parts:
            estimate = np.maximum(estimate, _in_groups(last, part, law, FALSE_ALARM / 2 / looked_at))
        shown = none & (estimate > 0)
        if shown.any():
            shown &= possible_cells(part, plan.invariants, plan.schema)
        for cell in np.flatnonzero(shown).tolist():
            share = min(float(estimate[cell]) / rows, LARGEST_SHARE)
            cells.append(ShownCell(part, cell, round(-math.log2(share))))
    return tuple(cells)


def _in_groups(answers: RawAnswers, part: Part, law: NoiseLaw, chance: float) -> Floats:
    """Of each cell of a part, the rows in those groups whose own answers show it."""
    number, groups = answers.parts.index(part), len(answers.totals)
    counts, variances = answers.counts[number], answers.variance[:, number]
    limits = {v: law.bound(v, chance / groups) for v in np.unique(variances).tolist()}
    limit = np.array([limits[v] for v in variances.tolist()])
    return np.asarray(np.where(counts > limit[:, None], counts, 0.0).sum(axis=0))
