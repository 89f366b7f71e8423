"""Queries as text: what is read, what is refused, and that nothing is ever run."""

import re

import numpy as np
import pytest

from prade import Column, DataError, Schema, WorkloadError
from prade.queries.query import MAX_DEPTH, MAX_LENGTH, parse


@pytest.fixture
def schema():
    return Schema(
        [
            Column("AGEP", "numeric", edges=(18, 65), integer=True, min=0, max=99),
            Column("SEX", "categorical", values=(1, 2)),
            Column("WORK", "categorical", values=("yes", "no", "it's"), missing=True),
            Column("marital status", "categorical", values=(1, 2, 3), missing=True),
            Column("class", "categorical", values=(True, False)),
            Column("odd `name`", "categorical", values=(0, 1)),
            Column("PUMA", "group"),
        ]
    )


@pytest.fixture
def codes():
    return {
        "AGEP": np.array([0, 1, 2, 2], dtype=np.uint8),
        "SEX": np.array([0, 1, 0, 1], dtype=np.uint8),
        "WORK": np.array([0, 1, 2, 3], dtype=np.uint8),
        "marital status": np.array([0, 1, 2, 3], dtype=np.uint8),
        "class": np.array([0, 1, 0, 1], dtype=np.uint8),
        "odd `name`": np.array([0, 0, 1, 1], dtype=np.uint8),
    }


@pytest.mark.parametrize(
    ("text", "expected", "canonical"),
    [
        ("65<=AGEP", [0, 0, 1, 1], "AGEP >= 65"),
        ("18 <= AGEP < 65", [0, 1, 0, 0], "AGEP >= 18 and AGEP < 65"),
        ("AGEP >= 65 and (SEX == 2 or WORK == 'yes')", [0, 0, 0, 1], "AGEP >= 65 and (SEX == 2 or WORK == 'yes')"),
        ("SEX == 1 or AGEP >= 65 and SEX == 2", [1, 0, 1, 1], "SEX == 1 or (AGEP >= 65 and SEX == 2)"),
        ("WORK not in ('yes', 'no')", [0, 0, 1, 0], "WORK not in ['yes', 'no']"),
        ("not WORK == 'yes'", [0, 1, 1, 1], "not WORK == 'yes'"),
        ('WORK == "it\'s"', [0, 0, 1, 0], 'WORK == "it\'s"'),
        ("`marital status` <= +2", [1, 1, 0, 0], "`marital status` <= 2"),
        ("`class` == True", [1, 0, 1, 0], "`class` == True"),
        ("`odd ``name``` == 1", [0, 0, 1, 1], "`odd ``name``` == 1"),
        ("((SEX == 1) and (AGEP < 18)) and SEX == 1", [1, 0, 0, 0], "SEX == 1 and AGEP < 18 and SEX == 1"),
        ("Not SEX=1 OR AGEP<18", [1, 1, 0, 1], "not SEX == 1 or AGEP < 18"),
        ("(SEX = 1)|(AGEP >= 65)", [1, 0, 1, 1], "SEX == 1 or AGEP >= 65"),
        ("AGEP BETWEEN 18 AND 64 AND SEX = 2", [0, 1, 0, 0], "AGEP >= 18 and AGEP <= 64 and SEX == 2"),
        ("SEX = 2 and AGEP not between 18 and 64", [0, 0, 0, 1], "SEX == 2 and (AGEP < 18 or AGEP > 64)"),
        ("`marital status` not between -1 and 1", [0, 1, 1, 0], "`marital status` < -1 or `marital status` > 1"),
        ("WORK IS NOT NULL", [1, 1, 1, 0], "WORK is not missing"),
    ],
)
def test_reads(schema, codes, text, expected, canonical):
    query = parse(text, schema)
    assert query.mask(codes).tolist() == [bool(each) for each in expected]
    assert query.text == canonical
    assert parse(canonical, schema) == query


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("__import__('os').system('true')", "is compared with nothing"),
        ("SEX == 1 + 1", "'+ 1' is not expected"),
        ("lambda: 1", "'lambda: 1' is where a column or a value is expected"),
        ("SEX == 007", "'007' cannot be read"),
        ("SEX is 1", "follows `is` (write SEX is missing"),
        ("SEX == 1e400", "too large"),
        ("SEX == AGEP", "'AGEP' is a second column"),
        ("1 == 1", "compares two values, 1 and 1"),
        ("SEX", "is compared with nothing (write SEX == ...)"),
        ("True", "is not a query"),
        ("SEX in []", "expects a list"),
        ("SEX in (1 2)", "in the middle of a list"),
        ("SEX == 1 # and AGEP >= 65", "'# and AGEP >= 65' is not expected"),
        ("SEX == 1 | 2", "is not a query"),
        ("SEX == 1 & (SEX == 2", "closing parenthesis"),
        ("AGEP between 18", "expects `and`"),
        ("WORK == Yes", "did you mean 'yes'?"),
        ("WORK == full", 'the values of WORK are "yes", "no", "it\'s"'),
        ("`class` == true", "did you mean True?"),
        ("marital status == 1", "is compared with nothing"),
        ("SEX == '\ud800'", "cannot be read"),
        ("   ", "text of a query"),
    ],
)
def test_refuses_by_name_and_shows_what_is_allowed(schema, text, named):
    with pytest.raises(WorkloadError, match=f"{re.escape(named)}.*a query compares columns with values"):
        parse(text, schema)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("AGE >= 65", "'AGEP'"),
        ("`marital statu` == 1", "'marital status'"),
        ("AGEP >= 30", "18 and 65"),
        ("SEX == 3", "1, 2"),
        ("SEX == '2'", "written as 1, 2"),
        ("WORK < 'yes'", "no order"),
        ("SEX is missing", "missing = true"),
        ("PUMA == 1", "with_groups"),
        ("not " * (MAX_DEPTH + 1) + "SEX == 1", "levels of and, or and not"),
        ("(" * 4_000 + "SEX == 1" + ")" * 4_000, "levels of and, or and not"),
        ("SEX in " + "[" * 150 + "1" + "]" * 150, "a column or a value is expected"),
        ("SEX == 1 or (AGEP >= 65 and (" * (MAX_DEPTH // 2 + 1) + "SEX == 2" + "))" * (MAX_DEPTH // 2 + 1), "levels"),
        ("SEX == 1 or " * MAX_LENGTH + "SEX == 1", "split it up"),
    ],
    ids=lambda text: text[:20],
)
def test_errors_that_depend_on_the_schema_and_hostile_input(schema, text, named):
    with pytest.raises(WorkloadError, match=named):
        parse(text, schema)


def test_long_flat_and_deep_enough_queries_are_read(schema, codes):
    flat = " or ".join(["SEX == 1"] * 700)
    assert parse(flat, schema).mask(codes).tolist() == [True, False, True, False]
    deep = "not " * MAX_DEPTH + "SEX == 1"
    assert parse(deep, schema).mask(codes).tolist() == [True, False, True, False]
    chain = "not " * (MAX_DEPTH - 1) + "18 <= AGEP < 65"
    assert parse(parse(chain, schema).text, schema) == parse(chain, schema)


def test_query_is_a_value(schema):
    first, second = parse("AGEP>=65 and SEX==2", schema), parse(" 65 <= AGEP and (SEX == 2)", schema)
    assert first == second
    assert hash(first) == hash(second)
    assert first != parse("SEX == 2 and AGEP >= 65", schema)
    assert repr(first) == "Query('AGEP >= 65 and SEX == 2')"
    assert first.columns == ("AGEP", "SEX")
    assert first.sizes == {"AGEP": 3, "SEX": 2}
    coarse = Schema([Column("AGEP", "numeric", edges=(65,), integer=True, min=0, max=99)])
    with pytest.raises(WorkloadError, match=r"for 3 codes in column .* has 2"):
        parse("AGEP >= 65", schema).check(coarse)
    assert parse("AGEP >= 65", coarse) != parse("AGEP >= 65", schema)


def test_mask_names_an_absent_column_and_hides_codes(schema):
    query = parse("SEX == 2", schema)
    with pytest.raises(DataError, match=r"'SEX'.*AGEP"):
        query.mask({"AGEP": np.zeros(2, dtype=np.uint8)})
    with pytest.raises(DataError) as refused:
        query.mask({"SEX": np.array([0, 77], dtype=np.uint8)})
    assert "77" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_name_whose_letters_look_like_others_is_backticked():
    name = "\ufb01eld"  # a ligature
    query = parse(f"`{name}` == 1", Schema.from_mbi({name: 2}))
    assert (query.columns, query.text) == ((name,), f"`{name}` == 1")


def test_signs_and_words_inside_text_are_text():
    values = ("a = b & c AND d", "x between 1 and 2", "`a`", "b  c", 'it\'s # "no"', "\\")
    schema = Schema([Column("WORK", "categorical", values=values)])
    for code, value in enumerate(values):
        assert parse(f"WORK = {value!r}", schema).mask({"WORK": np.arange(6)}).nonzero()[0].tolist() == [code]


def test_a_column_with_the_name_of_a_word_stays_a_column():
    schema = Schema.from_mbi({"OR": 2, "between": 3, "NULL": 2, "Is": 2, "NOT": 2, "in": 2})
    query = parse("OR == 1 and between between 1 and 2 and NULL == 0 and Is == 1 and NOT == 1 and `in` in (1)", schema)
    assert query.columns == ("OR", "between", "NULL", "Is", "NOT", "in")
    assert parse(query.text, schema) == query
