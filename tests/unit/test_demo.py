"""The demonstration: right noise, right error, a page that stands alone, and nobody worse off than the prior."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

from prade import Schema, Unit, Workload, demo, encode
from prade.demo_page import Comparison, Outcome, bars, errors_table, marginals

PERSONS = 2000


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small demonstration, run once: its folder and what it printed."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("demo") / "new"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        demo.main(["--output", str(folder), "--persons", str(PERSONS), "--seed", "3"])
    return folder, printed.getvalue()


@pytest.fixture(scope="module")
def setting() -> demo.Setting:
    return demo.Setting.make(PERSONS, 3)


def outcomes(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page)[1:]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_prints_a_plain_table_and_says_what_it_is(finished: tuple[Path, str]) -> None:
    _, printed = finished
    assert "not a private release" in printed
    assert "\x1b" not in printed  # no colours, no progress bars: this is no terminal
    lines = [line.split() for line in printed.splitlines()]
    for eps in ("0.1", "1", "10"):
        assert [line[1] for line in lines if line[:1] == [eps]] == ["prior", "IDE", "TwoStage", "MAP"]


def test_map_is_never_worse_than_the_prior(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    rows = outcomes((folder / "index.html").read_text("utf-8"))
    assert len(rows) == 12
    error = {(row[0], row[1]): float(row[2]) for row in rows}
    for eps in ("0.1", "1", "10"):
        assert error[eps, "MAP"] <= error[eps, "prior"]
        assert error[eps, "MAP"] <= error[eps, "IDE"]
    assert error["10", "MAP"] < error["1", "MAP"] < error["0.1", "MAP"]


def test_the_page_stands_alone(finished: tuple[Path, str]) -> None:
    page = (finished[0] / "index.html").read_text("utf-8")
    assert "This page contains the truth of invented data" in page
    assert not re.search(r"https?:|src=|<script|<link|@import|url\(", page)
    assert 'name="viewport"' in page
    assert len(page) < 60_000


class Balance(HTMLParser):
    """Every element that opens also closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_the_page_is_well_formed(finished: tuple[Path, str]) -> None:
    parser = Balance()
    parser.feed((finished[0] / "index.html").read_text("utf-8"))
    assert parser.stack == []


def test_the_picture_is_an_svg_file(finished: tuple[Path, str]) -> None:
    root = ElementTree.parse(finished[0] / "errors.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall("{http://www.w3.org/2000/svg}rect")) == 13  # the ground and twelve bars


def test_synthetic_rows_look_like_the_public_table(finished: tuple[Path, str], setting: demo.Setting) -> None:
    table = pq.read_table(finished[0] / "synthetic.parquet")
    public = setting.data.public.select(setting.data.schema.coded)
    assert table.schema.types == public.schema.types
    assert table.column_names == public.column_names
    assert abs(table.num_rows / len(setting.private) - 1) < 0.05


def test_noise_has_the_scale_of_the_whole_workload(setting: demo.Setting) -> None:
    answers = demo.simulated_answers(setting.workload, setting.private, Unit(4), 2.0, np.random.default_rng(0))
    scale = 4 * len(setting.workload) / 2.0
    exact = setting.workload.answer(setting.private)
    assert all((m.scale == scale).all() for m in answers)
    noise = np.concatenate([m.counts - len(setting.private) * y for m, y in zip(answers, exact, strict=True)])
    # mean of |Laplace| is its scale, with a standard error of scale / sqrt(n)
    assert abs(np.abs(noise).mean() / scale - 1) < 5 / np.sqrt(len(noise))


def test_the_unit_is_what_the_table_holds(setting: demo.Setting) -> None:
    most = max(count["counts"] for count in setting.data.private["PERSON"].value_counts().to_pylist())
    assert most <= setting.unit.max_rows


def test_total_weighs_small_tables_more(setting: demo.Setting) -> None:
    rng = np.random.default_rng(1)
    draws = [
        demo.total_of(demo.simulated_answers(setting.workload, setting.private, setting.unit, 1.0, rng))
        for _ in range(200)
    ]
    scale = setting.workload.sensitivity(setting.unit)
    expected = scale * np.sqrt(2 / sum(1 / part.n_cells for part in setting.workload))
    assert abs(np.mean(draws) - len(setting.private)) < 5 * expected / np.sqrt(200)
    assert 0.75 < np.std(draws) / expected < 1.25


def test_workload_comes_from_the_public_side(setting: demo.Setting) -> None:
    names = setting.data.schema.coded
    assert [part.columns for part in setting.workload][: len(names)] == [(name,) for name in names]
    pairs = [part.columns for part in setting.workload][len(names) :]
    assert pairs == demo.most_informative_pairs(setting.public)[: demo.TWO_WAY_PARTS]
    assert all(part.n_cells <= demo.MOST_CELLS for part in setting.workload)


def test_mean_error_is_zero_for_the_truth_and_two_for_its_opposite() -> None:
    schema = Schema.from_mbi({"a": 2, "b": 2})
    zeros, ones = (encode(schema, {"a": [v], "b": [v]}) for v in (0, 1))
    truth = {("a", "b"): zeros.project(("a", "b"))}
    assert demo.mean_error(zeros, truth) == 0
    assert demo.mean_error(ones, truth) == 2
    assert Workload.marginals(schema, ["a"]).answer(zeros)[0].tolist() == [1, 0]


def test_the_same_seed_gives_the_same_errors(finished: tuple[Path, str], tmp_path: Path) -> None:
    demo.main(["--output", str(tmp_path), "--persons", str(PERSONS), "--seed", "3"])
    again = (tmp_path / "errors.svg").read_text("utf-8")
    assert again == (finished[0] / "errors.svg").read_text("utf-8")


def test_labels_are_escaped() -> None:
    drawn = marginals(Comparison("<b>", ["<1", "&"], [0.5, 0.5], [0.4, 0.6], [0.5, 0.5]))
    assert "&lt;1" in drawn
    assert "&amp;" in drawn
    assert "<b>" not in drawn


def test_equal_errors_are_both_best() -> None:
    table = errors_table([Outcome(1.0, name, e, "", 0, 0) for name, e in (("prior", 0.2), ("IDE", 0.1), ("MAP", 0.1))])
    assert table.count('class="best"') == 2


def test_the_longest_bar_stays_in_the_picture() -> None:
    drawn = bars([Outcome(1.0, "prior", 1.9, "", 0, 0), Outcome(1.0, "MAP", 0.1, "", 0, 0)])
    assert max(float(w) for w in re.findall(r'<rect x="\d+" y="\d+" width="([\d.]+)"', drawn)) < 260
