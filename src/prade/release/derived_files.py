"""Files derived from a release and kept in its folder: estimates and synthetic rows, each with a record of checksums.

    estimates.json      the record of estimates.parquet and support.parquet, which belong together
    synthetic.json      the record of synthetic.parquet
    weights.json        the record of weights.npy, and of the estimates that it was made from

A record is sealed JSON, like `release.json`: the hashes of its files and that of the release they were made from. It is
removed before its files are written and written after them, so files without a record are ignored and made again. A
file that does not match its record is damaged and is refused before anything in it is read.
"""

from __future__ import annotations

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
from prade.data.tables import write_table
from prade.release.file_names import ESTIMATES, SUPPORT, SYNTHETIC, WEIGHTS
from prade.release.release import Release, file_hash, read_sealed, sealed_text

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """The record of some files, and the command that makes them."""

    name: str
    files: tuple[str, ...]
    command: str

    def advice(self, release: Release) -> str:
        """What to do if the files are missing or damaged."""
        return f"run `prade {self.command} {release.path}`, which spends nothing"


KEPT_ESTIMATES = Record("estimates.json", (ESTIMATES, SUPPORT), "estimate")
KEPT_ROWS = Record("synthetic.json", (SYNTHETIC,), "sample")
KEPT_WEIGHTS = Record("weights.json", (WEIGHTS, ESTIMATES, SUPPORT), "estimate")


class _Content(msgspec.Struct):
    release: str
    files: dict[str, str]


@contextmanager
def recorded(release: Release, record: Record) -> Iterator[None]:
    """Write files in this block: it removes their old record first, and records what was written at the end."""
    path = release.path / record.name
    path.unlink(missing_ok=True)
    yield
    hashes = {name: file_hash(release.path / name) for name in record.files}
    with replace_file(path) as temporary:
        content = {"format": FORMAT, "release": release.fingerprint, "files": hashes}
        temporary.write_text(sealed_text(content), encoding="utf-8")


def is_kept(release: Release, record: Record) -> bool:
    """Whether the folder has the files and their record; `check_kept` tells whether they are undamaged."""
    return all((release.path / name).exists() for name in (record.name, *record.files))


def check_kept(release: Release, record: Record) -> None:
    """Raise a DataError, with the remedy, unless the files exist exactly as they were written."""
    path, advice = release.path / record.name, record.advice(release)
    for name in record.files:
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
    for name in record.files:
        if file_hash(release.path / name) != content.files.get(name):
            raise DataError(
                f"{release.path / name} has changed since it was made (its hash differs from the one in "
                f"{record.name}): {advice}"
            )


def write_rows(table: Any, output: str | PathLike[str], release: Release, *, spreadsheet_safe: bool = False) -> None:
    """Write synthetic rows, with their record if they go into the release's own folder."""
    if Path(output).resolve() != (release.path / SYNTHETIC).resolve():
        write_table(table, output, spreadsheet_safe=spreadsheet_safe)
        return
    with recorded(release, KEPT_ROWS):
        write_table(table, output)
