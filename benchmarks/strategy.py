"""What an optimised strategy gains: expected squared error beside the workload measured as it is and the identity.

All 2-way marginals of 8 binary columns, and all ranges on one column of 64 bins; both kinds of noise. Nothing is
simulated: errors are exact, per query, for a budget of 1 (eps for Laplace, rho for Gaussian noise).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from common import report, table
from prade import Schema, Workload
from prade.planning.strategy.choice import Strategy, best_strategy, p_identity, query_matrix

PAIRS = Workload.all_marginals(Schema.from_mbi({f"c{i}": 2 for i in range(8)}), 2)
RANGES = Workload.all_ranges(Schema.from_mbi({"age": 64}), "age")
RUNS: list[tuple[str, str, Workload, Callable[[Workload], Strategy]]] = [
    ("all 2-way marginals, 8 binary columns", "Laplace, marginals", PAIRS, lambda w: best_strategy(w, 1)),
    ("the same", "Gaussian, marginals", PAIRS, lambda w: best_strategy(w, 2)),
    ("the same", "Gaussian, sums of cells", PAIRS, lambda w: p_identity(query_matrix(w), norm=2)),
    ("all ranges, 64 bins", "Laplace, p-Identity", RANGES, lambda w: best_strategy(w, 1)),
    ("the same", "Gaussian, sums of cells", RANGES, lambda w: best_strategy(w, 2)),
]
SHOWN = {"raw": "raw", "workload": "workload", "identity": "identity", "optimised": "optimised", "bound": "lower bound"}


def main() -> None:
    rows = []
    figures: dict[str, object] = {}
    for name, noise, workload, search in RUNS:
        started = time.perf_counter()
        strategy = search(workload)
        took = time.perf_counter() - started
        errors = {key: value / workload.n_queries for key, value in strategy.errors.items()}
        gain = min(errors["workload"], errors["identity"]) / errors["optimised"]
        rows.append([name, noise, *(f"{errors[key]:,.4g}" for key in SHOWN), f"{gain:.2f}", f"{took:.1f} s"])
        figures[f"{workload.n_queries} queries, {noise}"] = errors
    head = ["workload", "noise, strategy", *SHOWN.values(), "gain", "search"]
    text = (
        "Expected squared error per query at budget 1. *Raw*: the raw answers of the workload; *workload*: the "
        "same answers reconciled by least squares. *Gain*: the better of workload and identity, divided by "
        "optimised.\n\n"
    )
    report("strategy", text + table(head, rows), figures)


if __name__ == "__main__":
    main()
