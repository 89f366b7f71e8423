"""All estimates of a release: answers with their standard errors, and the file of the estimates.

Queries and tables are answered from the distributions themselves (`prade.estimating.levels.distributions`), without
sampling.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from prade.core.arrays import Floats
from prade.core.documents import Malformed, structured
from prade.core.errors import WorkloadError
from prade.core.threads import cores
from prade.core.words import names_of
from prade.data.parquet_with_header import IncompatibleFile, damage_reported, read_header, write_with_header
from prade.data.public import AGAIN, Public
from prade.estimating.levels.answer_tables import cell_columns, count_table, value_table
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.asked_rows import (
    Piece,
    asked_schema,
    basis_of,
    counted,
    need_numbers,
    pieces_of,
    read_query,
)
from prade.estimating.levels.basis import basis
from prade.estimating.levels.blocks import blocks_of
from prade.estimating.levels.cell_counts import cell_counts
from prade.estimating.levels.descent import Descent, GroupEstimate, Parent
from prade.estimating.levels.distributions import Distributions, LevelEstimates
from prade.estimating.levels.estimates_file import FORMAT, Header, Row, rows_of
from prade.estimating.levels.labelled_tables import described_by, described_columns, with_labels
from prade.estimating.levels.public_cells import PublicCells
from prade.estimating.levels.residuals import birge_ratios, shares_of_level
from prade.estimating.levels.statistics import Asked, mean_of, quantile_of, ratio_of, sum_of
from prade.planning.invariants import obeying, possible_cells
from prade.planning.settings import IN_EARLIER_FILES, Settings
from prade.queries.asked import Statistic, statistic_of
from prade.queries.parts import Part
from prade.queries.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.release.release import Release

Result = TypeVar("Result")


class Estimates(Distributions):
    """The estimates of a release: answers with their error bars, and a file."""

    @classmethod
    def of(
        cls,
        release: Release,
        public: Public,
        settings: Settings | None = None,
        *,
        threads: int = 1,
        seed: int = 0,
        cells: PublicCells | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Estimates:
        """Estimate every group of every level; `progress(done, all)` is called after each.

        `cells` is what other estimates from the same public table share.
        """
        public = obeying(public, release.plan.invariants)
        descent = Descent(release, public, settings, threads=threads, seed=seed, cells=cells)
        parents, levels = descent.top, list[LevelEstimates]()
        number = sum(len(grouping) for grouping in release.plan.groupings)
        done, followed, masses = 0, list[list[Floats]](), list[Floats]()
        for level in range(len(release.plan.levels)):
            last = level == len(release.plan.levels) - 1
            parts = raw_answers(release, level).parts
            every = descent.support.layout(raw_answers(release, 0).parts)  # the first level has the parts of all
            kept, made = list[_Kept](), list[Parent]()
            followed.append([])
            for each in descent.level(level, parents, lambda each: each):
                kept.append(_Kept.of(each, parts))
                if each.followed:
                    followed[-1].append(np.concatenate([each.followed[part] for part in parts]))
                if last:
                    masses.append(every.masses_of(every.collapsed(each.estimate.weights)))
                else:
                    made.append(each.parent)
                done += 1
                if progress is not None:
                    progress(done, number)
            levels.append(_level_of(parts, kept))
            parents = made
        estimates = cls(release, public, descent.settings, levels)
        estimates.cells = descent.cells
        if estimates.benchmarked:
            estimates._widen(np.stack(masses), [np.stack(each) for each in followed])
        return estimates

    def _widen(self, masses: Floats, followed: Sequence[Floats]) -> None:
        """Have the error bars follow the release's own residuals; the arguments are for `birge_ratios`, by level."""
        found = []
        for level, kept in enumerate(self.levels):
            grouping = self.plan.groupings[level]
            above = self.plan.groupings[-1].above(grouping)
            shares = shares_of_level(masses, self.levels[0].parts, kept.parts, self.totals, above, len(grouping))
            reachable, recurs = self.layouts[level].reachable, self.priors[level].recurs
            ratios = birge_ratios(self.answers[level], kept.totals, followed[level], shares, reachable, recurs)
            assert kept.fitted is not None
            fitted = kept.fitted.copy()
            fitted[:, :, 3] = ratios
            found.append(replace(kept, fitted=fitted))
        self.levels = tuple(found)

    # ---------------------------------------------------------------- answers

    def answer(
        self,
        query: str,
        by: str | Sequence[str] = (),
        *,
        of: str | None = None,
        labels: bool = False,
        threads: int | None = None,
    ) -> pa.Table:
        """Answer a question for the groups `by`, with a 95 % interval.

        * A query such as "AGEP >= 65 and SEX == 2" counts rows. Columns: the groups', count, share (of the group's
          rows), sd (of the share), low and high (of the count), basis.
        * With `of`, a second query: the count of the first per row of the second. Columns: the groups', value, sd, low
          and high (of the value), basis.
        * "mean(WAGP)", "sum(WAGP)", "median(WAGP)" and "quantile(WAGP, 0.9)", each also with "where SEX == 2" after it:
          the same columns. Rows without a value are left out. Numbers inside a bin are those of public rows.
        * "histogram(WAGP)": counts, with the bin in the columns WAGP_from and WAGP_to.

        A value that cannot be given because no row is left is null. A query may also use the groups' columns. With
        `labels`, each group's value and each bin has its text for readers beside it, as in STATE_label.

        The interval is for the true figure of the private table itself, whether its rows are a sample or not. It covers
        the noise and the prior's error, as far as differences between public groups and this release's own answers show
        it (`prade.estimating.levels.error_bars`). It hardly covers people of a kind that the public table lacks (such
        a cell has a count of 0), nor a private table that differs from the public one in a way in which
        public groups do not differ from each other. `basis` says what it rests on (`prade.estimating.levels.basis`).
        """
        found = self._answer(query, by, of, cores() if threads is None else threads)
        return with_labels(found, described_by(self.plan, query, by)) if labels else found

    def _answer(self, query: str, by: str | Sequence[str], of: str | None, threads: int) -> pa.Table:
        statistic = statistic_of(query, asked_schema(self.plan))
        if statistic is not None:
            if of is not None:
                raise WorkloadError(f"{statistic.text} is not a count: a ratio takes two queries that count rows")
            return self._statistic(statistic, by, threads)
        queries = [read_query(self, text) for text in (query, of) if text is not None]
        pieces = pieces_of(self, queries)
        words = basis_of(self.plan, by, pieces)
        if of is not None:
            return value_table(ratio_of(Asked(self, by, pieces, threads)), words)
        return count_table(counted(self, by, pieces, threads=threads), words)

    def _statistic(self, asked: Statistic, by: str | Sequence[str], threads: int) -> pa.Table:
        column = self.plan.schema[asked.column]
        queries = [] if asked.where is None else [read_query(self, asked.where)]
        everybody = np.ones(len(self.public), np.bool_)
        pieces = pieces_of(self, queries) if queries else [Piece(None, (True,), (everybody,))]
        if asked.kind == "histogram":
            codes, size = self.public.prior.codes[column.name].astype(np.int64), column.present
            cells = [(np.where(piece.rows[0], np.minimum(codes, size), size), size) for piece in pieces]
            marginal = Workload.marginals(self.plan.schema, [column.name])[0]
            word = "model" if queries else basis(self.plan, by, marginal)
            found = counted(self, by, pieces, cells, threads=threads)
            return count_table(found, word, cell_columns([column], missing=False))
        numbers, rows = need_numbers(self, column.name), Asked(self, by, pieces, threads)
        if asked.kind == "quantile":
            return value_table(quantile_of(rows, column.name, numbers, asked.at), "model", column)
        make = mean_of if asked.kind == "mean" else sum_of
        return value_table(make(rows, column.name, numbers), "model")

    def marginal(
        self,
        columns: str | Sequence[str],
        by: str | Sequence[str] = (),
        *,
        labels: bool = False,
        threads: int | None = None,
    ) -> pa.Table:
        """The table of some columns for the groups `by`: one row per group and cell, with the columns of `answer`.

        Each column has its value, null for missing. A numeric column AGE has the bounds of its bin instead, in AGE_from
        and AGE_to: its numbers are at least AGE_from and below AGE_to (or equal to it, if it is the schema's maximum);
        an open end is null. Each interval is for its own cell: of 100 true counts, about 5 are outside theirs. With
        `labels`, the text for readers of each value or bin is beside it, as in AGE_label.
        """
        part = Workload.marginals(self.plan.schema, [names_of(columns)])[0]
        cells = part.cells(self.plan.schema, self.public.prior.codes), part.n_cells
        found = cell_counts(self, by, cells, threads=cores() if threads is None else threads)
        found = found.limited_to(possible_cells(part, self.plan.invariants, self.plan.schema))
        described = cell_columns([self.plan.schema[name] for name in part.columns])
        table = count_table(found, basis(self.plan, by, part), described)
        return with_labels(table, described_columns(self.plan, part.columns, by)) if labels else table

    # ---------------------------------------------------------------- the file

    def save(self, path: str | PathLike[str]) -> None:
        """Write a parquet file: one row per group of each level."""
        import pyarrow as pa

        columns: dict[str, list[Any]] = {
            name: []
            for name in (
                "level",
                "group",
                "total",
                "status",
                "kl",
                "gap",
                "multipliers",
                "alike",
                "spread",
                "excess",
                "emptied",
            )
        }
        for planned, level, grouping in zip(self.plan.levels, self.levels, self.plan.groupings, strict=True):
            size = len(grouping)
            columns["level"] += [planned.name] * size
            columns["group"] += grouping.labels()
            columns["total"] += level.totals.tolist()
            columns["status"] += level.status
            columns["kl"] += level.kl.tolist()
            columns["gap"] += level.gap.tolist()
            columns["multipliers"] += level.multipliers.tolist()
            columns["alike"] += [None] * size if level.alike is None else level.alike.tolist()
            columns["spread"] += [None] * size if level.fitted is None else level.fitted.tolist()
            columns["excess"] += [None] * size if level.excess is None else level.excess.tolist()
            columns["emptied"] += level.emptied
        header = {"format": FORMAT, "settings": asdict(self.settings), "inputs": inputs_hash(self.release, self.public)}
        write_with_header(pa.table(columns), header, path)

    @classmethod
    def load(cls, path: str | PathLike[str], release: Release, public: Public) -> Estimates:
        """Read what `save` wrote; the release and the public table must be those that it was made from."""
        from prade.data.tables import read_table

        table, levels, public = read_table(path), [], obeying(public, release.plan.invariants)
        with damage_reported(path, "saved estimates", AGAIN):
            header = read_header(table, Header, path, FORMAT)
            if header.format < FORMAT:
                raise IncompatibleFile(f"{path} was made by an earlier version of prade: {AGAIN}")
            if header.inputs != inputs_hash(release, public):
                raise IncompatibleFile(
                    f"{path} was made from another release or public table; remove it, or give the same ones"
                )
            written = {**IN_EARLIER_FILES, **header.settings}
            settings = structured(written, Settings)
            if asdict(settings) != written:
                raise Malformed("some settings are missing")
            rows = rows_of(table, len(public.groups))
            for level, grouping in enumerate(release.plan.groupings):
                mine, rows = rows[: len(grouping)], rows[len(grouping) :]
                if [row.group for row in mine] != grouping.labels():
                    raise Malformed("rows are missing, or in another order")
                levels.append(_level_of(raw_answers(release, level).parts, [_Kept.read(row) for row in mine]))
            if rows:
                raise Malformed("there are more rows than groups")
        return cls(release, public, settings, levels)


@dataclass(frozen=True)
class _Kept:
    """What is kept of one group's estimate."""

    total: float
    status: str
    kl: float
    gap: float
    multipliers: Floats
    alike: Floats | None
    fitted: Floats | None
    excess: Floats | None
    emptied: bytes | None

    @classmethod
    def of(cls, made: GroupEstimate, parts: Sequence[Part]) -> _Kept:
        report, multipliers = made.estimate.report, made.estimate.multipliers
        if multipliers is None:  # the answers were hopeless: the estimate is the prior
            multipliers = np.zeros(sum(part.n_cells for part in parts))
        emptied = None if made.emptied is None else np.packbits(made.emptied).tobytes()
        return cls(
            made.total,
            report.status.value,
            report.kl,
            report.gap,
            multipliers,
            made.alike,
            made.fitted,
            made.excess,
            emptied,
        )

    @classmethod
    def read(cls, row: Row) -> _Kept:
        alike, fitted, excess = (None if x is None else np.array(x) for x in (row.alike, row.spread, row.excess))
        multipliers = np.array(row.multipliers)
        return cls(row.total, row.status.value, row.kl, row.gap, multipliers, alike, fitted, excess, row.emptied)


def _level_of(parts: tuple[Part, ...], kept: Sequence[_Kept]) -> LevelEstimates:
    alike = [each.alike for each in kept if each.alike is not None]
    fitted = [each.fitted for each in kept if each.fitted is not None]
    excess = [each.excess for each in kept if each.excess is not None]
    if any(len(each) not in (0, len(kept)) for each in (alike, fitted, excess)):
        raise Malformed("some groups have values that others lack")
    size = sum(part.n_cells for part in parts)
    if any(len(each) != size for each in (*(one.multipliers for one in kept), *excess)):
        raise Malformed("not one number for each cell")
    if any(len(each) != len(blocks_of(parts)) for each in fitted):
        raise Malformed("not six numbers for each block")
    return LevelEstimates(
        parts,
        np.array([each.total for each in kept]),
        np.stack([each.multipliers for each in kept]),
        np.stack(alike) if alike else None,
        tuple(each.status for each in kept),
        np.array([each.kl for each in kept]),
        np.array([each.gap for each in kept]),
        np.stack(fitted) if fitted else None,
        np.stack(excess) if excess else None,
        tuple(each.emptied for each in kept),
    )


def inputs_hash(release: Release, public: Public) -> str:
    """A fingerprint of what estimates are made from, settings aside: plan, noisy counts, coded public rows, groups."""
    digest = hashlib.sha256(release.fingerprint.encode())
    named = [[str(value) for value in row] for row in (public.groups.by, *public.groups.values)]
    digest.update(json.dumps(named).encode())
    for name, code in public.prior.codes.items():
        digest.update(name.encode() + np.ascontiguousarray(code).tobytes())
    digest.update(public.prior.weights.tobytes() + public.group.astype(np.int64).tobytes())
    return digest.hexdigest()
