"""One sweep of Algorithm 1 (every part once) over 1,000,000 rows x 40 parts, beside a numpy bincount loop."""

from __future__ import annotations

import numpy as np

from common import copy_bandwidth, random_rows, report, seconds, table
from prade import Workload
from prade.estimating.layout import Layout
from prade.estimating.paper_estimators import IDE
from prade.release.release import Measurement

ROWS, PARTS = 1_000_000, 40


def main() -> None:
    sizes = [2, 2, 3, 4, 5, 6, 8, 10, 12, 20] * (PARTS // 10)
    schema, prior = random_rows(ROWS, sizes, seed=1)
    workload = Workload.marginals(schema, schema.coded)
    generator = np.random.default_rng(2)
    goals = [generator.dirichlet(np.full(size, 20.0)) for size in sizes]
    measurements = [Measurement(p, goal * ROWS, 0.0) for p, goal in zip(workload, goals, strict=True)]
    columns = list(prior.codes.values())

    def numpy_sweep(order: list[int] | None = None) -> np.ndarray:
        weights = prior.weights.copy()
        for k in range(PARTS) if order is None else order:
            mass = np.bincount(columns[k], weights=weights, minlength=sizes[k])
            weights *= (goals[k] / mass)[columns[k]]
        return weights

    def ours(layout: Layout) -> float:
        """Seconds per sweep: sixteen sweeps less six, so that what is done once does not count."""
        long = seconds(lambda: IDE(16 * PARTS, order="cyclic").fit(prior, measurements, ROWS, layout=layout), 5)
        short = seconds(lambda: IDE(6 * PARTS, order="cyclic").fit(prior, measurements, ROWS, layout=layout), 5)
        return (long - short) / 10

    bandwidth = copy_bandwidth()
    baseline = seconds(numpy_sweep)
    rows, figures = [["numpy `bincount` loop, 1 thread", f"{baseline * 1e3:.0f}", "1.0", ""]], {}
    for bundled in (False, True):
        layout = Layout(prior, workload, **({} if bundled else {"largest_bundle": 1}))
        once = ours(layout)
        sweep = IDE(PARTS, order="cyclic")
        same = sweep.fit(prior, measurements, ROWS, layout=layout).weights
        assert np.allclose(same, numpy_sweep(sweep.visits(layout)), rtol=1e-9, atol=0.0), "not the same weights"
        # a fused step reads and writes a weight and reads two codes
        moved = layout.rows * len(layout.bundles) * (16 + 2 * layout.bundles.codes.itemsize)
        rate = moved / once / 1e9
        name = f"prade, {len(layout.bundles)} bundles"
        rows.append([name, f"{once * 1e3:.0f}", f"{baseline / once:.1f}", f"{rate:.1f}"])
        figures[name] = baseline / once
    text = (
        f"One sweep, {ROWS:,} rows x {PARTS} parts "
        f"(a plain copy moves {bandwidth:.1f} GB/s here; target: 3 times faster):\n\n"
        + table(["", "ms per sweep", "times faster", "GB/s"], rows)
    )
    report("sweep", text, figures)


if __name__ == "__main__":
    main()
