"""A release: the folder that measuring writes, and all that estimates, samples and reports start from.

    plan.toml               what was asked
    measurements.parquet    the noisy counts: level, group, part, cell, label, law, scale, noisy
    release.json            versions, hashes of the two files above, and the ledger's head when it was paid for
    ledger.json             what it cost, what remains, under which promise, and the ledger's head after that

The last two end with a seal, the hash of all that they say. Nothing in the folder is private. It is written beside its
place and renamed when it is whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from prade.core.documents import Malformed, Versioned, json_value, structured
from prade.core.errors import DataError
from prade.core.files import sha256_of
from prade.data.parquet_with_header import damage_reported, whole_numbers
from prade.planning.plan import Plan
from prade.planning.questions import Question
from prade.privacy.ledger.chain import Head
from prade.privacy.ledger.records import Claim
from prade.release.measurement import Measurement

if TYPE_CHECKING:
    import pyarrow as pa


FORMAT = 1
PLAN, MEASUREMENTS, MANIFEST, EXTRACT = "plan.toml", "measurements.parquet", "release.json", "ledger.json"
HASHED = (PLAN, MEASUREMENTS)
SEAL = "seal"

Noisy = NDArray[np.int64]


class Manifest(msgspec.Struct):
    """What `release.json` must say at least; the rest is for people."""

    plan: str
    dataset: str
    entry: int
    made: str
    files: dict[str, str]


class Extract(msgspec.Struct):
    """What `ledger.json` must say at least."""

    account: list[str]


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy counts and the plan that they answer. `noisy[q][k]` are those of part k of question q: [groups, cells].

    Made by `prade.measuring.run.measure`, read again by `Release.load`.
    """

    path: Path
    plan: Plan
    noisy: tuple[tuple[Noisy, ...], ...]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Release:
        """The release in a folder; a DataError where the folder is none, or one of its files has changed."""
        folder = Path(path)
        manifest = read_manifest(folder)
        for name in HASHED:
            if file_hash(folder / name) != manifest["files"].get(name):
                raise DataError(
                    f"{folder / name} is not the file that the release was made with (its hash differs from the one in "
                    f"{MANIFEST}): bring the original back"
                )
        plan = Plan.load(folder / PLAN)
        return cls(folder, plan, read_measurements(folder / MEASUREMENTS, plan))

    def __repr__(self) -> str:
        return f"Release({str(self.path)!r}, {self.plan!r})"

    def measurements(self, level: int, group: int) -> list[Measurement]:
        """The noisy counts of one group, one Measurement a part, totals left out: what estimators take."""
        return [
            Measurement(part, counts[group], float(question.scale), question.law)
            for question, answers in self._answers(level)
            if not question.is_total
            for part, counts in zip(question.parts, answers, strict=True)
        ]

    def totals(self, level: int) -> tuple[NDArray[np.float64], float]:
        """Number of rows of each group of a level, and the standard deviation of its noise.

        The mean of all that says it, the total that was asked for and the sum of each part that covers everything,
        weighted by inverse variances: no unbiased mean is more precise.
        """
        answered = self._answers(level)
        weighted = np.zeros(len(self.plan.groupings[level]))
        precision = 0.0
        for question, answers in answered:
            for part, counts in zip(question.parts, answers, strict=True):
                if part.covers:
                    weight = 1 / (part.n_cells * question.variance)
                    weighted += weight * counts.sum(axis=1)
                    precision += weight
        if not precision:
            raise DataError(
                f"level {self.plan.levels[level].name} has no total, and no part of it covers everybody: "
                "ask for a marginal, or give the level a total"
            )
        return weighted / precision, precision**-0.5

    def account(self) -> str:
        """In words, as of the day it was made: what was asked, at which scale, what it cost, what remained."""
        return "\n".join(read_account(self.path))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the plan and the noisy counts: what everything that is made from the release is made from."""
        digest = hashlib.sha256(self.plan.hash.encode())
        for counts in (counts for answers in self.noisy for counts in answers):
            digest.update(np.ascontiguousarray(counts, np.int64).tobytes())
        return digest.hexdigest()

    def _answers(self, level: int) -> list[tuple[Question, tuple[Noisy, ...]]]:
        """The questions of a level with their answers."""
        if not 0 <= level < len(self.plan.levels):
            raise DataError(f"level is {level!r}; the release has levels 0 to {len(self.plan.levels) - 1}")
        pairs = zip(self.plan.questions, self.noisy, strict=True)
        return [(question, answers) for question, answers in pairs if question.level == level]


# ---------------------------------------------------------------------- measurements


def measurement_table(plan: Plan, noisy: Sequence[Sequence[Noisy]]) -> pa.Table:
    """All noisy counts as one table, one row a count: by question, part, group, cell."""
    import pyarrow as pa

    texts: dict[str, dict[str, int]] = {name: {} for name in ("level", "group", "part", "label", "law")}
    pieces: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("level", "group", "part", "cell", "label", "law", "scale", "noisy")
    }

    def places(name: str, values: Sequence[str]) -> NDArray[np.int32]:
        known = texts[name]
        return np.array([known.setdefault(value, len(known)) for value in values], np.int32)

    for question, answers in zip(plan.questions, noisy, strict=True):
        grouping = plan.groupings[question.level]
        groups = places("group", grouping.labels())
        level = places("level", [plan.levels[question.level].name])
        law = places("law", [question.law])
        for part, name, counts in zip(question.parts, question.names(), answers, strict=True):
            cells = np.arange(part.n_cells, dtype=np.int32)
            labels = places("label", part.labels(plan.schema))
            shape = (len(grouping), part.n_cells)
            for key, value in (
                ("level", level),
                ("group", groups[:, None]),
                ("part", places("part", [name])),
                ("cell", cells),
                ("label", labels),
                ("law", law),
                ("scale", np.array([float(question.scale)])),
                ("noisy", counts),
            ):
                pieces[key].append(np.broadcast_to(value, shape).ravel())
    columns = {}
    for name, arrays in pieces.items():
        whole = pa.array(np.concatenate(arrays))
        columns[name] = pa.DictionaryArray.from_arrays(whole, pa.array(list(texts[name]))) if name in texts else whole
    return pa.table(columns)


def read_measurements(path: Path, plan: Plan) -> tuple[tuple[Noisy, ...], ...]:
    """The noisy counts of a file, in the order of the plan."""
    from prade.data.tables import read_table

    with damage_reported(path, "noisy counts", "bring the original back"):
        values = whole_numbers(read_table(path, ["noisy"]), "noisy")
    shapes = [
        [(len(plan.groupings[question.level]), part.n_cells) for part in question.parts] for question in plan.questions
    ]
    ends = np.cumsum([rows * cells for each in shapes for rows, cells in each])
    if values.dtype != np.int64 or len(values) != ends[-1]:
        raise DataError(
            f"{path} has {len(values):,} counts, its plan asks for {ends[-1]:,}: they do not belong together"
        )
    pieces = iter(np.split(values, ends[:-1]))
    return tuple(tuple(next(pieces).reshape(shape) for shape in each) for each in shapes)


# ---------------------------------------------------------------------- the folder


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    try:
        with open(path, "rb") as file:
            return sha256_of(file)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; a release has {', '.join(HASHED)}, {MANIFEST}") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """What `release.json` says."""
    path = folder / MANIFEST
    found = read_sealed(path)
    try:
        if (version := structured(found, Versioned).format) > FORMAT:
            raise DataError(f"{path} has release format {version}, this version reads {FORMAT}: update prade")
        structured(found, Manifest)
    except Malformed as fault:
        raise DataError(f"{path} is damaged ({fault}): bring the original back") from None
    return found


def claim_of(manifest: Mapping[str, Any]) -> Claim:
    """Which entry of which ledger paid for a release, as its `release.json` says."""
    try:
        return Claim(manifest["plan"], manifest["entry"], manifest["files"][MEASUREMENTS], head_of(manifest))
    except (LookupError, TypeError):
        raise DataError(f"a {MANIFEST} does not say which entry paid for it: bring the original back") from None


def head_of(content: Mapping[str, Any]) -> Head | None:
    """The head of the ledger that paid, as a sealed file names it; version 0.1 named none."""
    return None if content.get("head") is None else Head.from_dict(content["head"])


def head_after(folder: Path) -> Head | None:
    """The ledger's head after a release was committed, where it is finished."""
    return head_of(read_sealed(folder / EXTRACT)) if (folder / EXTRACT).is_file() else None


def note_of(plan: Plan) -> str:
    """For the account: what is asked, at which scale."""
    return "; ".join(f"{plan.levels[question.level].name}: {plan.line(question)}" for question in plan.questions)


def read_account(folder: Path) -> list[str]:
    """The account that `ledger.json` gives, line by line."""
    path = folder / EXTRACT
    try:
        return structured(read_sealed(path), Extract).account
    except Malformed as fault:
        raise DataError(f"{path} is damaged ({fault}): bring the original back") from None


def sealed_text(content: Mapping[str, Any]) -> str:
    """JSON for people to read, with a seal by which `read_sealed` tells whether anything in it was changed."""
    return json.dumps({**content, SEAL: _seal(content)}, indent=2, ensure_ascii=False) + "\n"


def read_sealed(path: Path) -> dict[str, Any]:
    """What a JSON file of a release says; a DataError where it is missing or was changed."""
    with suppress(Malformed):  # what a changed byte makes of JSON
        content = json_value(_bytes(path))
        if isinstance(content, dict) and content.pop(SEAL, None) == _seal(content):
            return content
    raise DataError(f"{path} is damaged: bring the original back")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{path.parent} is no release: it has no {path.name}; give a folder that `measure` wrote, or, to measure, "
            "a new one"
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be read ({error.strerror}): get access to it")
