"""A few facts as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any


def summary_html(title: str, sentence: str, facts: Mapping[str, Any]) -> str:
    """A title, a sentence and a table of facts; every text is escaped.

    >>> summary_html("Synthesizer", "not fitted", {"folder": "<release>"})
    '<b>Synthesizer</b><p>not fitted</p><table><tr><th>folder</th><td>&lt;release&gt;</td></tr></table>'
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(fact))}</td></tr>" for name, fact in facts.items())
    return f"<b>{escape(title)}</b><p>{escape(sentence)}</p><table>{rows}</table>"
