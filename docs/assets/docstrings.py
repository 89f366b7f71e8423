"""Examples and laws in docstrings become blocks of code in the reference, where Markdown would take them for prose."""

from __future__ import annotations

import re
from typing import Any

import griffe

ALIGNED = re.compile(r"\S {3,}\S")  # a law whose lines stand in columns


def fenced(paragraph: str) -> str:
    """The paragraph, in a fence if it is an example or a law."""
    kind = "pycon" if paragraph.startswith(">>> ") else "text" if ALIGNED.search(paragraph) else ""
    return f"```{kind}\n{paragraph}\n```" if kind else paragraph


class Blocks(griffe.Extension):
    """Puts a fence around each example that starts with `>>>`, and around each aligned law."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = "\n\n".join(map(fenced, re.split(r"\n\n+", obj.docstring.value)))
