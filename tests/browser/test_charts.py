"""What both pages are made of, in a real browser: charts and sortable tables."""

import struct
import xml.etree.ElementTree as ET

import pytest

from prade.reporting import html
from worlds.page_checks import accessibility, arrived, downloads, mode, silent, until

MINUS, NONE = "\u2212", "\u2013"
HOSTILE = '</script><b onmouseover="alert(1)">'
TEMPLATE = """{% extends "shell.html.j2" %}{% block title %}Charts{% endblock %}{% block body %}
<nav aria-label="Sections"><a href="#second">Second</a></nav>
<main id="main" tabindex="-1"><h1>Charts</h1><p id="live" role="status"></p>
<section id="first"><h2>First</h2><div id="one"></div></section><div id="hidden" hidden><div id="two"></div></div>
<section id="second"><h2>Second</h2><div id="table"></div></section></main>{% endblock %}"""
SCRIPT = """
const D = JSON.parse($("data").textContent);
const spec = (y) => ({ height: 200, data: { values: D.rows }, mark: { type: "bar", color: "var(--estimate)" },
  encoding: { x: { field: "x", type: "nominal", axis: { title: D.name } }, y: { field: y, type: "quantitative" },
  tooltip: [{ field: "x", title: D.name }, { field: y }] } });
const csv = { heads: [D.name, "a"], rows: D.rows.map((row) => [row.x, row.a]) };
const show = (y) => chart($("one"), spec(y), { title: `Bars of ${y}`, csv });
show("a");
chart($("two"), spec("b"), { title: "Hidden", csv });
sortable($("table"), { caption: "Rows", rows: D.rows, columns: [
  { label: "Name", kind: "name", value: (row) => row.x },
  { label: "A", kind: "num", value: (row) => row.a, show: (row) => fixed(1)(row.a) }] });
address.sections();
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A page with one chart, one hidden chart and one table."""
    given = {"charts.html.j2": TEMPLATE, "try.js": SCRIPT}
    usual = html.text
    rows = [
        {"x": HOSTILE, "a": 3.25, "b": 30},
        {"x": 'say "a, b"', "a": None, "b": 10},
        {"x": "=1+1", "a": -10.0, "b": 5},
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "text", lambda name: given.get(name) or usual(name))
        page = html.page("charts.html.j2", {"rows": rows, "name": HOSTILE}, scripts=["try.js"])
    path = tmp_path_factory.mktemp("charts") / "charts.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture
def page(chromium, written):
    found = chromium.page(written, 1000, 800)
    until(found, "CHARTS.get($('one')).drawn")
    yield found
    silent(found)


def test_a_chart_has_a_name_a_picture_and_a_table(page):
    picture = "document.querySelector('#one svg')"
    assert page.run(f"[{picture}.getAttribute('role'), {picture}.getAttribute('aria-label')]") == ["img", "Bars of a"]
    bars = "document.querySelectorAll('#one svg .mark-rect.role-mark path').length"
    assert page.run(bars) == 2  # of three rows, one has no number
    assert page.texts("#one tbody th") == [HOSTILE, 'say "a, b"', "=1+1"]
    assert page.texts("#one tbody td") == ["3.25", NONE, f"{MINUS}10"]
    assert page.run("document.querySelectorAll('b').length") == 0
    assert accessibility(page) == []


def test_colours_follow_the_mode_without_drawing_again(page):
    fill = "getComputedStyle(document.querySelector('#one .mark-rect.role-mark path')).fill"
    page.run("window.before = document.querySelector('#one svg')")
    found = []
    for scheme in ("light", "dark"):
        mode(page, scheme)
        found.append(page.run(fill))
    assert page.run("window.before === document.querySelector('#one svg')")
    mode(page, "dark", "print")
    assert [*found, page.run(fill)] == ["rgb(11, 102, 181)", "rgb(97, 177, 244)", "rgb(11, 102, 181)"]


def test_a_chart_fits_its_container_and_a_hidden_one_waits(page):
    wide = page.run("document.querySelector('#one svg').clientWidth")
    assert page.run("document.querySelector('#two svg')") is None
    page.resize(390, 800)
    until(page, "document.querySelector('#one svg').clientWidth < 370")
    assert wide > 900
    page.run("$('hidden').hidden = false")
    until(page, "document.querySelector('#two svg') !== null")


def test_files_are_saved_light_even_in_the_dark(page, tmp_path):
    downloads(page, tmp_path)
    mode(page, "dark")
    for place in range(3):
        page.click("#one .saves button", place)
    picture = ET.fromstring(arrived(tmp_path, "bars-of-a.svg"))
    fills = {each.get("fill") for each in picture.iter()}
    assert {"#fff", "rgb(11, 102, 181)"} <= fills
    assert not any("var(" in fill for fill in fills if fill)
    assert HOSTILE in "".join(picture.itertext())
    assert arrived(tmp_path, "bars-of-a.csv").decode().split("\r\n") == [
        '"</script><b onmouseover=""alert(1)"">",a',
        '"</script><b onmouseover=""alert(1)"">",3.25',
        '"say ""a, b""",',
        "'=1+1,-10",
        "",
    ]
    image = arrived(tmp_path, "bars-of-a.png")
    width, height = struct.unpack(">II", image[16:24])
    shown = page.run("(b => [b.width, b.height])(document.querySelector('#one svg').getBoundingClientRect())")
    assert [width, height] == [round(2 * side) for side in shown]
    mode(page)


def test_a_tip_tells_what_the_pointer_is_at(page):
    x, y = page.run(
        "(b => [b.x + b.width / 2, b.y + b.height / 2])"
        "(document.querySelector('#one .mark-rect.role-mark path').getBoundingClientRect())"
    )
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    until(page, "$('tip') && !$('tip').hidden")
    assert page.texts("#tip > *")[:2] == [HOSTILE, HOSTILE]
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    until(page, "$('tip').hidden")


def test_tables_sort_numbers_and_keep_what_is_missing_last(page):
    for expected in (["3.2", f"{MINUS}10.0", NONE], [f"{MINUS}10.0", "3.2", NONE]):
        page.click("#table thead th:nth-child(2) button")
        assert [text.replace("3.3", "3.2") for text in page.texts("#table tbody td")] == expected
    assert page.run("document.querySelector('#table thead th:nth-child(2)').ariaSort") == "ascending"
    assert "smallest first" in page.texts("#live")[0]
