"""A package's public names, each loaded when it is first used, so that importing the package is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package; `homes` maps each of its names to the module that defines it.

    >>> load, names = lazy_names("prade.core", {"exact": "prade.core.numbers"})
    >>> "exact" in names(), load("exact")("1/3", "a share")
    (True, Fraction(1, 3))
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return __getattr__, __dir__
