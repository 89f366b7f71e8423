"""The shell of a page: only its own scripts and styles run, texts of data stay texts, packed arrays
come back; the page about budgets, which tests/browser opens."""

import base64
import hashlib
import json
import re
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from jinja2 import UndefinedError

from prade.core.errors import DataError
from prade.reporting import html
from prade.reporting.html import packed, plain, unpacked, write_explore
from worlds.rehearsals import explored

HOSTILE = "</script><script>alert(1)</script>&<b>"
SHARES = st.floats(0, 1) | st.just(float("nan"))


@pytest.fixture
def template(monkeypatch):
    """A page with one text of its data."""
    given = {"small.html.j2": '{% extends "shell.html.j2" %}{% block body %}<p>{{ data.text }}</p>{% endblock %}'}
    usual = html.text
    monkeypatch.setattr(html, "text", lambda name: given.get(name) or usual(name))
    return given


def test_the_policy_lists_each_script_and_style_and_nothing_else(template):
    page = html.page("small.html.j2", {"text": "a"})
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for tag, number in (("script", 2), ("style", 1)):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        listed = re.findall(r"'(sha256-[^']+)'", re.search(f"{tag}-src([^;]*)", policy)[1])
        hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in inside]
        assert [f"sha256-{each}" for each in hashes] == listed
        assert len(listed) == number
    assert "unsafe" not in page.split("</head>")[0].split("<style>")[0]
    assert "default-src 'none'" in page


def test_hostile_texts_stay_texts(template):
    page = html.page("small.html.j2", {"text": HOSTILE, HOSTILE: [HOSTILE]})
    assert HOSTILE not in page
    assert "<p>&lt;/script&gt;" in page
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(inside) == {"text": HOSTILE, HOSTILE: [HOSTILE]}


def test_a_name_that_the_data_lack_and_what_is_no_number_are_errors(template):
    template["small.html.j2"] = '{% extends "shell.html.j2" %}{% block body %}{{ missing }}{% endblock %}'
    with pytest.raises(UndefinedError, match="missing"):
        html.page("small.html.j2", {})
    with pytest.raises(ValueError, match="not JSON compliant"):
        html.json_in_html([float("nan")])


def test_the_scripts_of_vega_are_small_and_named():
    scripts = "".join(html.text(f"vega/{name}.min.js") for name in ("vega", "vega-lite", "vega-embed"))
    assert 300_000 < len(scripts.encode()) < 1_000_000
    named = re.findall(r"/\*! (\S+) \d+\.\d+\.\d+, BSD-3-Clause", scripts)
    assert named == ["vega", "vega-lite", "vega-embed"]
    assert "</script" not in scripts.lower()
    assert "sourceMappingURL" not in scripts


@given(arrays(np.float64, array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6), elements=SHARES))
def test_packed_shares_come_back_within_half_a_unit(shares):
    again, known = unpacked(packed(shares, unit=20_000)), ~np.isnan(shares)
    assert again.shape == shares.shape
    assert (~np.isnan(again) == known).all()
    assert (np.abs(again - shares)[known] <= 0.5 / 20_000 + 1e-12).all()


@pytest.mark.parametrize(("kind", "code", "none"), [("u16", "H", 65535), ("i32", "i", 2**31 - 1)])
def test_packed_bytes_are_little_endian_numbers_of_the_type(kind, code, none):
    """What is absent is the largest number."""
    entry = packed([[1, 2, 3], [4, 5, np.nan]], unit=10, type=kind)
    numbers = struct.unpack(f"<6{code}", zlib.decompress(base64.b64decode(entry["packed"])))
    assert numbers == (10, 20, 30, 40, 50, none)
    assert (entry["type"], entry["shape"], entry["unit"]) == (kind, [2, 3], 10)
    json.dumps(entry, allow_nan=False)


@pytest.mark.parametrize(("value", "kind"), [(-0.1, "u16"), (65_535, "u16"), (2**31 - 1, "i32")])
def test_what_does_not_fit_is_refused(value, kind):
    with pytest.raises(ValueError, match=rf"do not fit {kind} with unit 10?"):
        packed([0.0, value], unit=1 if value > 0 else 10, type=kind)


def test_plain_lists_have_no_digits_that_mean_nothing():
    data = {"a": [packed([[1 / 3, np.nan]], unit=1000)], "b": None, "c": ("x", 1)}
    assert plain(data) == {"a": [[[0.333, None]]], "b": None, "c": ["x", 1]}


def test_the_page_about_budgets_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "explore.html"
    path.write_text("an earlier page")
    broken = explored() | {"budgets": [{}]}
    with pytest.raises(UndefinedError, match=r"has no attribute"):
        write_explore(broken, path)
    assert path.read_text() == "an earlier page"
    assert write_explore(explored(), path) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [each.name for each in tmp_path.iterdir()] == ["explore.html"]

    with pytest.raises(DataError, match=r"rehearse at least one: prade plan --epsilon 0\.1,1,10"):
        write_explore(explored() | {"budgets": []}, path)


def test_the_page_about_budgets_can_be_read_without_its_script(tmp_path):
    """Budgets, errors, caveats and the elbow are in the page itself; public files are named, but not their folders."""
    data = explored()
    data["public"]["files"] = ["/home/agency/people/public.parquet"]
    data["budgets"][0]["expected"].update(gain=-0.004)
    page = write_explore(data, tmp_path / "explore.html").read_text(encoding="utf-8")
    assert "agency/people" not in page
    assert "\u22120.004" in page
    read = page.split('<script type="application/json"')[0]
    assert "public.parquet" in read
    for text in (data["elbow"], *data["caveats"], data["rehearsal"], data["unit"]):
        assert text in read
    for budget in data["budgets"]:
        assert f"{budget['expected']['error']:.3f}" in read
