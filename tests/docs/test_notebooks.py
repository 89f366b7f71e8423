"""The notebooks run from beginning to end in an empty folder, and are kept without what a run printed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
SECONDS = 60  # for one cell; the whole notebook has three times as many

# In a process of its own: what the kernel's libraries warn of is none of our tests' business.
RUN = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=int(sys.argv[3]), kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def run(notebook, folder):
    """The notebook with its outputs, after a run in a folder; a CalledProcessError that shows the cell otherwise."""
    done = folder / "done.ipynb"
    settings = {"IPYTHONDIR": str(folder / "ipython"), "MPLCONFIGDIR": str(folder / "matplotlib")}
    command = [sys.executable, "-c", RUN, str(notebook), str(done), str(SECONDS)]
    settings = {**os.environ, **settings}
    ended = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=3 * SECONDS)
    assert ended.returncode == 0, ended.stderr
    return json.loads(done.read_text("utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(notebook, kind):
    """Everything of a kind that the cells showed: "text/plain", "image/png", or "stdout" and "stderr"."""
    found = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    shown = [output.get("data", {}).get(kind) if "data" in output else output.get("text") for output in found]
    wanted = ["data" in output or output.get("name") == kind for output in found]
    return ["".join(text) for text, yes in zip(shown, wanted, strict=True) if yes and text]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_kept_without_outputs(path):
    """What a run shows depends on noise: kept in the repository, it would change with every run."""
    notebook = json.loads(path.read_text("utf-8"))
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    for cell in code_cells(notebook):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert cell["metadata"] == {}


def test_the_first_release(tmp_path):
    done = run(EXAMPLES / "first-release.ipynb", tmp_path)
    printed = "".join(outputs(done, "stdout"))
    assert printed.count("left:  epsilon = 2") == 2  # after the first fit, and still after the second
    assert "spent: epsilon = 4" in printed
    assert "spent: None" in printed
    assert "12 intervals hold the truth" in printed
    assert len(outputs(done, "image/png")) == 2
    shown = outputs(done, "text/plain")[2]
    assert all(name in shown for name in ("count", "share", "sd", "low", "high"))
    said = "".join(outputs(done, "stderr"))
    assert said.count("Warning") == said.count("nothing was spent, and the private table given now was not read") == 1
    assert (tmp_path / "first-release" / "release.json").exists()
