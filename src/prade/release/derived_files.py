"""Files derived from a release and kept in its folder: estimates and synthetic rows, each with a record of checksums.

    estimates.json      the record of estimates.parquet and support.parquet, which belong together
    synthetic.json      the record of synthetic.parquet, or of all files in the folder synthetic
    weights.json        the record of weights.npy, and of the estimates that it was made from
    carried.json        the record of carried.parquet, the public table of the next release

A record is sealed JSON, like `release.json`: the hashes of its files and that of the release they were made from. It is
removed before its files are written and written after them, so files without a record are ignored and made again. A
file that does not match its record is damaged and is refused before anything in it is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from prade.core.documents import Versioned, structured
from prade.core.errors import DataError
from prade.core.files import replace_file
from prade.data.read.tables import write_table
from prade.release.file_names import CARRIED, ESTIMATES, SUPPORT, SYNTHETIC, SYNTHETIC_PARTS, WEIGHTS
from prade.release.release import Release, file_hash, read_sealed, sealed_text

FORMAT = 2  # format 1 has no folders; records without folders are still written in it


@dataclass(frozen=True)
class Record:
    """The record of some files, and the command that makes them.

    In place of its only file there may be a folder of files, its name without the suffix.
    """

    name: str
    files: tuple[str, ...]
    command: str
    folder: str | None = None

    def advice(self, release: Release) -> str:
        """What to do if the files are missing or damaged."""
        return f"run `prade {self.command} {release.path}`, which spends nothing"


KEPT_ESTIMATES = Record("estimates.json", (ESTIMATES, SUPPORT), "estimate")
KEPT_ROWS = Record("synthetic.json", (SYNTHETIC,), "sample", SYNTHETIC_PARTS)
KEPT_WEIGHTS = Record("weights.json", (WEIGHTS, ESTIMATES, SUPPORT), "estimate")
KEPT_CARRIED = Record("carried.json", (CARRIED,), "plan --previous")


class _Content(msgspec.Struct):
    release: str
    files: dict[str, str]


@contextmanager
def recorded(release: Release, record: Record) -> Iterator[None]:
    """Write files in this block: it removes their old record first, and records what was written at the end."""
    path = release.path / record.name
    path.unlink(missing_ok=True)
    yield
    folder = _folder(release, record)
    hashes = {name: file_hash(release.path / name) for name in _files(release, record)}
    with replace_file(path) as temporary:
        content = {"format": 1 if folder is None else FORMAT, "release": release.fingerprint, "files": hashes}
        temporary.write_text(sealed_text(content), encoding="utf-8")


@contextmanager
def keep_rows_as(release: Release, name: str) -> Iterator[None]:
    """Write synthetic rows of this name in the release's folder; their record replaces that of earlier ones.

    The name is that of the file or of the folder; the other one is removed, so that the folder has one set of rows.
    """
    with recorded(release, KEPT_ROWS):
        yield
        if name == SYNTHETIC:
            shutil.rmtree(release.path / SYNTHETIC_PARTS, ignore_errors=True)
        else:
            (release.path / SYNTHETIC).unlink(missing_ok=True)


def kept_rows(release: Release) -> Path:
    """Where the release's folder has its synthetic rows: a file, or a folder of several. `check_kept` checks them."""
    return release.path / (_folder(release, KEPT_ROWS) or SYNTHETIC)


def _folder(release: Release, record: Record) -> str | None:
    """The name of the folder that stands in place of a record's file; None if the file is there, or none of both."""
    if record.folder is None or (release.path / record.files[0]).exists():
        return None
    return record.folder if (release.path / record.folder).is_dir() else None


def _files(release: Release, record: Record) -> list[str]:
    """The names of a record's files that are in the release's folder, or should be."""
    folder = _folder(release, record)
    if folder is None:
        return list(record.files)
    inside = (path for path in (release.path / folder).rglob("*") if path.is_file())
    return sorted(path.relative_to(release.path).as_posix() for path in inside)


def is_kept(release: Release, record: Record) -> bool:
    """Whether the folder has the files and their record; `check_kept` tells whether they are undamaged."""
    return all((release.path / name).exists() for name in (record.name, *_files(release, record)))


def check_kept(release: Release, record: Record) -> None:
    """Raise a DataError, with the remedy, unless the files exist exactly as they were written."""
    path, advice = release.path / record.name, record.advice(release)
    names = _files(release, record)
    for name in names:
        if not (release.path / name).exists():
            raise DataError(f"{release.path} has no {name} yet: {advice}")
    if not path.exists():
        raise DataError(f"{release.path} has {record.files[0]} without its checksums in {record.name}: {advice}")
    try:
        document = read_sealed(path)
        version = structured(document, Versioned).format
        content = structured(document, _Content) if version <= FORMAT else None
    except DataError:
        raise DataError(f"{path} is damaged: {advice}") from None
    if content is None:
        raise DataError(f"{path} has format {version}, this version reads {FORMAT}: update prade")
    if content.release != release.fingerprint:
        raise DataError(f"{path} belongs to another release: {advice}")
    for name in names:
        if file_hash(release.path / name) != content.files.get(name):
            raise DataError(
                f"{release.path / name} has changed since it was made (its hash differs from the one in "
                f"{record.name}): {advice}"
            )
    if missing := sorted(set(content.files) - set(names)):
        raise DataError(f"{release.path / missing[0]} is missing, though {record.name} has its hash: {advice}")


def write_rows(table: Any, output: str | PathLike[str], release: Release, *, spreadsheet_safe: bool = False) -> None:
    """Write synthetic rows, with their record if they go into the release's own folder."""
    if Path(output).resolve() != (release.path / SYNTHETIC).resolve():
        write_table(table, output, spreadsheet_safe=spreadsheet_safe)
        return
    with keep_rows_as(release, SYNTHETIC):
        write_table(table, output)
