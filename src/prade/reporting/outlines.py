"""Outlines of groups from a GeoJSON file: which feature belongs to which group, and its shape as a path to draw.

A feature belongs to a group if one of its properties, or those that the user joins by "+", equals the group's value, or
its values joined by "-". Case and leading zeros are ignored, so "17-02100" is the group (17, 2100). Longitude and
latitude are drawn as

    x = longitude * cos(middle latitude)        y = -latitude

and rounded to a grid, so that neighbours share a border and the page stays small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import msgspec

from prade.core.documents import Malformed, file_text, json_value, structured
from prade.core.errors import DataError, Remark
from prade.data.declare.groups import Grouping

Key = tuple[str, ...]
Point = tuple[float, float]
Ring = list[Point]
Snapped = list[tuple[int, int]]  # a ring on the grid
Position = Annotated[list[float], msgspec.Meta(min_length=2)]  # a third coordinate, the height, is ignored

POLYGONS: dict[str, Any] = {"Polygon": list[list[Position]], "MultiPolygon": list[list[list[Position]]]}
FURTHEST = 1e9  # the largest coordinate: degrees, or metres in files that do not follow the standard
MOSTLY = 0.9  # of the groups have an outline in a map that is worth showing without a remark
WIDTH = 2_000  # of the grid to which outlines are rounded
SHOWN = 6  # properties that an error message names


class IncompleteMap(Remark):
    """The map of a page lacks many groups."""


@dataclass(frozen=True)
class Outlines:
    """The path of every group of a level that has an outline, in a box of `width` x `height`."""

    level: int
    key: str
    width: int
    height: int
    paths: dict[int, str]
    groups: int  # of the level, with or without an outline

    @property
    def lack(self) -> str:
        """A sentence about a file that has outlines of too few groups, or nothing."""
        if len(self.paths) >= MOSTLY * self.groups:
            return ""
        return (
            f"Only {len(self.paths):,} of {self.groups:,} groups have an outline, matched by {self.key}; the map lacks "
            "the others. Are these the outlines of the same places, in the same year?"
        )


def outlines(source: str | PathLike[str], levels: Sequence[Grouping], key: str | None = None) -> Outlines:
    """The outlines of the groups of the level that the file matches best; of two equally good levels, the finer one.

    `key` names the property that identifies the group, or several joined by "+"; None takes the one property that
    matches most groups and, of two equally good ones, has fewer features for each group.
    """
    features = _features(Path(source))
    names = _names(features, key)
    tried = [
        (len(matches) / len(grouping), len(matches) - sum(map(len, matches.values())), level, name, matches)
        for level, grouping in enumerate(levels)
        for name in (names if grouping.by else ())
        if (matches := _matches(features, name, grouping))
    ]
    if not tried:
        first = features[0].named
        shown = [f"{name} = {str(first[name])[:40]!r}" for name in names[:SHOWN] if name in first]
        has = ", ".join(shown) or "no such property"
        wanted = "-".join(str(value) for value in levels[-1].values[0]) or "all rows"
        raise DataError(
            f"no feature of {source} is a group of the release: the first feature has {has}, the first group is "
            f"{wanted!r}",
            remedy="geojson_key",
        )
    *_, level, name, matches = max(tried, key=lambda fit: fit[:3])
    rings = {group: [ring for f in which for ring in _rings(features[f])] for group, which in matches.items()}
    return Outlines(level, name, *_drawn(rings), len(levels[level]))


def simple(text: Any) -> Key:
    """The words of a value, in lower case and without leading zeros.

    >>> simple("17-02100"), simple(17.0)
    (('17', '2100'), ('17',))
    """
    if isinstance(text, float) and text.is_integer():
        text = int(text)
    words = str(text).strip().casefold().split("-")
    return tuple(word.strip().lstrip("0") or ("0" if word.strip() else "") for word in words)


class _Geometry(msgspec.Struct):
    type: str
    coordinates: Any = None


class _Feature(msgspec.Struct):
    geometry: _Geometry | None = None
    properties: dict[str, Any] | None = None

    @property
    def named(self) -> dict[str, Any]:
        """The feature's properties; none if the file has null."""
        return self.properties or {}


class _Collection(msgspec.Struct):
    features: list[_Feature]


def _features(path: Path) -> list[_Feature]:
    text = file_text(path, "GeoJSON file")
    try:
        features = structured(json_value(text), _Collection).features
    except Malformed as fault:
        raise DataError(f"{path} is not a GeoJSON FeatureCollection ({fault}); give polygons of the groups") from None
    shaped = [each for each in features if each.geometry and each.geometry.type in POLYGONS]
    if not shaped:
        raise DataError(f"{path} has no Polygon or MultiPolygon among its {len(features)} features; give outlines")
    return shaped


def _names(features: Sequence[_Feature], key: str | None) -> list[str]:
    known = list(dict.fromkeys(name for each in features for name in each.named))
    if key is None:
        return known
    if key not in known and any(name not in known for name in key.split("+")):
        raise DataError(f"the GeoJSON file has no property {key!r}; its properties are {', '.join(known) or 'none'}")
    return [key]


def _matches(features: Sequence[_Feature], name: str, grouping: Grouping) -> dict[int, list[int]]:
    """The features of every group: by the groups' values joined or by the last value, if these tell groups apart."""
    by_value: dict[Key, list[int]] = {}
    for number, feature in enumerate(features):
        values = [feature.named.get(part) for part in ([name] if name in feature.named else name.split("+"))]
        if None not in values:
            by_value.setdefault(_key(values), []).append(number)
    tried: list[dict[int, list[int]]] = [{}]
    for groups in (grouping.values, [each[-1:] for each in grouping.values]):
        keys = [_key(each) for each in groups]
        if len(set(keys)) == len(keys):
            tried.append({group: by_value[key] for group, key in enumerate(keys) if key in by_value})
    return max(tried, key=len)


def _key(values: Sequence[Any]) -> Key:
    return tuple(word for value in values for word in simple(value))


def _rings(feature: _Feature) -> Iterator[Ring]:
    assert feature.geometry is not None
    try:
        shape = structured(feature.geometry.coordinates, POLYGONS[feature.geometry.type])
    except Malformed:
        raise DataError("the GeoJSON file has a polygon whose coordinates are not numbers; export it again") from None
    for polygon in [shape] if feature.geometry.type == "Polygon" else shape:
        for ring in polygon:
            yield [(point[0], point[1]) for point in ring]


def _drawn(rings: Mapping[int, Sequence[Ring]]) -> tuple[int, int, dict[int, str]]:
    """The width and height of the box that the groups' shapes fill, and their paths on the grid."""
    points = [point for each in rings.values() for ring in each for point in ring]
    if not points or not all(abs(coordinate) <= FURTHEST for point in points for coordinate in point):
        raise DataError("the outlines in the GeoJSON file have no points, or impossible ones; export the file again")
    # Without this, islands on the two sides of the date line would be drawn a world apart.
    turn = max(x for x, _ in points) - min(x for x, _ in points) > 180
    south, north = min(y for _, y in points), max(y for _, y in points)
    narrow = math.cos(math.radians((south + north) / 2))

    def flat(x: float) -> float:
        return (x + 360 if turn and x < 0 else x) * narrow

    west, east = min(flat(x) for x, _ in points), max(flat(x) for x, _ in points)
    zoom = WIDTH / max(east - west, north - south, 1e-9)
    width, height = max(round((east - west) * zoom), 1), max(round((north - south) * zoom), 1)

    def drawn(each: Sequence[Ring]) -> list[Snapped]:
        return [[(round((flat(x) - west) * zoom), round((north - y) * zoom)) for x, y in ring] for ring in each if ring]

    return width, height, {group: _path(drawn(each)) for group, each in rings.items() if any(each)}


def _path(rings: Sequence[Snapped]) -> str:
    """An SVG path; rings smaller than the grid are left out, unless there are no others."""
    drawn = []
    for ring in rings:
        corners = [point for point, before in zip(ring, [None, *ring], strict=False) if point != before]
        if len(set(corners)) > 2:
            drawn.append(f"M{'L'.join(f'{x} {y}' for x, y in corners)}Z")
    if not drawn:
        x, y = next(point for ring in rings for point in ring)
        return f"M{x - 2} {y - 2}L{x + 2} {y - 2}L{x + 2} {y + 2}L{x - 2} {y + 2}Z"
    return "".join(drawn)
