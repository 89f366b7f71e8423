"""The report in a real browser: it opens, stays silent, asks nothing of a network, and every control works."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest

from prade.reporting.html import unpacked
from prade.reporting.report import report
from worlds import whole_releases
from worlds.page_checks import CUT, OUTSIDE, accessibility, drawn, mode, seconds_to_open, silent, until

BANNER = "This page is NOT private and must not be published."
MINUS, NONE, TIMES = "\u2212", "\u2013", "\u00d7"
WIDE, PHONE = (1400, 900), (390, 844)


@pytest.fixture(scope="module")
def plain(census, tmp_path_factory):
    return report(census[0], tmp_path_factory.mktemp("plain") / "report.html")


@pytest.fixture(scope="module")
def with_truth(census, tmp_path_factory):
    return report(census[0], tmp_path_factory.mktemp("truth") / "ours.html", truth=census[1])


@pytest.fixture(scope="module")
def contest_map(tmp_path_factory, shared_data):
    """The 181 PUMAs of the contest, and their outlines."""
    folder = tmp_path_factory.mktemp("contest")
    release = whole_releases.contest(folder, shared_data / "contest_sprint2_parameters.json")
    return report(release, geojson=shared_data / "puma2010_il_oh.geojson", geojson_key="STATEFIP+PUMA")


def opened(chromium, path, size=WIDE, fragment=""):
    page = chromium.page(path, *size, fragment)
    page.run("document.documentElement.style.scrollBehavior = 'auto'")
    ready(page)
    return page


def ready(page):
    """Wait until the page has drawn what was chosen."""
    until(page, "document.getElementById('main').ariaBusy === 'false'")
    drawn(page)


@pytest.fixture
def page(chromium, plain):
    found = opened(chromium, plain)
    yield found
    silent(found)


def data(page):
    return json.loads(page.run("document.getElementById('data').textContent"))


def names(page, table):
    """The first cell of each row of a table."""
    return page.texts(f"{table} tbody tr > :first-child")


def numbers(page, table, place):
    """The numbers in a column of a table, the first one of each cell."""
    texts = page.texts(f"{table} tbody tr > :nth-child({place})")
    return [float(re.search(r"[\d.,]+", text.replace(MINUS, "-")).group().replace(",", "")) for text in texts]


def take(page, box, value):
    """Take an option and wait until what depends on it is drawn."""
    page.choose(box, value)
    ready(page)


def column_number(page, name):
    return next(number for number, each in enumerate(data(page)["columns"]) if each["name"] == name)


def test_the_page_opens_with_what_a_steward_asks(page):
    """Tiles, sentences and sections; a measured column in a group of middle size; columns and groups worst first."""
    found = data(page)
    assert page.run("document.title") == "Release report: census-like survey"
    assert page.texts("h1") == ["census-like survey"]
    assert page.texts("header .lead") == [found["headline"]["sentence"]]
    tiles = [[tile["title"], tile["value"], tile["note"]] for tile in found["tiles"]]
    assert [page.texts(f".tile:nth-child({k}) p") for k in (1, 2, 3, 4)] == tiles
    for sentences in ("caveats", "use", "careful"):
        assert page.texts(f"#{sentences} li") == found[sentences]
    view = data(page)["views"][-1]
    chosen = page.run("S")
    assert chosen["view"] == 2
    assert view["basis"][chosen["column"]] == "measured"
    assert page.texts("#basis") == ["measured"]
    smaller = sum(total < view["totals"][chosen["group"]] for total in view["totals"])
    assert smaller == len(view["totals"]) // 2
    assert len(names(page, "#explore-numbers")) == len(data(page)["columns"][chosen["column"]]["labels"])

    assert page.texts("main h2") == [
        *["Use it for", "Be careful with", "Explore: one place, one column or two", "Which columns are good by PLACE"],
        *["Which groups are good", "Where the public table is wrong"],
        *["How the budget was spent, and the resulting noise", "Method and provenance"],
    ]
    assert len(names(page, "#groups-table")) == 8
    links = page.run("[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href').slice(1))")
    assert page.run(f"{json.dumps(links)}.every(id => document.getElementById(id))")
    asks = sum(len(level["asks"]) for level in found["budget"])
    assert page.run("document.querySelectorAll('#budget-figure .mark-rect.role-mark path').length") == asks == 4
    assert page.run("document.querySelectorAll('#budget-table tbody tr').length") == asks

    worst = sorted(found["columns"], key=lambda column: -column["error"])
    assert names(page, "#columns-table") == [f"{column['title']} ({column['name']})" for column in worst]
    shown = pytest.approx([column["error"] for column in worst], abs=0.00051)  # halves are rounded up on the page
    assert numbers(page, "#columns-table", 3) == shown
    assert page.texts("#columns-table tbody tr:first-child td:nth-child(4)") == [f"± {round(worst[0]['width'] / 2)}"]
    order = sorted(range(8), key=lambda g: -view["error"][g])
    assert names(page, "#groups-table") == [view["labels"][g] for g in order]
    assert numbers(page, "#groups-table", 2) == [view["totals"][g] for g in order]


def test_a_policy_forbids_scripts_and_requests(chromium, plain):
    page = opened(chromium, plain)
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.org/x.png\">')")
    page.run("fetch('https://example.org').catch(() => 0)")
    page.run(
        "{ const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }"
    )
    page.settle()
    assert page.run("window.ran") is None
    assert len([text for text in page.complaints if "Content Security Policy" in text]) >= 3


def test_the_banner_is_there_exactly_with_the_truth(chromium, plain, with_truth):
    without, given = opened(chromium, plain), opened(chromium, with_truth)
    assert without.texts("[role=alert]") == []
    assert "not private" not in without.run("document.body.innerText").lower()
    assert without.run("document.getElementById('truth')") is None
    assert data(without)["truth"] is None
    assert "truth" not in data(without)["views"][-1]
    assert given.texts("[role=alert]")[0].startswith(BANNER)
    assert given.run("document.title").startswith("NOT PRIVATE, do not publish")
    mode(given, media="print")
    assert given.run("document.getElementById('banner').offsetHeight") > 20
    assert given.run("getComputedStyle(document.getElementById('banner')).visibility") == "visible"
    silent(without)
    silent(given)


def test_names_from_data_are_texts(chromium, tmp_path):
    nasty = whole_releases.NASTY
    page = opened(chromium, report(whole_releases.nasty(tmp_path), truth=tmp_path / "private.parquet"))
    assert page.run("document.querySelectorAll('main img, main b').length") == 0
    assert page.texts("h1") == [nasty]
    assert page.texts("#column option")[0] == nasty
    take(page, "#column", "0")
    take(page, "#place", "1,0")
    assert nasty in page.texts("#live")[0]
    assert nasty in page.texts("#explore-figure text")[0] + page.texts("#basis-said")[0]
    take(page, "#second", "1")
    assert page.run("S.second") == 1
    sent = page.run("location.hash")
    again = opened(chromium, tmp_path / "release-not-private.html", fragment=sent)
    assert again.run("[S.view, S.group, S.column, S.second]") == [1, 0, 0, 1]
    assert page.run(OUTSIDE) == again.run(OUTSIDE) == []
    silent(page)
    silent(again)


SORTED = {"#columns-table": 3, "#groups-table": 2, "#explore-numbers": 2}


def test_tables_are_folded_sorted_and_filtered(page):
    table = "document.getElementById('budget-table')"
    assert page.run(f"{table}.checkVisibility()") is False
    page.click("#budget > details > summary")
    assert page.run(f"{table}.checkVisibility()")
    page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    for table in SORTED:
        before, place = names(page, table), SORTED[table]
        page.click(f"{table} thead th:nth-child({place}) button")
        down = page.run(f"document.querySelector('{table} thead th:nth-child({place})').ariaSort")
        first = numbers(page, table, place)
        page.click(f"{table} thead th:nth-child({place}) button")
        second = numbers(page, table, place)
        up = page.run(f"document.querySelector('{table} thead th:nth-child({place})').ariaSort")
        assert {down, up} == {"ascending", "descending"}
        assert {tuple(first), tuple(second)} == {tuple(sorted(first)), tuple(sorted(first, reverse=True))}
        assert sorted(names(page, table)) == sorted(before)
        assert "sorted by" in page.texts("#live")[0]

    take(page, "#level", "1")
    assert len(names(page, "#groups-table")) == 2
    assert page.texts("#groups-table caption") == ["Groups of level STATE"]

    take(page, "#level", "2")
    every = names(page, "#groups-table")
    page.write("#groups-filter", every[-1].split()[-1])
    assert names(page, "#groups-table") == [every[-1]]
    assert page.texts("#groups-count") == ["1 of 8"]
    page.click("#groups-table thead button")
    assert names(page, "#groups-table") == [every[-1]]
    page.write("#columns-filter", "mari")
    assert names(page, "#columns-table") == ["Marital status (MARITAL)"]
    assert page.texts("#columns-count") == ["1 of 6"]


def shares(page, key, view, group, column):
    found = data(page)
    first, end = found["columns"][column]["cells"]
    return unpacked(found["views"][view][key])[group][first:end]


def test_a_column_shows_four_series_with_intervals(page):
    column = column_number(page, "EDUC")
    take(page, "#column", str(column))
    take(page, "#place", "2,1")
    found = data(page)
    assert page.texts("#explore-figure thead th") == [
        *["EDUC", "Public table", "Noisy answers", "Estimate", "Synthetic rows", "low", "high"]
    ]
    csv = page.run("CHARTS.get($('explore-figure')).csv.rows")
    assert [row[0] for row in csv] == found["columns"][column]["labels"] == names(page, "#explore-numbers")
    for place, key in enumerate(("public", "noisy", "estimate", "synthetic"), 1):
        assert np.allclose([row[place] for row in csv], shares(page, key, 2, 1, column))
    share, low, high = (shares(page, key, 2, 1, column) for key in ("estimate", "low", "high"))
    assert np.allclose([row[5:] for row in csv], np.stack([low, high], axis=1))
    assert np.allclose(numbers(page, "#explore-numbers", 2), 100 * share, rtol=0, atol=0.0501)  # one decimal
    points = page.run("document.querySelectorAll('#explore-figure .mark-symbol.role-mark path').length")
    assert points == 4 * len(share)
    bars = page.run("document.querySelectorAll('#explore-figure .mark-rule.role-mark line').length")
    assert bars == len(share)

    take(page, "#place", "2,3")
    column = page.run("S.column")
    share, low, high = (shares(page, key, 2, 3, column) for key in ("estimate", "rowsLow", "rowsHigh"))
    shown = page.texts("#explore-numbers tbody tr > :nth-child(4)")
    assert shown == [f"{round(a):,} {NONE} {round(b):,}" for a, b in zip(low, high, strict=True)]
    top = int(share.argmax())
    assert shown[top].replace(f" {NONE} ", " to ") in page.texts("#basis-said")[0]


def test_a_pair_is_shown_only_for_the_groups_for_which_it_is_kept(page):
    """AGE with MARITAL was measured by PLACE, the other way round; AGE with SEX for nobody; no column with itself."""
    age, sex, marital = (column_number(page, name) for name in ("AGE", "SEX", "MARITAL"))
    take(page, "#place", "2,4")
    take(page, "#column", str(age))
    take(page, "#second", str(marital))
    assert page.texts("#basis") == ["measured"]
    found = data(page)
    kept = found["pairs"][2]
    at = kept["index"].index(sorted([age, marital]))
    cells = unpacked(kept["estimate"])[4][kept["starts"][at] : kept["starts"][at + 1]]
    sizes = [len(found["columns"][c]["labels"]) for c in sorted([age, marital])]
    stored = cells.reshape(sizes) if age < marital else cells.reshape(sizes).T
    rows = page.run("CHARTS.get($('explore-figure')).csv.rows")
    labels = [found["columns"][c]["labels"] for c in (age, marital)]
    tips = page.run(
        "[...document.querySelectorAll('#explore-figure .mark-rect.role-mark path')].map(m => m.__data__.datum.tip)"
    )
    assert sum("95 % interval" in tip for tip in tips) == len(stored.ravel())
    for row in rows:
        assert row[4] == pytest.approx(stored[labels[0].index(row[0]), labels[1].index(row[1])])
    assert f"Estimate {MINUS} public table" in page.texts("#explore-differences text")

    take(page, "#second", str(sex))
    assert page.run("$('explore-shown').hidden")
    assert page.texts("#basis-said")[0].startswith(
        f"AGE with SEX is not kept for {found['views'][2]['labels'][4]}, but"
    )
    assert page.texts("#basis-said button") == ["Show it for all groups together"]
    page.click("#basis-said button")
    ready(page)
    assert page.run("[S.view, S.group, $('explore-shown').hidden]") == [0, 0, False]
    assert page.texts("#basis") == ["model"]
    assert page.run("$('warned').hidden") is False


def test_a_group_or_column_in_a_table_leads_to_the_picture(page):
    page.click("#groups-table tbody tr:nth-child(3) button")
    ready(page)
    label = names(page, "#groups-table")[2]
    assert page.run("placeName()") == label
    assert page.texts("#groups-table tr.chosen th") == [label]
    assert page.texts("#live")[0].startswith(f"Chosen: {label}")
    assert page.run("document.activeElement.id") == "explore-h"
    page.click("#columns-table tbody tr:nth-child(1) button")
    ready(page)
    assert page.run("nameOf(D.columns[S.column])") == names(page, "#columns-table")[0]
    take(page, "#place", "0,0")
    assert page.texts("#groups-table tr.chosen") == []


def test_the_address_keeps_place_and_columns(chromium, plain, page):
    age, marital = column_number(page, "AGE"), column_number(page, "MARITAL")
    take(page, "#place", "2,6")
    take(page, "#column", str(age))
    take(page, "#second", str(marital))
    page.click('nav a[href="#groups"]')
    again = opened(chromium, plain, fragment=page.run("location.hash"))
    state = "[S.view, S.group, S.column, S.second, address.read().at]"
    assert again.run(state) == page.run(state) == [2, 6, age, marital, "groups"]
    again.run("location.hash = '#level=nowhere&column=SEX'")
    until(again, "D.columns[S.column].name === 'SEX'")
    assert again.run("S.second") is None
    assert again.run("S.view") == 2
    silent(again)


def test_texts_for_publications_are_copied(page):
    found = data(page)
    page.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    for place, text in enumerate((found["methodology"], found["provenance"]["cite"])):
        page.run("window.copied = null; navigator.clipboard.writeText = async text => { window.copied = text; }; 0")
        page.click("#method > p > [data-copy]", place)
        until(page, "window.copied !== null")
        assert page.run("window.copied") == text
        assert page.texts("#method > p > [data-copy]")[place] == "Copied"
    page.run("navigator.clipboard.writeText = () => Promise.reject(Error('refused')); 0")
    page.click("#method > p > [data-copy]", 0)
    until(page, "getSelection().toString().length > 0")
    assert page.run("getSelection().toString().trim()") == found["methodology"]


def test_the_truth_comes_first(chromium, with_truth):
    page = opened(chromium, with_truth)
    truth, labels = data(page)["truth"], data(page)["views"][-1]["labels"]
    assert page.texts("main h2")[2] == "Compared with the truth"
    said = page.texts("#truth .lead")[0]
    assert said.startswith(truth["sentence"])
    assert f"{round(100 * truth['ratio'])} % of the public table's error" in said
    assert f"score is {truth['score']:.3f}" in said
    assert names(page, "#worst-pairs") == [f"{pair['first']} {TIMES} {pair['second']}" for pair in truth["worst_pairs"]]
    assert numbers(page, "#worst-pairs", 2) == [round(pair["places"], 3) for pair in truth["worst_pairs"]]
    assert names(page, "#worst-places") == [labels[place["group"]] for place in truth["worst_places"]]
    assert names(page, "#metrics-table") == [line["title"] for line in truth["metrics"]["summary"]]
    page.click("#worst-pairs tbody button", 1)
    ready(page)
    pair = truth["worst_pairs"][1]
    assert page.run("[S.column, S.second].map(c => D.columns[c].name)") == [pair["first"], pair["second"]]

    linear = truth["metrics"]["linear"]
    assert names(page, "#regressions details:nth-of-type(1)") == [
        each["term"] for each in linear["truth"]["coefficients"]
    ]
    page.run(
        "$('regressions').replaceChildren(); T.metrics.linear = { outcome: 'y', predictors: ['x'],"
        " truth: { coefficients: [{ term: 'x', estimate: 1, low: 0, high: 2 }] },"
        " synthetic: { not_available: 'x is constant' }, public: null }; regression('linear', 'Linear regression')"
    )
    assert "Synthetic rows: x is constant" in page.texts("#regressions p")
    silent(page)


def test_the_papers_figure_and_the_heat_map_have_every_group_and_pair(chromium, with_truth):
    page = opened(chromium, with_truth)
    found = data(page)
    truth, view = found["truth"], found["views"][-1]
    order = sorted(range(8), key=lambda g: truth["priorError"][g])
    assert page.texts("#paper-figure tbody th") == [view["labels"][g] for g in order]
    marks = page.run(
        "[...document.querySelectorAll('#paper-figure .mark-symbol.role-mark path')].map(m =>"
        " { const b = m.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })"
    )
    across, heights = zip(*marks, strict=True)
    assert list(across) == sorted(across)
    errors = [truth[key][g] for g in order for key in ("priorError", "syntheticError")]
    assert np.corrcoef(heights, errors)[0, 1] == pytest.approx(-1, abs=1e-4)  # on the screen, higher is smaller
    page.click("#paper-figure .mark-symbol.role-mark path", 10)
    ready(page)
    assert page.run("placeName()") == view["labels"][order[5]]
    cells = "document.querySelectorAll('#heat-figure .mark-rect.role-mark path').length"
    heat = data(page)["truth"]["heat"]
    many = len(found["columns"])
    assert page.run(cells) == many * (many + 1) // 2
    before = page.run("CHARTS.get($('heat-figure')).csv.rows")
    assert before[1][2] == pytest.approx(float(unpacked(heat["places"])[1, 0]))
    take(page, "#heat-of", "public")
    until(page, f"CHARTS.get($('heat-figure')).csv.rows[1][2] !== {before[1][2]}")
    assert page.run("CHARTS.get($('heat-figure')).csv.rows")[1][2] == pytest.approx(
        float(unpacked(heat["public"])[1, 0])
    )
    silent(page)


PLACES = "#map-figure .mark-shape.role-mark.layer_0_marks path"


def test_the_map_has_every_place_in_the_colour_of_its_number(chromium, contest_map):
    page = opened(chromium, contest_map)
    assert page.run(f"document.querySelectorAll('{PLACES}').length") == 181
    fills = f"[...document.querySelectorAll('{PLACES}')].map(p => [p.__data__.datum.group, p.getAttribute('fill')])"
    for measure in ("share", "width", "error", "rows"):
        take(page, "#measure", measure)
        fill = dict(page.run(fills))
        values = page.run("CHARTS.get($('map-figure')).csv.rows.map(row => row[1])")
        steps = [[values[g] for g in fill if fill[g] == f"var(--step-{step})"] for step in range(1, 7)]
        assert sum(map(len, steps)) == 181
        assert len(steps := [each for each in steps if each]) > 1
        assert all(max(low) < min(high) for low, high in pairwise(steps))
    assert values == data(page)["views"][1]["totals"]
    assert page.run("$('cell-box').hidden")
    take(page, "#measure", "share")
    assert page.run("$('cell-box').hidden") is False

    wide = f"document.querySelectorAll('{PLACES}')[3].getBBox().width"
    whole = page.run(wide)
    for button, factor in (("zoom-in", 2), ("zoom-all", 1)):
        page.click(f"#{button}")
        until(page, f"Math.abs({wide} / {whole} - {factor}) < 0.05")
    silent(page)


def test_a_place_is_chosen_by_click_and_by_keys(chromium, contest_map):
    page = opened(chromium, contest_map)
    page.run("$('map-figure').scrollIntoView()")
    place, group = page.run(
        f"[...document.querySelectorAll('{PLACES}')].map((path, place) => [path.getBoundingClientRect(), path, place])"
        ".filter(([b, path, place]) => place > 40 && document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)"
        " === path).map(([, path, place]) => [place, path.__data__.datum.group])[0]"
    )
    page.click(PLACES, place)
    ready(page)
    assert page.run("[S.view, S.group]") == [1, group]
    label = data(page)["views"][1]["labels"][group]
    assert page.texts("#groups-table tr.chosen th") == [label]
    assert page.texts("#map-said")[0].startswith(label)
    page.run("document.getElementById('zoom-all').focus()")
    page.press("Tab")
    assert page.run("document.activeElement.id") == "map-keys"
    assert page.texts("#live")[0].startswith(label)
    page.press("ArrowRight")
    other = page.texts("#map-said")[0]
    assert not other.startswith(label)
    assert page.texts("#live") == [other]
    page.press("Enter")
    ready(page)
    assert other.startswith(page.run("placeName()"))
    silent(page)


def test_nothing_is_outside_or_cut_off(chromium, with_truth):
    page = opened(chromium, with_truth)
    for width in (390, 768, 1400):
        page.resize(width, 844)
        page.settle()
        for column, second in (("0", ""), ("2", ""), ("0", "4")):
            take(page, "#column", column)
            take(page, "#second", second)
            assert page.run("document.documentElement.scrollWidth") <= width
            assert page.run(OUTSIDE) == []
            assert page.run(CUT) == []
    for scheme in ("light", "dark"):
        assert accessibility(page, scheme) == []
    silent(page)


def test_the_map_and_its_boxes_fit_a_phone(chromium, contest_map):
    page = opened(chromium, contest_map, PHONE)
    assert page.run("document.documentElement.scrollWidth") <= PHONE[0]
    assert page.run(OUTSIDE) == []
    assert page.run("document.querySelector('#map-figure svg').clientHeight") > 150

    line = "#groups .more"
    assert "scroll for more rows" in page.texts(line)[0]
    page.run("document.querySelector('#groups .scroll').scrollTo({left: 1e6, top: 1e6, behavior: 'instant'})")
    page.settle()
    assert page.texts(line) == ["end of the table"]
    assert accessibility(page, "dark") == []
    silent(page)


def test_everything_is_named_and_reached_by_keys(page):
    """Fields have labels, headings a scope, and Tab reaches every control, first the link past the head."""
    assert page.run("[...document.querySelectorAll('select, input')].every(e => e.labels.length === 1)")
    assert page.run("[...document.querySelectorAll('th')].every(e => e.scope)")
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    assert page.run("document.activeElement.getBoundingClientRect().left") >= 0
    page.press("Enter")
    assert page.run("document.activeElement.id") == "main"
    reached = set()
    for _ in range(130):
        page.press("Tab")
        reached.add(page.run("document.activeElement.id || document.activeElement.textContent.trim()"))
    controls = {"place", "column", "second", "columns-filter", "level", "groups-filter"}
    assert controls | {"SVG", "PNG", "CSV", "Copy the paragraph", "Glossary"} <= reached
    page.run("document.querySelector('#groups-table thead button').focus()")
    page.press("Enter")
    assert page.run("document.querySelector('#groups-table thead th').ariaSort") == "ascending"


def test_a_page_of_many_groups_is_small_opens_at_once_and_fills_at_most_six_sheets(chromium, contest_map):
    page = opened(chromium, contest_map)
    assert len(names(page, "#groups-table")) == 181
    assert contest_map.stat().st_size < 3_000_000
    assert min(seconds_to_open(page) for _ in range(3)) < 1.0
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 6
    mode(page, "dark", "print")
    hidden = "['#chooser', 'nav', '#groups-filter'].map(s => document.querySelector(s).offsetParent === null)"
    assert page.run(hidden) == [True] * 3
    rows = "[...document.querySelectorAll('#groups-table tbody tr')].filter(row => row.offsetHeight).length"
    assert page.run(rows) == 20
    assert "first 20 groups" in page.run("document.querySelector('#groups').innerText")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    silent(page)
