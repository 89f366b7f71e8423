"""Puts this folder on the path, so that the tests can share the bounds of `test_audit`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
