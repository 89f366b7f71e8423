"""Listed values as plain Python values and as text."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

Value = int | float | str | bool
LARGEST_WHOLE = 2**53  # beyond this, floats cannot tell neighbouring whole numbers apart


def plain_value(value: Any) -> Any:
    """A listed value as a plain Python value; dates become ISO text."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


def value_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE:
        return str(int(value))
    return str(value)


def quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else value_text(value)


def some_of(values: Sequence[Value], most: int = 12) -> str:
    shown = ", ".join(quoted(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)} in all)"
