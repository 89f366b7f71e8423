"""Files derived from a release and kept in its folder, each with a record of checksums; batches of unfinished runs.

A record is sealed JSON: the hashes of its files and that of the release they were made from. It is removed before its
files are written and written after them, so files without a record are made again. A file that does not match its
record is damaged and is refused before anything in it is read.

Finished batches of a long run stay on disk until all of it is done, so that a run that was killed goes on where it was.
The name of a batch has its checksum, so a damaged one counts as not finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from prade.core.documents import Versioned, structured
from prade.core.errors import DataError
from prade.core.execution import versions
from prade.core.files import locked, replace_file
from prade.release.release import Release, file_hash, read_sealed, sealed_text

ESTIMATES, SUPPORT, SYNTHETIC = "estimates.parquet", "support.parquet", "synthetic.parquet"
WEIGHTS = "weights.npy"
CARRIED = "carried.parquet"  # the public table of the next release
SUPPORT_FOR_WORKERS = "support.arrow"  # in the folder of a run that is not complete
UNFINISHED_ESTIMATES = "unfinished-estimates"  # a folder of finished batches
SYNTHETIC_PARTS = "synthetic"  # a folder: synthetic rows as a data set of several parquet files
UNFINISHED_ROWS = "unfinished-rows"  # a folder of finished batches


FORMAT = 2  # format 1 has no folders


@dataclass(frozen=True)
class Record:
    """The record of some files, the command that makes them, and the folder that may stand in place of one file."""

    name: str
    files: tuple[str, ...]
    command: str
    folder: str | None = None


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
    hashes = {name: file_hash(release.path / name) for name in _files(release, record)}
    with replace_file(path) as temporary:
        content = {"format": FORMAT, "release": release.fingerprint, "files": hashes}
        temporary.write_text(sealed_text(content), encoding="utf-8")


@contextmanager
def keep_rows_as(release: Release, name: str) -> Iterator[None]:
    """Write synthetic rows into the release's file or folder of this name, and remove the other one."""
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
    path = release.path / record.name
    advice = f"run `prade {record.command} {release.path}`, which spends nothing"
    names = _files(release, record)
    for name in (*names, record.name):
        if not (release.path / name).exists():
            raise DataError(f"{release.path} has no {name} yet: {advice}")
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
    for name in sorted({*names, *content.files}):
        if name not in names or file_hash(release.path / name) != content.files.get(name):
            raise DataError(f"{release.path / name} has changed since it was made (hash in {record.name}): {advice}")


JOB_FORMAT = 1
JOB = "job.json"  # sealed: the format and the key
NAME = re.compile(r"[0-9A-Za-z-]+")


@dataclass(frozen=True)
class FinishedBatches:
    """The folder of a run that is not complete, locked by it. Names of batches have letters, digits and hyphens."""

    folder: Path

    @classmethod
    @contextmanager
    def open(cls, folder: Path, key: str) -> Iterator[FinishedBatches]:
        """The finished batches of the runs with this key (`run_key`) in a folder, made if needed; others are removed.

        If another run works in the folder, the name is followed by -2, -3 and so on.
        """
        with _locked(folder) as mine:
            with disk_trouble_reported(mine):
                job, known = {"format": JOB_FORMAT, "key": key}, None
                with suppress(DataError):
                    known = read_sealed(mine / JOB)
                if known != job:
                    _empty(mine)
                    with replace_file(mine / JOB) as temporary:
                        temporary.write_text(sealed_text(job), encoding="utf-8")
                for left in mine.glob(".*"):  # half-written by a run that was killed
                    left.unlink(missing_ok=True)
            yield cls(mine)

    def paths(self, suffix: str) -> list[Path]:
        """The files of all finished batches with this suffix, in the order of their names; damaged ones are removed."""
        files = sorted(self.folder.glob(f"*.*{suffix}"))
        for path in files:
            if path.name.split(".")[1] != file_hash(path):
                path.unlink(missing_ok=True)
        return [path for path in files if path.exists()]

    def remove(self) -> None:
        """Remove the folder: all is done, and the results are where they belong."""
        shutil.rmtree(self.folder, ignore_errors=True)


def run_key(*inputs: Any) -> str:
    """A key for `FinishedBatches.open`: a fingerprint of inputs, which JSON can hold, and of the versions in use."""
    return hashlib.sha256(json.dumps([*inputs, versions()], sort_keys=True).encode()).hexdigest()


@contextmanager
def keep_batch(folder: Path, batch: str, suffix: str) -> Iterator[Path]:
    """A temporary path, for any process or machine that sees the folder; after the block, it is the finished batch."""
    with disk_trouble_reported(folder):
        assert NAME.fullmatch(batch), batch
        unnamed = folder / f"{batch}{suffix}"
        with replace_file(unnamed) as temporary:
            yield temporary
            checksum = file_hash(temporary)
            final = folder / f"{batch}.{checksum}{suffix}"
        os.replace(unnamed, final)


@contextmanager
def disk_trouble_reported(folder: Path) -> Iterator[None]:
    """Raise what the system says about a full or missing disk as a DataError that says what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error.strerror or error}): make room there, or have its permissions "
            "changed, then run the same command again; what is finished is kept"
        ) from error


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """The first of FOLDER, FOLDER-2, ... that no living run has, made if needed; without locks, the first of all."""
    for number in count(1):
        mine = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        with ExitStack() as lock:
            with disk_trouble_reported(folder):
                mine.mkdir(exist_ok=True)
                handle = lock.enter_context(locked(mine, without=-1))
            if handle is not None and mine.exists():  # else another run has it, or has just removed it
                yield mine
                return
