"""The shell of a page, one HTML file that works offline, with its styles, scripts and data; the page about budgets.

A security policy in the page's head forbids all requests and all scripts and styles but the page's own, which it lists
by hash. Charts are drawn by Vega-Lite, whose JavaScript is in page/vega, from scripts/vega.py. The policy forbids
`eval`, so page/charts.js has Vega interpret expressions instead of compiling them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import DataError
from prade.core.files import replace_file

COMMON_SCRIPTS = ("dom.js", "unpack.js", "address.js", "table.js", "charts.js")


def page(template: str, data: Any, *, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    """A page from a template of the folder `page` that extends `shell.html.j2`, with the common style and scripts.

    Scripts find `data` in the element `data` as JSON, and the template has it as `data`.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    vega = "\n".join(text(f"vega/{name}.min.js") for name in ("vega", "vega-lite", "vega-embed"))
    style = "\n".join(text(name) for name in ("common.css", *styles))
    inside = [vega, "\n".join(text(name) for name in (*COMMON_SCRIPTS, *scripts))]
    return environment.get_template(template).render(
        data=data,
        json=Markup(json_in_html(data)),
        style=Markup(style),
        scripts=[Markup(script) for script in inside],
        style_hash=_hash(style),
        script_hashes=[_hash(script) for script in inside],
    )


def json_in_html(value: Any) -> str:
    r"""JSON that is safe inside a script element, whatever texts it contains.

    >>> print(json_in_html(["</script>", 3]))
    ["\u003c/script\u003e",3]
    """
    written = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def text(name: str) -> str:
    """A file of the folder `page`."""
    return (files("prade.reporting") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """The hash by which a content security policy allows a script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


TYPES: dict[str, np.dtype[Any]] = {"u16": np.dtype("<u2"), "i32": np.dtype("<i4")}
EFFORT = 9  # of the compression: the page is written once and read often


def packed(array: Any, *, unit: int = 20_000, type: str = "u16") -> dict[str, Any]:
    """An array as an entry of a page's data; values that do not fit the type are a ValueError.

    >>> packed([[0.5, float("nan")]])["shape"], unpacked(packed([[0.5, float("nan")]])).tolist()
    ([1, 2], [[0.5, nan]])
    """
    values, kind = np.asarray(array, np.float64), TYPES[type]
    limits, unknown = np.iinfo(kind), np.isnan(values)
    numbers = np.where(unknown, limits.max, np.rint(values * unit))
    if ((numbers < limits.min) | (numbers >= limits.max))[~unknown].any():
        raise ValueError(f"values {np.nanmin(values):g} to {np.nanmax(values):g} do not fit {type} with unit {unit}")
    whole = zlib.compress(np.ascontiguousarray(numbers.astype(kind)).tobytes(), EFFORT)
    return {"packed": base64.b64encode(whole).decode("ascii"), "type": type, "shape": list(values.shape), "unit": unit}


def unpacked(entry: Mapping[str, Any]) -> Floats:
    """The array that an entry stands for."""
    kind = TYPES[entry["type"]]
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(entry["packed"])), kind).reshape(entry["shape"])
    return np.where(numbers == np.iinfo(kind).max, np.nan, numbers / entry["unit"])


def plain(data: Any) -> Any:
    """The same data with lists instead of packed arrays, for programs that read JSON; NaN becomes None."""
    if isinstance(data, Mapping):
        if "packed" in data:
            values = unpacked(data)
            listed = np.round(values, len(str(data["unit"])) + 1).astype(object)  # the digits that the unit tells apart
            listed[np.isnan(values)] = None
            return listed.tolist()
        return {name: plain(value) for name, value in data.items()}
    return [plain(each) for each in data] if isinstance(data, (list, tuple)) else data


def write_explore(data: Mapping[str, Any], path: str | PathLike[str]) -> Path:
    """Write the page that a steward reads before spending, about rehearsed budgets, and return its path.

    It names the public files, but not the folders they are in.
    """
    if not data["budgets"]:
        raise DataError("there is no budget to show; rehearse at least one: prade plan --epsilon 0.1,1,10")
    public = {**data["public"], "files": [PurePath(file).name for file in data["public"]["files"]]}
    scripts = ["explore_charts.js", "explore.js"]
    whole = page("explore.html.j2", {**data, "public": public}, styles=["explore.css"], scripts=scripts)
    with replace_file(path) as temporary:
        temporary.write_text(whole, encoding="utf-8")
    return Path(path)
