"""The report of a release as one HTML page that works offline: the promise, the questions, and how well it all fits.

The page is made from the files in the release's folder (estimates, support, synthetic rows) and is as public as those
files. With the true rows it also shows how good the release is. That page is NOT private: it says so, has another name,
is not written into the folder that is published, and only its owner can read it.
"""

from __future__ import annotations

import json
import warnings
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError
from prade.core.execution import Execution
from prade.core.files import need_folder, replace_file
from prade.data.read.files import copied_share, schema_of
from prade.estimating.levels.estimates import Estimates, kept_estimates
from prade.release.derived_files import KEPT_ROWS, check_kept, is_kept, kept_rows
from prade.release.release import MANIFEST, Release
from prade.reporting.facts import facts_of
from prade.reporting.html import page, plain
from prade.reporting.outlines import IncompleteMap, outlines
from prade.reporting.page_data import data_of
from prade.reporting.truth import coded_rows, truth_of
from prade.sampling.table import method_of, seed_of

PathName = str | PathLike[str]

REPORT, NOT_PRIVATE = "report.html", "-not-private.html"
PARTS = ("", "_explore", "_pairs", "_tables", "_budget", "_map", "_truth", "_start")  # of the page's script
SCRIPTS = ("frames.js", *(f"report{part}.js" for part in PARTS))


def report(
    source: Estimates | Release | PathName,
    path: PathName | None = None,
    *,
    truth: Any = None,
    geojson: PathName | None = None,
    geojson_key: str | None = None,
    as_json: bool = False,
    execution: Execution = Execution(),
) -> Path:
    """Write one HTML page about a release that has estimates and synthetic rows, and return its path.

    `source` is the release, its folder, or its estimates, which are then not read again. Without `path`, the page is
    written to the release folder. With `truth`, the true rows, the page also compares the release with them; such a
    page is not private, and is written beside the folder. `geojson` is a file with outlines of the groups for a map,
    and `geojson_key` names the property that identifies the group. With `as_json` the file has what the page shows as
    JSON, with lists of numbers.
    """
    source = Release.load(source) if isinstance(source, (str, PathLike)) else source
    release = source if isinstance(source, Release) else source.release
    usual = report_path(release.path, truth=truth is not None)
    usual = usual.with_suffix(".json") if as_json else usual
    target = usual if path is None else Path(path)
    if truth is not None:
        _keep_apart(target, usual)
    need_folder(target)
    data = report_data(source, truth=truth, geojson=geojson, geojson_key=geojson_key, execution=execution)
    with replace_file(target, owner_only=truth is not None) as temporary:
        whole = json_of(data) if as_json else page("report.html.j2", data, styles=["report.css"], scripts=SCRIPTS)
        temporary.write_text(whole, encoding="utf-8")
    return target


def report_data(
    source: Estimates | Release | PathName,
    *,
    truth: Any = None,
    geojson: PathName | None = None,
    geojson_key: str | None = None,
    execution: Execution = Execution(),
) -> dict[str, Any]:
    """What the page shows (`prade.reporting.page_data`); the arguments are those of `report`."""
    source = Release.load(source) if isinstance(source, (str, PathLike)) else source
    release = source if isinstance(source, Release) else source.release
    if is_kept(release, KEPT_ROWS) and (method := method_of(schema_of(kept_rows(release)))) is not None:
        raise DataError(
            f"the synthetic rows in {release.path} were drawn by {method}, and the report is about prade's own: "
            f"draw those with `prade sample {release.path}`, which spends nothing"
        )
    estimates = kept_estimates(source) if isinstance(source, Release) else source
    check_kept(release, KEPT_ROWS)
    # Errors in the arguments should show before the long computation.
    shapes = None if geojson is None else outlines(geojson, release.plan.groupings, geojson_key)
    if shapes is not None and shapes.lack:
        warnings.warn(shapes.lack, IncompleteMap, stacklevel=3)
    drawn = kept_rows(release)
    synthetic = coded_rows(release.plan, drawn)
    if (synthetic[1] < 0).any():
        raise DataError(f"{drawn} has rows in no group of the release: draw again with `prade sample {release.path}`")
    against = None if truth is None else truth_of(estimates, truth, synthetic, execution)
    facts = facts_of(estimates, synthetic, None if against is None else against.rows, execution)
    noted = schema_of(drawn)
    copied, seed = copied_share(noted), seed_of(noted)
    return data_of(estimates, facts, against, shapes, copied=copied, seed=seed, execution=execution)


def json_of(data: dict[str, Any]) -> str:
    """What the page shows as JSON, with lists instead of packed arrays."""
    return json.dumps(plain(data), ensure_ascii=False, allow_nan=False) + "\n"


def report_path(release: PathName, *, truth: bool = False) -> Path:
    """The path of a release's page: inside its folder; for a page made with the true rows, next to the folder.

    >>> report_path("demo/release").as_posix(), report_path("demo/release", truth=True).as_posix()
    ('demo/release/report.html', 'demo/release-not-private.html')
    """
    folder = Path(release)
    if not truth:
        return folder / REPORT
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.parent / f"{named.name}{NOT_PRIVATE}"


def _keep_apart(target: Path, usual: Path) -> None:
    """Refuse a path at which a page made with true rows could be published by mistake."""
    public = Path(REPORT).with_suffix(usual.suffix).name
    if target.name.casefold() in (REPORT, public):
        raise DataError(
            f"a page made with the truth is not private and must not be mistaken for the public {public}: give it "
            f"another name, such as {usual.name}"
        )
    for folder in target.absolute().parents:
        if (folder / MANIFEST).exists() or (folder.resolve() / MANIFEST).exists():
            raise DataError(
                f"{folder} is a release, which is published; a page made with the truth is not private and must not "
                f"be in it: write it elsewhere, such as {usual}"
            )
