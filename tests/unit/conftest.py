"""Puts this folder on the path, so that the tests of secrets can share what they plant and search for."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
