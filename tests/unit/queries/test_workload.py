"""Parts and workloads: hand-worked cells, order kept, sensitivities, and every refusal."""

import operator
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from prade.core.errors import DataError, WorkloadError
from prade.data.declare.schema import Column, Schema
from prade.data.public.joint import Joint
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal
from prade.queries.query import expect, parse
from prade.queries.workload import Cells, Predicate, Workload


class Rows(Joint):
    """A joint distribution given by its rows."""

    def __init__(self, schema, codes, weights=None):
        self.schema = schema
        self.codes = {name: np.asarray(column, dtype=np.uint8) for name, column in codes.items()}
        rows = len(next(iter(self.codes.values())))
        self.weights = np.full(rows, 1 / rows) if weights is None else np.asarray(weights, dtype=float)


@pytest.fixture
def schema() -> Schema:
    return Schema(
        [
            Column("AGEP", "numeric", edges=(18, 40, 65), integer=True, min=0, max=99, missing=True),
            Column("SEX", "categorical", values=(1, 2)),
            Column("SIZE", "categorical", values=(5, 1, 3), missing=True),
            Column("WORK", "categorical", values=("yes", "no")),
            Column("PUMA", "group"),
        ]
    )


@pytest.fixture
def rows(schema) -> Rows:
    codes = {
        "AGEP": [0, 1, 2, 3, 4, 1],
        "SEX": [0, 1, 0, 1, 0, 1],
        "SIZE": [0, 1, 2, 3, 0, 1],
        "WORK": [0, 0, 1, 1, 0, 1],
    }
    return Rows(schema, codes, weights=np.array([1, 2, 3, 4, 5, 6]) / 21)


# ------------------------------------------------------------------ parts


def test_marginal_cells_are_mixed_radix(schema, rows):
    part = Marginal.of(schema, ["AGEP", "SEX"])
    assert (part.columns, part.sizes, part.n_cells, part.covers) == (("AGEP", "SEX"), (5, 2), 10, True)
    cells = part.cells(schema, rows.codes)
    assert cells.tolist() == [0, 3, 4, 7, 8, 3]
    assert cells.dtype == np.uint8
    assert part.labels(schema)[:3] == ["AGEP [0, 18), SEX 1", "AGEP [0, 18), SEX 2", "AGEP [18, 40), SEX 1"]
    assert part.labels(schema)[-1] == "AGEP missing, SEX 2"
    assert part.inside(schema).all()
    assert Marginal.of(schema, "SEX") == Marginal(("SEX",), (2,))


def test_too_large_a_marginal_says_how_large():
    schema = Schema.from_mbi({f"c{i}": 256 for i in range(4)})
    with pytest.raises(WorkloadError, match=r"4,294,967,296 cells .*fewer columns or coarser bins"):
        Marginal.of(schema, ["c0", "c1", "c2", "c3"])
    exactly = Schema.from_mbi({"a": 2**16, "b": 2**15})
    assert Marginal.of(exactly, ["a", "b"]).n_cells == 2**31
    large = Workload.marginals(exactly, [("a", "b")])
    assert (large.n_queries, large.sensitivity(Unit())) == (2**31, 1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["AGE"], "did you mean 'AGEP'"),
        ([], "one or more columns"),
        (["SEX", "SEX"], "twice"),
        ([1], "one or more columns"),
        (["PUMA"], "with_groups"),
    ],
)
def test_marginal_refuses(schema, columns, message):
    with pytest.raises(WorkloadError, match=message):
        Marginal.of(schema, columns)


def test_cells_by_lookup(schema, rows):
    part = Cells(["AGEP", "SEX"], [[0, 2], [0, 2], [2, 1], [2, 1], [2, 2]], n_cells=2, labels=["young men", "rest"])
    assert part.cells(schema, rows.codes).tolist() == [0, 2, 2, 1, 2, 2]
    assert not part.covers
    assert part.labels(schema) == ["young men", "rest"]
    assert part.inside(schema).tolist() == [[True, False], [True, False], [False, True], [False, True], [False, False]]
    whole = Cells(["SEX"], [1, 0], n_cells=2)
    assert whole.covers
    assert whole.labels(schema) == ["cell 0", "cell 1"]
    # a cell that no code leads to keeps its place
    assert Workload(schema, [Cells(["SEX"], [0, 2], n_cells=3)]).answer(rows)[0][1] == 0


def test_cells_do_not_change_with_the_callers_array(schema):
    table = np.array([0, 1])
    part = Cells(["SEX"], table, n_cells=2)
    table[:] = 0
    assert part.table.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        part.table[0] = 1
    with pytest.raises(AttributeError, match="parts are immutable"):
        part.n_cells = 3


@pytest.mark.parametrize(
    ("table", "n_cells", "message"),
    [
        ([0, 3], 2, "from 0 to 3"),
        ([-1, 0], 2, "from -1 to 0"),
        ([0.0, 1.0], 2, "whole numbers"),
        ([True, False], 2, "whole numbers"),
        ([], 2, "0 entries"),
        ([0, 1], 0, "n_cells is 0"),
        ([0, 1], 2.0, r"n_cells is 2\.0"),
        ([0, 1], True, "n_cells is True"),
    ],
)
def test_tables_are_checked(table, n_cells, message):
    with pytest.raises(WorkloadError, match=message):
        Cells(["SEX"], table, n_cells)


def test_labels_are_one_a_cell():
    with pytest.raises(WorkloadError, match="1 labels for 2 cells"):
        Cells(["SEX"], [0, 1], 2, labels=["one"])


def test_parts_refuse_another_schema(schema, rows):
    narrow = Schema([Column("AGEP", "numeric", edges=(18,), integer=True), Column("SEX", "categorical", values=(1, 2))])
    for part in (
        Marginal.of(schema, ["AGEP"]),
        Cells(["AGEP"], [0, 0, 0, 1, 1], 2),
        Predicate(parse("AGEP >= 65", schema)),
    ):
        with pytest.raises(WorkloadError, match=r"AGEP"):
            part.cells(narrow, rows.codes)
        with pytest.raises(WorkloadError, match=r"AGEP"):
            Workload(narrow, [part])


def test_predicate_has_one_cell_per_query(schema, rows):
    one = Predicate(parse("AGEP >= 65 and SEX == 2", schema))
    assert (one.n_cells, one.columns, one.covers) == (1, ("AGEP", "SEX"), False)
    assert one.cells(schema, rows.codes).tolist() == [1, 1, 1, 0, 1, 1]
    assert one.name == "AGEP >= 65 and SEX == 2"
    assert one.labels(schema) == ["AGEP >= 65 and SEX == 2"]
    several = Predicate(*(parse(text, schema) for text in ("AGEP < 18", "AGEP >= 65", "AGEP is missing")))
    expected = [0, 3, 3, 1, 2, 3]
    assert several.cells(schema, rows.codes).tolist() == expected  # by a table: 5 codes, 6 rows
    few = {name: codes[:4] for name, codes in rows.codes.items()}
    assert several.cells(schema, few).tolist() == expected[:4]  # query by query: 5 codes, 4 rows
    assert several.inside(schema).tolist() == [True, False, False, True, True]
    assert Predicate(parse("SEX == 1", schema), parse("not SEX == 1", schema)).covers


def test_predicate_refuses_queries_that_may_overlap(schema):
    with pytest.raises(WorkloadError, match="may satisfy two"):
        Predicate(parse("AGEP >= 65", schema), parse("SEX == 2", schema))
    with pytest.raises(WorkloadError, match=r"prade\.queries\.query\.parse"):
        Predicate("AGEP >= 65")
    with pytest.raises(WorkloadError, match=r"prade\.queries\.query\.parse"):
        Predicate()


def test_predicate_on_a_domain_too_large_to_write_out():
    wide = Schema.from_mbi({f"c{i}": 16 for i in range(8)})
    rest = " and ".join(f"c{i} == 1" for i in range(1, 8))
    first, second, third = (parse(f"{test} and {rest}", wide) for test in ("c0 == 0", "c0 == 1", "c0 >= 1"))
    part = Predicate(first, second)
    codes = {f"c{i}": np.array([0, 1, 2] if i == 0 else [1, 1, 1], dtype=np.uint8) for i in range(8)}
    assert part.cells(wide, codes).tolist() == [0, 1, 2]
    assert not part.covers
    with pytest.raises(WorkloadError, match="may satisfy two"):
        Predicate(second, third)


def test_parts_are_values_with_names_by_content(schema):
    def make():
        return [
            Marginal.of(schema, ["AGEP"]),
            Marginal.of(schema, ["AGEP", "SEX"]),
            Marginal.of(schema, ["SEX", "AGEP"]),
            Cells(["AGEP"], [0, 0, 0, 1, 1], 2),
            Cells(["AGEP"], [0, 0, 1, 1, 1], 2),
            Cells(["AGEP"], [0, 0, 1, 1, 1], 3),
            Cells(["AGEP"], [0, 0, 1, 1, 1], 2, labels=["a", "b"]),
            Predicate(parse("AGEP >= 65", schema)),
            Predicate(parse("AGEP < 18", schema), parse("AGEP >= 65", schema)),
        ]

    first, second = make(), make()
    assert first == second
    assert [hash(part) for part in first] == [hash(part) for part in second]
    assert [part.name for part in first] == [part.name for part in second]
    assert len(set(first)) == len({part.name for part in first}) == len(first)
    assert pickle.loads(pickle.dumps(first)) == first
    assert repr(first[1]) == "Marginal('AGEP x SEX', n_cells=10, covers=True)"
    assert first[0] != "AGEP"
    assert Marginal(["a b"], [2]).name == "`a b`"


# ------------------------------------------------------------------ workloads


def test_marginals_answer_like_project(schema, rows):
    workload = Workload.marginals(schema, ["SEX", ("AGEP", "SEX")])
    answers = workload.answer(rows)
    np.testing.assert_allclose(answers[0], rows.project(["SEX"]))
    np.testing.assert_allclose(answers[1], rows.project(["AGEP", "SEX"]).ravel())
    assert workload.columns == ("SEX", "AGEP")
    assert workload.n_queries == 12
    assert workload.labels()[:2] == ["SEX 1", "SEX 2"]


def test_all_marginals(schema):
    pairs = Workload.all_marginals(schema, 2)
    names = [part.columns for part in pairs]
    assert len(names) == 6  # of AGEP, SEX, SIZE, WORK: the group column is not estimated
    assert names[0] == ("AGEP", "SEX")
    assert len(Workload.all_marginals(schema, 1, columns=["SEX", "WORK"])) == 2
    assert Workload.all_marginals(schema, 1, columns="SEX") == Workload.marginals(schema, ["SEX"])
    for k in (0, 5, 1.5, True):
        with pytest.raises(WorkloadError, match="from 1 to 4"):
            Workload.all_marginals(schema, k)


def test_queries_share_parts_and_keep_their_order(schema, rows):
    texts = ["AGEP >= 65", "SEX == 1", "AGEP < 18 and SEX == 2", "SEX == 2", "AGEP is missing"]
    workload = Workload.queries(schema, texts)
    assert len(workload) == 2
    assert workload.labels() == texts
    answers = workload.in_order(workload.answer(rows))
    np.testing.assert_allclose(answers, [expect(rows, text) for text in texts])
    assert [workload[part].labels(schema)[cell] for part, cell in workload.origin] == texts
    assert Workload.queries(schema, [parse(text, schema) for text in texts]) == workload


def test_queries_on_a_large_domain_share_parts_where_a_column_tells_them_apart():
    wide = Schema.from_mbi({f"c{i}": 16 for i in range(8)})
    rest = " and ".join(f"c{i} >= 1" for i in range(1, 8))
    texts = [f"c0 == {value} and {rest}" for value in range(16)] + ["c1 == 0 or c2 == 3"]
    workload = Workload.queries(wide, texts)
    assert [part.n_cells for part in workload] == [16, 1]
    assert workload.labels() == texts
    # 16**8 cells cannot be enumerated: the number of parts is the bound
    assert workload.sensitivity(Unit()) == 2


@pytest.mark.parametrize(("queries", "message"), [([], "empty"), ("SEX == 1", "a list"), (["SEX == 9"], "1, 2")])
def test_queries_refuse(schema, queries, message):
    with pytest.raises(WorkloadError, match=message):
        Workload.queries(schema, queries)


MATRIX = np.array(
    [
        [1, 1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1],
    ]
)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_array])
@pytest.mark.parametrize("dtype", [bool, np.int8, float])
def test_a_matrix(make, dtype):
    schema = Schema.from_mbi({"a": 2, "b": 3})
    joint = Rows(schema, {"a": [0, 1, 1], "b": [2, 0, 1]}, weights=[0.5, 0.3, 0.2])
    matrix = make(MATRIX.astype(dtype))
    workload = Workload.matrix(schema, matrix)
    assert len(workload) == 2
    assert all(isinstance(part, Cells) and part.columns == ("a", "b") for part in workload)
    np.testing.assert_allclose(workload.in_order(workload.answer(joint)), MATRIX @ joint.project(["a", "b"]).ravel())
    assert workload.labels() == [f"query {query}" for query in range(5)]
    assert workload.sensitivity(Unit(3)) == 6
    stored = sparse.csr_array((np.array([1.0, 0.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 6))
    Workload.matrix(schema, stored)  # the caller's array is left alone
    assert (stored.indices.tolist(), stored.data.tolist()) == ([1, 0], [1.0, 0.0])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.full((1, 6), 2), "0 and 1 only"),
        (np.full((1, 6), -1), "0 and 1 only"),
        (np.full((1, 6), 0.5), "0 and 1 only"),
        (np.full((1, 6), np.nan), "0 and 1 only"),
        (sparse.coo_array(([1, 1], ([0, 0], [2, 2])), shape=(1, 6)), "0 and 1 only"),
        (sparse.csr_array((np.ones(2), np.array([2, 2]), np.array([0, 2])), shape=(1, 6)), "0 and 1 only"),
        (np.ones((2, 5)), "5 columns, but there are 6"),
        (np.ones((0, 6)), r"shape \(0, 6\)"),
        (np.ones((2, 0)), r"shape \(2, 0\)"),
        (np.ones(6), r"shape \(6,\)"),
        (np.array([["a"] * 6]), "entries of type"),
        (np.array([[Fraction(1)] * 6]), "entries of type"),
    ],
)
def test_matrix_refuses(matrix, message):
    with pytest.raises(WorkloadError, match=message):
        Workload.matrix(Schema.from_mbi({"a": 2, "b": 3}), matrix)


def test_a_matrix_that_needs_many_parts_is_split_without_loss():
    # prefixes all hold the first row: 200 queries, 200 parts
    schema = Schema.from_mbi({"a": 200})
    prefixes = np.tril(np.ones((200, 200), dtype=int))
    workload = Workload.matrix(schema, prefixes)
    assert len(workload) == workload.per_row == 200
    mass = np.arange(1, 201) / 20_100
    joint = Rows(schema, {"a": np.arange(200)}, weights=mass)
    np.testing.assert_allclose(workload.in_order(workload.answer(joint)), np.cumsum(mass))


def test_a_matrix_of_intervals_needs_no_more_parts_than_its_most_crowded_row():
    schema = Schema.from_mbi({"a": 60})
    generator = np.random.default_rng(11)
    for _ in range(20):
        ends = np.sort(generator.integers(0, 61, size=(40, 2)), axis=1)
        points = np.arange(60)
        matrix = (points >= ends[:, :1]) & (points < ends[:, 1:])
        assert len(Workload.matrix(schema, matrix)) == matrix.sum(axis=0).max()


def test_concatenation_and_slices_keep_the_order_of_queries(schema, rows):
    ranges = Workload.queries(schema, ["18 <= AGEP < 65", "AGEP < 18", "40 <= AGEP < 65", "AGEP < 40"])
    marginal = Workload.marginals(schema, ["SEX"])
    both = marginal + ranges
    assert len(both) == 1 + len(ranges)
    assert both.labels() == marginal.labels() + ranges.labels()
    expected = [*marginal.answer(rows)[0], *ranges.in_order(ranges.answer(rows))]
    np.testing.assert_allclose(both.in_order(both.answer(rows)), expected)
    assert both[1:] == ranges
    assert both[:1] == marginal
    assert both[0] == marginal[0]
    backwards = ranges[::-1]
    assert backwards.labels() == ranges.labels()
    np.testing.assert_allclose(backwards.in_order(backwards.answer(rows)), ranges.in_order(ranges.answer(rows)))
    assert list(both) == [*marginal, *ranges]
    assert len(both[5:]) == both[5:].n_queries == len(both[5:].in_order([])) == 0
    with pytest.raises(IndexError):
        both[99]


def test_concatenation_needs_one_schema(schema):
    other = Schema.from_mbi({"SEX": 2})
    with pytest.raises(WorkloadError, match="different schemas"):
        Workload.marginals(schema, ["SEX"]) + Workload.marginals(other, ["SEX"])
    with pytest.raises(TypeError):
        operator.add(Workload.marginals(schema, ["SEX"]), [Marginal.of(schema, "AGEP")])


def test_workload_is_a_value(schema):
    texts = ["18 <= AGEP < 65", "40 <= AGEP < 65", "AGEP < 18"]
    first, second = (Workload.queries(schema, texts) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Workload.queries(schema, [texts[0], texts[2], texts[1]])
    assert first != Workload(schema, first.parts)
    assert first == Workload(schema, first.parts, first.origin)
    assert first != first.parts
    assert repr(first) == "Workload(2 parts, 3 queries on AGEP)"
    assert pickle.loads(pickle.dumps(first)) == first


@pytest.mark.parametrize(
    "origin", [[(0, 0)], [(0, 0), (0, 0)], [(0, 0), (1, 0)], [(0, 0), (0, 2)], [(0, 0), (0, -1)], [(0, 0), (-1, 1)]]
)
def test_origin_names_each_cell_once(schema, origin):
    with pytest.raises(WorkloadError, match="each of the 2 cells"):
        Workload(schema, [Marginal.of(schema, ["SEX"])], origin)
    assert Workload(schema, [Marginal.of(schema, ["SEX"])], [(0, 1), (0, 0)]).labels() == ["SEX 2", "SEX 1"]


def test_workload_takes_parts_only(schema):
    with pytest.raises(WorkloadError, match="list of Part objects"):
        Workload(schema, ["AGEP"])
    with pytest.raises(WorkloadError, match="empty"):
        Workload.marginals(schema, [])


def test_answer_refuses_rows_of_another_schema(schema, rows):
    workload = Workload.marginals(schema, ["SEX"])
    other = Schema([Column("SEX", "categorical", values=(2, 1))])
    with pytest.raises(WorkloadError, match="differently from the workload's schema"):
        workload.answer(Rows(other, {"SEX": [0, 1]}))
    with pytest.raises(DataError, match="'SEX'"):
        workload.answer(Rows(schema, {"AGEP": [0, 1]}))


def test_in_order_checks_shapes(schema):
    workload = Workload.marginals(schema, ["SEX", "AGEP"])
    with pytest.raises(WorkloadError, match=r"\(2,\), \(5,\)"):
        workload.in_order([np.zeros(2)])
    with pytest.raises(WorkloadError, match="one array per part"):
        workload.in_order([np.zeros(2), np.zeros(4)])


# ------------------------------------------------------------------ sensitivity


def test_sensitivity_by_hand(schema):
    covering = Workload.marginals(schema, ["SEX", "AGEP"])
    assert covering.sensitivity(Unit(7)) == 14
    assert isinstance(covering.sensitivity(Unit(7)), int)
    assert covering.sensitivity(Unit(7), norm=2) == pytest.approx(7 * 2**0.5)
    # two parts that no row can be in both of count once
    apart = Workload(schema, [Cells(["SEX"], [0, 1], 1), Cells(["SEX"], [1, 0], 1)])
    assert apart.per_row == 1
    # partial parts on different columns add up
    assert (apart + Workload.queries(schema, ["WORK == 'yes'"])).per_row == 2
    assert (apart + Workload.queries(schema, ["WORK == 'yes'"]) + covering).per_row == 4
    # a part on both columns ties them together: no row is in all three
    tied = apart + Workload(schema, [Predicate(parse("WORK == 'no' and SEX == 1", schema))])
    assert (tied + Workload.queries(schema, ["WORK == 'yes'"])).per_row == 2
    # a query nobody can satisfy costs nothing
    assert Workload.queries(schema, ["SEX == 1 and SEX == 2"]).sensitivity(Unit()) == 0


def test_sensitivity_of_large_groups_is_the_number_of_parts():
    wide = Schema.from_mbi({"a": 2**11, "b": 2**11})
    parts = [Cells(["a"], np.arange(2**11) % 2, 1), Cells(["a"], np.arange(1, 2**11 + 1) % 2, 1)]
    assert Workload(wide, parts).per_row == 1
    tied = Workload(wide, [*parts, Predicate(parse("a == 0 and b == 0", wide))])
    assert tied.per_row == 3


@pytest.mark.parametrize(("unit", "norm", "message"), [(3, 1, "expected a Unit"), (Unit(), 3, "norm is 3")])
def test_sensitivity_refuses(schema, unit, norm, message):
    with pytest.raises(WorkloadError, match=message):
        Workload.marginals(schema, ["SEX"]).sensitivity(unit, norm)
