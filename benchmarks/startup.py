"""How long until anything happens: `import prade` and `prade --help`, beside Python itself and numpy's import."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from common import report, table

RUNS = 15
COMMANDS = {
    "python -c pass": ([sys.executable, "-c", "pass"], ""),
    "import numpy": ([sys.executable, "-c", "import numpy"], ""),
    "import prade": ([sys.executable, "-c", "import prade"], "0.3 s"),
    "prade --help": ([str(Path(sys.executable).with_name("prade")), "--help"], "0.5 s"),
}


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall time and processor time of a run."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    rows, figures = [], {}
    for name, (command, most) in COMMANDS.items():
        seconds(command)  # files into memory
        wall, cpu = (statistics.median(each) for each in zip(*(seconds(command) for _ in range(RUNS)), strict=True))
        figures[name] = {"wall": wall, "processor": cpu}
        rows.append([f"`{name}`", f"{wall:.3f}", f"{cpu:.3f}", most])
    report("startup", table(["", "seconds", "of which processor time", "target, at most"], rows), figures)


if __name__ == "__main__":
    main()
