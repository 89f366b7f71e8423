"""The site builds without a warning, asks no other machine for anything, and can be searched from a folder."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a browser fetches by itself; an `a` is followed by people.
FETCHED = {"src", "srcset", "data", "poster", "href"}
ELSEWHERE = re.compile(r"^\s*(\w+:)?//", re.ASCII)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", place, "-f", ROOT / "mkdocs.yml"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


class Fetched(HTMLParser):
    """The addresses that a browser asks for when it shows a page."""

    def __init__(self):
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag != "a":
            self.addresses += [value for name, value in attrs if name in FETCHED and value]


def test_every_page_is_built_and_asks_no_other_machine(site):
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= {page.stem for page in site.glob("*.html")}
    for page in site.rglob("*.html"):
        parser = Fetched()
        parser.feed(page.read_text("utf-8"))
        assert parser.addresses
        elsewhere = [each for each in parser.addresses if ELSEWHERE.match(each) and not each.startswith("data:")]
        assert elsewhere == [], page.name
    for sheet in site.rglob("*.css"):
        named = re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", sheet.read_text("utf-8"))
        assert [each for pair in named for each in pair if ELSEWHERE.match(each)] == [], sheet.name


def test_pages_take_the_reference_from_the_code(site):
    assert "--max-rows-per-person" in (site / "plan.html").read_text("utf-8")
    python = (site / "measure.html").read_text("utf-8")
    assert 'id="prade.Budget"' in python
    assert "noise_scale" in python
    assert re.search(r'class="highlight"><pre>.*>&gt;&gt;&gt; </span>.*>Budget<', python)  # an example is code
    for page in site.glob("*.html"):
        assert not re.search(r"<!-- help: |::: prade", page.read_text("utf-8")), page.name


def test_search_works_from_a_folder(site, tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("Chromium is absent: install Debian's package chromium to run this test")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    command += ["--virtual-time-budget=20000", "--dump-dom", f"{(site / 'index.html').as_uri()}?q=ledger"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout
    assert "matching documents" in shown
    assert re.search(r'href="[^"]*(file-formats|command-line|recipes)\.html[^"]*" class="md-search-result__', shown)
