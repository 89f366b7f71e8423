"""Parts and workloads: hand-worked cells, sensitivities, and every refusal."""

import pickle

import numpy as np
import pytest

from prade import Column, DataError, Schema, Unit, Workload, WorkloadError
from prade.data.public.joint import Coded
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import expect, parse

SCHEMA = Schema(
    [
        Column("AGEP", "numeric", edges=(18, 40, 65), integer=True, min=0, max=99, missing=True),
        Column("SEX", "categorical", values=(1, 2)),
        Column("SIZE", "categorical", values=(5, 1, 3), missing=True),
        Column("WORK", "categorical", values=("yes", "no")),
        Column("PUMA", "group"),
    ]
)
CODES = {"AGEP": [0, 1, 2, 3, 4, 1], "SEX": [0, 1, 0, 1, 0, 1], "SIZE": [0, 1, 2, 3, 0, 1], "WORK": [0, 0, 1, 1, 0, 1]}
ROWS = Coded(SCHEMA, {name: np.array(codes, np.uint8) for name, codes in CODES.items()}, np.arange(1, 7))
WIDE = Schema.from_mbi({f"c{i}": 16 for i in range(8)})  # 16**8 cells cannot be enumerated
REST = " and ".join(f"c{i} >= 1" for i in range(1, 8))


def predicate(*texts, schema=SCHEMA):
    return Predicate(*(parse(text, schema) for text in texts))


def test_marginal_cells_are_mixed_radix():
    part = Marginal.of(SCHEMA, ["AGEP", "SEX"])
    assert (part.columns, part.sizes, part.n_cells, part.covers) == (("AGEP", "SEX"), (5, 2), 10, True)
    cells = part.cells(SCHEMA, ROWS.codes)
    assert (cells.tolist(), cells.dtype) == ([0, 3, 4, 7, 8, 3], np.uint8)
    assert part.labels(SCHEMA)[:2] == ["AGEP [0, 18), SEX 1", "AGEP [0, 18), SEX 2"]
    assert part.labels(SCHEMA)[-1] == "AGEP missing, SEX 2"


def test_cells_by_lookup():
    table = np.array([[0, 2], [0, 2], [2, 1], [2, 1], [2, 2]])
    part = Cells(["AGEP", "SEX"], table, n_cells=2, labels=["young men", "rest"])
    table[:] = 0  # the part has a copy
    assert part.cells(SCHEMA, ROWS.codes).tolist() == [0, 2, 2, 1, 2, 2]
    assert (part.covers, part.labels(SCHEMA)) == (False, ["young men", "rest"])
    whole = Cells(["SEX"], [1, 0], n_cells=2)
    assert (whole.covers, whole.labels(SCHEMA)) == (True, ["cell 0", "cell 1"])
    # a cell that no code leads to keeps its place
    assert Workload(SCHEMA, [Cells(["SEX"], [0, 2], n_cells=3)]).answer(ROWS)[0][1] == 0


def test_predicate_has_one_cell_per_query():
    one = predicate("AGEP >= 65 and SEX == 2")
    assert (one.n_cells, one.columns, one.covers) == (1, ("AGEP", "SEX"), False)
    assert one.cells(SCHEMA, ROWS.codes).tolist() == [1, 1, 1, 0, 1, 1]
    assert one.name == one.labels(SCHEMA)[0] == "AGEP >= 65 and SEX == 2"
    several = predicate("AGEP < 18", "AGEP >= 65", "AGEP is missing")
    expected = [0, 3, 3, 1, 2, 3]
    assert several.cells(SCHEMA, ROWS.codes).tolist() == expected  # by a table: 5 codes, 6 rows
    few = {name: codes[:4] for name, codes in ROWS.codes.items()}
    assert several.cells(SCHEMA, few).tolist() == expected[:4]  # query by query: 5 codes, 4 rows
    assert predicate("SEX == 1", "not SEX == 1").covers


def test_predicate_on_a_domain_too_large_to_write_out():
    part = predicate(f"c0 == 0 and {REST}", f"c0 == 1 and {REST}", schema=WIDE)
    codes = {f"c{i}": np.array([0, 1, 2] if i == 0 else [1, 1, 1], dtype=np.uint8) for i in range(8)}
    assert (part.cells(WIDE, codes).tolist(), part.covers) == ([0, 1, 2], False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Marginal.of(SCHEMA, ["AGE"]), "did you mean 'AGEP'"),
        (lambda: Marginal.of(SCHEMA, []), "one or more columns"),
        (lambda: Marginal.of(SCHEMA, ["SEX", "SEX"]), "twice"),
        (lambda: Marginal.of(SCHEMA, ["PUMA"]), "with_groups"),
        (lambda: Marginal.of(Schema.from_mbi(dict.fromkeys("abcd", 256)), [*"abcd"]), "4,294,967,296 cells, .*coarser"),
        (lambda: Cells(["SEX"], [0, 3], 2), "from 0 to 2"),
        (lambda: Cells(["SEX"], [0.0, 1.0], 2), "whole numbers"),
        (lambda: Cells(["SEX"], [0, 1], 0), "n_cells is 0"),
        (lambda: Cells(["SEX"], [0, 1], 2, labels=["one"]), "1 labels for 2 cells"),
        (lambda: predicate("AGEP >= 65", "SEX == 2"), "may satisfy two"),
        (lambda: predicate(f"c0 == 1 and {REST}", f"c0 >= 1 and {REST}", schema=WIDE), "may satisfy two"),
        (lambda: Predicate("AGEP >= 65"), r"prade\.queries\.query\.parse"),
        (lambda: Workload(SCHEMA, ["AGEP"]), "list of Part objects"),
        (lambda: Workload.marginals(SCHEMA, []), "empty"),
        (lambda: Workload.all_marginals(SCHEMA, 0), "from 1 to 4"),
        (lambda: Workload.queries(SCHEMA, []), "empty"),
        (lambda: Workload.queries(SCHEMA, "SEX == 1"), "a list"),
        (lambda: Workload.marginals(SCHEMA, ["SEX"]) + Workload.marginals(WIDE, ["c0"]), "different schemas"),
        (lambda: Workload.marginals(SCHEMA, ["SEX"]).sensitivity(3), "expected a Unit"),
        (lambda: Workload.marginals(SCHEMA, ["SEX"]).sensitivity(Unit(), 3), "norm is 3"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(WorkloadError, match=message):
        make()


def test_parts_refuse_another_schema():
    narrow = Schema([Column("AGEP", "numeric", edges=(18,), integer=True), Column("SEX", "categorical", values=(1, 2))])
    for part in (Marginal.of(SCHEMA, ["AGEP"]), Cells(["AGEP"], [0, 0, 0, 1, 1], 2), predicate("AGEP >= 65")):
        with pytest.raises(WorkloadError, match=r"AGEP"):
            part.cells(narrow, ROWS.codes)
        with pytest.raises(WorkloadError, match=r"AGEP"):
            Workload(narrow, [part])


def test_parts_are_values_with_names_by_content():
    def make():
        return [
            Marginal.of(SCHEMA, ["AGEP", "SEX"]),
            Marginal.of(SCHEMA, ["SEX", "AGEP"]),
            Cells(["AGEP"], [0, 0, 0, 1, 1], 2),
            Cells(["AGEP"], [0, 0, 1, 1, 1], 2),
            Cells(["AGEP"], [0, 0, 1, 1, 1], 3),
            Cells(["AGEP"], [0, 0, 1, 1, 1], 2, labels=["a", "b"]),
            predicate("AGEP >= 65"),
            predicate("AGEP < 18", "AGEP >= 65"),
        ]

    first, second = make(), make()
    assert first == second == pickle.loads(pickle.dumps(first))
    assert [hash(part) for part in first] == [hash(part) for part in second]
    assert [part.name for part in first] == [part.name for part in second]
    assert len(set(first)) == len({part.name for part in first}) == len(first)
    assert first[2].name == "2 cells on AGEP #179ac3015396"  # releases have such names in their files
    assert repr(first[0]) == "Marginal('AGEP x SEX', n_cells=10, covers=True)"


def test_marginals_answer_like_project_and_refuse_other_columns():
    workload = Workload.marginals(SCHEMA, ["SEX", ("AGEP", "SEX")])
    np.testing.assert_allclose(workload.answer(ROWS)[1], ROWS.project(["AGEP", "SEX"]).ravel())
    other = Schema([Column("SEX", "categorical", values=(2, 1))])
    with pytest.raises(WorkloadError, match="differently from the workload's schema"):
        workload.answer(Coded(other, {"SEX": np.array([0, 1])}))
    with pytest.raises(DataError, match="'SEX'"):
        workload.answer(Coded(SCHEMA, {"AGEP": np.array([0, 1])}))


def test_all_marginals():
    pairs = Workload.all_marginals(SCHEMA, 2)
    assert len(pairs) == 6  # of AGEP, SEX, SIZE, WORK: the group column is not estimated
    assert pairs[0].columns == ("AGEP", "SEX")
    assert Workload.all_marginals(SCHEMA, 1, columns="SEX") == Workload.marginals(SCHEMA, ["SEX"])


def test_disjoint_queries_share_parts():
    texts = ["AGEP >= 65", "SEX == 1", "AGEP < 18 and SEX == 2", "SEX == 2", "AGEP is missing"]
    workload = Workload.queries(SCHEMA, texts)
    labels = [part.labels(SCHEMA) for part in workload]
    assert (len(labels), sorted(labels[0] + labels[1])) == (2, sorted(texts))
    for answers, queries in zip(workload.answer(ROWS), labels, strict=True):
        np.testing.assert_allclose(answers, [expect(ROWS, text) for text in queries])
    large = Workload.queries(WIDE, [*(f"c0 == {value} and {REST}" for value in range(16)), "c1 == 0 or c2 == 3"])
    assert sorted(part.n_cells for part in large) == [1, 16]
    assert large.sensitivity(Unit()) == 2  # where the domain is not enumerated, the number of parts is the bound


def test_workload_is_a_value():
    first, second = (Workload.queries(SCHEMA, ["18 <= AGEP < 65", "40 <= AGEP < 65", "AGEP < 18"]) for _ in range(2))
    assert first == second == pickle.loads(pickle.dumps(first)) == Workload(SCHEMA, first.parts)
    assert hash(first) == hash(second)
    assert first != first + second != first.parts
    assert list(first + second) == [*first, *second]
    assert repr(first) == "Workload(2 parts, 3 queries on AGEP)"


def test_sensitivity_by_hand():
    covering = Workload.marginals(SCHEMA, ["SEX", "AGEP"])
    assert covering.sensitivity(Unit(7)) == 14
    assert isinstance(covering.sensitivity(Unit(7)), int)
    assert covering.sensitivity(Unit(7), norm=2) == pytest.approx(7 * 2**0.5)
    # two parts that no row can be in both of count once
    apart = Workload(SCHEMA, [Cells(["SEX"], [0, 1], 1), Cells(["SEX"], [1, 0], 1)])
    assert apart.per_row == 1
    # partial parts on different columns add up
    working = Workload.queries(SCHEMA, ["WORK == 'yes'"])
    assert ((apart + working).per_row, (apart + working + covering).per_row) == (2, 4)
    # a part on both columns ties them together: no row is in all three
    tied = apart + Workload(SCHEMA, [predicate("WORK == 'no' and SEX == 1")])
    assert (tied + working).per_row == 2
    # a query nobody can satisfy costs nothing
    assert Workload.queries(SCHEMA, ["SEX == 1 and SEX == 2"]).sensitivity(Unit()) == 0


def test_sensitivity_of_large_groups_is_the_number_of_parts():
    wide = Schema.from_mbi({"a": 2**11, "b": 2**11})
    parts = [Cells(["a"], np.arange(2**11) % 2, 1), Cells(["a"], np.arange(1, 2**11 + 1) % 2, 1)]
    assert Workload(wide, parts).per_row == 1
    assert Workload(wide, [*parts, predicate("a == 0 and b == 0", schema=wide)]).per_row == 3
