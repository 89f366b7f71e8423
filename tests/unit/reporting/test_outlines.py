"""Outlines of groups: which feature belongs to which group, and how it is drawn."""

import re

import pytest

from prade import DataError, Groups
from prade.reporting.outlines import outlines
from worlds.outlines import geojson, square


def levels(**groups):
    listed = Groups.of(groups)
    return [listed.level(list(groups)[: k + 1]) for k in range(len(groups))]


PUMAS = levels(STATE=[17, 17, 39], PUMA=[100, 200, 100])


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ([{"id": "17-00100"}, {"id": "17-00200"}, {"id": "39-00100"}], None),
        ([{"ST": "17", "P": "00100"}, {"ST": "17", "P": "00200"}, {"ST": "39", "P": "00100"}], "ST+P"),
        ([{"P": 100.0, "ST": 17}, {"P": 200, "ST": 17}, {"P": 100, "ST": 39}], "ST+P"),
    ],
)
def test_features_are_matched_to_groups(tmp_path, properties, key):
    """By one property or those given; leading zeros and kinds of number do not matter; the finest level that fits."""
    file = geojson(tmp_path / "a.json", *(square(-80 + k, 40, n=k, **each) for k, each in enumerate(properties)))
    found = outlines(file, PUMAS, key)
    assert (found.level, found.key, sorted(found.paths)) == (1, key or "id", [0, 1, 2])


def test_a_text_with_a_dash_is_one_group(tmp_path):
    file = geojson(tmp_path / "a.json", square(0, 0, ST="17", P="00100"), square(2, 0, ST="39", P="00100"))
    found = outlines(file, levels(PUMA=["17-100", "39-100", "39-7"], YEAR=[2012, 2012, 2012])[:1], "ST+P")
    assert sorted(found.paths) == [0, 1]


def test_a_last_value_that_tells_groups_apart_is_enough(tmp_path):
    file = geojson(tmp_path / "a.json", square(0, 0, name="P"), square(2, 0, name="q"), square(4, 0, name="z"))
    found = outlines(file, levels(STATE=[1, 2], PLACE=["p", "q"]))
    assert (found.level, sorted(found.paths)) == (1, [0, 1])


def test_outlines_that_are_no_group_are_an_error(tmp_path):
    file = geojson(tmp_path / "a.json", square(0, 0, name="elsewhere"))
    with pytest.raises(DataError, match=r"name = 'elsewhere', the first group is '17-100'; give .*geojson_key="):
        outlines(file, PUMAS)
    with pytest.raises(DataError, match="has no property 'nome'; its properties are name"):
        outlines(file, PUMAS, "nome")


def polygon(coordinates):
    geometry = f'{{"type": "Polygon", "coordinates": {coordinates}}}'
    return f'{{"features": [{{"properties": {{"S": 17}}, "geometry": {geometry}}}]}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a GeoJSON FeatureCollection"),
        ('{"features": [3]}', "is not a GeoJSON FeatureCollection"),
        ('{"features": []}', "no Polygon or MultiPolygon among its 0"),
        ('{"features": [{"geometry": {"type": "Point", "coordinates": [0, 0]}}]}', "no Polygon"),
        (polygon('[[["x", 1]]]'), "coordinates are not numbers"),
        (polygon("[]"), "have no points"),
    ],
)
def test_what_is_no_geojson_is_said(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=message):
        outlines(tmp_path / "a.json", PUMAS)
    with pytest.raises(DataError, match="there is no GeoJSON file at"):
        outlines(tmp_path / "b.json", PUMAS)


def test_the_map_is_not_squashed(tmp_path):
    """At 60 degrees north a degree of longitude is half as long as one of latitude."""
    file = geojson(tmp_path / "a.json", square(10, 59.5, S=17), square(13, 59.5, S=39))
    found = outlines(file, PUMAS)
    assert found.width / found.height == pytest.approx(2, rel=0.01)
    assert found.paths[0].startswith("M0 1000")  # the south-west corner is at the lower left


def test_both_sides_of_the_date_line_are_neighbours(tmp_path):
    file = geojson(tmp_path / "a.json", square(179, 0, S=17), square(-180, 0, S=39))
    found = outlines(file, PUMAS)
    assert found.width / found.height == pytest.approx(2, rel=0.01)


def test_multipolygons_holes_and_specks(tmp_path):
    """A ring below the grid goes; a group that is all below it stays as a speck."""
    several = square(0, 0, S=17)
    ring = several["geometry"]["coordinates"][0]
    speck = [[x * 1e-6 + 5, y * 1e-6] for x, y in ring]
    several["geometry"] = {"type": "MultiPolygon", "coordinates": [[ring, [[x / 2, y / 2] for x, y in ring]], [speck]]}
    found = outlines(geojson(tmp_path / "a.json", several, square(9, 0, 1e-7, S=39)), PUMAS)
    assert found.paths[0].count("M") == 2
    assert re.fullmatch(r"M\d+ \d+(L\d+ \d+){3}Z", found.paths[1])
