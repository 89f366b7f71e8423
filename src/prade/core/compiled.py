"""Compiled functions: how the inner loops of this project are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile a function; it runs without the interpreter's lock, and its machine code is kept on disk."""
    return cast(Kernel, numba.njit(nogil=True, cache=True, error_model="numpy")(function))
