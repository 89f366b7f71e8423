"""Results are data: benchmarks/results/NAME.json has tables of figures, and pages are made from them.

    python benchmarks/results.py            write the tables of all results into the pages of docs/
    python benchmarks/results.py --check    say which pages are out of date

`keep` takes every Markdown table from the text that a benchmark prints. A page says where tables stand:

    <!-- results: acs 2 -->      the second table of benchmarks/results/acs.json; "acs" alone means all of its tables
    <!-- /results -->

What stands between the two comments is replaced; every other word of a page is written by hand and left alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from prade import __version__

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
TABLE = re.compile(r"(?:(?P<caption>[^\n|]+)\n\s*)?(?P<head>^\|.*\|)\n\|(?:[-: ]+\|)+\n(?P<rows>(?:^\|.*\|\n?)*)", re.M)
PLACE = re.compile(r"(<!-- results: (?P<name>[\w-]+)(?: (?P<number>\d+))? -->\n)(?P<old>.*?)(<!-- /results -->)", re.S)


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text: str) -> list[dict[str, Any]]:
    """The Markdown tables of a text, each with the line above it as its caption.

    >>> tables("Errors:\\n\\n| eps | error |\\n|---|---|\\n| 1 | 0.2 |\\n")
    [{'caption': 'Errors', 'head': ['eps', 'error'], 'rows': [['1', '0.2']]}]
    """
    return [
        {
            "caption": (match["caption"] or "").strip().rstrip(":"),
            "head": cells(match["head"]),
            "rows": [cells(row) for row in match["rows"].splitlines()],
        }
        for match in TABLE.finditer(text)
    ]


def machine() -> str:
    """A line about the machine."""
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {sys.version.split()[0]}, numpy {np.__version__}"


def commit() -> str:
    """The commit that is measured, with a mark if files have changed since."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def keep(name: str, text: str, command: str = "") -> None:
    """Write the tables of a benchmark's text to its file, with what somebody needs to make them again."""
    made = {
        "command": command or " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "version": __version__,
        "commit": commit(),
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
    }
    RESULTS.mkdir(exist_ok=True)
    lines = json.dumps([{**made, **table} for table in tables(text)], indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(lines + "\n", encoding="utf-8")


def shown(table: dict[str, Any]) -> str:
    """A table of a result as Markdown, with its command, and with its version if that is not the present one."""
    caption = [f"{table['caption']}:", ""] if table["caption"] else []
    lines = ["| " + " | ".join(table["head"]) + " |", "|" + "---|" * len(table["head"])]
    lines += ["| " + " | ".join(row) + " |" for row in table["rows"]]
    source = f"`{table['command']}`"
    if table["version"] != __version__:
        source += f", **version {table['version']}**"
    return "\n".join([*caption, *lines, "", source, ""])


def filled(page: str) -> str:
    """A page with the tables that it asks for."""

    def place(match: re.Match[str]) -> str:
        every = json.loads((RESULTS / f"{match['name']}.json").read_text("utf-8"))
        chosen = [every[int(match["number"]) - 1]] if match["number"] else every
        return match[1] + "".join(f"\n{shown(table)}" for table in chosen) + "\n" + match[5]

    return PLACE.sub(place, page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page is out of date")
    options = parser.parse_args()
    stale = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        if (made := filled(text)) != text:
            stale.append(page.name)
            if not options.check:
                page.write_text(made, "utf-8")
    if options.check and stale:
        sys.exit(f"out of date: {', '.join(stale)}. Run python benchmarks/results.py")


if __name__ == "__main__":
    main()
