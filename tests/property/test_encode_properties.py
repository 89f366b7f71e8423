"""Laws of schemas, their labels and codes that hold for every schema, not only for those that came to mind."""

import datetime
import math
import operator as op
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade.core.errors import WorkloadError
from prade.data.declare.kinds import CONTROLS
from prade.data.declare.schema import Column, Schema
from prade.data.public.decode import Decoder
from prade.data.public.joint import Coded, encode, outside
from worlds.survey import plain_decoder

laws = settings(max_examples=60)

WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
FLOATS = st.floats(-1e300, 1e300)
WHOLES = st.integers(-(2**40), 2**40)


TRICKY = st.sampled_from(["missing", "true", "1", "01", "1.0", 'a "b"', "a = [", "]", "# x", "é", "[x]", "a.b", " x "])
LABELS = TRICKY | st.text(min_size=1, max_size=6).filter(lambda text: text.strip() and not CONTROLS.search(text))


@st.composite
def labelled(draw, column):
    """The column with a title and so on, and labels of some of its values."""
    words = {key: draw(st.just("") | LABELS) for key in ("title", "description", "unit")}
    values = [each for each in column.values if not isinstance(each, str)]
    labels = {each: draw(LABELS) for each in values if draw(st.booleans())}
    if column.missing and "missing" not in column.values and draw(st.booleans()):
        labels[None] = draw(LABELS)
    return replace(column, **words, labels=labels)


@st.composite
def categorical(draw, name="X"):
    lists = st.one_of(
        st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8, unique=True),
        st.lists(FLOATS, min_size=1, max_size=8, unique=True),
        st.lists(WORDS, min_size=1, max_size=8, unique=True),
        st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
    )
    values = tuple(draw(lists))
    other = draw(st.none() | st.sampled_from(values))
    return Column(name, "categorical", values=values, missing=draw(st.booleans()), other=other)


@st.composite
def numeric(draw, name="X"):
    kind = draw(st.sampled_from(["whole", "real", "date"]))
    numbers = {"whole": WHOLES.map(float), "real": FLOATS, "date": st.integers(-(10**5), 10**5).map(float)}[kind]
    edges = sorted(set(draw(st.lists(numbers, min_size=1, max_size=6))))
    low, high = draw(numbers.filter(lambda low: low < edges[-1])), draw(numbers.filter(lambda high: high >= edges[-1]))
    missing = draw(st.booleans())
    return Column(
        name,
        "numeric",
        edges=tuple(edges),
        integer=kind != "real",
        dates=kind == "date",
        min=draw(st.sampled_from([None, low])),
        max=draw(st.sampled_from([None, high])),
        missing=missing,
        unknown=draw(st.sampled_from([None, "clip", "missing"] if missing else [None, "clip"])),
    )


def columns(name="X"):
    return st.one_of(categorical(name), numeric(name)).flatmap(labelled)


@st.composite
def schemas(draw):
    return Schema([draw(columns(name)) for name in ("A", "B")[: draw(st.integers(1, 2))]])


def every_code(schema, rows=3):
    """Each code of each column at least `rows` times."""
    most = max(schema.shape(schema.names)) * rows
    return Coded(schema, {name: np.arange(most) % schema.size(name) for name in schema.names})


def assert_same(left, right):
    for name in left.columns:
        assert left.codes[name].tolist() == right.codes[name].tolist(), left.schema[name]


@settings(max_examples=120)
@given(schemas())
def test_a_schema_survives_its_file_with_every_word_and_is_the_same_without_them(schema):
    again, bare = Schema.from_toml(schema.to_toml()), schema.unlabelled()
    assert again == schema == bare
    assert again.fingerprint() == schema.fingerprint() == bare.fingerprint()
    assert bare.to_toml() == Schema([column.unlabelled() for column in schema]).to_toml()
    for column in schema:
        for key in ("title", "description", "unit", "labels"):
            assert getattr(again[column.name], key) == getattr(column, key)
        assert all(again[column.name].label_of(value) == column.label_of(value) for value in (*column.values, None))
        assert len(column.cell_texts()) == column.size
        assert column.cell_texts() == bare[column.name].cell_texts()


@laws
@given(categorical().filter(lambda column: column.value_type != "str"), st.data())
def test_no_two_cells_of_numbers_look_alike(column, data):
    values = [*column.values, *([None] if column.missing else [])]
    labels = {value: data.draw(st.sampled_from(["x", "y", "1", "True"])) for value in values}
    shown = replace(column, labels=labels).display_texts()
    assert len(set(shown)) == column.size
    assert column.display_texts() == column.cell_texts()


@laws
@given(schemas(), st.integers(0, 2**32), st.sampled_from(["pyarrow", "pandas", "polars"]))
def test_what_is_decoded_encodes_to_the_same_codes(schema, seed, like):
    coded = every_code(schema)
    table = plain_decoder(schema).decode(coded, seed=seed, like=like)
    assert_same(coded, encode(schema, table))
    assert outside(schema, table) == {}


@laws
@given(schemas(), st.integers(0, 2**32), st.integers(0, 4))
def test_so_it_does_with_a_public_table_that_has_only_some_bins(schema, seed, rows):
    coded = every_code(schema)
    public = plain_decoder(schema).decode(coded.take(np.arange(min(rows, len(coded)))), seed=seed)
    table = Decoder.fit(schema, public).decode(coded, seed=seed)
    assert_same(coded, encode(schema, table))
    assert outside(schema, table) == {}
    assert table.schema.equals(public.schema)


PUBLIC_TYPES = [pa.int8(), pa.uint16(), pa.int32(), pa.float32(), pa.float64(), pa.string(), pa.large_string()]


@laws
@given(numeric(), st.sampled_from(PUBLIC_TYPES), st.lists(st.integers(0, 127), max_size=5), st.integers(0, 99))
def test_whatever_type_the_public_column_has(column, kind, cells, seed):
    schema = Schema([column])
    if column.dates:
        days = [datetime.date(1970, 1, 1) + datetime.timedelta(days=cell) for cell in cells]
        public = pa.table({"X": pa.array(days, pa.date32()).cast(pa.timestamp("ms"))})
    else:
        public = pa.table({"X": pa.array(cells, pa.int64()).cast(kind)})
    coded = every_code(schema)
    assert_same(coded, encode(schema, Decoder.fit(schema, public).decode(coded, seed=seed)))


SIMPLE = st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)
CELLS = st.one_of(*SIMPLE, st.dates(), st.datetimes(), st.binary(max_size=3))


@laws
@given(columns(), st.lists(CELLS, max_size=8), st.sampled_from(["list", "array", "pandas", "category"]))
def test_no_cell_makes_encode_fail_or_changes_another_cells_code(column, cells, kind):
    def codes(objects):
        filled = np.empty(len(objects), dtype=object)
        filled[:] = objects
        table = objects if kind == "list" else filled
        if kind in ("pandas", "category"):
            table = pd.Series(filled, dtype=object if kind == "pandas" else "category")
        return encode(Schema([column]), {"X": table}).codes["X"].tolist()

    found = codes(cells)
    assert all(code < column.size for code in found)
    assert codes([*cells, "N"]) == [*found, column.fallback if "N" not in column.values else column.values.index("N")]
    assert codes([*cells, None])[:-1] == found


@laws
@given(numeric().filter(lambda column: not column.dates), st.lists(FLOATS, min_size=1, max_size=20))
def test_codes_grow_with_the_number(column, numbers):
    if column.unknown == "missing":
        return
    ordered = sorted(numbers)
    codes = encode(Schema([column]), {"X": ordered}).codes["X"].astype(int)
    assert (np.diff(codes) >= 0).all()


COMPARISONS = dict(zip(("==", "!=", "<", "<=", ">", ">="), (op.eq, op.ne, op.lt, op.le, op.gt, op.ge), strict=True))


@pytest.mark.parametrize("sign", COMPARISONS)
@laws
@given(data=st.data())
def test_a_comparison_of_codes_is_the_comparison_of_values(sign, data):
    inside = data.draw(st.integers(1, 11))
    edges = sorted(data.draw(st.sets(st.integers(-1, 13), max_size=4)) | {inside})
    shift = data.draw(st.sampled_from([0.0, 0.5]))
    column = Column("X", "numeric", edges=tuple(e + shift for e in edges), integer=True, min=0, max=12, missing=True)
    value = data.draw(st.integers(-2, 14).map(lambda number: number / 1) | st.floats(-2, 14))
    try:
        chosen = column.satisfying(sign, value)
    except WorkloadError:
        # refused only if some bin has values on both sides
        codes = encode(Schema([column]), {"X": list(range(13))}).codes["X"]
        truth = np.array([COMPARISONS[sign](x, value) for x in range(13)])
        assert any(len(set(truth[codes == code])) == 2 for code in set(codes.tolist()))
        return
    codes = encode(Schema([column]), {"X": list(range(13))}).codes["X"]
    assert chosen[codes].tolist() == [COMPARISONS[sign](x, value) for x in range(13)]
    assert not chosen[-1]


@laws
@given(st.lists(FLOATS | st.none(), min_size=1, max_size=300), st.integers(2, 8))
def test_an_inferred_schema_fits_its_table(cells, bins):
    if all(cell is None for cell in cells):
        return
    schema = Schema.infer({"X": cells}, max_values=8, bins=bins)
    assert outside(schema, {"X": cells}) == {}
    assert Schema.from_toml(schema.to_toml()) == schema
    coded = encode(schema, {"X": cells})
    if schema["X"].numeric:
        assert schema["X"].present <= bins + 1
        assert math.isclose(coded.project(("X",)).sum(), 1.0)
