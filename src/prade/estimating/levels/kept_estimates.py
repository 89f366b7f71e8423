"""Estimates in a release's folder: kept ones are used again, new ones are kept there."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from prade.core.execution import Execution, Shared, WorkersError
from prade.data.public.public import Public
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.estimates import Estimates, inputs_hash
from prade.estimating.levels.kept_weights import Kept, keep_weights, kept_weights, record_of_estimates, small_enough
from prade.estimating.levels.public_cells import PublicCells
from prade.planning.invariants import obeying
from prade.planning.settings import Settings
from prade.release.derived_files import (
    ESTIMATES,
    KEPT_ESTIMATES,
    SUPPORT,
    UNFINISHED_ESTIMATES,
    FinishedBatches,
    check_kept,
    disk_trouble_reported,
    is_kept,
    recorded,
    run_key,
)
from prade.release.release import Release, file_hash


def kept_estimates(release: Release) -> Estimates:
    """The estimates that the release's folder keeps; a DataError where there are none, or where a file has changed."""
    check_kept(release, KEPT_ESTIMATES)
    return _with_weights(Estimates.load(release.path / ESTIMATES, release, Public.load(release.path / SUPPORT)))


def shared_estimates(estimates: Estimates) -> Shared[Estimates]:
    """The estimates that a release's folder keeps, for tasks on workers, which open them there."""
    folder = estimates.release.path
    return Shared(estimates, opened_estimates, str(folder.absolute()), file_hash(folder / KEPT_ESTIMATES.name))


def opened_estimates(folder: str, record: str) -> Estimates:
    """The estimates in a folder, if the hash of their record is the one that is meant."""
    path = Path(folder) / KEPT_ESTIMATES.name
    open(path, "rb").close()  # a missing file is an error that names it
    if file_hash(path) != record:
        raise WorkersError(f"the estimates in {folder} have changed since this run began: run the same command again")
    return kept_estimates(Release.load(folder))


def estimates_of(
    release: Release,
    public: Public,
    settings: Settings | None = None,
    *,
    anew: bool = False,
    execution: Execution = Execution(),
) -> Estimates:
    """The estimates in the release's folder, if they were made with these inputs and settings; otherwise new ones.

    Without `settings`, any estimates in the folder will do, and new ones use the plan's settings. Damaged estimates are
    an error; `anew` makes new ones without looking at those. If a run that makes new ones is killed, the next one goes
    on where it was.
    """
    if is_kept(release, KEPT_ESTIMATES) and not anew:
        check_kept(release, KEPT_ESTIMATES)
        kept = Estimates.load(release.path / ESTIMATES, release, public)
        if settings in (None, kept.settings):
            return _with_weights(kept)
    wanted = settings or release.plan.settings or Settings()
    if not release.path.is_dir():
        return Estimates.of(release, public, wanted, execution=execution)
    public = obeying(public, release.plan.invariants)
    key = run_key(inputs_hash(release, public), asdict(wanted))
    cells = PublicCells(public)
    # the thread is waited for, even by an interrupt, before another run may use the folder
    with FinishedBatches.open(release.path / UNFINISHED_ESTIMATES, key) as unfinished, ThreadPoolExecutor(1) as pool:
        rows = unfinished.folder / SUPPORT
        writing = pool.submit(cells.with_added(release, wanted).public.save, rows)  # while the estimates are made

        def look(task: str, done: float, total: float) -> None:
            if writing.done():  # what went wrong is not said after hours only
                _written(writing, release)
            execution.tell(task, done, total)

        looking = replace(execution, progress=look)
        estimates = Estimates.of(release, public, wanted, cells=cells, unfinished=unfinished, execution=looking)
        _written(writing, release)
        with disk_trouble_reported(release.path):
            kept = _keep(estimates, rows)
        unfinished.remove()
    return kept


def _written(writing: Future[None], release: Release) -> None:
    """Wait until something is written in the release's folder."""
    with disk_trouble_reported(release.path):
        writing.result()


def _keep(estimates: Estimates, rows: Path) -> Estimates:
    """Write the estimates to the release's folder, and take the file of the rows they were made from there."""
    release = estimates.release
    with recorded(release, KEPT_ESTIMATES):
        rows.replace(release.path / SUPPORT)
        estimates.save(release.path / ESTIMATES)
    return _with_weights(estimates)


def _with_weights(estimates: Estimates) -> Estimates:
    """The same estimates, which are the folder's now: their first answer takes its weights, or writes them."""
    estimates.weights_when_asked = partial(weights_in_folder, record_of_estimates(estimates.release))
    return estimates


def weights_in_folder(record: str, estimates: Distributions, threads: int) -> Kept | None:
    """The weights in the folder of these estimates, written now if it has none; None if it cannot have them.

    They are too many, the folder cannot be written to, or it has other estimates now: `record` is the hash of the
    record of those that were opened.
    """
    release, shape = estimates.release, (len(estimates.support), len(estimates.totals))
    if not (release.path / KEPT_ESTIMATES.name).is_file() or record_of_estimates(release) != record:
        return None
    found = kept_weights(release, shape)
    if found is None and small_enough(*shape):
        keep_weights(release, shape, estimates.map(lambda _, weights: weights, threads), record)
        found = kept_weights(release, shape)
    return found
