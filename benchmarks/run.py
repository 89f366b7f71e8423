"""Run the benchmarks, each in its own process, and write their tables into the pages of docs/."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = (
    "sweep",
    "raking",
    "groups",
    "scaling",
    "counts",
    "rows",
    "shares",
    "budgets",
    "startup",
    "acs",
    "nist",
    "promises",
    "intervals",
    "values",
    "report",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], help="which ones (default: all)")
    options = parser.parse_args()
    for name in options.names or NAMES:
        print(f"\n== {name}", flush=True)
        # a script that lacks its data says so and fails; the others still run
        subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False, cwd=HERE)
    subprocess.run([sys.executable, str(HERE / "results.py")], check=True)


if __name__ == "__main__":
    main()
