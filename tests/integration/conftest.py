"""Puts the property tests' folder on the path, whose observer and tables are used here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "property"))
