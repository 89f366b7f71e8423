"""What both peers' scripts share: the task, the outcome, one line for a failure. It knows neither prade nor a peer."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Codes = dict[str, np.ndarray]


def run(fit_and_draw: Callable[[dict[str, Any], Codes, Callable[[], None]], Mapping[str, np.ndarray]]) -> None:
    """FOLDER/task.json and FOLDER/codes.npz in; FOLDER/synthetic.npz and FOLDER/done.json out.

    `fit_and_draw(task, codes, fitted)` returns codes, and calls `fitted` between its two steps.
    """
    try:
        folder = Path(sys.argv[1])
        task = json.loads((folder / "task.json").read_text())
        with np.load(folder / "codes.npz") as file:
            codes = {name: file[name].astype(np.int64) for name in task["sizes"]}
        marks = [time.perf_counter()]
        drawn = fit_and_draw(task, codes, lambda: marks.append(time.perf_counter()))
        began, fitted = marks
        took = {"fit": fitted - began, "draw": time.perf_counter() - fitted, "GiB": peak_gib()}
        took["processor"] = time.process_time()
        np.savez(folder / "synthetic.npz", **drawn)
        (folder / "done.json").write_text(json.dumps(took))
    except Exception as error:  # in one line, without paths: it goes into a table
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def progress(words: str) -> None:
    """Say how far it got: a line for the file that compare/box.py names, where it does."""
    if file := os.environ.get("COMPARE_PROGRESS"):
        with open(file, "a") as end:
            end.write(f"{words}\n")


def peak_gib() -> float:
    """The most memory that this process has had (Linux), not what it was forked from."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20
