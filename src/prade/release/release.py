"""A release: the folder that measuring writes, from which estimates, samples and reports are made.

The page of file formats lists its files. The JSON files end with a seal, the hash of the rest of the file. Nothing in
the folder is private. It is written under another name and renamed once it is complete.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from prade.core.arrays import Floats, PreciseMean
from prade.core.documents import Malformed, Versioned, json_value, structured
from prade.core.errors import DataError, EstimationError, PradeError, Remark
from prade.core.execution import cores
from prade.data.declare.schema import Schema
from prade.data.read.files import damage_reported, whole_numbers
from prade.data.read.tables import read_table
from prade.diagnosis.diagnose import Diagnosis, diagnosed
from prade.planning.invariants import not_protected
from prade.planning.plan import RELEASED, Plan, public_of
from prade.planning.questions import Question
from prade.privacy.ledger.file import Head
from prade.privacy.ledger.records import Claim
from prade.privacy.noise_law import LAPLACE, NoiseLaw, noise_law
from prade.queries.parts import Part


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of one part.

    counts_i = true count of cell i + noise_i. `scale` is one number, or one per cell: b of Laplace noise, the standard
    deviation of Gaussian noise, or 0 for an exact count.

    >>> from prade import Schema, Workload
    >>> part = Workload.marginals(Schema.from_mbi({"sex": 2}), ["sex"])[0]
    >>> Measurement(part, [48, 55], scale=3.0).variance
    array([18., 18.])
    """

    part: Part
    counts: NDArray[np.float64]
    scale: NDArray[np.float64]
    law: NoiseLaw = LAPLACE

    def __init__(self, part: Part, counts: ArrayLike, scale: ArrayLike, law: str = LAPLACE) -> None:
        if not hasattr(part, "n_cells"):
            raise EstimationError(f"a measurement needs a Part, got a {type(part).__name__}: take it from a Workload")
        values, scales = np.array(counts, np.float64), np.array(scale, np.float64)
        if values.shape != (part.n_cells,) or scales.shape not in ((), values.shape):
            raise EstimationError(
                f"{part.name}: expected {part.n_cells} counts, and one scale or one per count, but the counts have "
                f"shape {values.shape} and the scales {scales.shape}"
            )
        _need_numbers(values, scales, f"{part.name}: ")
        try:
            law = noise_law(law)
        except PradeError as error:
            raise EstimationError(f"{part.name}: {error}") from None
        self.__dict__.update(part=part, counts=values, scale=np.broadcast_to(scales, values.shape), law=law)

    @classmethod
    def of_parts(cls, parts: Sequence[Part], counts: Floats, scales: Floats, law: NoiseLaw) -> list[Measurement]:
        """Measurements of several parts, from the counts and scales of all their cells: checked once for all parts."""
        stops = np.cumsum([part.n_cells for part in parts], dtype=np.int64).tolist()
        _need_numbers(counts, scales)
        several = [cls.__new__(cls) for _ in parts]
        for measurement, part, stop in zip(several, parts, stops, strict=True):
            mine = slice(stop - part.n_cells, stop)
            measurement.__dict__.update(part=part, counts=counts[mine], scale=scales[mine], law=law)
        return several

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variance of the noise in each cell: 2 b^2 (Laplace) or sigma^2 (Gaussian)."""
        return np.asarray(self.law.unit_variance * self.scale**2)


def _need_numbers(counts: Floats, scales: Floats, where: str = "") -> None:
    if not (np.isfinite(counts).all() and np.isfinite(scales).all() and (scales >= 0).all()):
        raise EstimationError(f"{where}give counts that are numbers, and scales that are at least 0 (0: exact counts)")


FORMAT = 1
PLAN, MEASUREMENTS, MANIFEST, EXTRACT = "plan.toml", "measurements.parquet", RELEASED, "ledger.json"
HASHED = (PLAN, MEASUREMENTS)
LABELS = "labels.toml"  # titles and labels that were given later
SEAL = "seal"

Noisy = NDArray[np.int64]


class Manifest(msgspec.Struct):
    """The fields that `release.json` must have; the others are for human readers."""

    plan: str
    dataset: str
    entry: int
    made: str
    files: dict[str, str]
    head: Head  # of the ledger, when it paid
    versions: dict[str, str] = {}

    @property
    def claim(self) -> Claim:
        """Which entry of which ledger paid for the release."""
        return Claim(self.plan, self.entry, self.files.get(MEASUREMENTS, ""), self.head)


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy counts and the plan that they answer: `noisy[q][k]` has those of part k of question q, [groups, cells].

    `prade.measuring.run.measure` makes releases, `Release.load` reads them.
    """

    path: Path
    plan: Plan
    noisy: tuple[tuple[Noisy, ...], ...]
    labels: str | None = None  # SHA-256 of the file of labels, if they are not the plan's own

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Release:
        """The release in a folder; a DataError if the folder is not a release, or one of its files has changed."""
        folder = Path(path)
        manifest = read_manifest(folder)
        for name in HASHED:
            if file_hash(folder / name) != manifest.files.get(name):
                raise DataError(
                    f"{folder / name} has changed since the release was made (its hash differs from the one in "
                    f"{MANIFEST}): restore the original"
                )
        plan, labels = _labelled(Plan.load(folder / PLAN), folder / LABELS)
        return cls(folder, plan, read_measurements(folder / MEASUREMENTS, plan), labels)

    def __repr__(self) -> str:
        return f"Release({str(self.path)!r}, {self.plan!r})"

    def measurements(self, level: int, group: int) -> list[Measurement]:
        """The noisy counts of one group, one Measurement per part, without totals: the input of estimators."""
        return [
            Measurement(part, counts[group], float(question.scale), question.law)
            for question, answers in self._answers(level)
            if not question.is_total
            for part, counts in zip(question.parts, answers, strict=True)
        ]

    def totals(self, level: int) -> tuple[NDArray[np.float64], float]:
        """The number of rows of each group of a level, and the standard deviation of its noise.

        The mean of the measured total and of the sum of each part that covers all rows, weighted by inverse variances.
        """
        mean = PreciseMean(len(self.plan.groupings[level]))
        for question, answers in self._answers(level):
            for part, variance in question.total_variances():
                mean.add(answers[part].sum(axis=1), variance)
        if not mean.known:
            raise DataError(
                f"level {self.plan.levels[level].name} has no total, and none of its parts covers all rows: "
                "ask for a marginal, or give the level a total"
            )
        return mean.value, mean.variance**0.5

    def diagnosis(
        self,
        public: Any = None,
        *,
        weight: str | None = None,
        design_effect: float = 1.0,
        seed: int = 0,
        threads: int | None = None,
    ) -> Diagnosis:
        """Where the public table is wrong, by column, group and level. This spends nothing.

        `public` is the table to judge; None means the files that the plan names. It is right about a column of a group
        if the group's private rows could be a random sample from the population of its public rows (`design_effect` is
        how much more samples vary than independent rows would, about 2 for people of the same households). All alarms
        are true with a chance of 95 %.
        """
        rows = public_of(self.plan, public, weight).rows(self.plan.schema, self.plan.groups)
        threads = cores() if threads is None else threads
        return diagnosed(self.plan, self.noisy, rows, design_effect=design_effect, seed=seed, threads=threads)

    def account(self) -> str:
        """The account as of the day of the release: what was asked, the noise scale, the cost, and what remained."""
        return "\n".join(read_account(self.path))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the plan and the noisy counts, by which derived files name the release that they belong to."""
        digest = hashlib.sha256(self.plan.hash.encode())
        for counts in (counts for answers in self.noisy for counts in answers):
            digest.update(np.ascontiguousarray(counts, np.int64).tobytes())
        return digest.hexdigest()

    def _answers(self, level: int) -> list[tuple[Question, tuple[Noisy, ...]]]:
        if not 0 <= level < len(self.plan.levels):
            raise DataError(f"level is {level!r}; the release has levels 0 to {len(self.plan.levels) - 1}")
        pairs = zip(self.plan.questions, self.noisy, strict=True)
        return [(question, answers) for question, answers in pairs if question.level == level]


def measurement_table(plan: Plan, noisy: Sequence[Sequence[Noisy]]) -> pa.Table:
    """All noisy counts as one table with one row per count, ordered by question, part, group and cell."""

    def texts(codes: NDArray[np.int32], words: Sequence[str]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))

    tables = []
    for question, answers in zip(plan.questions, noisy, strict=True):
        groups, level = plan.groupings[question.level].labels(), plan.levels[question.level].name
        for part, name, counts in zip(question.parts, question.names(), answers, strict=True):
            group, cell = (each.ravel().astype(np.int32) for each in np.indices(counts.shape))
            once = np.zeros(counts.size, np.int32)
            columns = {
                "level": texts(once, [level]),
                "group": texts(group, groups),
                "part": texts(once, [name]),
                "cell": cell,
                "label": texts(cell, part.labels(plan.schema)),
                "law": texts(once, [question.law]),
                "scale": np.full(counts.size, float(question.scale)),
                "noisy": counts.ravel(),
            }
            tables.append(pa.table(columns))
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def read_measurements(path: Path, plan: Plan) -> tuple[tuple[Noisy, ...], ...]:
    """The noisy counts of a file, in the order of the plan."""
    with damage_reported(path, "noisy counts", "restore the original"):
        values = whole_numbers(read_table(path, ["noisy"]), "noisy")
    shapes = [
        [(len(plan.groupings[question.level]), part.n_cells) for part in question.parts] for question in plan.questions
    ]
    ends = np.cumsum([rows * cells for each in shapes for rows, cells in each])
    if values.dtype != np.int64 or len(values) != ends[-1]:
        raise DataError(f"{path} has {len(values):,} counts, but its plan asks for {ends[-1]:,}: restore the original")
    pieces = iter(np.split(values, ends[:-1]))
    return tuple(tuple(next(pieces).reshape(shape) for shape in each) for each in shapes)


class LabelsNotUsed(Remark):
    """A release's file of labels is damaged or belongs to another plan."""


def _labelled(plan: Plan, path: Path) -> tuple[Plan, str | None]:
    """The plan with the labels that were given after measuring, if there are any, and the hash of their file.

    Labels change nothing that is estimated: a file that cannot be used must not keep anyone from the release.
    """
    if not path.is_file():
        return plan, None
    try:
        return plan.with_labels(Schema.load(path)), file_hash(path)
    except PradeError as error:
        words = (
            f"{path} cannot be used ({error}), so titles and labels are the plan's own: repair the file, or remove it"
        )
        warnings.warn(words, LabelsNotUsed, stacklevel=3)
        return plan, None


def file_hash(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; a release has {', '.join(HASHED)} and {MANIFEST}") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    manifest = read_sealed(path)
    try:
        if (version := structured(manifest, Versioned).format) > FORMAT:
            raise DataError(f"{path} has release format {version}, this version reads {FORMAT}: update prade")
        return structured(manifest, Manifest)
    except Malformed as fault:
        raise DataError(f"{path} is damaged ({fault}): restore the original") from None


def head_after(folder: Path) -> Head | None:
    """The ledger's head after a release was committed; None if the release is unfinished."""
    path = folder / EXTRACT
    return Head.from_dict(read_sealed(path).get("head")) if path.is_file() else None


def note_of(plan: Plan) -> str:
    """A note for the ledger's account: what is asked, the noise scale, and what is published without protection."""
    asked = [f"{plan.levels[question.level].name}: {plan.line(question)}" for question in plan.questions]
    return "; ".join([*asked, *filter(None, [not_protected(plan.invariants)])])


def read_account(folder: Path) -> list[str]:
    account = read_sealed(folder / EXTRACT).get("account")
    with damage_reported(folder / EXTRACT, "an account", "restore the original"):
        return structured(account, list[str])


def sealed_text(content: Mapping[str, Any]) -> str:
    """Readable JSON with a seal, by which `read_sealed` notices any change."""
    return json.dumps({**content, SEAL: _seal(content)}, indent=2, ensure_ascii=False) + "\n"


def read_sealed(path: Path) -> dict[str, Any]:
    """The content of a sealed JSON file; a DataError if it is missing or was changed."""
    with suppress(Malformed):  # a changed byte may leave invalid JSON
        content = json_value(_bytes(path))
        if isinstance(content, dict) and content.pop(SEAL, None) == _seal(content):
            return content
    raise DataError(f"{path} is damaged: restore the original")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{path.parent} is not a release: it has no {path.name}. Give a folder that `measure` wrote, or a new one "
            "to measure into"
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be read ({error.strerror}): ask for permission to read it")
