"""Measure: the only step that spends. Check, count, reserve, draw, write, commit, in this order and no other.

    check     the plan fits the ledger and the table; nothing is spent, no row is read
    count     true counts, in memory of this function only
    reserve   the cost is in the ledger, durably, before any noise is drawn
    draw      noise; from here on there is something to release
    write     plan, noisy counts and their hashes, in a folder beside the release's place
    commit    the ledger knows the noisy counts' hash
    rename    the folder is the release, whole

Whatever breaks off before `reserve` costs nothing. What breaks off after `write` is completed by the next run, from
the noisy counts that were saved. In between, the budget is spent and the next run says so.

Each step is announced to audit hooks as ("prade.step", "measure.<step>"): that is how tests stop it there.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prade.errors import DataError, PradeError
from prade.ledger import Entry, Ledger
from prade.measure.counts import count
from prade.measure.noise import add_noise
from prade.measure.source import Source, open_source
from prade.plan import Plan
from prade.release import (
    EXTRACT,
    FORMAT,
    HASHED,
    MANIFEST,
    MEASUREMENTS,
    PLAN,
    Noisy,
    Release,
    file_hash,
    measurement_table,
    read_manifest,
)
from prade.tables import replace_file, write_table

if TYPE_CHECKING:
    from prade.measure.counts import Counts

BYTES_A_COUNT = 32  # more than a row of the file takes
SPARE_BYTES = 2**20


def measure(
    plan: Plan,
    private: Any,
    folder: str | PathLike[str],
    ledger: Ledger | str | PathLike[str],
    *,
    again: bool = False,
    threads: int | None = None,
) -> Release:
    """Ask the private table what the plan says, once, and keep the noisy answers in the folder.

    `private` is whatever `open_source` takes. The ledger must know ``plan.dataset`` (`Ledger.open_dataset`) with the
    plan's unit. A folder that has this plan's release already is read and nothing is spent; a plan that was paid for
    but has no release here is refused, unless `again` says that it shall be paid for once more.

    >>> import pyarrow
    >>> from prade import Budget, Column, Ledger, Schema, Unit, Workload
    >>> from prade.plan import Level, Plan
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> ages = Level("TOWN", Workload.all_marginals(schema, 1))
    >>> plan = Plan("people", schema, Budget.pure(1), Unit(1), [ages], groups={"TOWN": ["a", "b"]})
    >>> ledger = Ledger("people.ledger")
    >>> dataset = ledger.open_dataset("people", plan.unit, cap=Budget.pure(1))
    >>> rows = pyarrow.table({"AGE": [3, 70, 80], "TOWN": ["a", "b", "elsewhere"]})
    >>> release = measure(plan, rows, "people-2026", ledger)
    >>> release.noisy[-1][0].shape, ledger.remaining("people") == Budget.pure(0)
    ((2, 3), True)
    """
    ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    place = Path(folder)
    found = _existing(plan, place, ledger, again)
    if found is not None:
        return found
    _check(plan, place, ledger, again)
    _step("checked")
    source = open_source(private)
    try:
        counts = _count(plan, source)
    finally:
        if source is not private:
            source.close()
    _step("counted")
    _need_room(plan, place)
    entry = ledger.reserve(plan.dataset, plan.hash, plan.budget, _note(plan), again=again)
    _step("reserved")
    staging = _staging(place, entry)
    try:
        noisy = [
            [add_noise(part, question.law, question.scale, threads=threads) for part in answers]
            for question, answers in zip(plan.questions, counts, strict=True)
        ]
        del counts
        _step("drawn")
        _write(staging, plan, noisy, entry, source.engine)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise DataError(
            f"the noisy counts could not be written to {staging} ({error.strerror or type(error).__name__}): entry "
            f"{entry.id} of data set {plan.dataset!r} is spent. Mend that, then measure with again=True, which spends "
            f"{plan.budget} once more"
        ) from None
    if again:
        _sweep(place, plan, ledger, staging)
    return _finish(staging, place, plan, ledger)


# ---------------------------------------------------------------------- before anything is spent


def _existing(plan: Plan, place: Path, ledger: Ledger, again: bool) -> Release | None:
    """The release that the folder has, or the one that a broken-off run left complete beside it."""
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        release = Release.load(place)
        if release.plan != plan:
            raise DataError(f"{place} holds the release of another plan; give a folder of its own to this one")
        if again:
            raise DataError(f"{place} holds a release of this plan, which is kept; a second one needs another folder")
        return release
    for staging in _unfinished(place):
        if (staging / MANIFEST).exists() and read_manifest(staging)["plan"] == plan.hash:
            return _finish(staging, place, plan, ledger)
    return None


def _check(plan: Plan, place: Path, ledger: Ledger, again: bool) -> None:
    """Everything that can be refused without reading a row."""
    if not place.parent.is_dir() or not os.access(place.parent, os.W_OK):
        raise DataError(f"there is no folder {place.parent} that can be written to; make it first")
    dataset = ledger.dataset(plan.dataset)
    if dataset.unit != plan.unit:
        raise PradeError(
            f"data set {plan.dataset!r} is protected as {dataset.unit} in {ledger.path}, but the plan has {plan.unit}; "
            "costs add up under one promise only: make the plan with the ledger's unit"
        )
    ledger.check(plan.dataset, plan.hash, plan.budget, again=again)


def _need_room(plan: Plan, place: Path) -> None:
    """A full disk is better noticed before the budget is spent."""
    counts = sum(
        len(plan.groupings[question.level]) * part.n_cells for question in plan.questions for part in question.parts
    )
    needed, free = counts * BYTES_A_COUNT + SPARE_BYTES, shutil.disk_usage(place.parent).free
    if free < needed:
        raise DataError(
            f"{place.parent} has {free:,} bytes free, the release may need {needed:,}: nothing was spent; free some"
        )


# ---------------------------------------------------------------------- counts


def _count(plan: Plan, source: Source) -> list[list[Counts]]:
    """True counts of every question's parts; one statement, where the engine can, for each level."""
    answers: list[list[Counts]] = []
    for place, level in enumerate(plan.levels):
        questions = [question for question in plan.questions if question.level == place]
        parts = [part for question in questions for part in question.parts]
        counted = iter(count(source, plan.schema, parts, plan.groups, plan.unit, level.by))
        answers += [[next(counted) for _ in question.parts] for question in questions]
    return answers


def _note(plan: Plan) -> str:
    """For the account: what is asked, at which scale."""
    return "; ".join(f"{plan.levels[question.level].name}: {plan.line(question)}" for question in plan.questions)


# ---------------------------------------------------------------------- after the reservation


def _staging(place: Path, entry: Entry) -> Path:
    return place.parent / f".{place.name}.entry-{entry.id}.unfinished"


def _unfinished(place: Path) -> list[Path]:
    """What runs for this folder left beside it, oldest entry first."""
    found = place.parent.glob(f".{place.name}.entry-*.unfinished")
    return sorted(found, key=lambda path: (len(path.name), path.name))


def _write(staging: Path, plan: Plan, noisy: Sequence[Sequence[Noisy]], entry: Entry, engine: str) -> None:
    """Everything but the ledger's extract; the manifest comes last and says that the rest is whole."""
    staging.mkdir()
    plan.save(staging / PLAN)
    write_table(measurement_table(plan, noisy), staging / MEASUREMENTS)
    _step("written")
    libraries = ("prade", "opendp", "ibis-framework", "duckdb", "numpy", "pyarrow")
    manifest = {
        "format": FORMAT,
        "plan": plan.hash,
        "dataset": plan.dataset,
        "entry": entry.id,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": {name: file_hash(staging / name) for name in HASHED},
        "engine": engine,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in libraries}},
    }
    _write_json(staging / MANIFEST, manifest)
    _sync(staging)
    _sync(staging.parent)
    _step("sealed")


def _finish(staging: Path, place: Path, plan: Plan, ledger: Ledger) -> Release:
    """Commit what is whole and give it its name. Another run may be doing the same: whoever is first, is."""
    try:
        manifest = read_manifest(staging)
        entry = ledger.commit(manifest["entry"], manifest["files"][MEASUREMENTS])
        _step("committed")
        _write_json(staging / EXTRACT, _extract(ledger, entry))
        _step("extracted")
        os.replace(staging, place)
        _sync(place.parent)
        _step("renamed")
    except (OSError, DataError) as error:
        if place.is_dir() and not staging.exists():
            return Release.load(place)
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"the noisy counts are complete in {staging}, but could not become {place} "
            f"({error.strerror or type(error).__name__}): mend that and measure again, which will spend nothing"
        ) from None
    return Release.load(place)


def _sweep(place: Path, plan: Plan, ledger: Ledger, keep: Path) -> None:
    """Remove what earlier runs of this plan for this folder left incomplete; whoever says `again` has given them up."""
    own = {_staging(place, entry) for entry in ledger.entries(plan.dataset) if entry.plan_hash == plan.hash}
    for staging in _unfinished(place):
        if staging in own and staging != keep and not (staging / MANIFEST).exists():
            shutil.rmtree(staging, ignore_errors=True)


def _extract(ledger: Ledger, entry: Entry) -> dict[str, Any]:
    """What the ledger says of this release's data set, for those who do not have the ledger."""
    dataset = ledger.dataset(entry.dataset)
    return {
        "dataset": dataset.name,
        "unit": dataset.unit.to_dict(),
        "promise": dataset.unit.promise(),
        "cap": dataset.cap.to_dict(),
        "entry": {**asdict(entry), "cost": entry.cost.to_dict()},
        "remaining": ledger.remaining(entry.dataset).to_dict(),
        "account": ledger.account(entry.dataset).splitlines(),
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with replace_file(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _sync(folder: Path) -> None:
    """Make the names in a folder durable; systems that cannot open a folder do so by themselves."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _step(name: str) -> None:
    sys.audit("prade.step", f"measure.{name}")
