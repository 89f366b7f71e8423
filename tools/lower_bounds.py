"""Print the oldest versions that pyproject.toml allows, as constraints for pip: tests with them show that they do.

python tools/lower_bounds.py > oldest.txt && pip install -c oldest.txt -e .
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lower_bounds(requirements: list[str]) -> list[str]:
    """The requirements with "at least" turned into "exactly".

    >>> lower_bounds(["numpy>=1.26", "opendp >= 0.12"])
    ['numpy==1.26', 'opendp==0.12']
    """
    pairs = [re.fullmatch(r"([\w.-]+)(?:\[.*\])?\s*>=\s*([\d.]+)", each) for each in requirements]
    return [f"{pair[1]}=={pair[2]}" for pair in pairs if pair]


if __name__ == "__main__":
    print("\n".join(lower_bounds(tomllib.loads(PROJECT.read_text())["project"]["dependencies"])))
