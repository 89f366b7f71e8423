"""Laws of queries, parts and workloads on random small schemas, against brute force."""

import itertools
import operator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from prade.data.declare.schema import Column, Schema
from prade.data.public.joint import Coded
from prade.privacy.protection import Unit
from prade.queries.parts import MAX_ENUMERATED, Cells, Marginal, Predicate, overlaps
from prade.queries.query import backticked, expect, parse, possible
from prade.queries.workload import Workload

law = settings(max_examples=120)

COMPARE = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le} | {
    ">": operator.gt,
    ">=": operator.ge,
}
WORDS = ["a", "b b", "it's", '"', "`", "missing"]
MIRROR = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@st.composite
def columns(draw, name):
    missing = draw(st.booleans())
    kind = draw(st.sampled_from(["words", "numbers", "whole bins", "bins"]))
    if kind in ("words", "numbers"):
        each = st.sampled_from(WORDS) if kind == "words" else st.integers(-3, 3)
        values = draw(st.lists(each, min_size=1, max_size=3, unique=True))
        return Column(name, "categorical", values=tuple(values), missing=missing)
    edges = sorted(draw(st.lists(st.integers(-3, 4), min_size=1, max_size=3, unique=True)))
    return Column(name, "numeric", edges=tuple(edges), integer=kind == "whole bins", missing=missing)


@st.composite
def schemas(draw, most=3):
    names = ["A", "B b", "in"][: draw(st.integers(1, most))]
    return Schema([draw(columns(name)) for name in names])


@st.composite
def cells_with_values(draw, column):
    """A code of the column and a value that it stands for; None is missing."""
    code = draw(st.integers(0, column.size - 1))
    if column.missing and code == column.size - 1:
        return code, None
    if not (column.numeric or column.groups):
        return code, column.values[code]
    low = column.edges[code - 1] if code else column.edges[0] - 5
    high = column.edges[code] if code < len(column.edges) else column.edges[-1] + 5
    if column.integer:
        return code, draw(st.integers(int(low), int(high) - 1))
    return code, draw(st.floats(low, high, exclude_max=True))


@st.composite
def comparisons(draw, column):
    """The text of one comparison and what it means for a value."""
    name = backticked(column.name)
    if column.missing and draw(st.integers(0, 4)) == 0:
        wanted = draw(st.booleans())
        word = draw(st.sampled_from(["missing", "null", "NULL"]))
        return f"{name} is {'' if wanted else 'not '}{word}", lambda value: (value is None) == wanted
    if column.numeric and column.integer and len(column.edges) > 1 and draw(st.integers(0, 3)) == 0:
        low, high = int(column.edges[0]), int(column.edges[-1]) - 1
        inside, words = draw(st.booleans()), draw(st.sampled_from(["between {} and {}", "BETWEEN {} AND {}"]))
        text = f"{name} {'' if inside else 'not '}{words.format(low, high)}"
        return text, lambda value: value is not None and (low <= value <= high) == inside
    if not (column.numeric or column.groups) and draw(st.booleans()):
        listed = draw(st.lists(st.sampled_from(column.values), min_size=1, max_size=3))
        inside = draw(st.booleans())
        text = f"{name} {'in' if inside else 'not in'} [{', '.join(map(repr, listed))}]"
        return text, lambda value: value is not None and (value in listed) == inside
    if not (column.numeric or column.groups):
        symbols = list(COMPARE) if isinstance(column.values[0], int) else ["==", "!="]
        symbol, bound = draw(st.sampled_from(symbols)), draw(st.sampled_from(column.values))
    else:
        symbol = draw(st.sampled_from(["<", ">=", "<=", ">"] if column.integer else ["<", ">="]))
        bound = int(draw(st.sampled_from(column.edges))) - (symbol in ("<=", ">"))
    if symbol in ("==", "!=") and draw(st.booleans()):
        sql = {"==": "=", "!=": "<>"}[symbol]
        return f"{name} {sql} {bound!r}", lambda value: value is not None and COMPARE[symbol](value, bound)
    text = f"{bound!r}{MIRROR[symbol]}{name}" if draw(st.booleans()) else f"{name} {symbol} {bound!r}"
    return text, lambda value: value is not None and COMPARE[symbol](value, bound)


@st.composite
def queries(draw, schema, depth=3):
    """The text of a query and what it means for a row given as {column: value}."""
    form = draw(st.sampled_from(["compare", "and", "or", "not"])) if depth else "compare"
    if form == "compare":
        column = draw(st.sampled_from(schema.columns))
        text, holds = draw(comparisons(column))
        return text, lambda row: holds(row[column.name])
    if form == "not":
        text, holds = draw(queries(schema, depth - 1))
        return f"{draw(st.sampled_from(['not', 'NOT']))} ({text})", lambda row: not holds(row)
    terms = [draw(queries(schema, depth - 1)) for _ in range(draw(st.integers(2, 3)))]
    word = draw(st.sampled_from({"and": ["and", "AND", "&"], "or": ["or", "Or", "|"]}[form]))
    text = f" {word} ".join(f"({text})" for text, _ in terms)
    join = all if form == "and" else any
    return text, lambda row: join(holds(row) for _, holds in terms)


def domain(schema):
    """Codes of every cell of the full domain, in C order."""
    grid = np.indices(schema.shape(schema.coded)).reshape(len(schema.coded), -1)
    return {name: codes.astype(np.uint8) for name, codes in zip(schema.coded, grid, strict=True)}


@st.composite
def joints(draw, schema):
    everything = domain(schema)
    cells = len(everything[schema.coded[0]])
    chosen = draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=8))
    weights = np.array(draw(st.lists(st.integers(1, 9), min_size=len(chosen), max_size=len(chosen))))
    return Coded(schema, {name: codes[chosen] for name, codes in everything.items()}, weights)


@st.composite
def parts(draw, schema):
    kind = draw(st.sampled_from(["marginal", "cells", "predicate"]))
    names = draw(st.lists(st.sampled_from(schema.coded), min_size=1, unique=True))
    if kind == "marginal":
        return Marginal.of(schema, names)
    if kind == "predicate":
        return Predicate(parse(draw(queries(schema))[0], schema))
    n_cells = draw(st.integers(1, 3))
    size = schema.domain_size(names)
    return Cells(names, draw(st.lists(st.integers(0, n_cells), min_size=size, max_size=size)), n_cells)


@law
@given(st.data())
def test_mask_is_what_the_words_say(data):
    schema = data.draw(schemas())
    text, holds = data.draw(queries(schema))
    rows = [
        {column.name: data.draw(cells_with_values(column)) for column in schema.columns}
        for _ in range(data.draw(st.integers(1, 6)))
    ]
    codes = {name: np.array([row[name][0] for row in rows], dtype=np.uint8) for name in schema.names}
    expected = [holds({name: value for name, (_, value) in row.items()}) for row in rows]
    query = parse(text, schema)
    assert query.mask(codes).tolist() == expected
    assert parse(query.text, schema) == query
    # `over` says the same as the mask, and `possible` never leaves out a satisfying row
    table = np.broadcast_to(query.over(query.columns), schema.shape(query.columns))
    assert table[tuple(codes[name] for name in query.columns)].tolist() == expected
    for name, some in possible(query.expression).items():
        assert some[codes[name][expected]].all()


@law
@given(st.data())
def test_every_part_is_a_function_into_its_cells(data):
    schema = data.draw(schemas())
    part = data.draw(parts(schema))
    everything = domain(schema)
    cells = part.cells(schema, everything)
    assert cells.max() <= part.n_cells
    assert part.covers == bool((cells < part.n_cells).all())
    assert len(part.labels(schema)) == part.n_cells
    own = part.inside(schema)[tuple(everything[name] for name in part.columns)]
    np.testing.assert_array_equal(own, cells < part.n_cells)


@law
@given(st.data(), st.sampled_from([0, MAX_ENUMERATED]))
def test_queries_are_split_into_disjoint_parts_without_loss(data, enumerated):
    """With the domain enumerated, the proofs of disjointness are exact; without, they are never wrong."""
    schema = data.draw(schemas())
    texts = [text for text, _ in data.draw(st.lists(queries(schema, depth=2), min_size=1, max_size=6))]
    parsed = [parse(text, schema) for text in texts]
    masks = np.array([query.mask(domain(schema)) for query in parsed], dtype=int)
    overlap = overlaps(parsed, enumerated)
    together = masks @ masks.T > 0
    np.fill_diagonal(together, False)
    assert (overlap >= together).all()
    assert not enumerated or (overlap == together).all()

    workload, joint = Workload.queries(schema, texts), data.draw(joints(schema))
    labels = [label for part in workload for label in part.labels(schema)]
    assert sorted(labels) == sorted(query.text for query in parsed)
    np.testing.assert_allclose(
        np.concatenate(workload.answer(joint)), [expect(joint, text) for text in labels], atol=1e-12
    )
    # no split has fewer parts than the most crowded point has queries, nor more than there are queries
    assert max(1, masks.sum(axis=0).max()) <= len(workload) <= len(texts)
    assert workload.per_row == masks.sum(axis=0).max()


@law
@given(st.data())
def test_no_person_moves_the_counts_further_than_the_sensitivity(data):
    schema = data.draw(schemas(most=2))
    workload = Workload(schema, data.draw(st.lists(parts(schema), min_size=1, max_size=4)))
    max_rows = data.draw(st.integers(1, 3))
    everything = domain(schema)
    cells = len(everything[schema.coded[0]])

    def counts(rows):
        codes = {name: column[rows] for name, column in everything.items()}
        return np.concatenate([np.bincount(p.cells(schema, codes), minlength=p.n_cells + 1)[:-1] for p in workload])

    one_row = np.array([counts([cell]) for cell in range(cells)])
    others = data.draw(st.lists(st.integers(0, cells - 1), max_size=4))
    someone = data.draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=max_rows))
    # tables with and without a person differ by the sum of that person's rows, whoever else is there ...
    np.testing.assert_array_equal(counts(others + someone) - counts(others), one_row[someone].sum(axis=0))
    # ... so this is the change of every pair of neighbouring tables
    people = [np.array(list(itertools.combinations_with_replacement(range(cells), n))) for n in range(1, max_rows + 1)]
    moves = np.concatenate([one_row[person].sum(axis=1) for person in people])
    assert np.abs(moves).sum(axis=1).max() == workload.sensitivity(Unit(max_rows))
    furthest = np.linalg.norm(moves, axis=1).max()
    np.testing.assert_allclose(furthest, workload.sensitivity(Unit(max_rows), norm=2), rtol=1e-12)
