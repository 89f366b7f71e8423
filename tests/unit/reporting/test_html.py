"""The shell of a page: only its own scripts and styles run, and texts of data stay texts."""

import base64
import hashlib
import json
import re

import pytest
from jinja2 import UndefinedError

from prade.reporting import html

HOSTILE = "</script><script>alert(1)</script>&<b>"


@pytest.fixture
def template(monkeypatch):
    """A page with one text of its data."""
    given = {"small.html.j2": '{% extends "shell.html.j2" %}{% block body %}<p>{{ data.text }}</p>{% endblock %}'}
    usual = html.text
    monkeypatch.setattr(html, "text", lambda name: given.get(name) or usual(name))
    return given


def hashes(page: str, directive: str) -> list[str]:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    return re.findall(r"'(sha256-[^']+)'", re.search(directive + "([^;]*)", policy)[1])


def hash_of(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_lists_each_script_and_style_and_nothing_else(template):
    page = html.page("small.html.j2", {"text": "a"})
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert [hash_of(script) for script in scripts] == hashes(page, "script-src")
    assert [hash_of(style) for style in re.findall(r"<style>(.*?)</style>", page, re.DOTALL)] == hashes(
        page, "style-src"
    )
    assert len(scripts) == 2
    assert "unsafe" not in page.split("</head>")[0].split("<style>")[0]
    assert "default-src 'none'" in page


def test_hostile_texts_stay_texts(template):
    page = html.page("small.html.j2", {"text": HOSTILE, HOSTILE: [HOSTILE]})
    assert HOSTILE not in page
    assert "<p>&lt;/script&gt;" in page
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(inside) == {"text": HOSTILE, HOSTILE: [HOSTILE]}


def test_a_name_that_the_data_lack_is_an_error(template):
    template["small.html.j2"] = '{% extends "shell.html.j2" %}{% block body %}{{ missing }}{% endblock %}'
    with pytest.raises(UndefinedError, match="missing"):
        html.page("small.html.j2", {})


def test_not_a_number_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        html.json_in_html([float("nan")])


def test_the_scripts_of_vega_are_small_and_named():
    scripts = html.vega()
    assert 300_000 < len(scripts.encode()) < 1_000_000
    named = re.findall(r"/\*! (\S+) \d+\.\d+\.\d+, BSD-3-Clause", scripts)
    assert named == ["vega", "vega-lite", "vega-embed"]
    assert "</script" not in scripts.lower()
    assert "sourceMappingURL" not in scripts
