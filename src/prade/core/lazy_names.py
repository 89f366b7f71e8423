"""A package's public names, each loaded when it is first used, so that importing the package is fast."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

# An import for type checkers, which says where a name is defined.
_IMPORT = re.compile(r"^    from (\S+) import (\w+) as \w+$", re.MULTILINE)


def lazy_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` for a package, whose names `file` imports for type checkers."""
    homes = {name: home for home, name in _IMPORT.findall(Path(file).read_text(encoding="utf-8"))}

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return sorted(homes), __getattr__, __dir__
