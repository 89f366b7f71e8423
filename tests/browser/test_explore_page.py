"""The page about rehearsed budgets in a real browser: every control works, by mouse and by keyboard, on any screen."""

import copy

import numpy as np
import pytest

from prade.reporting.html import write_explore
from worlds.page_checks import CUT, OUTSIDE, accessibility, arrived, downloads, drawn, mode, silent, until
from worlds.rehearsals import explored, hostile

WIDE, PHONE = (1400, 900), (390, 844)
HOSTILE = '</script><img src="x" onerror="alert(1)">&amp;{{ 1 }}'
EDUC = 4


@pytest.fixture(scope="module")
def data():
    return explored()


@pytest.fixture(scope="module")
def written(data, tmp_path_factory):
    return write_explore(data, tmp_path_factory.mktemp("explore") / "explore.html")


@pytest.fixture
def page(chromium, written):
    found = chromium.page(written, *WIDE)
    drawn(found)
    yield found
    silent(found)


def opened(chromium, path, size=WIDE):
    found = chromium.page(path, *size)
    drawn(found)
    return found


def named(chart):
    return f"document.querySelector('#{chart} svg').getAttribute('aria-label')"


def table(page, chart):
    """The rows of the table below a chart."""
    return page.run(
        f"[...document.querySelectorAll('#{chart} tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )


def test_opens_with_the_answer_on_top(page, data):
    assert page.run("document.title") == "What does epsilon buy? census-like survey"
    assert page.texts("h1") == ["What does epsilon buy?"]
    assert page.texts("#elbow") == [data["elbow"]]
    assert page.texts("#caveats li") == data["caveats"]
    assert page.run("document.getElementById('caveats').compareDocumentPosition(document.getElementById('main')) & 4")
    assert "No private row was read, and nothing was spent." in page.texts("header .lead")[0]
    assert page.texts("#now") == ["epsilon = 3"]
    assert page.texts("#budgets tr.chosen .badge") == ["suggested"]
    assert len(page.texts("main section h2")) == 6
    assert page.run("document.querySelectorAll('.plot svg').length") == 3


def test_hostile_names_are_texts(chromium, tmp_path):
    page = opened(chromium, write_explore(hostile(HOSTILE), tmp_path / "explore.html"))
    assert page.run("document.querySelectorAll('img').length") == 0
    assert HOSTILE in page.run("document.title")
    assert page.texts("#caveats li")[1] == HOSTILE
    assert page.texts("#column option")[0] == HOSTILE
    assert page.texts("#where option")[0].startswith(HOSTILE)
    assert HOSTILE in page.texts("#asks li")
    assert table(page, "shares")[1][0] == HOSTILE
    assert HOSTILE in page.texts("#pair-table tbody th")
    assert HOSTILE in page.run(named("shares"))
    assert page.run("address.read().column") == HOSTILE
    assert accessibility(page) == []
    silent(page)


def shown_budget(page):
    """What the page shows about the chosen budget."""
    return {
        "now": page.texts("#now")[0],
        "said": page.run("document.getElementById('budget').getAttribute('aria-valuetext')"),
        "headings": {text.split("epsilon = ")[1] for text in page.texts("h2") if "epsilon = " in text},
        "row": page.texts("#budgets tr.chosen button"),
        "error": page.texts("#tiles .value")[0],
        "command": page.texts("#command")[0],
        "file": page.texts("#save-plan")[0],
        "kept": page.run("address.read().epsilon"),
    }


def test_the_slider_moves_by_keys_a_row_chooses_and_everything_follows(page, data):
    page.run("document.getElementById('budget').focus()")
    for key, place in (("ArrowLeft", 2), ("ArrowLeft", 1), ("ArrowRight", 2), ("ArrowUp", 3), ("ArrowRight", 4)):
        page.press(key)
        budget = data["budgets"][place]
        epsilon = budget["epsilon"]
        until(page, f"{named('shares')}.endsWith('epsilon = {epsilon}') && {named('pairs')}.endsWith('= {epsilon}')")
        assert shown_budget(page) == {
            "now": f"epsilon = {epsilon}",
            "said": f"epsilon = {epsilon}",
            "headings": {epsilon},
            "row": [epsilon],
            "error": f"{budget['expected']['error']:.3f}",
            "command": budget["command"],
            "file": f"Save plan-{epsilon}.toml",
            "kept": epsilon,
        }
        assert page.texts("#unmeasured li") == budget["not_measured"]
        assert page.texts("#asks li") == [part for ask in budget["measured"] for part in ask["parts"]]
        assert set(page.texts("#advice")[0].split(". ")) <= set(budget["advice"].split(". "))
    assert page.run("document.activeElement.id") == "budget"
    page.click("#budgets tbody button", 0)
    assert shown_budget(page)["command"] == data["budgets"][0]["command"]
    assert page.texts("#live") == ["Chosen: epsilon = 0.1"]


def test_a_places_shares_are_those_of_the_data(page, data):
    found = data["places"][2]
    page.choose("#where", "2")
    assert page.texts("#live") == [f"Shown: {found['label']}"]
    page.choose("#column", str(EDUC))
    assert page.texts("#live") == ["Shown: Education"]
    page.click("#budgets tbody button", 4)
    until(page, f"{named('shares')}.startsWith('Education in {found['label']}') && {named('shares')}.endsWith('= 10')")
    start = sum(len(column["labels"]) for column in data["columns"][:EDUC])
    stop = start + len(data["columns"][EDUC]["labels"])
    rows, of_budget = table(page, "shares"), data["budgets"][4]["tables"][2]
    assert [row[0] for row in rows] == data["columns"][EDUC]["labels"]
    kinds = [found["truth"], found["public"], *(of_budget[key] for key in ("noisy", "estimate", "sd", "synthetic"))]
    for place, values in enumerate(kinds):
        numbers = [float(row[place + 1].replace("\u2212", "-")) for row in rows]
        assert numbers == pytest.approx(values[start:stop], rel=1e-3)
    assert page.run("document.querySelectorAll('#shares .mark-symbol.role-mark path').length") == 4 * len(rows)


def test_columns_and_pairs_are_listed_worst_first_and_sort(page, data):
    budget = data["budgets"][3]
    for box, worst in (
        ("#column-table", max(budget["column_errors"])),
        ("#pair-table", np.nanmax(np.array(budget["pair_errors"], dtype=float))),
    ):
        errors = [float(text) for text in page.texts(f"{box} tbody td:nth-child(4)")]
        assert errors == sorted(errors, reverse=True)
        assert errors[0] == round(float(worst), 3)
        page.run(f"document.querySelector('{box} thead th:nth-child(3) button').focus()")
        for key, order in (("Enter", "descending"), (" ", "ascending")):
            page.press(key)
            prior = [float(text) for text in page.texts(f"{box} tbody td:nth-child(3)")]
            assert prior == sorted(prior, reverse=order == "descending")
            assert page.run(f"document.querySelector('{box} thead th:nth-child(3)').ariaSort") == order
    for place, levels in ((4, "STATE+PLACE"), (0, "not measured")):
        page.click("#budgets tbody button", place)
        assert set(page.texts("#column-table tbody td:nth-child(2)")) == {levels}


def test_plans_are_saved_and_commands_copied(page, data, tmp_path):
    downloads(page, tmp_path)
    for place in (0, 4):
        page.click("#budgets tbody button", place)
        page.click("#save-plan")
        content = arrived(tmp_path, data["budgets"][place]["file"]).decode()
        assert content == data["budgets"][place]["plan"]
    page.click("#copy")
    until(page, "document.getElementById('live').textContent.includes('command')")
    assert page.run("getSelection().toString().trim()") == data["budgets"][4]["command"]
    page.click("#run summary")
    assert page.texts("#plan") == [data["budgets"][4]["plan"].strip()]


def test_another_kind_of_budget_a_fraction_a_loss_and_nothing_measured(chromium, data, tmp_path):
    other = copy.deepcopy(data) | {"symbol": "rho", "recommended": None, "elbow": None, "caveats": []}
    budget = other["budgets"][2]
    budget.update(epsilon="1/3", amount=1 / 3, budget="rho = 1/3 (zero-concentrated differential privacy)")
    budget.update(advice=f"Wait. {data['rehearsal']}", worthwhile=False, measured=[])
    budget["not_measured"] = [column["name"] for column in data["columns"]]
    budget["expected"].update(error=0.35, prior=0.339, gain=-0.011)
    page = opened(chromium, write_explore(other, tmp_path / "explore.html"))
    assert page.texts("h1") == ["What does rho buy?"]
    assert page.run("[document.getElementById('caveats'), document.getElementById('elbow')]") == [None, None]
    assert page.texts("#now") == ["rho = 1/3"]  # the middle one, where none is suggested
    assert page.texts("#kind") == [budget["budget"]]
    assert page.texts("#budgets thead th")[0] == "Rho"
    assert [row[0] for row in table(page, "curve")][4:6] == ["0.3333", "0.3333"]
    assert page.texts("#budgets .badge") == ["not worth it"] * 3
    assert page.texts("#asks") == ["Nothing: the result is the public table."]
    assert page.texts("#tiles .title")[1] == "Worse than the public table"
    assert page.texts("#tiles .value")[1:3] == ["3 %", "0 of 6"]
    assert page.texts("#advice") == ["Wait."]  # without what holds for all budgets
    page.click("#budgets tbody button", 4)
    assert page.texts("#tiles .title")[1] == "Better than the public table"
    assert "epsilon" not in page.run("document.body.innerText").lower().split("rehearsed")[0]
    silent(page)


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", PHONE)])
def test_names_and_contrast_and_nothing_is_cut_off(chromium, written, scheme, size):
    page = opened(chromium, written, size)
    assert accessibility(page, scheme) == []
    for column in ("0", str(EDUC)):
        page.choose("#column", column)
        drawn(page)
        assert page.run("document.documentElement.scrollWidth") <= size[0]
        assert page.run(OUTSIDE) == page.run(CUT) == []
    silent(page)


def contrast(first, second):
    """The contrast of two colours as CSS computes them (WCAG 2)."""

    def light(colour):
        parts = [int(each) / 255 for each in colour[4:-1].split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(first), light(second)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_charts_stand_out(page, scheme):
    """axe-core does not look at marks of charts: 3 for graphics, 4.5 for texts."""
    mode(page, scheme)
    colour = (
        "(name => { const e = make(document.body, 'i'); e.style.color = `var(--${name})`;"
        " const c = getComputedStyle(e).color; e.remove(); return c; })"
    )
    ground = page.run(f"{colour}('ground')")
    for least, names in ((3, ("public", "noisy", "estimate", "synthetic", "truth")), (4.5, ("quiet", "ink", "accent"))):
        for name in names:
            assert contrast(page.run(f"{colour}('{name}')"), ground) >= least, name
