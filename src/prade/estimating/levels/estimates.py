"""All estimates of a release: answers with their standard errors, and the file of the estimates.

Queries and tables are answered from the distributions themselves (`prade.estimating.levels.distributions`), without
sampling.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, mass_per_cell
from prade.core.documents import Malformed, structured
from prade.core.errors import DataError
from prade.core.words import names_of
from prade.data.parquet_with_header import IncompatibleFile, damage_reported, read_header, write_with_header
from prade.data.public import AGAIN, Public
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.blocks import blocks_of
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.estimating.levels.distributions import Distributions, LevelEstimates
from prade.estimating.levels.error_bars_of_sums import sum_variances
from prade.estimating.levels.estimates_file import FORMAT, Header, Row, rows_of
from prade.estimating.levels.totals import FEWEST_ROWS, estimated_totals_variance
from prade.planning.settings import IN_EARLIER_FILES, Settings
from prade.queries.parts import Part
from prade.queries.query import parse
from prade.queries.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.planning.plan import Plan
    from prade.release.release import Release

Result = TypeVar("Result")

NINETY_FIVE = 1.96  # standard deviations either way


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
        progress: Callable[[int, int], None] | None = None,
    ) -> Estimates:
        """Estimate every group of every level; `progress(done, all)` is called after each."""
        descent = Descent(release, public, settings, threads=threads, seed=seed)
        parents = [public.prior.weights]
        number = sum(len(grouping) for grouping in release.plan.groupings)
        done, levels = 0, []
        for level in range(len(release.plan.levels)):
            last = level == len(release.plan.levels) - 1
            parts = raw_answers(release, level).parts
            kept, weights = [], []
            for each in descent.level(level, parents, lambda each: each):
                kept.append(_Kept.of(each, parts))
                if not last:
                    weights.append(each.estimate.weights)
                done += 1
                if progress is not None:
                    progress(done, number)
            levels.append(_level_of(parts, kept))
            parents = weights
        return cls(release, public, descent.settings, levels)

    # ---------------------------------------------------------------- answers

    def answer(self, query: str, by: str | Sequence[str] = (), *, threads: int = 1) -> pa.Table:
        """How many rows satisfy a query such as "AGEP >= 65 and SEX == 2", for the groups `by`, and how sure that is.

        Columns: the groups', count, share (of the group's rows), sd (of the share), low and high (95 % of the count).
        The interval is for the true count in the private table itself, whether its rows are a sample or not. It covers
        the noise and the prior's error, as far as differences between public groups and this release's own answers show
        it (`prade.estimating.levels.error_bars`). It does not cover people of a kind that the public table lacks (such
        a cell has a count and an sd of 0), nor a private table that differs from the public one in a way in which
        public groups do not differ from each other. It is most reliable for groups of the last level: for sums of many
        groups it depends on how strongly their errors are correlated, and if more than in the model, the interval
        is too narrow.
        """
        inside = parse(query, self.plan.schema).mask(self.public.prior.codes)
        return self._by(by, np.where(inside, 0, 1), 1, threads, {})

    def marginal(self, columns: str | Sequence[str], by: str | Sequence[str] = (), *, threads: int = 1) -> pa.Table:
        """The table of some columns for the groups `by`: one row per group and cell, with the columns of `answer`.

        Each interval is for its own cell: of 100 true counts, about 5 are outside theirs.
        """
        part = Workload.marginals(self.plan.schema, [names_of(columns)])[0]
        cells = part.cells(self.plan.schema, self.public.prior.codes)
        return self._by(by, cells, part.n_cells, threads, {"cell": part.labels(self.plan.schema)})

    def _by(
        self, by: str | Sequence[str], cells: NDArray[Any], size: int, threads: int, labels: dict[str, list[str]]
    ) -> pa.Table:
        """Counts of the public rows' cells; rows in no cell have the number `size`."""
        import pyarrow as pa

        level, last = self.plan.groups.level(names_of(by)), self.plan.groupings[-1]
        if finer := [name for name in level.by if not follows(self.plan, name)]:
            raise DataError(
                f"{finer[0]!r} is not a column of the release's levels ({', '.join(last.by) or 'none'}), and does not "
                "follow from them: the release does not tell its groups apart"
            )
        shares = np.array(list(self.map(lambda _, weights: mass_per_cell(cells, weights, size + 1)[:size], threads)))
        above = last.above(level)
        # errors of n_g and of shares are assumed to be independent, which is the safe side: n^2 Var(x) + x^2 Var(n)
        rows, rows_variance = np.zeros(len(level)), np.zeros(len(level))
        counts, variance = np.zeros((len(level), size)), sum_variances(self, [(cells, size)], above, len(level))
        of_total = estimated_totals_variance(self.answers[-1], self.priors[-1].sizes())
        np.add.at(rows, above, self.totals)
        np.add.at(rows_variance, above, of_total)
        np.add.at(counts, above, self.totals[:, None] * shares)
        whole = np.maximum(rows, FEWEST_ROWS)[:, None]
        sd = np.sqrt(variance) / whole
        np.add.at(variance, above, of_total[:, None] * shares**2)
        most = rows + NINETY_FIVE * np.sqrt(rows_variance)
        columns: dict[str, Any] = {
            name: np.repeat(np.array([values[k] for values in level.values]), size).tolist()
            for k, name in enumerate(level.by)
        }
        columns |= {name: values * len(level) for name, values in labels.items()}
        columns["count"] = counts.ravel()
        columns["share"] = (counts / whole).ravel()
        columns["sd"] = sd.ravel()
        columns["low"] = np.maximum(counts - NINETY_FIVE * np.sqrt(variance), 0.0).ravel()
        columns["high"] = np.minimum(counts + NINETY_FIVE * np.sqrt(variance), most[:, None]).ravel()
        return pa.table(columns)

    # ---------------------------------------------------------------- the file

    def save(self, path: str | PathLike[str]) -> None:
        """Write a parquet file: one row per group of each level."""
        import pyarrow as pa

        columns: dict[str, list[Any]] = {
            name: []
            for name in ("level", "group", "total", "status", "kl", "gap", "multipliers", "alike", "spread", "emptied")
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
            columns["emptied"] += level.emptied
        header = {"format": FORMAT, "settings": asdict(self.settings), "inputs": inputs_hash(self.release, self.public)}
        write_with_header(pa.table(columns), header, path)

    @classmethod
    def load(cls, path: str | PathLike[str], release: Release, public: Public) -> Estimates:
        """Read what `save` wrote; the release and the public table must be those that it was made from."""
        from prade.data.tables import read_table

        table, levels = read_table(path), []
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
    emptied: bytes | None

    @classmethod
    def of(cls, made: GroupEstimate, parts: Sequence[Part]) -> _Kept:
        report, multipliers = made.estimate.report, made.estimate.multipliers
        if multipliers is None:  # the answers were hopeless: the estimate is the prior
            multipliers = np.zeros(sum(part.n_cells for part in parts))
        emptied = None if made.emptied is None else np.packbits(made.emptied).tobytes()
        return cls(
            made.total, report.status.value, report.kl, report.gap, multipliers, made.alike, made.fitted, emptied
        )

    @classmethod
    def read(cls, row: Row) -> _Kept:
        alike, fitted = (None if each is None else np.array(each) for each in (row.alike, row.spread))
        multipliers = np.array(row.multipliers)
        return cls(row.total, row.status.value, row.kl, row.gap, multipliers, alike, fitted, row.emptied)


def _level_of(parts: tuple[Part, ...], kept: Sequence[_Kept]) -> LevelEstimates:
    alike = [each.alike for each in kept if each.alike is not None]
    fitted = [each.fitted for each in kept if each.fitted is not None]
    if len(alike) not in (0, len(kept)) or len(fitted) not in (0, len(kept)):
        raise Malformed("some groups have values that others lack")
    if any(len(each.multipliers) != sum(part.n_cells for part in parts) for each in kept):
        raise Malformed("not one multiplier for each cell")
    if any(len(each) != len(blocks_of(parts)) for each in fitted):
        raise Malformed("not three numbers for each block")
    return LevelEstimates(
        parts,
        np.array([each.total for each in kept]),
        np.stack([each.multipliers for each in kept]),
        np.stack(alike) if alike else None,
        tuple(each.status for each in kept),
        np.array([each.kl for each in kept]),
        np.array([each.gap for each in kept]),
        np.stack(fitted) if fitted else None,
        tuple(each.emptied for each in kept),
    )


def follows(plan: Plan, name: str) -> bool:
    """Whether a column of the list of groups is known from the last level's group: its own, or a PUMA's state."""
    last = plan.groupings[-1]
    return name in last.by or len(plan.groups.level((*last.by, name))) == len(last)


def inputs_hash(release: Release, public: Public) -> str:
    """A fingerprint of what estimates are made from, settings aside: plan, noisy counts, coded public rows, groups."""
    digest = hashlib.sha256(release.fingerprint.encode())
    named = [[str(value) for value in row] for row in (public.groups.by, *public.groups.values)]
    digest.update(json.dumps(named).encode())
    for name, code in public.prior.codes.items():
        digest.update(name.encode() + np.ascontiguousarray(code).tobytes())
    digest.update(public.prior.weights.tobytes() + public.group.astype(np.int64).tobytes())
    return digest.hexdigest()
