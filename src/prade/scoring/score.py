"""The score of the NIST 2020 Differential Privacy Temporal Map Challenge, sprint 2, for any table and any grouping.

The page about scores has the formula. A group scores 2 whatever its distances are when its numbers of true and
synthetic rows differ by 250 or more (`bias`), or when one of the two has no rows.

As in the contest's own script (`runtime/scripts/metric.py` of drivendataorg/deid2-runtime): 50 draws of two different
columns out of all but the group columns, so that a pair may count twice; numpy's `RandomState`, seed 123456; missing is
a cell of its own; the groups are those that occur on either side.

Scores are made of true rows and are not differentially private: publish them for public rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from prade.core.arrays import Floats, Ints
from prade.core.errors import DataError, closest, many, names_of
from prade.data.declare.groups import Grouping, Groups
from prade.data.declare.schema import Schema
from prade.data.public.joint import Coded, encode
from prade.data.read.cells import is_text, plain_cells
from prade.data.read.tables import read_table, table_columns
from prade.scoring.distances import WORST, Codes, Pair, pair_errors

Pairs = int | Literal["all"] | Sequence[Sequence[str]]

CONTEST_PAIRS = 50
CONTEST_SEED = 123456
CONTEST_BIAS = 250


@dataclass(frozen=True, eq=False)
class Score:
    """How far synthetic rows are from the true ones, group by group and pair by pair.

    `groups` and the rows of `detail` follow `grouping`, the columns of `detail` and `pairs` follow `pair_names`.
    `why` says for each group why its score is not the mean of its distances: "bias", "missing" (no synthetic rows),
    "extra" (no true rows) and "empty" (neither: not counted, its score is NaN), or "".
    """

    grouping: Grouping
    true_rows: Ints
    synthetic_rows: Ints
    pair_names: tuple[Pair, ...]
    detail: Floats  # distances [groups, pairs]; 2 where one side has no rows, NaN where both have none
    bias: int | None

    @property
    def why(self) -> tuple[str, ...]:
        off = np.abs(self.true_rows - self.synthetic_rows)
        reasons = np.full(len(off), "", dtype="<U7")
        if self.bias is not None:
            reasons[off >= self.bias] = "bias"
        reasons[self.synthetic_rows == 0] = "missing"
        reasons[self.true_rows == 0] = "extra"
        reasons[(self.true_rows == 0) & (self.synthetic_rows == 0)] = "empty"
        return tuple(reasons.tolist())

    @property
    def groups(self) -> Floats:
        """Score of each group, 0 to 2; NaN for a group without rows on either side."""
        reasons = np.array(self.why)
        scores = np.where(reasons == "", self.detail.mean(axis=1), WORST)
        scores[reasons == "empty"] = np.nan
        return scores

    @property
    def pairs(self) -> Floats:
        """Mean distance of each pair over the groups, before the penalty for bias."""
        return np.asarray(np.nanmean(self.detail, axis=0))

    @property
    def mean(self) -> float:
        return float(np.nanmean(self.groups))

    @property
    def nist(self) -> float:
        """The contest's scale: 1000 (best) to 0."""
        return 1000.0 * (1.0 - self.mean / 2.0)

    def table(self) -> pa.Table:
        """One row per group: the group columns, true_rows, synthetic_rows, score and why."""
        columns = zip(*self.grouping.values, strict=True)
        named: dict[str, Any] = {name: list(column) for name, column in zip(self.grouping.by, columns, strict=True)}
        figures = {
            "true_rows": self.true_rows,
            "synthetic_rows": self.synthetic_rows,
            "score": pa.array(self.groups, from_pandas=True),
            "why": pa.array(self.why, pa.string()),
        }
        return pa.table({**named, **figures})

    def pair_table(self) -> pa.Table:
        """One row per pair: its two columns and its mean distance, the worst first."""
        worst = np.argsort(-self.pairs, kind="stable")
        first, second = zip(*(self.pair_names[k] for k in worst), strict=True)
        return pa.table({"first": first, "second": second, "distance": self.pairs[worst]})

    def to_dict(self) -> dict[str, Any]:
        tables = {"groups": self.table().to_pylist(), "pairs": self.pair_table().to_pylist()}
        return {"mean": self.mean, "nist": self.nist, "bias": self.bias, **tables}

    def __str__(self) -> str:
        scores, (one, other) = self.groups, self.pair_names[0]
        numbers = {why: self.why.count(why) for why in ("bias", "missing", "extra", "empty")}
        notes = {
            "bias": f"off by {self.bias} rows or more, scored 2",
            "missing": "without synthetic rows, scored 2",
            "extra": "without true rows, scored 2",
            "empty": "without rows on either side, not counted",
        }
        tables = f"the one-way table of {one}" if one == other else many(len(self.pair_names), "pair") + " of columns"
        worst, pair = int(np.nanargmax(scores)), self.pair_table().to_pylist()[0]
        lines = [
            f"NIST score {self.nist:.1f} of 1000 (mean distance {self.mean:.4f} of 2)",
            f"{many(len(scores) - numbers['empty'], 'group')}, {tables}",
            *(f"{many(numbers[why], 'group')} {note}" for why, note in notes.items() if numbers[why]),
            f"worst group: {self.grouping.labels()[worst]} ({scores[worst]:.4f})",
        ]
        if pair["first"] != pair["second"]:
            lines.append(f"worst pair: {pair['first']}, {pair['second']} ({pair['distance']:.4f})")
        return "\n".join(lines)


def score(
    truth: Any,
    synthetic: Any,
    schema: Schema,
    by: str | Sequence[str],
    *,
    groups: Any = None,
    pairs: Pairs = CONTEST_PAIRS,
    seed: int = CONTEST_SEED,
    bias: int | None = CONTEST_BIAS,
    threads: int | None = None,
) -> Score:
    """The contest's score of `synthetic` rows against the `truth`, for the groups that the columns `by` make.

    `truth` and `synthetic` are tables or files, or (coded table, group number of each row); every row counts once,
    whatever its weight. `groups` is the public list of groups; without it the groups are those that either table has.
    True rows in no listed group are left out, as they are when measuring; synthetic ones are an error. `pairs` is how
    many to draw (with `seed`), "all", or the pairs themselves; `bias` is None for no penalty on wrong row counts.

    >>> from prade import Column, Schema
    >>> schema = Schema([Column("SEX", "categorical", values=[1, 2]), Column("AGE", "numeric", edges=[18, 65])])
    >>> truth = {"TOWN": ["a", "a", "a", "a", "b"], "SEX": [1, 1, 2, 2, 1], "AGE": [3, 70, 70, 70, 20]}
    >>> synthetic = {"TOWN": ["a", "a"], "SEX": [1, 2], "AGE": [70, 70]}
    >>> scored = score(truth, synthetic, schema, "TOWN", pairs="all")
    >>> scored.groups, scored.why, scored.mean, scored.nist
    (array([0.5, 2. ]), ('', 'missing'), 1.25, 375.0)
    """
    if not isinstance(schema, Schema):
        raise DataError(f"the third argument is a {type(schema).__name__}: give truth, synthetic rows, schema")
    by = names_of(by)
    columns = [name for name in schema.coded if name not in by]
    names = chosen_pairs(columns, pairs, seed)
    listed = Groups.of(_groups_of(by, truth, synthetic) if groups is None else groups)
    level = listed.level(by)
    used = [name for name in columns if any(name in pair for pair in names)]
    true_codes, true_group = _coded_side("the truth", truth, schema, used, listed, level)
    codes, group = _coded_side("the synthetic table", synthetic, schema, used, listed, level)
    if not (true_group >= 0).any():
        raise DataError("no row of the truth is in a listed group; check that `groups` and the table write them alike")
    if (outside := int((group < 0).sum())) > 0:
        raise DataError(f"{outside} synthetic rows are in no listed group; add the groups to `groups` or take them out")
    inside = true_group >= 0
    if not inside.all():
        true_codes, true_group = {name: true_codes[name][inside] for name in used}, true_group[inside]
    detail = pair_errors(schema, true_codes, true_group, codes, group, len(level), names, threads=threads)
    rows, synthetic_rows = (np.bincount(each, minlength=len(level)) for each in (true_group, group))
    return Score(level, rows, synthetic_rows, names, detail, bias)


# ---------------------------------------------------------------------- pairs


def chosen_pairs(columns: Sequence[str], pairs: Pairs = CONTEST_PAIRS, seed: int = CONTEST_SEED) -> tuple[Pair, ...]:
    """The pairs to score: drawn as the contest did, all of them, or those given.

    A single column is paired with itself.

    >>> chosen_pairs(["SEX", "AGE", "RACE"], 2)
    (('SEX', 'AGE'), ('AGE', 'RACE'))
    >>> chosen_pairs(["SEX"], "all")
    (('SEX', 'SEX'),)
    """
    if not columns:
        raise DataError("a score needs a column besides the group columns; the schema has none")
    if len(columns) == 1 and isinstance(pairs, (int, str)):
        return ((columns[0], columns[0]),)
    if pairs == "all":
        return tuple(combinations(columns, 2))
    if isinstance(pairs, int) and not isinstance(pairs, bool):
        if pairs < 1:
            raise DataError(f"pairs is {pairs}: draw 1 or more, as the contest drew {CONTEST_PAIRS}")
        # Only numpy's old generator draws what the contest drew.
        generator = np.random.RandomState(seed)
        ordered = sorted(columns)
        draws = (generator.choice(len(ordered), size=2, replace=False) for _ in range(pairs))
        return tuple((ordered[a], ordered[b]) for a, b in draws)
    if isinstance(pairs, (str, bool)) or not isinstance(pairs, Sequence) or not len(pairs):
        raise DataError(f'pairs is {pairs!r}: give a number to draw, "all", or a list such as [("AGE", "SEX")]')
    return tuple(_checked_pair(columns, pair) for pair in pairs)


def _checked_pair(columns: Sequence[str], pair: Any) -> Pair:
    if isinstance(pair, str) or len(pair) != 2 or (pair[0] == pair[1] and len(columns) > 1):
        raise DataError(f'{pair!r} is not a pair; write two different columns, as in ("AGE", "SEX")')
    for name in pair:
        if name not in columns:
            raise DataError(f"there is no column {name!r} to score{closest(str(name), columns)}")
    return pair[0], pair[1]


# ---------------------------------------------------------------------- groups


def _groups_of(by: Sequence[str], truth: Any, synthetic: Any) -> pa.Table:
    """The groups that occur in either table, in the order of their values."""
    if isinstance(truth, tuple) or isinstance(synthetic, tuple):
        raise DataError("group numbers need the list of groups that they count; give it as `groups`")
    sides = [read_table(side, by) for side in (truth, synthetic)]
    columns = {name: _alike(name, *(plain_cells(side[name]) for side in sides)) for name in by}
    tables = [pa.table({name: columns[name][side] for name in by}) for side in range(len(sides))]
    distinct = [each.group_by(list(by)).aggregate([]).drop_null() for each in tables]
    both = pa.concat_tables(distinct, promote_options="permissive")
    if not both.num_rows:
        raise DataError(f"no row has a value in {', '.join(by)}; score tables with at least one group")
    return both.group_by(list(by)).aggregate([]).sort_by([(name, "ascending") for name in by])


def _alike(name: str, truth: Any, synthetic: Any) -> tuple[Any, Any]:
    """The cells of a group column of both tables in types that go together: "06" and 6 are one, as when measuring."""

    def widest(kind: pa.DataType) -> pa.DataType:
        return pa.large_string() if is_text(kind) else pa.int64() if pa.types.is_signed_integer(kind) else kind

    kinds = [widest(truth.type), widest(synthetic.type)]
    if is_text(kinds[0]) != is_text(kinds[1]):
        kinds = [kinds[1] if is_text(kinds[0]) else kinds[0]] * 2
    try:
        pa.unify_schemas([pa.schema({name: kind}) for kind in kinds], promote_options="permissive")
        return truth.cast(kinds[0]), synthetic.cast(kinds[1])
    except pa.ArrowException:
        raise DataError(
            f"the two tables write {name} in different types ({truth.type} and {synthetic.type}), and not every text "
            "is such a value; convert one, or give the list of groups"
        ) from None


def _coded_side(
    who: str, source: Any, schema: Schema, columns: Sequence[str], listed: Groups, level: Grouping
) -> tuple[Codes, Ints]:
    """Codes of the columns, and for each row the number of its group, -1 for none."""
    if isinstance(source, tuple):
        if len(source) != 2 or not isinstance(source[0], Coded):
            raise DataError(f"{who} is a tuple; give (coded table, group number of each row), or a table")
        coded, number = source[0], np.asarray(source[1])
        if number.shape != (len(coded),) or number.dtype.kind not in "ui" or number.max(initial=-1) >= len(level):
            raise DataError(f"{who}: give one group number, 0 to {len(level) - 1}, for each of its {len(coded)} rows")
        return coded.codes, number.astype(np.int64)
    table = table_columns(source)
    keyed = listed.keyed(table.column_names, level.number)
    return encode(schema, table, columns=columns).codes, keyed.numbers(table)
