"""Laws of labels: files keep them, and nothing that is measured depends on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from prade.data.declare.kinds import CONTROLS
from prade.data.declare.schema import Column, Schema

laws = settings(max_examples=80)

TEXTS = st.text(min_size=1, max_size=6).filter(lambda text: text.strip() and not CONTROLS.search(text))
TRICKY = st.sampled_from(["missing", "true", "1", "01", "1.0", 'a "b"', "a = [", "]", "# x", "é", "[x]", "a.b", " x "])
WORDS = TEXTS | TRICKY
VALUES = st.one_of(
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4, unique=True),
    st.lists(st.floats(-1e9, 1e9).map(lambda x: x + 0.0), min_size=1, max_size=4, unique=True),
    st.lists(WORDS, min_size=1, max_size=4, unique=True),
    st.just([False, True]),
)


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    words: dict[str, Any] = {key: draw(st.just("") | WORDS) for key in ("title", "description", "unit")}
    missing, kind = draw(st.booleans()), draw(st.sampled_from(["listed", "binned", "group"]))
    if kind == "group":
        return Column(name, "group", **words, labels=draw(st.dictionaries(WORDS, WORDS, max_size=3)))
    if kind == "binned":
        labels = {None: draw(WORDS)} if missing and draw(st.booleans()) else {}
        return Column(name, "numeric", edges=(1, 2.5), missing=missing, **words, labels=labels)
    values = draw(VALUES)
    labelled = draw(st.lists(st.sampled_from(values), unique=True))
    given = {value: draw(WORDS) for value in labelled}
    if missing and "missing" not in values and draw(st.booleans()):
        given[None] = draw(WORDS)
    return Column(name, "categorical", values=tuple(values), missing=missing, **words, labels=given)


schemas = st.builds(lambda *each: Schema(each), columns("A"), columns("B b"))


@laws
@given(schemas)
def test_a_file_keeps_every_word(schema: Schema) -> None:
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    for column in schema:
        for key in ("title", "description", "unit", "labels"):
            assert getattr(again[column.name], key) == getattr(column, key)
        assert all(again[column.name].label_of(value) == column.label_of(value) for value in (*column.values, None))


@laws
@given(schemas)
def test_without_its_labels_it_is_the_same_schema(schema: Schema) -> None:
    bare = schema.unlabelled()
    assert bare == schema
    assert bare.fingerprint() == schema.fingerprint()
    assert bare.to_toml() == Schema([column.unlabelled() for column in schema]).to_toml()
    assert [column.cell_texts() for column in bare if not column.groups] == [
        column.cell_texts() for column in schema if not column.groups
    ]


@laws
@given(VALUES.filter(lambda values: not isinstance(values[0], str)), st.data())
def test_no_two_cells_of_numbers_look_alike(values: list[Any], data: st.DataObject) -> None:
    labels = {value: data.draw(st.sampled_from(["x", "y", "1", "True"])) for value in [*values, None]}
    column = Column("X", "categorical", values=tuple(values), missing=True, labels=labels)
    texts = column.display_texts()
    assert len(set(texts)) == column.size
    assert replace(column, labels={}).display_texts() == column.cell_texts()
