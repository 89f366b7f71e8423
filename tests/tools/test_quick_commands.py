"""The command `prade` of pages: it does what the installed program does, in the caller's folder and environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from worlds.quick_commands import quick_commands

INSTALLED = Path(sys.executable).parent


@pytest.fixture(scope="module")
def quick():
    with quick_commands() as folder:
        yield folder


def ran(folder, command, **options):
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", ["prade --version", "prade nonsense", "prade ledger list --ledger none"])
def test_it_prints_and_ends_as_the_installed_program(quick, command, tmp_path):
    assert ran(quick, command, cwd=tmp_path) == ran(INSTALLED, command, cwd=tmp_path)


def test_it_works_in_the_callers_folder_with_its_environment(quick, tmp_path):
    command = "PRADE_LEDGER=$PWD/here prade ledger open people --cap 1 && prade ledger list --ledger here | tail -n 1"
    code, said, complaints = ran(quick, command, cwd=tmp_path)
    assert (code, complaints) == (0, "")
    assert said.splitlines()[-1].startswith("people ")
    assert (tmp_path / "here").is_file()
