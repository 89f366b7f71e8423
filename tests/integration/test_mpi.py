"""Estimates on MPI: the recipe of the documentation, under a real `mpirun`."""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from prade.estimating.levels.estimates import Estimates
from worlds.many_places import bits, public, release

TESTS = Path(__file__).parents[1]
missing = [
    name for name, found in (("mpirun", shutil.which("mpirun")), ("mpi4py", find_spec("mpi4py"))) if found is None
]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} not installed")


def test_three_processes_give_the_bits_of_this_one(tmp_path):
    made = release(tmp_path / "release")
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = [sys.executable, "-m", "mpi4py.futures", "-m", "worlds.mpi_estimate", str(made.path)]
    run = subprocess.run(
        ["mpirun", "-n", "3", *as_root, "--oversubscribe", *script],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "PYTHONPATH": path, "OMPI_MCA_btl_vader_single_copy_mechanism": "none"},
    )
    assert run.returncode == 0, run.stderr
    expected = hashlib.sha256(b"".join(bits(Estimates.of(made, public())))).hexdigest()
    assert run.stdout.split()[:2] == ["2", expected]  # mpirun may add codes for the terminal
