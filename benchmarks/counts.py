"""The counts of the ACS job beside those of pandas and polars; fifty million rows; noise.

python benchmarks/counts.py               all of it
python benchmarks/counts.py --skip-large  without the large files of `large_files.py`
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import DATA, need_data, report, seconds, table
from large_files import SIZES, WAYS, sizes
from prade import Groups, Schema
from prade.data.read.tables import read_table, write_table
from prade.measuring.noise import add_noise
from prade.measuring.source import counts_of, open_source, tally_of
from prade.queries.parts import Marginal

ROWS = DATA / "acs2024_ny_pa.parquet"
SPARK_ROWS = 5_000_000  # that Spark counts, too
Answers = list[NDArray[np.int64]]  # [groups, cells] for each part
Listed = list[list[tuple[Any, ...]]]  # for each part: group, one cell a column, number of rows


def job() -> tuple[Schema, list[tuple[str, list[tuple[str, ...]]]], dict[str, dict[str, list[object]]]]:
    """Schema, the columns of the parts of each level, and the groups of each level."""
    schema = Schema.load(DATA / "acs2024.schema.toml")
    places = read_table(DATA / "acs2024_ny_pa_geography.csv")
    pairs = list(itertools.combinations(schema.coded, 2))
    levels = [("PUMA", [(name,) for name in schema.coded]), ("STATE", pairs[:: len(pairs) // 50][:50])]
    groups = {level: {level: list(dict.fromkeys(places[level].to_pylist()))} for level, _ in levels}
    return schema, levels, groups


def in_prade(files: object) -> Answers:
    """All counts by prade."""
    schema, levels, groups = job()
    found: Answers = []
    with open_source(files) as source:
        for level, columns in levels:
            parts = [Marginal.of(schema, names) for names in columns]
            tally = tally_of(source, schema, [([level], parts)], Groups.of(groups[level]))
            found += counts_of(source, tally)[0]
    return found


def from_csv(answers: Answers) -> tuple[float, int]:
    """Seconds for all counts by prade from the same rows as CSV, and how many of them differ from these answers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        write_table(read_table(ROWS), file)
        differing = sum(int((own != other).sum()) for own, other in zip(answers, in_prade(file), strict=True))
        return seconds(lambda: in_prade(file), repeat=3), differing


def in_pandas() -> Listed:
    """All counts by pandas: read, cut into bins, group."""
    import pandas as pd

    schema, levels, _ = job()
    rows = pd.read_parquet(ROWS, columns=["STATE", "PUMA", *schema.coded])
    for name in schema.coded:
        column = schema[name]
        if column.numeric:
            cells = rows[name].to_numpy(dtype=float, na_value=np.nan)
            codes = np.searchsorted(np.asarray(column.cuts), cells, side="right")
            rows[name] = np.where(np.isnan(cells), column.fallback, codes)
        else:
            rows[name] = rows[name].fillna(-1)
    return [
        list(rows.groupby([level, *names], sort=False).size().reset_index().itertuples(index=False, name=None))
        for level, parts in levels
        for names in parts
    ]


def in_polars() -> Listed:
    """All counts by polars: a lazy scan, all parts collected together."""
    import polars as pl

    schema, levels, _ = job()
    exprs = []
    for name in schema.coded:
        column = schema[name]
        if column.numeric:
            number = pl.col(name).cast(pl.Float64)
            codes = pl.lit(pl.Series(column.cuts)).search_sorted(number, side="right").cast(pl.Int32)
            exprs.append(pl.when(number.is_null()).then(column.fallback).otherwise(codes).alias(name))
        else:
            exprs.append(pl.col(name).fill_null(-1))
    rows = pl.scan_parquet(ROWS).select("STATE", "PUMA", *exprs)
    answers = [rows.group_by([level, *names]).len() for level, parts in levels for names in parts]
    return [answer.rows() for answer in pl.collect_all(answers)]


def tabulated(listed: Listed) -> Answers:
    """What pandas or polars list, as prade gives it: every group and every cell in its place, zeros included."""
    schema, levels, groups = job()
    codes = {}
    for name in schema.coded:
        column = schema[name]
        if not (column.numeric or column.groups):
            codes[name] = {value: place for place, value in enumerate(column.values)}
            codes[name][-1] = column.present if column.missing else column.fallback
        else:
            codes[name] = {place: place for place in range(column.size)}
    found = []
    for (level, names), lines in zip(
        [(level, names) for level, parts in levels for names in parts], listed, strict=True
    ):
        place = {str(group): number for number, group in enumerate(groups[level][level])}
        sizes = [schema.size(name) for name in names]
        answer = np.zeros((len(place), *sizes), np.int64)
        for group, *cells, rows in lines:
            answer[(place[str(group)], *(codes[name][cell] for name, cell in zip(names, cells, strict=True)))] += rows
        found.append(answer.reshape(len(place), -1))
    return found


def noise(cells: int = 1_000_000) -> list[list[object]]:
    """Seconds and microseconds per cell for both laws, with one thread and with all."""
    counts = np.zeros(cells, np.int64)
    lines: list[list[object]] = []
    for law, threads in itertools.product(("laplace", "gaussian"), sorted({1, os.cpu_count() or 1})):
        started = time.perf_counter()
        add_noise(counts, law, Fraction(36), threads=threads)
        took = time.perf_counter() - started
        lines.append([law, threads, f"{took:.2f}", f"{took / cells * 1e6:.1f}"])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-large", action="store_true", help="leave the large files out")
    options = parser.parse_args()
    need_data()
    answers = in_prade(ROWS)
    figures: dict[str, object] = {"prade": seconds(lambda: in_prade(ROWS), repeat=3)}
    lines = [["prade", f"{figures['prade']:.2f}", ""]]
    cells = sum(answer.size for answer in answers)
    took, differing = from_csv(answers)
    figures |= {"prade, from CSV": took, "prade, from CSV, differing counts": differing}
    lines.append(["prade, from CSV", f"{took:.2f}", f"{differing:,} of {cells:,}"])
    ways: dict[str, Callable[[], Listed]] = {"pandas": in_pandas, "polars": in_polars}
    for name, way in ways.items():
        differing = sum(int((own != other).sum()) for own, other in zip(answers, tabulated(way()), strict=True))
        figures[name] = took = seconds(way, repeat=3)
        figures[f"{name}, differing counts"] = differing
        lines.append([name, f"{took:.2f}", f"{differing:,} of {cells:,}"])
    text = "344,497 rows from parquet, if not from CSV, 36 one-way parts by PUMA (239) and 50 two-way by state (2):\n\n"
    text += table(["counted by", "seconds", "counts that differ from prade's, cell by cell"], lines)
    if not options.skip_large:
        words, found = sizes(list(SIZES), [SPARK_ROWS], list(WAYS))
        figures["large files"] = found
        text += f"\n\nThe same from files of tiled rows, by the whole of `measure`:\n\n{words}"
    lines = noise()
    figures["noise"] = lines
    text += "\n\nNoise for 1,000,000 cells, scale 36:\n\n"
    text += table(["law", "threads", "seconds", "microseconds per cell"], lines)
    report("counts", text, figures)


if __name__ == "__main__":
    main()
