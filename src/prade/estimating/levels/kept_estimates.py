"""Estimates in a release's folder: kept ones are used again, new ones are kept there."""

from __future__ import annotations

from prade.core.progress import Progress
from prade.data.public import Public
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.kept_weights import keep_weights, kept_weights, small_enough
from prade.planning.settings import Settings
from prade.release.derived_files import KEPT_ESTIMATES, KEPT_WEIGHTS, check_kept, is_kept, recorded
from prade.release.file_names import ESTIMATES, SUPPORT
from prade.release.release import Release


def kept_estimates(release: Release) -> Estimates:
    """The estimates that the release's folder keeps; a DataError where there are none, or where a file has changed."""
    check_kept(release, KEPT_ESTIMATES)
    return _with_weights(Estimates.load(release.path / ESTIMATES, release, Public.load(release.path / SUPPORT)))


def estimates_of(
    release: Release,
    public: Public,
    settings: Settings | None = None,
    *,
    threads: int = 1,
    anew: bool = False,
    progress: Progress | None = None,
) -> Estimates:
    """The estimates in the release's folder, if they were made with these inputs and settings; otherwise new ones.

    Without `settings`, any estimates in the folder will do, and new ones use the plan's settings. Damaged estimates are
    an error; `anew` makes new ones without looking at those.
    """
    if is_kept(release, KEPT_ESTIMATES) and not anew:
        check_kept(release, KEPT_ESTIMATES)
        kept = Estimates.load(release.path / ESTIMATES, release, public)
        if settings in (None, kept.settings):
            complete = is_kept(release, KEPT_WEIGHTS) or not small_enough(len(kept.support), len(kept.totals))
            return _with_weights(kept) if complete else _keep(kept, threads)  # an earlier version kept less
    wanted = settings or release.plan.settings or Settings()
    told = None if progress is None else (lambda done, number: progress("estimating", done, number))
    estimates = Estimates.of(release, public, wanted, threads=threads, progress=told)
    return _keep(estimates, threads) if release.path.is_dir() else estimates


def _keep(estimates: Estimates, threads: int) -> Estimates:
    """Write the estimates and what they were made from to the release's folder."""
    release, public = estimates.release, estimates.public
    with recorded(release, KEPT_ESTIMATES):
        public.save(release.path / SUPPORT)
        estimates.save(release.path / ESTIMATES)
    shape = len(estimates.support), len(estimates.totals)
    if small_enough(*shape):
        keep_weights(release, shape, estimates.map(lambda _, weights: weights, threads))
    return _with_weights(estimates)


def _with_weights(estimates: Estimates) -> Estimates:
    """The same estimates; they take the folder's weights, which are theirs now, instead of working them out."""
    estimates.kept_weights = kept_weights(estimates.release, (len(estimates.support), len(estimates.totals)))
    return estimates
