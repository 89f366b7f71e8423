"""Cost against the number of rows and against the number of parts, with fitted exponents and a plot."""

from __future__ import annotations

import argparse

import numpy as np

from common import OUT, ROOT, random_rows, report, seconds, table
from prade import Workload
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import MAP
from prade.release.release import Measurement


def costs(rows: int, parts: int) -> tuple[float, float, float]:
    """Seconds for laying out, for one pass, for a MAP estimate (gap 1e-3)."""
    sizes = [2, 3, 4, 5, 6, 8, 10, 12] * (parts // 8 + 1)
    schema, prior = random_rows(rows, sizes[:parts], seed=3)
    workload = Workload.marginals(schema, schema.coded)
    generator = np.random.default_rng(4)
    persons = 2000
    measurements = []
    for part, share in zip(workload, workload.answer(prior), strict=True):
        tilted = share * np.exp(0.3 * generator.normal(size=len(share)))
        counts = persons * tilted / tilted.sum() + 10.0 * generator.laplace(size=len(share))
        measurements.append(Measurement(part, np.round(counts), 10.0))
    repeat = 3 if rows < 5_000_000 else 1
    made: list[Layout] = []
    laying = seconds(lambda: made.append(Layout(prior, workload)), repeat)
    layout = made[-1]
    a_pass = seconds(lambda: layout.evaluate(np.zeros(layout.n_cells)), repeat)
    fit = seconds(lambda: MAP(n0=200.0, tolerance=1e-3).fit(prior, measurements, persons, layout=layout), repeat)
    return laying, a_pass, fit


def exponent(sizes: list[int], times: list[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--parts", type=int, nargs="+", default=[8, 16, 32, 64, 128])
    options = parser.parse_args()
    by_rows = [costs(rows, 20) for rows in options.rows]
    by_parts = [costs(100_000, parts) for parts in options.parts]
    names = ("lay out", "one pass", "MAP estimate")
    lines = [
        [f"{n:,}", 20, *(f"{t * 1e3:.1f} ms" for t in times)] for n, times in zip(options.rows, by_rows, strict=True)
    ]
    lines += [["100,000", k, *(f"{t * 1e3:.1f} ms" for t in times)]
              for k, times in zip(options.parts, by_parts, strict=True)]  # fmt: skip
    # fixed costs hide the slope where everything takes a millisecond: rows from 100,000 on
    big = [i for i, n in enumerate(options.rows) if n >= 100_000]
    in_rows = [exponent([options.rows[i] for i in big], [by_rows[i][c] for i in big]) for c in range(3)]
    in_parts = [exponent(options.parts, [times[c] for times in by_parts]) for c in range(3)]
    lines.append(["exponent in rows", "", *(f"{e:.2f}" for e in in_rows)])
    lines.append(["exponent in parts", "", *(f"{e:.2f}" for e in in_parts)])
    plot(options, by_rows, by_parts, names)
    text = (
        "Cost against rows (20 parts) and against parts (100,000 rows), one thread; row exponents from 100,000 on:\n\n"
        + table(["rows", "parts", *names], lines)
        + "\n\nA pass is linear in rows and parts. A Newton estimate is linear in rows, but its curvature counts pairs "
        "of cells, so it grows faster with the parts.\n\n![cost against rows and parts](scaling.svg)"
    )
    report("scaling", text, {"in_rows": in_rows, "in_parts": in_parts})


def plot(
    options: argparse.Namespace,
    by_rows: list[tuple[float, ...]],
    by_parts: list[tuple[float, ...]],
    names: tuple[str, ...],
) -> None:
    """Two log-log panels."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "prade"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8.5, 3.4), sharey=True, layout="constrained")
    styles = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"))
    for axis, sizes, costs_, label in (
        (axes[0], options.rows, by_rows, "rows (20 parts)"),
        (axes[1], options.parts, by_parts, "parts (100,000 rows)"),
    ):
        for c, (name, (colour, marker)) in enumerate(zip(names, styles, strict=True)):
            axis.loglog(sizes, [t[c] for t in costs_], color=colour, marker=marker, label=name)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    for folder in (OUT, ROOT / "docs"):
        figure.savefig(folder / "scaling.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
