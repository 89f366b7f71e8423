"""The comparison's rivals: what JAM-PGM chooses and spends, and models of each place for systems that have one."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from compare import comparison, peers, systems
from compare.box import Limits
from compare.jam import Jam
from compare.rehearsal import low_marginals
from compare.systems import Task
from jobs import Job
from prade import Budget, Column, Ledger, Schema, Unit
from prade.baselines import PrivBayes
from prade.data.public.joint import Coded, Prior
from prade.data.read.tables import write_table
from prade.measuring.adaptive.session import adaptive

SCHEMA = Schema.from_mbi({"a": 20, "b": 20, "c": 3})
LOW = low_marginals(SCHEMA)


class FullTable:
    """A model of a domain that is small enough for a table of all cells, fitted by raking."""

    def __init__(self) -> None:
        self.cells, self.total, self.fits = Prior.uniform(SCHEMA), 0.0, 0
        self.weights = self.cells.weights

    def fit(self, known, total) -> None:
        self.total, self.fits = total, self.fits + 1
        self.weights = self.cells.weights
        for _ in range(50):
            for part, counts in known:
                cell = part.cells(SCHEMA, self.cells.codes)
                have = np.bincount(cell, self.weights, part.n_cells)
                want = np.maximum(counts, 1e-9) / np.maximum(counts, 1e-9).sum()
                self.weights = self.weights * (want / np.maximum(have, 1e-12))[cell]

    def counts(self, part) -> np.ndarray:
        return self.total * np.bincount(part.cells(SCHEMA, self.cells.codes), self.weights, part.n_cells)

    def megabytes(self, parts) -> float:
        return float(sum(part.n_cells for part in parts))


def people(rows: int, seed: int, strength: float, share: float) -> dict[str, np.ndarray]:
    """b follows a with this probability; c is 0 with this share."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 20, rows)
    b = np.where(generator.random(rows) < strength, a, generator.integers(0, 20, rows))
    return {"a": a, "b": b, "c": np.where(generator.random(rows) < share, 0, generator.integers(1, 3, rows))}


def asked(folder, private, prior, epsilon, **settings):
    """One run: the model, the number of rows, what was taken, and the door's record."""
    ledger, budget, model = Ledger(folder / "ledger"), Budget.pure(epsilon), FullTable()
    ledger.open_dataset("people", Unit(1), budget)
    terms = {"dataset": "people", "task": "1", "budget": budget, "unit": Unit(1), "weak_protection": True}
    file = folder / "answers.json"
    with adaptive(pa.table(private), SCHEMA, LOW.parts, file, ledger, **terms) as door:
        total, taken = Jam(LOW, **settings).ask(prior, door, model)
        left = door.left
    (entry,) = ledger.entries("people")
    assert entry.cost.epsilon == Fraction(epsilon)
    return model, total, taken, left, json.loads(file.read_text())["record"]


def distance(model: FullTable, truth: Prior) -> float:
    return float(np.mean([np.abs(model.counts(p) / model.total - truth.project(p.columns).ravel()).sum() for p in LOW]))


def test_jam_takes_public_tables_where_they_are_right_and_asks_where_they_are_wrong(tmp_path):
    """The public rows have a x b exactly, and are wrong about c.

    An answer for the 400 cells of a x b is expected to miss by 63 rows, 25 times the scale of the choice, so asking for
    it is chosen once in 10^10 runs.
    """
    private, prior = people(5000, 1, 0.8, 0.7), Prior.from_joint(Coded(SCHEMA, people(5000, 1, 0.8, 0.2)))
    truth = Prior.from_joint(Coded(SCHEMA, private))
    model, total, taken, _, record = asked(tmp_path, private, prior, 50, rounds=6, most_megabytes=1e9)
    before = float(np.mean([np.abs(prior.project(p.columns) - truth.project(p.columns)).sum() for p in LOW]))
    assert before > 0.5
    assert distance(model, truth) < before / 5
    assert total == pytest.approx(5000, abs=50)
    assert not any("c" in name.split(" (")[0].split(" x ") for name in taken if name.endswith("(public)"))
    assert any("c" in name.split(" x ") for name in taken)
    assert "a x b (public)" in taken
    assert "a x b" not in taken
    answers = [each["part"] for each in record[1:] if "counts" in each]
    assert answers == [name for name in taken if not name.endswith("(public)")]
    assert model.fits == 1 + len(taken) == 7


def test_jam_pays_for_choices_and_answers_and_keeps_what_public_tables_save(tmp_path):
    private, prior = people(300, 2, 0.5, 0.5), Prior.from_joint(Coded(SCHEMA, people(5000, 3, 0.5, 0.5)))
    _, _, taken, left, record = asked(tmp_path, private, prior, "1/2", rounds=4, most_megabytes=1e9)
    assert sum(Fraction(each["epsilon"]) for each in record) + left == Fraction(1, 2)
    rest = Fraction(1, 2) * Fraction("0.95")
    rounds = iter(record[1:])
    for turn, name in enumerate(taken):  # each round has its part of what the rounds before it have left
        share = rest / (4 - turn)
        choice = next(rounds)
        assert (choice["of"], Fraction(choice["epsilon"])) == (2 * len(LOW), share / 5)
        rest -= share / 5
        if not name.endswith("(public)"):
            assert Fraction(next(rounds)["epsilon"]) == share * 4 / 5
            rest -= share * 4 / 5
    assert rest == left


def test_jam_leaves_out_what_would_make_the_model_too_large(tmp_path):
    private, prior = people(2000, 4, 0.9, 0.5), Prior.from_joint(Coded(SCHEMA, people(2000, 5, 0.1, 0.5)))
    _, _, taken, _, record = asked(tmp_path, private, prior, 100, rounds=3, most_megabytes=60.0)  # cells, in this model
    assert record[1]["of"] == 2 * sum(part.n_cells <= 20 for part in LOW)  # a third of the limit in the first round
    assert "a x b" not in {name.removesuffix(" (public)") for name in taken}
    _, _, taken, _, _ = asked(_folder(tmp_path), private, prior, 100, rounds=2, most_megabytes=0.5)
    assert {name.removesuffix(" (public)") for name in taken} == {"c"}  # the smallest, where nothing fits


def _folder(path):
    (path / "second").mkdir()
    return path / "second"


# ---------------------------------------------------------------------- one model per place


@pytest.fixture
def places(tmp_path) -> Job:
    """Three places of 500 people, who differ from place to place in one column."""
    schema = Schema([Column("PLACE", "group"), *(Column(name, "categorical", values=[0, 1, 2]) for name in "AB")])
    place, generator = np.repeat([0, 1, 2], 500), np.random.default_rng(0)
    table = pa.table({"PLACE": place, "A": place, "B": generator.integers(0, 3, 1500)})
    file = tmp_path / "people.parquet"
    write_table(table, file)
    return Job("job", schema, file, file, {"PLACE": [0, 1, 2]}, ("PLACE",), Unit(1))


def test_a_baseline_of_each_place_has_the_whole_epsilon_in_each(places):
    drawn = systems.each_place(PrivBayes(seed=1), Task(places, "100", 0, 60.0))
    rows, group = drawn.rows
    assert np.array_equal(rows.codes["A"], group)  # learnt place by place
    assert np.bincount(group) == pytest.approx([500] * 3, abs=20)
    assert drawn.done is None


def test_a_peer_of_each_place_gets_the_rows_of_one_place_and_no_group(places, tmp_path, monkeypatch):
    given = []

    def fitted(package, algorithm, schema, coded, task):
        given.append((package, algorithm, schema.coded, coded.codes["A"].tolist(), task.epsilon))
        return dict(coded.codes), {"fit": 1.0, "draw": 0.5, "GiB": 0.1 * len(given), "processor": 1.0}

    monkeypatch.setattr(peers, "OUT", tmp_path)
    monkeypatch.setattr(peers, "peer_rows", fitted)
    drawn = comparison.SYSTEMS["aim-dpmm-each-place"].run(Task(places, "2", 0, 60.0))
    assert sorted(each[3] for each in given) == [[place] * 500 for place in (0, 1, 2)]
    assert all(each[:3] == ("dpmm", "aim", ("A", "B")) and each[4] == "2" for each in given)
    assert drawn.seconds == pytest.approx(4.5)
    assert drawn.gib == pytest.approx(0.3)
    assert np.array_equal(drawn.rows[0].codes["A"], drawn.rows[1])


def test_models_of_each_place_are_left_out_where_there_are_no_places(monkeypatch):
    seen = []
    monkeypatch.setattr(comparison, "across", lambda kept, job, name, *_: seen.append((job, name)) or {"1": []})
    monkeypatch.setattr(comparison, "boxed", lambda *_: {})
    names = ["mst-dpmm", "mst-dpmm-each-place", "privbayes-each-place"]

    class Empty:
        closed = True

    found = comparison.compared(Empty(), ["small", "few"], names, ["1"], 1, Limits(1, 1), 1)
    assert seen == [*(("small", name) for name in names), ("few", "mst-dpmm")]
    assert set(found) == {(*task, "1") for task in seen}


def test_all_peers_and_privbayes_have_a_variant_for_each_place():
    variants = {name for name, system in comparison.SYSTEMS.items() if system.each_place}
    plain = {name for name, system in comparison.SYSTEMS.items() if system.peer and not system.each_place}
    assert variants == {f"{name}-each-place" for name in (*plain, "privbayes")}
    assert all(comparison.SYSTEMS[name].title.endswith(", each place") for name in variants)
    assert all(comparison.SYSTEMS[f"{name}-each-place"].peer == comparison.SYSTEMS[name].peer for name in plain)
