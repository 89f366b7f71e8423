"""What `pip install prade` alone can do: the whole demonstration, without any extra and any tool of development."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import importlib.metadata as metadata, sys
from importlib.machinery import PathFinder
others = set(sys.argv[1].split())
real = metadata.version

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *where: None if name.partition(".")[0] in others else find(name, *where)

def version(name):
    if name in others:
        raise metadata.PackageNotFoundError(name)
    return real(name)

metadata.version = version
from prade.__main__ import main
sys.argv[1:] = ["demo", "-o", "demo", "--persons", "300", "--effort", "0"]
main()
"""


def test_the_demonstration_needs_no_extra(tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {
        each.split(">=")[0].split("[")[0] for of_one in project["optional-dependencies"].values() for each in of_one
    }
    modules = {"scikit-learn": "sklearn", "dp-accounting": "dp_accounting", "axe-core-python": "axe_core_python"}
    names = " ".join(modules.get(name, name) for name in extras)
    done = subprocess.run([sys.executable, "-c", RUN, names], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "demo" / "release" / "report.html").exists()
