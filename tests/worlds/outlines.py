"""Outlines of groups as GeoJSON."""

import json


def square(x, y, size=1.0, **properties):
    ring = [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def geojson(path, *features):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path
