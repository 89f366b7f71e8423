"""The report: its numbers against other ways to them, its map, its words, and the file it becomes."""

import json
import math
import re
import shutil
import stat
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from prade import Ask, DataError, Level, Release, Schema, Workload
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Prior
from prade.data.read.tables import read_table, write_table
from prade.estimating.levels.cell_counts import NINETY_FIVE
from prade.estimating.levels.estimates import Estimates, kept_estimates
from prade.measuring.run import measure
from prade.pipeline import sample
from prade.privacy.noise_law import LAPLACE
from prade.queries.parts import Marginal
from prade.reporting.facts import facts_of, precision_of, public_factors
from prade.reporting.html import plain, unpacked
from prade.reporting.outlines import IncompleteMap
from prade.reporting.page_data import data_of
from prade.reporting.report import REPORT, report, report_data, report_path
from prade.reporting.statements import budget_of, once_in_twenty, promise_of
from prade.reporting.truth import coded_rows, true_rows, truth_of
from prade.sampling.table import sample_groups
from prade.scoring.evaluation import PublicBaseline, evaluate
from prade.scoring.score import chosen_pairs
from worlds import survey
from worlds.commands import call
from worlds.outlines import geojson, square
from worlds.plans import ledger_for, plan_of
from worlds.reference import pair_distances
from worlds.releases import write_rows
from worlds.survey import AGE, PERHAPS_WORK, PLACE, SEX, STATE, THREE_PLACES
from worlds.whole_releases import released

SCHEMA = Schema([STATE, PLACE, AGE, SEX, PERHAPS_WORK])
ONES, PAIR = Workload.all_marginals(SCHEMA, 1), Workload.marginals(SCHEMA, [("WORK", "AGE")])
LEVELS = [Level("STATE", Ask(ONES, 1), total=1), Level("PLACE", [Ask(ONES, 2), Ask(PAIR, 1)], total=0)]


def people(seed, states):
    return survey.people(seed, states, 600, unknown=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release with public rows of one of its states, and the private table beside it."""
    home = tmp_path_factory.mktemp("world")
    plan = plan_of(SCHEMA, *LEVELS, groups=THREE_PLACES, budget=3)
    private = people(1, [1, 2])
    nowhere = (np.array(private["STATE"]) == 2) & (np.array(private["PLACE"]) == "q")
    write_table(private.filter(~nowhere), home / "private.parquet")
    release = measure(plan, home / "private.parquet", home / "release", ledger_for(plan, home / "prade.ledger"))
    write_rows(sample(release, people(2, [1, 3])), release)
    return home


@pytest.fixture(scope="module")
def release(folder):
    return Release.load(folder / "release")


@pytest.fixture(scope="module")
def estimates(release):
    return kept_estimates(release)


@pytest.fixture(scope="module")
def drawn(release):
    return coded_rows(release.plan, release.path / "synthetic.parquet")


@pytest.fixture(scope="module")
def facts(estimates, drawn):
    return facts_of(estimates, drawn)


def test_shares_and_their_intervals_are_those_that_are_answered(facts, estimates):
    """At every level answers are sums over the last level's groups."""
    data = data_of(estimates, facts)
    for view, found in zip(facts.views, data["views"], strict=True):
        precision = precision_of(estimates, facts.parts[: len(SCHEMA.coded)], view, {})
        for column, word in zip(data["columns"], found["basis"], strict=True):
            at = slice(*column["cells"])
            table = estimates.marginal(column["name"], view.by)
            np.testing.assert_allclose(view.shares["estimate"][:, at].ravel(), table["share"].to_numpy(), atol=1e-12)
            assert {word} == set(table["basis"].to_pylist())
            # how cells vary between groups is cut to its positive part: of all columns here, of one there
            np.testing.assert_allclose(precision.sd[:, at].ravel(), table["sd"].to_numpy(), rtol=0.1)
            np.testing.assert_allclose(unpacked(found["rowsHigh"])[:, at].ravel(), table["high"], rtol=0.05, atol=1)
            middle = unpacked(found["rowsLow"])[:, at] + unpacked(found["rowsHigh"])[:, at]
            inside = (table["low"].to_numpy() > 0).reshape(middle.shape)
            np.testing.assert_allclose(middle[inside] / 2, table["count"].to_numpy()[inside.ravel()], atol=1)
            low, high = (unpacked(found[end])[:, at] for end in ("low", "high"))
            share, half = view.shares["estimate"][:, at], NINETY_FIVE * precision.sd[:, at]
            np.testing.assert_allclose(low, np.maximum(share - half, 0), atol=1e-5)
            np.testing.assert_allclose(high, np.minimum(share + half, 1), atol=1e-5)


def test_expected_errors_and_widths_by_hand(facts, estimates):
    """The sum of expected absolute errors; the width of the interval that is answered."""
    data = data_of(estimates, facts)
    last = data["views"][-1]
    sd = precision_of(estimates, facts.parts[: len(SCHEMA.coded)], facts.views[-1], {}).sd
    errors = [[sd[g, slice(*c["cells"])].sum() * math.sqrt(2 / math.pi) for c in data["columns"]] for g in range(3)]
    assert last["error"] == pytest.approx(np.mean(errors, axis=1), abs=1e-3)
    assert [c["error"] for c in data["columns"]] == pytest.approx(np.mean(errors, axis=0), abs=1e-3)
    for column in data["columns"]:
        table = estimates.marginal(column["name"], ["STATE", "PLACE"])
        width = np.median(table["high"].to_numpy() - table["low"].to_numpy())
        assert column["width"] == pytest.approx(width, rel=0.1)


def test_priors_are_those_of_the_estimates(estimates):
    """One by one, as `GroupPriors` makes them: with public rows of their own or without."""
    public = estimates.public
    for priors, factors in zip(estimates.priors[1:], public_factors(estimates), strict=True):  # those of the plan
        mine = [priors.weights(g) for g in range(len(priors.recurs))]
        np.testing.assert_allclose(public.observed_weights * factors[:, public.group], mine, rtol=1e-12)
    assert estimates.priors[-1].recurs.tolist() == [True, True, False]


def pair_in(data, view, *pair):
    """The tables of a pair in a view, or None if the view does not have it."""
    kept = data["pairs"][view]
    if list(pair) not in kept["index"]:
        return None
    number = kept["index"].index(list(pair))
    at = slice(kept["starts"][number], kept["starts"][number + 1])
    series = {name: unpacked(entry)[:, at] for name, entry in kept.items() if isinstance(entry, dict)}
    return {**series, "basis": kept["basis"][number]}


def test_pairs_are_kept_whole_and_by_group_where_asked(facts, estimates, monkeypatch):
    """WORK x AGE was measured by place; a pair that was not has no table under the name of a place."""
    data = data_of(estimates, facts)
    assert [entry["index"] for entry in data["pairs"]] == [[[0, 1], [0, 2], [1, 2]], [[0, 2]], [[0, 2]]]
    for view, by, word in ((0, (), "summed"), (1, ("STATE",), "summed"), (2, ("STATE", "PLACE"), "measured")):
        found, table = pair_in(data, view, 0, 2), estimates.marginal(["AGE", "WORK"], by)
        assert found["basis"] == word
        np.testing.assert_allclose(found["estimate"].ravel(), table["share"].to_numpy(), atol=1e-4)
        half = NINETY_FIVE * table["sd"].to_numpy()
        low, high = np.maximum(table["share"].to_numpy() - half, 0), np.minimum(table["share"].to_numpy() + half, 1)
        np.testing.assert_allclose(found["low"].ravel(), low, rtol=0.02, atol=1e-4)
        np.testing.assert_allclose(found["high"].ravel(), high, rtol=0.02, atol=1e-4)
    counts = facts.views[2].noisy_shares(PAIR[0]).reshape(3, 4, 4).transpose(0, 2, 1).reshape(3, 16)
    np.testing.assert_allclose(pair_in(data, 2, 0, 2)["noisy"], np.clip(counts, 0, 1), atol=1e-4)
    assert np.isnan(pair_in(data, 0, 0, 1)["noisy"]).all()
    monkeypatch.setattr("prade.reporting.page_data.MOST_NUMBERS", 100)
    assert pair_in(data_of(estimates, facts), 2, 0, 2) is None
    monkeypatch.setattr("prade.reporting.page_data.LARGEST_PAIR", 10)
    assert data_of(estimates, facts)["pairs"][0]["index"] == [[0, 1], [1, 2]]


def test_the_public_tables_distance_is_that_of_the_public_baseline(estimates, release, folder, drawn):
    """As the score, the tiles and the heat map have it: a place's own public rows, or else all of them."""
    found = truth_of(estimates, folder / "private.parquet", drawn)
    true, group = coded_rows(release.plan, folder / "private.parquet")
    public, pairs = estimates.public.prior, chosen_pairs(SCHEMA.coded)
    baseline = PublicBaseline(estimates.public, RecurringGroups.of(estimates.public.groups, release.plan.groupings[-1]))
    assert [baseline.own(g).any() for g in range(3)] == [True, True, False]
    for g in range(3):
        alone = Prior(SCHEMA, public.codes, baseline.weights(g) / baseline.weights(g).sum())
        assert found.public.groups[g] == pytest.approx(
            pair_distances(true.take(np.flatnonzero(group == g)), alone, pairs).mean()
        )
    scored = evaluate(
        *(folder / "private.parquet", release.path / "synthetic.parquet", SCHEMA, ["STATE", "PLACE"]),
        groups=THREE_PLACES,
        public=people(2, [1, 3]),
        choices=None,
    )
    assert found.public.error == pytest.approx(scored.public.error)


def test_the_truth_may_be_several_files(release, folder, tmp_path):
    """Each is read by itself, as text or as numbers: a glob gives what one file gives."""
    whole = read_table(folder / "private.parquet")
    write_table(whole.slice(0, 250), tmp_path / "part-1.csv")
    write_table(whole.slice(250), tmp_path / "part-2.parquet")
    coded, number = true_rows(release.plan, folder / "private.parquet")
    for given in (f"{tmp_path}/part-*", [tmp_path / "part-1.csv", f"{tmp_path}/part-[2]*"]):
        again, group = true_rows(release.plan, given)
        assert (group == number).all()
        assert all((again.codes[name] == coded.codes[name]).all() for name in SCHEMA.coded)
    assert len(true_rows(release.plan, whole)[1]) == len(whole)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("duckdb://people.db/secret", r"from files only, but duckdb://\.\.\. is the address of a database: give a"),
        ("no-such-*.parquet", r"there is no file no-such-\*\.parquet"),
    ],
)
def test_a_truth_that_cannot_be_read_is_said(release, given, message):
    with pytest.raises(DataError, match=message) as caught:
        true_rows(release.plan, given)
    assert "secret" not in str(caught.value)


def test_a_truth_of_other_places_is_refused(estimates, drawn):
    with pytest.raises(DataError, match="no row of the truth is in a group"):
        truth_of(estimates, people(5, [77]), drawn)


def test_true_shares_are_those_of_the_file(estimates, folder, drawn):
    """By group and together, of one column and of two; rows in no group of the release do not count."""
    truth = truth_of(estimates, pa.concat_tables([read_table(folder / "private.parquet"), people(5, [77])]), drawn)
    facts = facts_of(estimates, drawn, truth.rows)
    rows = read_table(folder / "private.parquet").to_pylist()
    mine = [row["SEX"] == 2 for row in rows if (row["STATE"], row["PLACE"]) == (1, "q")]
    at = facts.at(Marginal.of(SCHEMA, ["SEX"]))
    np.testing.assert_allclose(facts.views[2].shares["truth"][1, at], [1 - np.mean(mine), np.mean(mine)])
    np.testing.assert_allclose(facts.views[0].shares["truth"][0, at][1], np.mean([row["SEX"] == 2 for row in rows]))
    synthetic = read_table(estimates.release.path / "synthetic.parquet").to_pylist()
    share = np.mean([row["SEX"] == 2 for row in synthetic if (row["STATE"], row["PLACE"]) == (1, "q")])
    np.testing.assert_allclose(facts.views[2].shares["synthetic"][1, at], [1 - share, share])
    young = np.mean([row["AGE"] < 18 and row["SEX"] == 2 for row in rows])
    data = data_of(estimates, facts, truth)
    assert pair_in(data, 0, 0, 1)["truth"][0, 1] == pytest.approx(young, abs=1e-4)
    assert data["truth"]["prior"] == pytest.approx(truth.public.groups.mean())
    assert data["truth"]["synthetic"] == pytest.approx(truth.public.synthetic.mean())


def test_once_in_twenty_holds_for_whole_numbers():
    """Discrete Laplace: P(|X| > t) = 2 a^(t + 1) / (1 + a), a = exp(-1 / b)."""
    for scale in (Fraction(1, 3), Fraction(2), Fraction(27), Fraction(4000)):
        off, a = once_in_twenty(LAPLACE, scale), math.exp(-1 / float(scale))
        assert 2 * a ** (off + 1) / (1 + a) <= 0.05
        assert off < 3 or 2 * a ** (0.6 * off) / (1 + a) > 0.05


def test_the_page_says_what_a_synthetic_row_is(release, folder, tmp_path):
    """All rows have the values of a public row; rows from elsewhere do not say how many."""
    said = re.search(r'<p id="copies">.*?</p>', report(release, tmp_path / "page.html").read_text())[0]
    assert "100 % of the rows have, in every column but those of groups and person ids, the values of one" in said
    assert "No value in them comes from the private table" in said
    old = Release.load(shutil.copytree(folder / "release", tmp_path / "old"))
    write_rows(read_table(old.path / "synthetic.parquet").replace_schema_metadata(None), old)
    assert "was not recorded" in report(old, tmp_path / "old.html").read_text()


def test_the_promise_is_the_releases(release):
    found = promise_of(release)
    assert found["promise"] == release.plan.unit.promise()
    assert "\n".join(found["account"]) == release.account()
    asks = [ask for level in budget_of(release.plan) for ask in level["asks"]]
    assert sum(ask["share"] for ask in asks) == pytest.approx(1)
    assert [ask["kind"] for ask in asks] == [*["number of rows", "one-way tables", "one-way tables", "two-way tables"]]
    assert asks[3]["what"] == "the table of WORK x AGE"
    assert re.search(r"^Each count in 3 one-way tables is off by more than \d+ rows", asks[1]["words"])


def data_in(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_a_report_is_one_file_that_asks_for_nothing(release, tmp_path):
    path = report(release, tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]
    # Scripts hold addresses as texts (Vega's, for other pages); the policy (test_html.py) lets none be asked for.
    markup = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r'(?:src|href|action)="(?!#|data:)[^"]*"', markup) == []
    assert re.findall(r"https?://[^\s\"'<]+", markup) == []
    assert "not private" not in text.lower()
    assert data_in(path)["truth"] is None
    again = report(kept_estimates(release), tmp_path / "again.html")
    assert again.read_bytes() == path.read_bytes()


KEYS = "headline tiles caveats use careful diagnosis columns views noun pairs map largestPair budget promise provenance"
SERIES = {"public", "noisy", "estimate", "synthetic", "low", "high", "basis"}


def test_json_has_what_the_page_shows_and_numbers_as_lists(release, tmp_path):
    """The keys that readers of the file rely on; the same numbers as on the page."""
    page = data_in(report(release, tmp_path / "page.html"))
    data = json.loads(report(release, tmp_path / "data.json", as_json=True).read_text(encoding="utf-8"))
    assert set(data) == {*KEYS.split(), "methodology", "truth"}
    view_keys = {"name", "by", "labels", "totals", "rowsLow", "rowsHigh"} | SERIES
    assert all(set(view) >= view_keys for view in data["views"])
    assert all(set(pairs) == {"index", "starts"} | SERIES for pairs in data["pairs"])
    assert [set(tile) for tile in data["tiles"]] == [{"title", "value", "note", "tone"}] * 4
    assert data == plain(page)
    assert np.shape(data["views"][2]["estimate"]) == (3, 10)
    np.testing.assert_allclose(data["views"][2]["estimate"], unpacked(page["views"][2]["estimate"]), atol=1e-6)


def test_names_tell_what_may_be_published(release, folder):
    assert report(folder / "release") == release.path / REPORT
    private = report(release, truth=folder / "private.parquet")
    assert private == folder / "release-not-private.html"
    written = report(release, folder / "truth.json", truth=folder / "private.parquet", as_json=True)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (private, written)] == [0o600, 0o600]
    assert stat.S_IMODE((release.path / REPORT).stat().st_mode) != 0o600
    text = private.read_text(encoding="utf-8")
    assert "This page is NOT private and must not be published." in text
    assert "<title>NOT PRIVATE" in text
    assert len(data_in(private)["truth"]["syntheticError"]) == 3
    for name in (REPORT, "Report.HTML", "report.json", "REPORT.json"):
        as_json = name.endswith("json")
        with pytest.raises(DataError, match=r"give it another name, such as release-not-private\.(html|json)"):
            report(release, folder / name, truth=folder / "private.parquet", as_json=as_json)
        assert not (folder / name).exists()


@pytest.fixture
def copy(release, tmp_path):
    """A copy of the release without its page."""
    return shutil.copytree(release.path, tmp_path / "release", ignore=shutil.ignore_patterns("*.html"))


@pytest.mark.parametrize("inside", ["ours.html", "deep/ours.html", "../link/ours.html", "../../{}/release/ours.html"])
def test_the_truth_stays_out_of_what_is_published(release, folder, copy, tmp_path, inside):
    """Whichever way the folder is called, and also in a folder within it."""
    (copy / "deep").mkdir()
    (tmp_path / "link").symlink_to(copy)
    before = sorted(copy.rglob("*"))
    with pytest.raises(DataError, match=r"is a release, which is published; .* write it elsewhere, such as .*-not-pr"):
        report(release, copy / inside.format(tmp_path.name), truth=folder / "private.parquet")
    assert sorted(copy.rglob("*")) == before


def test_the_place_of_a_page_has_the_folders_name(tmp_path, monkeypatch):
    (tmp_path / "release" / "deep").mkdir(parents=True)
    beside = tmp_path / "release-not-private.html"
    for here, called in (("release", "."), ("release/deep", ".."), (".", "release"), (".", "release/")):
        monkeypatch.chdir(tmp_path / here)
        assert report_path(called, truth=True).absolute() == beside
        assert report_path(called) == Path(called) / REPORT


@pytest.mark.parametrize(
    ("missing", "command"),
    [("estimates.parquet", "estimate"), ("support.parquet", "estimate"), ("synthetic.parquet", "sample")],
)
def test_what_is_missing_is_named_with_the_command(copy, missing, command):
    (copy / missing).unlink()
    with pytest.raises(DataError, match=f"has no {missing} yet: run `prade {command} "):
        report(copy)
    assert not (copy / REPORT).exists()


def test_synthetic_rows_of_other_groups_are_refused(copy):
    write_rows(people(3, [7]), Release.load(copy))
    with pytest.raises(DataError, match="rows in no group of the release: draw again with `prade sample"):
        report(copy)


def test_a_failure_leaves_the_old_page_and_says_at_once_what_may_not_be_written(release, tmp_path, monkeypatch):
    old = tmp_path / "page.html"
    old.write_text("old")
    monkeypatch.setattr("prade.reporting.report.page", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report(release, old)
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]

    monkeypatch.setattr("prade.core.files.os.access", lambda *_: False)
    monkeypatch.setattr("prade.reporting.report.facts_of", lambda *_, **__: 1 / 0)
    with pytest.raises(DataError, match=r"permission to write to .*; choose another folder"):
        report(release, tmp_path / "page.html")


def test_a_map_is_drawn_for_its_level_and_says_which_groups_it_lacks(release, tmp_path):
    page, whole = tmp_path / "page.html", [square(0, 0, s=1), square(2, 0, s=2), square(4, 0, s=3)]
    drawn = data_in(report(release, page, geojson=geojson(tmp_path / "a.json", *whole)))["map"]
    assert (drawn["view"], drawn["without"], set(drawn["paths"])) == (1, 0, {"0", "1"})
    words = "Only 1 of 2 groups have an outline, matched by s; the map lacks the others."
    file = geojson(tmp_path / "b.json", whole[0], whole[2])
    with pytest.warns(IncompleteMap, match=words):
        report(release, page, geojson=file)
    assert f'<p class="note warn" id="map-lack">{words}' in page.read_text()
    assert words in call("report", release.path, "--geojson", file, "-o", page).stderr


def test_the_command(release, folder, tmp_path):
    def said(*arguments, code=0):
        return call("report", release.path, *arguments, code=code)

    truth = ["--truth", folder / "private.parquet"]
    assert re.fullmatch(r".*page.html: 0\.\d MB\n", said("-o", tmp_path / "page.html").stdout)
    assert "do not publish" in said("-o", tmp_path / "ours.html", *truth).stderr
    refused = said("-o", release.path / "ours.json", *truth, "--json", code=1)
    assert "must not be in it" in refused.stderr
    said("--geojson-key", "x", code=2)
    assert "there is no GeoJSON file at" in said("--geojson", tmp_path / "none.json", code=1).stderr
    assert json.loads(said("--json").stdout)["headline"]["groups"] == 3
    assert said("--json", "-o", tmp_path / "data.json").stdout.startswith(f"{tmp_path / 'data.json'}: 0.")
    assert json.loads((tmp_path / "data.json").read_text())["truth"] is None
    done = said("--json", *truth)
    assert "do not publish" in done.stderr
    assert len(json.loads(done.stdout)["truth"]["syntheticError"]) == 3


def test_groups_that_are_estimated_to_be_empty_have_a_page_too(release):
    """At tiny budgets noisy numbers of rows may all be below 0."""
    for emptied in (slice(0, 1), slice(None)):
        noisy = tuple(tuple(c.copy() for c in part) for part in release.noisy)
        for counts in (c for part in noisy for c in part):
            counts[emptied] = -40
        estimates = Estimates.of(Release(release.path, release.plan, noisy), kept_estimates(release).public)
        data = data_of(estimates, facts_of(estimates, sample_groups(estimates, 0)))
        last = data["views"][-1]
        assert (last["totals"][0], last["error"][0]) == (0, None)  # not "0, the most precise"
        assert all(error is None or 0 < error <= 2 for error in last["error"])
        assert all((column["error"] is None) == (emptied == slice(None)) for column in data["columns"])
        assert all(np.isfinite(unpacked(view["high"])).all() for view in data["views"])


def test_a_page_about_one_table_does_not_speak_of_groups(tmp_path):
    plan = plan_of(SCHEMA, Level((), Ask(ONES, 1)), budget=1)
    data = report_data(released(tmp_path, plan, people(2, [1]), people(1, [1])))
    assert [(view["name"], view["labels"]) for view in data["views"]] == [("the whole table", ["the whole table"])]
    said = [*data["use"], *data["careful"], data["methodology"], *(tile["title"] for tile in data["tiles"])]
    assert [each for each in said if re.search("group(?!s and person ids)", each)] == []
    assert data["noun"] == "people"  # nobody has several rows
