"""Run the benchmarks, each in its own process, and write docs/benchmarks.md from what they print."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from common import OUT, ROOT, machine

HERE = Path(__file__).resolve().parent
NAMES = {
    "sweep": "One sweep of Algorithm 1",
    "raking": "Raking beside mbi and ipfn",
    "groups": "All PUMAs of New York and Pennsylvania",
    "scaling": "Cost against size",
    "counts": "Counting in the database, and noise",
    "rows": "Numbers of rows",
    "shares": "Larger shares for larger tables",
    "budgets": "Several budgets at once",
    "startup": "Startup time",
    "acs": "The ACS job: New York and Pennsylvania from Illinois and Ohio",
    "nist": "Last year's table as the prior, and a bad prior",
    "promises": "The expected error beside what comes out",
    "intervals": "How often intervals contain the truth",
    "values": "Values that belong together",
    "report": "The report of many groups",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], help="which ones (default: all)")
    options = parser.parse_args()
    for name in options.names or NAMES:
        print(f"\n== {name}", flush=True)
        # a script that lacks its data says so and fails; the others still run
        subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False, cwd=HERE)
    pages = [(title, OUT / f"{name}.md") for name, title in NAMES.items()]
    body = "\n".join(
        f"## {title}\n\n`python benchmarks/{path.stem}.py`\n\n{path.read_text()}"
        for title, path in pages
        if path.exists()
    )
    head = (
        "# Benchmarks\n\n`make bench` makes this page. Each table compares with its baseline in the same run, because "
        f"absolute times depend on the machine (here: {machine()}).\n\n"
    )
    (ROOT / "docs" / "benchmarks.md").write_text(head + body)


if __name__ == "__main__":
    main()
