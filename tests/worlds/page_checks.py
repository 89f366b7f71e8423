"""What every page is held to in a browser: silence, no request, names and contrast, nothing outside the window."""

import json
import time
from importlib.resources import files

PATIENCE = 20.0
OUTSIDE = (
    "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&"
    " !e.closest('.scroll, .wide-chart, .skip, .visually-hidden')).map(e => e.outerHTML.slice(0, 80))"
)
CUT = (
    "[...document.querySelectorAll('.plot svg')].flatMap(s => [...s.querySelectorAll('text')].filter(t => {"
    " const [a, b] = [t, s].map(e => e.getBoundingClientRect());"
    " return a.width && (a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1); })"
    ".map(t => t.textContent))"
)


def until(page, script):
    """Wait until a JavaScript expression is true."""
    end = time.monotonic() + PATIENCE
    while not page.run(script):
        assert time.monotonic() < end, f"not true within {PATIENCE:g} seconds: {script}"
        time.sleep(0.02)
    page.settle()


def drawn(page):
    """Wait until every chart of the page is drawn."""
    until(page, "[...CHARTS.values()].every(each => each.drawn) && CHARTS.size > 0")


def seconds_to_open(page):
    """The time that the page's thread works until every chart is drawn, however busy the machine is."""

    def worked():
        metrics = page.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    page.send("Performance.enable", timeDomain="threadTicks")
    before = worked()
    page.run("window.old = true")
    page.send("Page.reload")
    until(page, "window.old === undefined && document.readyState === 'complete'")
    drawn(page)
    return worked() - before


def silent(page):
    """No error, no warning, and nothing asked for except the file itself and what it makes."""
    page.settle()
    assert page.complaints == []
    assert {url for url in page.requests if not url.startswith(("data:", "blob:"))} == {page.url}


def mode(page, scheme="light", media=""):
    """Show the page as for people who prefer light or dark, on a screen or on paper."""
    page.send("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.settle()


def accessibility(page, scheme="light"):
    """What axe-core finds wrong in the opened-up page: each rule, with the first elements that break it."""
    mode(page, scheme)
    page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.settle()
    page.run((files("axe_core_python") / "axe.min.js").read_text("utf-8") + "; 0")
    found = page.run("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {json.dumps([node['html'][:160] for node in each['nodes'][:3]])}" for each in found]


def downloads(page, folder):
    """Save what the page offers in a folder."""
    page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))


def arrived(folder, name):
    """The content of a file that was saved, once all of it is there."""
    end = time.monotonic() + PATIENCE
    while not (folder / name).exists():
        assert time.monotonic() < end, f"{name} was not saved; there are {[each.name for each in folder.iterdir()]}"
        time.sleep(0.05)
    return (folder / name).read_bytes()
