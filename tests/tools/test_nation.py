"""Benchmarks: all can be imported; that of an invented nation measures what commands use, and tells what grows."""

import subprocess
import sys
from pathlib import Path

import pytest

from costs_on_paper import Size, exponents, on_paper
from used import measured

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TWO_PROCESSES = """
import subprocess, sys, time
held = bytearray(b"x" * 100 * 2**20)
if len(sys.argv) < 2:
    child = subprocess.Popen([sys.executable, __file__, "child"])
began = time.process_time()
while time.process_time() < began + 0.5:
    pass
time.sleep(2)
if len(sys.argv) < 2:
    child.wait()
"""


def test_seconds_and_memory_are_those_of_all_processes(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(TWO_PROCESSES)
    used = measured([sys.executable, str(script)], tmp_path / "log")
    assert 0.9 < used.processor < 5
    assert used.seconds > 2
    assert 0.19 < used.gib < 0.6  # twice 100 MiB, and two Pythons


def test_a_command_that_fails_shows_what_it_said_and_may_have_some_of_the_cores_only(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 3:\nnot today"):
        measured([sys.executable, "-c", "print('not today'); raise SystemExit(3)"], tmp_path / "log")
    measured([sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"], tmp_path / "log", cores=1)
    assert (tmp_path / "log").read_text().strip() == "1"


def used_by(size, fixed=2.0):
    return fixed + 1e-6 * size.groups**1.0 * size.rows**0.8 * size.parts**1.4


def test_exponents_are_found_and_carry_to_other_sizes():
    base = Size(200, 250_000, 36)
    sizes = [base, Size(50, 250_000, 36), Size(200, 62_500, 36), Size(200, 250_000, 9)]
    found = exponents([(size, used_by(size)) for size in sizes], fixed=2.0)
    assert found == pytest.approx({"groups": 1.0, "rows": 0.8, "parts": 1.4})
    nation = Size(240_000, 3_400_000, 36)
    assert on_paper(used_by(base), 2.0, found, base, nation) == pytest.approx(used_by(nation))


def test_every_benchmark_can_be_imported():
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
    assert "one_model" in names
    done = subprocess.run([sys.executable, "-c", f"import {', '.join(names)}"], cwd=BENCHMARKS, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
