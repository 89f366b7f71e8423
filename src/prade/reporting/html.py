"""The shell of a page: one HTML file that works offline, with its styles, its scripts and its data inside it.

A security policy in the page's head forbids all requests and all scripts and styles but the page's own, which it lists
by hash. Charts are drawn by Vega-Lite, whose JavaScript is in page/vega (scripts/vega.py fetches it). The policy forbids
`eval`, so page/charts.js has Vega interpret expressions instead of compiling them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

COMMON_STYLE = "common.css"
COMMON_SCRIPTS = ("dom.js", "unpack.js", "address.js", "table.js", "charts.js")


def page(template: str, data: Any, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), **context: Any) -> str:
    """A page from a template of the folder `page` that extends `shell.html.j2`, with the common style and scripts.

    Scripts find `data` in the element `data` as JSON. The template has it as `data`, and the rest by name.
    """
    return render(
        template,
        data,
        style="\n".join(text(name) for name in (COMMON_STYLE, *styles)),
        scripts=[vega(), "\n".join(text(name) for name in (*COMMON_SCRIPTS, *scripts))],
        **context,
    )


def render(template: str, data: Any, *, style: str, scripts: Sequence[str], **context: Any) -> str:
    """Fill a template with data, a style and scripts, and allow these, and nothing else, to be used."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(
        data=data,
        json=Markup(json_in_html(data)),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        style_hash=_hash(style),
        script_hashes=[_hash(script) for script in scripts],
        **context,
    )


def json_in_html(value: Any) -> str:
    r"""JSON that is safe inside a script element, whatever texts it contains.

    >>> print(json_in_html(["</script>", 3]))
    ["\u003c/script\u003e",3]
    """
    written = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that defines `vegaEmbed`."""
    return "\n".join(text(f"vega/{name}.min.js") for name in ("vega", "vega-lite", "vega-embed"))


@cache
def text(name: str) -> str:
    """A file of the folder `page`."""
    return (files("prade.reporting") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """The hash by which a content security policy allows a script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
