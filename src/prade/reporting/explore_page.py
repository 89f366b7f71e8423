"""The page that a steward reads before spending: what each rehearsed budget buys.

`prade plan --epsilon 0.1,1,10` rehearses the budgets on the public table and makes the data; this module puts them
into one HTML file that works offline. Nothing in the page comes from private rows: none were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

from prade.core.errors import DataError
from prade.core.files import replace_file
from prade.reporting.html import page


def write_explore(data: Mapping[str, Any], path: str | PathLike[str]) -> Path:
    """Write the page about rehearsed budgets and return its path."""
    with replace_file(path) as temporary:
        temporary.write_text(explore_page(data), encoding="utf-8")
    return Path(path)


def explore_page(data: Mapping[str, Any]) -> str:
    """The whole page as HTML. It names the public files, but not the folders they are in."""
    if not data["budgets"]:
        raise DataError("there is no budget to show; rehearse at least one: prade plan --epsilon 0.1,1,10")
    public = {**data["public"], "files": [PurePath(file).name for file in data["public"]["files"]]}
    return page(
        "explore.html.j2",
        {**data, "public": public},
        styles=["explore.css"],
        scripts=["explore_charts.js", "explore.js"],
    )
