"""`Diagnosis`: what was found about the public table, as tables, as sentences and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.core.errors import many

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE = "in the whole table"
NOTHING = "Nothing can be said about the public table: no table of a column was measured with its number of rows."
OF_COLUMNS = {"level": str, "column": str, "groups": int, "wrong": int, "distance": float, "at_least": float} | {
    "sampling": float,
    "noise_units": float,
}
OF_GROUPS = {"level": str, "group": str, "column": str, "wrong": bool, "chance": float, "distance": float} | {
    "at_least": float,
    "rows": float,
}


@dataclass(frozen=True, eq=False)
class LevelFindings:
    """What was found at one level; arrays are [groups, columns], or have one number per group or per column.

    `wrong` says where the public table is wrong, by the family's `chance` of a false alarm. Distances are
    total-variation distances with the noise removed, `at_least` their lower bounds, all of which hold at once.
    `column_distance` is the mean over the groups' rows, `column_sampling` that of random samples of an unchanged
    population, and `noise_units` the differences in units of what noise alone leads to. NaN is unknown.
    """

    name: str
    by: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    own: int  # groups with public rows of their own
    rows: Floats
    chance: Floats
    wrong: Flags
    distance: Floats
    at_least: Floats
    column_distance: Floats
    column_sampling: Floats
    noise_units: Floats

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def noun(self) -> str:
        """The word for a group."""
        return self.by[-1] if self.by else "table"

    @property
    def predicted_from(self) -> str:
        """Which public rows the groups were compared with."""
        if not self.by:
            return "all public rows"
        if not self.own:
            return "public rows of the group above"
        return "their own public rows" if self.own == len(self) else "own public rows, or those of the group above"

    def column_rows(self) -> Iterator[dict[str, Any]]:
        """One row per column, those with most alarms and the largest distances first."""
        wrong = self.wrong.sum(axis=0)
        at_least = self.at_least.max(axis=0)
        order = np.lexsort((-np.nan_to_num(self.column_distance), -at_least, -wrong))
        for k in order.tolist():
            yield {
                "level": self.name,
                "column": self.columns[k],
                "groups": len(self),
                "wrong": int(wrong[k]),
                "distance": _number(self.column_distance[k]),
                "at_least": _number(at_least[k]),
                "sampling": _number(self.column_sampling[k]),
                "noise_units": _number(self.noise_units[k]),
            }

    def group_rows(self) -> Iterator[dict[str, Any]]:
        """One row per group and column, in their order."""
        for g, label in enumerate(self.labels):
            for k, column in enumerate(self.columns):
                yield {
                    "level": self.name,
                    "group": label,
                    "column": column,
                    "wrong": bool(self.wrong[g, k]),
                    "chance": float(self.chance[g, k]),
                    "distance": _number(self.distance[g, k]),
                    "at_least": _number(self.at_least[g, k]),
                    "rows": float(round(self.rows[g], 1)),
                }

    def headline(self) -> str:
        """One sentence about the level."""
        first = next(self.column_rows())
        number = int(self.wrong.any(axis=0).sum())
        where = f"by {self.noun}" if self.by else WHOLE
        if not number:
            return (
                f"The public table is not shown to be wrong about any of {many(len(self.columns), 'column')} {where}."
            )
        most = f", in {first['wrong']:,} of {many(len(self), self.noun)}" if self.by else ""
        return (
            f"The public table is wrong about {number:,} of {many(len(self.columns), 'column')} {where}; most about "
            f"{first['column']}{most}."
        )

    def sentences(self) -> Iterator[str]:
        """A sentence for each column that the public table is wrong about."""
        for row in self.column_rows():
            if row["wrong"]:
                k = self.columns.index(row["column"])
                where = f"in {row['wrong']:,} of {many(len(self), self.noun)}" if self.by else WHOLE
                most = int(np.argmax(self.at_least[:, k]))
                bound = ""
                if row["at_least"]:
                    in_group = f" in {self.labels[most]}" if self.by else ""
                    bound = f", at least {row['at_least']:.3f}{in_group}"
                about = "" if row["distance"] is None else f" (distance about {row['distance']:.3f}{bound})"
                yield f"The public table is wrong about {row['column']} {where}{about}."


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How far the public table is from the private one, by column and level, from noisy answers alone.

    `untested` are columns whose tables were not measured. The chance that any alarm is false, or any bound wrong, is at
    most `rate`. `sharp` says that the same shares were asked for exactly, rather than within random sampling with the
    `design_effect`. `simulations` is how many draws of the null decided.
    """

    levels: tuple[LevelFindings, ...]
    untested: tuple[str, ...]
    rate: float
    simulations: int
    sharp: bool
    design_effect: float

    def __repr__(self) -> str:
        alarms = ", ".join(f"{level.name} {int(level.wrong.sum()):,} of {level.wrong.size:,}" for level in self.levels)
        return f"Diagnosis(wrong: {alarms})"

    def __str__(self) -> str:
        return "\n".join([*self.headlines(), *self.sentences(), *self.remarks()])

    def headlines(self) -> list[str]:
        """One sentence for each level."""
        return [level.headline() for level in self.levels] or [NOTHING]

    def sentences(self) -> list[str]:
        """One sentence for each column that the public table is wrong about, level by level."""
        return [sentence for level in self.levels for sentence in level.sentences()]

    def remarks(self) -> list[str]:
        """What the sentences mean and what they do not cover."""
        sampling = "noise" if self.sharp else "noise and random sampling"
        said = [
            f"A group counts as wrong where {sampling} do{'es' if self.sharp else ''} not explain the difference. The "
            f"chance that any of these alarms is false is at most {100 * self.rate:.0f} %; no alarm does not mean no "
            "difference."
        ]
        said += [
            f"{level.name}: {many(len(level), level.noun) if level.by else 'the whole table'}, compared with "
            f"{level.predicted_from}."
            for level in self.levels
        ]
        if self.untested:
            number = many(len(self.untested), "column")
            said.append(f"Not measured as tables, so nothing is known about {number}: {', '.join(self.untested)}.")
        return said

    def wrong_somewhere(self) -> list[str]:
        """The columns that the public table is wrong about at any level."""
        return list(dict.fromkeys(name for level in self.levels for name in self.wrong_columns(level.name)))

    def wrong_columns(self, level: str) -> dict[str, int]:
        """In how many groups of a level the public table is wrong about each column, where in any."""
        found = next(each for each in self.levels if each.name == level)
        return {name: int(n) for name, n in zip(found.columns, found.wrong.sum(axis=0), strict=True) if n}

    def columns(self) -> pa.Table:
        """One row per level and column."""
        return _table([row for level in self.levels for row in level.column_rows()], OF_COLUMNS)

    def groups(self) -> pa.Table:
        """One row per level, group and column."""
        return _table([row for level in self.levels for row in level.group_rows()], OF_GROUPS)

    def to_dict(self) -> dict[str, Any]:
        """Plain values: what was asked, sentences, and one entry per level and column."""
        return {
            "rate": self.rate,
            "null": "same shares" if self.sharp else "same shares, within random sampling",
            "design_effect": None if self.sharp else self.design_effect,
            "simulations": self.simulations,
            "headlines": self.headlines(),
            "sentences": self.sentences(),
            "remarks": self.remarks(),
            "untested": list(self.untested),
            "columns": [row for level in self.levels for row in level.column_rows()],
        }


def _number(value: Any) -> float | None:
    """A number of four decimals; None if it is unknown."""
    return round(float(value), 4) if np.isfinite(value) else None


def _table(rows: Sequence[dict[str, Any]], types: dict[str, type]) -> pa.Table:
    import pyarrow as pa

    arrow = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    return pa.table({name: pa.array([row[name] for row in rows], arrow[kind]) for name, kind in types.items()})
