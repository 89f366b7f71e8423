"""Last year's table as the prior (NIST excerpts, 2018 -> 2019, the same 20 places); a bad prior (nation -> Texas)."""

from __future__ import annotations

import argparse

from accuracy import ALL, MAIN, compare, plot, sources, write
from common import need_data
from jobs import nist, texas

TARGETS = {"10": 0.125, "1": 0.170, "0.1": 0.185}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each budget")
    options = parser.parse_args()
    need_data()
    job, bad = nist(), texas()
    text = [
        f"The schema is `Schema.infer` of 2018: {len(job.schema.coded)} columns, survey weights included, about 20 "
        "bins. The figures to reach were set with another schema, under which last year's rows as they are score "
        "0.184: compare ratios to that.",
        compare(job, MAIN, options.runs, TARGETS),
        "From epsilon 0.01 to 30:",
        compare(job, ALL, options.runs, {}),
        "![Error against epsilon, NIST](nist.svg)",
        sources(job, MAIN),
        "A bad prior: the national table for Texas, one group, no levels.",
        compare(bad, ALL, options.runs, {}),
        "![Error against epsilon, Texas](texas.svg)",
        sources(bad, MAIN),
    ]
    write(job, "\n\n".join(text))
    plot(job, ALL, options.runs, "nist")
    plot(bad, ALL, options.runs, "texas")


if __name__ == "__main__":
    main()
