"""Copies of a release's folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from os import PathLike
from pathlib import Path

from prade.core.errors import DataError
from prade.release.release import Release


def copy_release(release: Release, folder: str | PathLike[str]) -> None:
    """Copy everything in a release's folder to a new folder, which appears when it is complete."""
    target = Path(folder).absolute()
    if target.exists():
        raise DataError(f"{target} already exists, and prade does not overwrite it: give the name of a new folder")
    if not target.parent.is_dir():
        raise DataError(f"there is no folder {target.parent} to save in; make it first")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as unfinished:
        os.replace(shutil.copytree(release.path, Path(unfinished) / target.name), target)
