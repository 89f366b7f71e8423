"""What a release's folder keeps besides the release: estimates and synthetic rows, each with a record of its files.

    estimates.json      of estimates.parquet and support.parquet, which belong together
    synthetic.json      of synthetic.parquet

A record is JSON with a seal, as `release.json` is: the hashes of the files, and that of the release that they were made
from. It is removed before its files are written and comes after them, so files without one are worth nothing: they are
made again. A file that is not the one in its record is damaged, and is refused before anything in it is read.
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
from prade.release.file_names import ESTIMATES, SUPPORT, SYNTHETIC
from prade.release.release import Release, file_hash, read_sealed, sealed_text

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """The record of some files, and the command that makes them."""

    name: str
    files: tuple[str, ...]
    command: str

    def advice(self, release: Release) -> str:
        """What to do when they are not there, or not right."""
        return f"run `prade {self.command} {release.path}`, which spends nothing"


KEPT_ESTIMATES = Record("estimates.json", (ESTIMATES, SUPPORT), "estimate")
KEPT_ROWS = Record("synthetic.json", (SYNTHETIC,), "sample")


class _Content(msgspec.Struct):
    release: str
    files: dict[str, str]


@contextmanager
def recorded(release: Release, record: Record) -> Iterator[None]:
    """While the files are written there is no record; then there is one of what was written."""
    place = release.path / record.name
    place.unlink(missing_ok=True)
    yield
    hashes = {name: file_hash(release.path / name) for name in record.files}
    with replace_file(place) as temporary:
        content = {"format": FORMAT, "release": release.fingerprint, "files": hashes}
        temporary.write_text(sealed_text(content), encoding="utf-8")


def is_kept(release: Release, record: Record) -> bool:
    """Whether the folder has such files and their record; whether they are sound is another matter."""
    return all((release.path / name).exists() for name in (record.name, *record.files))


def check_kept(release: Release, record: Record) -> None:
    """A DataError, with the remedy, unless the files are there and just as they were written."""
    place, advice = release.path / record.name, record.advice(release)
    for name in record.files:
        if not (release.path / name).exists():
            raise DataError(f"{release.path} has no {name} yet: {advice}")
    if not place.exists():
        raise DataError(f"{release.path} has {record.files[0]} without its checksums in {record.name}: {advice}")
    try:
        found = read_sealed(place)
        version = structured(found, Versioned).format
        content = structured(found, _Content) if version <= FORMAT else None
    except DataError:
        raise DataError(f"{place} is damaged: {advice}") from None
    if content is None:
        raise DataError(f"{place} has format {version}, this version reads {FORMAT}: update prade")
    if content.release != release.fingerprint:
        raise DataError(f"{place} is about another release: {advice}")
    for name in record.files:
        if file_hash(release.path / name) != content.files.get(name):
            raise DataError(
                f"{release.path / name} is not the file that was made (its hash differs from the one in "
                f"{record.name}): {advice}"
            )


def write_rows(table: Any, output: str | PathLike[str], release: Release, *, spreadsheet_safe: bool = False) -> None:
    """Write synthetic rows; with their record, if they are the release folder's own."""
    if Path(output).resolve() != (release.path / SYNTHETIC).resolve():
        write_table(table, output, spreadsheet_safe=spreadsheet_safe)
        return
    with recorded(release, KEPT_ROWS):
        write_table(table, output)
