"""A release as one HTML page that works offline: what was promised, what was asked, how well everything fits.

The page is made of what the release's folder holds (estimates, support, synthetic rows), and is as public as that.
With the true rows it also says how good the release is; that page is NOT private, says so, has another name, and does
not lie in the folder that is published.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prade.core.errors import DataError
from prade.core.files import replace_file
from prade.core.threads import cores
from prade.estimating.estimate import Status
from prade.estimating.levels.kept_estimates import kept_estimates
from prade.release.file_names import SYNTHETIC
from prade.release.derived_files import KEPT_ESTIMATES, KEPT_ROWS, check_kept
from prade.release.release import MANIFEST, Release
from prade.reporting.facts import facts_of
from prade.reporting.map import outlines
from prade.reporting.page_data import data_of
from prade.reporting.promise import promise_of
from prade.reporting.truth import coded_rows, truth_of

if TYPE_CHECKING:
    from prade.core.progress import Progress

REPORT, NOT_PRIVATE = "report.html", "-not-private.html"
SCRIPTS = ("draw.js", "tables.js", "budget.js", "map.js", "paper.js", "marginals.js", "main.js")


def write_report(
    release: Release | str | PathLike[str],
    path: str | PathLike[str] | None = None,
    *,
    truth: Any = None,
    geojson: str | PathLike[str] | None = None,
    geojson_key: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the page and return its path, where none is given that of `report_place`.

    `truth` is the table of true rows, a file of them, or a glob of files; `geojson` a file with the groups'
    outlines, for a map, and `geojson_key` the property in it that tells the group (see `prade.reporting.map`).
    """
    found = release if isinstance(release, Release) else Release.load(release)
    place = Path(path) if path is not None else report_place(found.path, truth=truth is not None)
    if truth is not None:
        _keep_apart(place, report_place(found.path, truth=True))
    if not place.parent.is_dir():
        raise DataError(f"there is no folder {place.parent} to write {place.name} in; make it first")
    if not os.access(place.parent, os.W_OK):
        raise DataError(f"{place.parent} may not be written to; get access to it, or name another file with -o")
    for record in (KEPT_ESTIMATES, KEPT_ROWS):
        check_kept(found, record)
    threads = cores() if threads is None else threads
    estimates = kept_estimates(found)
    # What can be wrong with what was given shows before the long work.
    shapes = None if geojson is None else outlines(geojson, found.plan.groupings, geojson_key)
    synthetic, group = coded_rows(found.plan, found.path / SYNTHETIC)
    if (group < 0).any():
        raise DataError(
            f"{found.path / SYNTHETIC} has rows in no group of the release: draw them again with `prade sample "
            f"{found.path}`"
        )
    against = None
    if truth is not None:
        against = truth_of(estimates, truth, synthetic, group, threads=threads, progress=progress)
    rows = None if against is None else against.rows
    facts = facts_of(estimates, synthetic, group, truth=rows, threads=threads, progress=progress)
    data = data_of(estimates, facts, against, shapes, threads=threads, progress=progress)
    with replace_file(place) as temporary:
        temporary.write_text(page(promise_of(found), data), encoding="utf-8")
    return place


def report_place(release: str | PathLike[str], *, truth: bool = False) -> Path:
    """Where a release's page goes: into its folder; the one made with the truth beside it, never into it.

    >>> report_place("demo/release").as_posix(), report_place("demo/release", truth=True).as_posix()
    ('demo/release/report.html', 'demo/release-not-private.html')
    """
    folder = Path(release)
    if not truth:
        return folder / REPORT
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.parent / f"{named.name}{NOT_PRIVATE}"


def _keep_apart(place: Path, usual: Path) -> None:
    """Refuse a place where a page made of true rows would be published by mistake."""
    if place.name == REPORT:
        raise DataError(
            f"a page made with the truth is not private and must not be taken for the public {REPORT}: give it another "
            f"name, such as {usual.name}"
        )
    for folder in place.absolute().parents:
        if (folder / MANIFEST).exists() or (folder.resolve() / MANIFEST).exists():
            raise DataError(
                f"{folder} is a release, which is published; a page made with the truth is not private and must not "
                f"lie in it: write it elsewhere, such as {usual}"
            )


def page(promise: dict[str, Any], data: dict[str, Any]) -> str:
    """The HTML, everything inside it; a policy in its head forbids any request and any script but its own."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    script, style = "\n".join(_text(name) for name in SCRIPTS), _text("style.css")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_text("page.html.j2")).render(
        promise=promise,
        data=data,
        json=Markup(json_in_html({**data, "budget": promise["levels"]})),
        statuses=statuses_of(data),
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
        style_hash=_hash(style),
    )


def statuses_of(data: dict[str, Any]) -> dict[str, str]:
    """What the statuses that occur mean."""
    names = {name for view in data["views"] for name in view["status"] if name is not None}
    return {status.value: status.advice for status in Status if status.value in names}


def json_in_html(value: Any) -> str:
    r"""JSON that may stand within a script element, whatever texts are in it.

    >>> print(json_in_html(["</script>", 3]))
    ["\u003c/script\u003e",3]
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _text(name: str) -> str:
    return (files("prade.reporting") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names what may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
