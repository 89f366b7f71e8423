"""Arrays of numbers in a page: short texts that the page's script unpacks, instead of long lists.

    {"packed": base64 of the deflated bytes, "type": "u16", "shape": [groups, cells], "unit": 20000}

The bytes are little-endian numbers of the type, the last axis running fastest, deflated in zlib's format. A value is
its number divided by the unit, so it is off by at most half a unit. In whole numbers the largest one of the type stands
for NaN, which is what was not measured; `f32` has NaN itself.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from prade.core.arrays import Floats

Type = Literal["u8", "u16", "i32", "f32"]

TYPES: dict[str, np.dtype[Any]] = {
    "u8": np.dtype("u1"),
    "u16": np.dtype("<u2"),
    "i32": np.dtype("<i4"),
    "f32": np.dtype("<f4"),
}
EFFORT = 9  # of the compression: the page is written once and read often


def packed(array: Any, *, unit: int = 20_000, type: Type = "u16") -> dict[str, Any]:
    """An array as an entry of a page's data; values that do not fit the type are a ValueError.

    >>> packed([[0.5, float("nan")]])["shape"], unpacked(packed([[0.5, float("nan")]])).tolist()
    ([1, 2], [[0.5, nan]])
    """
    values, kind = np.asarray(array, np.float64), TYPES[type]
    numbers = values * unit
    if kind.kind != "f":
        limits, unknown = np.iinfo(kind), np.isnan(values)
        numbers = np.where(unknown, limits.max, np.rint(numbers))
        if ((numbers < limits.min) | (numbers >= limits.max))[~unknown].any():
            raise ValueError(
                f"values from {np.nanmin(values):g} to {np.nanmax(values):g} do not fit {type} with the unit {unit}"
            )
    content = zlib.compress(np.ascontiguousarray(numbers.astype(kind)).tobytes(), EFFORT)
    return {
        "packed": base64.b64encode(content).decode("ascii"),
        "type": type,
        "shape": list(values.shape),
        "unit": unit,
    }


def unpacked(entry: Mapping[str, Any]) -> Floats:
    """The array that an entry stands for."""
    kind = TYPES[entry["type"]]
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(entry["packed"])), kind).reshape(entry["shape"])
    values = np.asarray(numbers, np.float64)
    if kind.kind != "f":
        values = np.where(numbers == np.iinfo(kind).max, np.nan, values)
    return np.asarray(values / entry["unit"])


def plain(data: Any) -> Any:
    """The same data with lists instead of packed arrays, for programs that read JSON; NaN becomes None."""
    if isinstance(data, Mapping):
        if "packed" in data:
            return _listed(unpacked(data), data["unit"])
        return {name: plain(value) for name, value in data.items()}
    return [plain(each) for each in data] if isinstance(data, (list, tuple)) else data


def _listed(values: Floats, unit: int) -> Any:
    """Values without the digits that the unit does not tell apart, as lists."""
    listed = np.round(values, len(str(unit)) + 1).astype(object)
    listed[np.isnan(values)] = None
    return listed.tolist()
