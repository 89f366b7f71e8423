"""The report in a real browser: it opens, stays silent, asks nothing of a network, and every control works."""

import json

import pytest

from prade.reporting.report import write_report
from worlds import whole_releases

BANNER = "This page is NOT private and must not be published."
MINUS = "\u2212"
WIDE, PHONE = (1200, 900), (390, 844)


@pytest.fixture(scope="module")
def plain(census, tmp_path_factory):
    return write_report(census[0], tmp_path_factory.mktemp("plain") / "report.html")


@pytest.fixture(scope="module")
def with_truth(census, tmp_path_factory):
    return write_report(census[0], tmp_path_factory.mktemp("truth") / "ours.html", truth=census[1])


@pytest.fixture(scope="module")
def contest_map(tmp_path_factory, shared_data):
    """The 181 PUMAs of the contest, and their outlines."""
    folder = tmp_path_factory.mktemp("contest")
    release = whole_releases.contest(folder, shared_data / "contest_sprint2_parameters.json")
    return write_report(release, geojson=shared_data / "puma2010_il_oh.geojson")


@pytest.fixture
def page(chromium, plain):
    found = chromium.page(plain, *WIDE)
    yield found
    silent(found)


def silent(page):
    """No error, no warning, nothing asked for but the file itself."""
    page.settle()
    assert page.complaints == []
    assert {url for url in page.requests if not url.startswith("data:")} == {page.url}


def data(page):
    return json.loads(page.run("document.getElementById('data').textContent"))


def names(page, table):
    """The first cell of each row of a table."""
    return page.texts(f"{table} tbody tr > :first-child")


# ---------------------------------------------------------------- opening


def test_opens_with_all_its_sections(page):
    assert page.run("document.title") == "Release report: census-like survey"
    assert page.texts("h1") == ["census-like survey"]
    assert len(page.texts("main section h2")) == 7
    assert "epsilon = 4" in page.texts(".facts")[0]
    assert page.run("document.querySelectorAll('#budget-chart svg rect').length") == 4
    assert len(names(page, "#groups-table")) == 8
    for place in ("#budget-chart", "#marginal-chart"):
        assert page.run(f"document.querySelector('{place} svg').getAttribute('aria-label').length") > 10


def test_a_policy_forbids_scripts_and_requests(chromium, plain):
    page = chromium.page(plain)
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.org/x.png\">')")
    page.run("fetch('https://example.org').catch(() => 0)")
    page.run(
        "{ const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }"
    )
    page.settle()
    assert page.run("window.ran") is None
    assert len([text for text in page.complaints if "Content Security Policy" in text]) >= 3


def test_the_banner_is_there_exactly_with_the_truth(chromium, plain, with_truth):
    without, given = chromium.page(plain), chromium.page(with_truth)
    assert without.texts("[role=alert]") == []
    assert "not private" not in without.run("document.body.innerText").lower()
    assert given.texts("[role=alert]")[0].startswith(BANNER)
    assert given.run("document.title").startswith("NOT PRIVATE, do not publish")
    given.send("Emulation.setEmulatedMedia", media="print")
    assert given.run("document.getElementById('banner').offsetHeight") > 20
    assert given.run("getComputedStyle(document.getElementById('banner')).visibility") == "visible"
    silent(without)
    silent(given)


def test_names_from_data_are_texts(chromium, tmp_path):
    page = chromium.page(write_report(whole_releases.nasty(tmp_path), truth=tmp_path / "private.parquet"))
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.texts("h1") == [whole_releases.NASTY]
    assert page.texts("#column option")[0] == whole_releases.NASTY
    page.choose("#group", "1,0")
    page.choose("#second", "1")
    assert whole_releases.NASTY in "".join(page.texts("#paper-chart title"))
    assert whole_releases.NASTY in page.texts("#live")[0]
    silent(page)


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize("table", ["#groups-table", "#parts-table", "#heat-table", "#sure-table", "#marginal-box"])
def test_tables_sort_both_ways(page, table):
    before = names(page, table)
    page.click(f"{table} thead th:nth-child(2) button")
    down = column_of(page, table)
    assert page.run(f"document.querySelector('{table} thead th:nth-child(2)').ariaSort") == "descending"
    assert down == sorted(down, reverse=True)
    page.click(f"{table} thead th:nth-child(2) button")
    up = column_of(page, table)
    assert up == sorted(up)
    assert up != down
    assert page.run(f"document.querySelector('{table} thead th:nth-child(2)').ariaSort") == "ascending"
    assert sorted(names(page, table)) == sorted(before)
    assert "sorted by" in page.texts("#live")[0]


def column_of(page, table):
    return [
        float(text.rstrip(" %").replace(",", "").replace(MINUS, "-"))
        for text in page.texts(f"{table} tbody tr > :nth-child(2)")
    ]


def test_groups_are_filtered(page):
    every = names(page, "#groups-table")
    page.write("#filter", every[-1].split()[-1])
    assert names(page, "#groups-table") == [every[-1]]
    assert page.texts("#filter-count") == ["1 of 8"]
    page.click("#groups-table thead button")
    assert names(page, "#groups-table") == [every[-1]]


def test_levels_change_what_is_shown(page):
    page.choose("#level", "1")
    assert len(names(page, "#groups-table")) == 2
    assert page.texts("#groups-table caption") == ["Groups of level STATE"]
    assert len(page.texts("#group option")) == 3
    page.choose("#level", "0")
    assert names(page, "#groups-table") == ["all groups together"]
    page.choose("#level", "2")
    assert len(names(page, "#heat-table")) == 8


def test_misfit_against_prior_or_estimate(page):
    found = data(page)["views"][-1]["misfit"]
    first = "#heat-table tbody tr:first-child td"
    assert [float(text) for text in page.texts(first)] == found["prior"][0]
    page.choose("#against", "estimate")
    assert [float(text) for text in page.texts(first)] == found["estimate"][0]
    assert found["prior"] != found["estimate"]


# ---------------------------------------------------------------- groups and marginals


def test_a_group_is_chosen_in_the_table_or_the_list(page):
    page.click("#groups-table tbody tr:nth-child(3) button")
    label = names(page, "#groups-table")[2]
    assert page.texts(".chosen-group") == [label, label]
    assert page.run("document.getElementById('group').value") == "2,2"
    assert page.texts("#groups-table tr.chosen th") == [label]
    assert page.texts("#live") == [f"Chosen: {label}"]
    page.choose("#group", "0,0")
    assert page.texts("#groups-table tr.chosen") == []


def test_a_column_shows_four_series(page):
    page.choose("#column", "1")
    page.choose("#group", "2,1")
    found = data(page)
    shown = found["views"][2]["columns"][1]
    assert page.texts("#marginal-legend span") == [
        *["Public table", "Noisy answers", "Estimate, ± 2 standard errors", "Synthetic rows"]
    ]
    for place, name in enumerate(("prior", "noisy", "estimate", "synthetic"), 2):
        assert percents(page, place) == [round(value / 100, 2) for value in shown[name][1]]
    assert names(page, "#marginal-box") == found["columns"][1]["labels"]
    assert page.run("document.querySelectorAll('#marginal-chart circle').length") == 2


def percents(page, place):
    texts = page.texts(f"#marginal-box tbody tr > :nth-child({place})")
    return [float(text.rstrip(" %").replace(MINUS, "-")) for text in texts]


def test_pairs_are_small_multiples(page):
    """AGE with MARITAL was asked the other way round, of places only; AGE with SEX of nobody."""
    place = {each["name"]: str(k) for k, each in enumerate(data(page)["columns"])}
    page.choose("#group", "2,4")
    page.choose("#column", place["AGE"])
    page.choose("#second", place["MARITAL"])
    panels = page.texts("#marginal-chart h3")
    assert panels == [
        *["Public table", "Noisy answers", "Estimate", "Synthetic rows"],
        *[f"Estimate {MINUS} public table", f"Synthetic rows {MINUS} estimate"],
    ]
    found, group = data(page), 4
    stored = found["pairs"][f"{place['MARITAL']},{place['AGE']}"][2]["estimate"][group]
    first = page.texts("#marginal-chart .panels > div:nth-child(3) rect title")
    ages, marital = (found["columns"][int(place[name])]["labels"] for name in ("AGE", "MARITAL"))
    assert first[1] == f"AGE {ages[0]}, MARITAL {marital[1]}: {stored[len(ages)] / 100:.2f} %"
    page.choose("#second", place["SEX"])
    assert len(page.texts("#marginal-chart h3")) == 5
    assert "only the table of all groups together" in page.texts("#marginal-note")[0]
    page.click("#marginal-box summary")
    assert len(names(page, "#marginal-box")) > 5
    page.choose("#second", "")
    assert page.texts("#marginal-chart h3") == []


def test_a_column_is_no_pair_with_itself(page):
    page.choose("#second", "2")
    page.choose("#column", "2")
    assert page.run("document.getElementById('second').value") == ""
    with pytest.raises(RuntimeError, match="no option"):
        page.choose("#second", "2")


# ---------------------------------------------------------------- the truth


def test_scores_are_in_the_table(chromium, with_truth):
    page = chromium.page(with_truth)
    heads = [text.strip() for text in page.texts("#groups-table thead th")]
    assert [name in heads for name in ("Score", "Distance of public table", "Distance of synthetic rows")] == [True] * 3
    place = heads.index("Score") + 1
    assert page.texts(f"#groups-table tbody tr > :nth-child({place})") == [
        "\u2013" if value is None else f"{value:.3f}" for value in data(page)["views"][-1]["score"]
    ]
    silent(page)


def test_the_papers_figure_has_a_mark_of_each_kind_a_group(chromium, with_truth):
    page = chromium.page(with_truth, *WIDE)
    assert page.texts('nav a[href="#paper"]') == ["Comparison with the truth"]
    found = data(page)
    view = found["views"][-1]
    order = sorted(range(8), key=lambda g: view["priorError"][g])
    assert names(page, "#paper-table") == [view["labels"][g] for g in order]
    marks = page.run(
        "[...document.querySelectorAll('#paper-chart g.pair')].map(e => [...e.querySelectorAll('g')].map(m =>"
        " { const b = m.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }))"
    )
    assert [len(pair) for pair in marks] == [2] * 8
    assert [pair[0][0] for pair in marks] == sorted(pair[0][0] for pair in marks)
    # on the screen, higher is a smaller number: heights go with the distances of both series
    errors = [view[key][g] for g in order for key in ("priorError", "syntheticError")]
    heights = [at[1] for pair in marks for at in pair]
    slope = (heights[0] - heights[-1]) / (errors[0] - errors[-1])
    assert slope < 0
    assert heights == pytest.approx([heights[0] + slope * (error - errors[0]) for error in errors], abs=1)
    legend = page.texts("#paper-legend span")
    for key, text in zip(("prior", "synthetic"), legend, strict=True):
        assert f"mean {found['truth'][key]:.3f}" in text
    assert page.run("document.querySelectorAll('#paper-chart path[stroke-dasharray]').length") == 2
    label = view["labels"][order[5]]
    page.click("#paper-chart g.pair", 5)
    assert page.texts(".chosen-group")[0] == label
    assert page.texts("#paper-table tr.chosen th") == [label]
    assert page.texts("#paper-chart g.pair.chosen title")[0].startswith(label)
    silent(page)


def test_marginals_have_the_true_rows_exactly_with_the_truth(chromium, plain, with_truth):
    page = chromium.page(with_truth, *WIDE)
    page.choose("#column", "1")
    page.choose("#group", "2,1")
    assert page.texts("#marginal-legend span")[-1] == "True rows"
    found = data(page)
    assert percents(page, 6) == [round(value / 100, 2) for value in found["views"][2]["columns"][1]["truth"][1]]
    page.choose("#second", "0")
    assert page.texts("#marginal-chart h3")[-1] == f"Synthetic rows {MINUS} true rows"
    silent(page)
    without = chromium.page(plain)
    assert "truth" not in data(without)["views"][-1]["columns"][0]
    assert without.run("document.getElementById('paper')") is None
    assert "True rows" not in without.run("document.body.innerText")


# ---------------------------------------------------------------- how sure


def test_standard_errors_are_said_to_come_from_a_model_whatever_is_shown(page):
    for group in ("0,0", "2,3"):
        page.choose("#group", group)
        said = " ".join(page.texts("#sure p"))
        assert "come from a model" in said
        assert "too small" not in said + page.texts("#marginal-note")[0]


# ---------------------------------------------------------------- the map


def test_the_map_looks_like_illinois_and_ohio(chromium, contest_map):
    page = chromium.page(contest_map)
    assert page.run("document.querySelectorAll('#map-chart path.place').length") == 181
    boxes = page.run(
        "[...MAP.outlines].map(([g, p]) => { const b = p.getBBox();"
        " return [D.views[D.map.view].labels[g], b.x, b.y, b.x + b.width, b.y + b.height]; })"
    )
    illinois, ohio = ([box[1:] for box in boxes if box[0].startswith(f"PUMA {state}-")] for state in (17, 39))
    assert len(illinois) + len(ohio) == 181
    west, east = max(box[2] for box in illinois), min(box[0] for box in ohio)
    assert west < east

    def shape(state):
        wide = max(box[2] for box in state) - min(box[0] for box in state)
        return wide / (max(box[3] for box in state) - min(box[1] for box in state))

    # On the ground Illinois is some 340 km by 630 km, Ohio 360 km by 370 km.
    assert shape(illinois) == pytest.approx(340 / 630, rel=0.1)
    assert shape(ohio) == pytest.approx(360 / 370, rel=0.1)
    silent(page)


def test_a_place_is_chosen_by_click_and_by_keys(chromium, contest_map):
    page = chromium.page(contest_map)
    page.click("#map-chart path.place", 40)
    chosen = page.run("STATE.group")
    label = data(page)["views"][1]["labels"][chosen]
    assert page.texts(".chosen-group")[0] == label
    assert page.run("document.querySelectorAll('path[aria-pressed=true]').length") == 1
    assert page.texts("#groups-table tr.chosen th") == [label]
    page.run("document.getElementById('zoom-all').focus()")
    page.press("Tab")
    assert page.run("document.activeElement.getAttribute('aria-label')").startswith(label)
    page.press("ArrowRight")
    other = page.run("document.activeElement.getAttribute('aria-label')")
    assert not other.startswith(label)
    assert page.texts("#map-said") == [other]
    page.press("Enter")
    assert other.startswith(page.texts(".chosen-group")[0])
    silent(page)


def test_colours_follow_the_measure(chromium, contest_map):
    page = chromium.page(contest_map)
    fills = "[...document.querySelectorAll('path.place')].map(p => p.getAttribute('fill'))"
    before = page.run(fills)
    page.choose("#measure", "totals")
    after = page.run(fills)
    assert before != after
    totals = data(page)["views"][1]["totals"]
    groups = page.run("[...MAP.outlines.keys()]")
    dark = [totals[g] for g, fill in zip(groups, after, strict=True) if fill == "#440154"]
    light = [totals[g] for g, fill in zip(groups, after, strict=True) if fill == "#fde725"]
    assert min(dark) > max(light)
    assert 3 <= len(page.texts("#map-legend span")) <= 6
    whole = page.run("MAP.picture.getAttribute('viewBox')")
    page.click("#zoom-in")
    assert page.run("MAP.picture.viewBox.baseVal.width") == pytest.approx(float(whole.split()[2]) / 2, rel=0.01)
    page.click("#zoom-all")
    assert page.run("MAP.picture.getAttribute('viewBox')") == whole
    silent(page)


# ---------------------------------------------------------------- phones, keyboards, paper

OUTSIDE = (
    "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&"
    " !e.closest('.scroll') && !e.closest('.skip')).map(e => e.outerHTML.slice(0, 80))"
)


@pytest.mark.parametrize("width", [390, 768, 1200])
def test_no_page_scrolls_sideways(chromium, with_truth, width):
    page = chromium.page(with_truth, width, 844)
    for column, second in (("0", ""), ("0", "4")):
        page.choose("#column", column)
        page.choose("#second", second)
        page.settle()
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run(OUTSIDE) == []
    silent(page)


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_text_of_a_chart_is_cut_off(chromium, with_truth, tmp_path, width):
    """Nor "100 %" at the end of the budget's axis, where one level had it all."""
    cut = (
        "[...document.querySelectorAll('#budget-chart svg, #paper-chart svg, #marginal-chart svg')].flatMap(s =>"
        " [...s.querySelectorAll('text')].filter(t => { const [a, b] = [t, s].map(e => e.getBoundingClientRect());"
        " return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1; }).map(t => t.textContent))"
    )
    for path in (with_truth, write_report(whole_releases.nasty(tmp_path))):
        page = chromium.page(path, width, 844)
        page.settle()
        assert page.run(cut) == []
    assert "100 %" in page.texts("#budget-chart text")


def test_boxes_say_that_there_is_more_of_them(chromium, contest_map):
    """Exactly those that scroll, and no longer at their end."""
    page = chromium.page(contest_map, *PHONE)
    page.settle()
    boxes = page.run(
        "[...document.querySelectorAll('.scroll')].filter(b => b.clientHeight).map(b => [b.getAttribute('aria-label'),"
        " b.scrollHeight - b.clientHeight > 4, b.scrollWidth - b.clientWidth > 4,"
        " b.parentNode.classList.contains('below'), b.parentNode.classList.contains('right'),"
        " b.closest('.frame').querySelector('.more').offsetHeight > 0])"
    )
    assert page.run("document.querySelectorAll('.frame').length === document.querySelectorAll('.scroll').length")
    assert [box[1:3] for box in boxes] == [box[3:5] for box in boxes]
    assert [box[1] or box[2] for box in boxes] == [box[5] for box in boxes]
    assert {box[0]: box[1] for box in boxes}["Groups, table"]
    line = "#groups .more"
    assert "scroll for more rows" in page.texts(line)[0]
    page.run("document.querySelector('#groups .scroll').scrollTo({left: 1e6, top: 1e6, behavior: 'instant'})")
    page.settle()
    assert page.texts(line) == ["end of the table"]
    page.write("#filter", data(page)["views"][1]["labels"][3].split("-")[-1])
    page.settle()
    assert page.run("document.querySelector('#groups .shaded').classList.contains('below')") is False
    silent(page)


def test_on_a_phone_the_budget_needs_no_scrolling(chromium, plain):
    page = chromium.page(plain, *PHONE)
    box = "document.querySelector('#budget-table').closest('.scroll')"
    assert page.run(f"{box}.scrollWidth <= {box}.clientWidth")
    said = "[...document.querySelectorAll('#budget-table tr:nth-child(1) td')]"
    assert page.run(f"{said}.map(e => getComputedStyle(e, '::before').content.slice(1, -1))") == [
        *["Question about each group", "Share of budget", "Cost", "Noise", "In plain words"]
    ]


def test_the_map_fits_a_phone(chromium, contest_map):
    page = chromium.page(contest_map, *PHONE)
    assert page.run("document.documentElement.scrollWidth") <= PHONE[0]
    assert page.run(OUTSIDE) == []
    assert page.run("document.querySelector('#map-chart svg').clientHeight") > 150


def test_charts_are_drawn_again_when_a_phone_is_turned(chromium, plain):
    page = chromium.page(plain, *PHONE)
    before = page.run("document.querySelector('#marginal-chart svg').getAttribute('width')")
    page.resize(844, 390)
    page.settle()
    assert int(page.run("document.querySelector('#marginal-chart svg').getAttribute('width')")) > int(before)
    silent(page)


def test_everything_is_named_and_reachable(page):
    """Fields have labels, headings a scope, and the first Tab leads to the link past the head."""
    fields = "[...document.querySelectorAll('select, input')]"
    assert page.run(f"{fields}.every(e => e.labels.length === 1)")
    assert page.run("[...document.querySelectorAll('th')].every(e => e.scope)")
    assert page.run("[...document.querySelectorAll('table')].every(e => e.caption)")
    assert page.run("[...document.querySelectorAll('svg[role=img]')].every(e => e.querySelector('title'))")
    titles = "[...document.querySelectorAll('[aria-labelledby]')].map(e => e.getAttribute('aria-labelledby'))"
    assert page.run(f"{titles}.every(name => document.getElementById(name))")
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    assert page.run("document.activeElement.getBoundingClientRect().left") >= 0
    page.press("Enter")
    assert page.run("document.activeElement.id") == "main"
    page.run("document.querySelector('#groups-table thead button').focus()")
    page.press("Enter")
    assert page.run("document.querySelector('#groups-table thead th').ariaSort") == "ascending"


def test_on_paper(chromium, with_truth):
    page = chromium.page(with_truth)
    page.send("Emulation.setEmulatedMedia", media="print")
    page.resize(720, 1000)
    page.settle()
    assert page.run("document.documentElement.scrollWidth") <= 720
    hidden = "['.chooser', 'nav', '#filter', '#heat-table'].map(s => document.querySelector(s).offsetParent === null)"
    assert page.run(hidden) == [True] * 4
    assert page.run(
        "document.querySelector('#groups-table').closest('.scroll').scrollHeight"
        " <= document.querySelector('#groups-table').closest('.scroll').clientHeight + 1"
    )
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert len(paper) > 20_000
    silent(page)
