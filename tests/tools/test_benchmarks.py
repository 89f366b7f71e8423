"""Benchmarks are run by hand and seldom: that they can still be imported is checked every time."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_every_benchmark_can_be_imported():
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
    assert "one_model" in names
    done = subprocess.run([sys.executable, "-c", f"import {', '.join(names)}"], cwd=BENCHMARKS, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
