"""Drivers: code that runs in an interpreter of its own, because processes are forked and killed there."""

import pytest

from worlds.processes import driven

PRELUDE = """
import os, random, resource, shutil, signal, sys, tempfile, time
from pathlib import Path
from prade import Ledger, Release
from prade.measuring.run import measure
from worlds.plans import IN_TOWNS, TOWN_PLAN, town_plan
from worlds.processes import *
from worlds.drivers import *
"""


@pytest.fixture
def drive(tmp_path):
    """Run a driver, with all of `worlds/drivers.py`; the numbers it prints."""
    return lambda code: driven(PRELUDE + code, tmp_path)
