"""Drivers: code that runs in an interpreter of its own, because processes are forked and killed there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PRELUDE = """
import os, random, resource, shutil, signal, sys, tempfile, time
from worlds.drivers import *
"""


@pytest.fixture
def drive(tmp_path: Path) -> Callable[..., list[int]]:
    """Run a driver, with all of `worlds/drivers.py` and perhaps within another command; the numbers it prints."""

    def run(code: str, *wrapper: str) -> list[int]:
        command = [*wrapper, sys.executable, "-c", PRELUDE + code, str(tmp_path)]
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path.strip(os.pathsep)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment)
        assert done.returncode == 0, done.stderr
        return [int(number) for number in done.stdout.split()]

    return run
