"""The two scores of SDMetrics' quality report, in its own environment. It does not know prade.

    python sdmetrics_scores.py KINDS TRUTH FILE...

KINDS is a JSON file, {column: "numerical" or "categorical"}; TRUTH and each FILE are parquet files. It prints one JSON
object per FILE: both scores, and the second one again with the numbers of both tables limited to the range that they
have in common. SDMetrics divides the range of a numeric column into ten bins of equal width, in each table between that
table's own smallest and largest number, so that one extreme value moves the bins of one table only.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")

from sdmetrics.reports.single_table import QualityReport  # noqa: E402


def scores(truth: pd.DataFrame, rows: pd.DataFrame, kinds: dict[str, str]) -> tuple[float, float]:
    """Column shapes and column pair trends. The report draws 50,000 rows for each pair, here with a seed."""
    np.random.seed(0)  # noqa: NPY002
    report = QualityReport()
    columns = {name: {"sdtype": kind} for name, kind in kinds.items()}
    report.generate(truth[list(kinds)], rows[list(kinds)], {"columns": columns}, verbose=False)
    found = report.get_properties().set_index("Property")["Score"]
    return float(found["Column Shapes"]), float(found["Column Pair Trends"])


def main(kinds_file: str, truth_file: str, *files: str) -> None:
    kinds, truth = json.loads(Path(kinds_file).read_text()), pd.read_parquet(truth_file)
    numbers = [name for name, kind in kinds.items() if kind == "numerical"]
    for file in files:
        rows = pd.read_parquet(file)
        low = {name: max(truth[name].min(), rows[name].min()) for name in numbers}
        high = {name: min(truth[name].max(), rows[name].max()) for name in numbers}
        limited = [
            table.assign(**{name: table[name].clip(low[name], high[name]) for name in numbers})
            for table in (truth, rows)
        ]
        shapes, trends = scores(truth, rows, kinds)
        within = scores(*limited, kinds)[1]
        types = sum(rows[name].dtype == truth[name].dtype for name in kinds)
        print(json.dumps({"shapes": shapes, "trends": trends, "within": within, "types": types}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
