"""What engines write differently, tried in DuckDB and read as Spark's SQL."""

from __future__ import annotations

import hashlib

import ibis
import pytest

from prade.core.errors import DataError
from prade.measuring.dialects import SPARK, Dialect

DUCKDB = Dialect("duckdb", lambda operation: True)
IN_SPARK = Dialect(SPARK, lambda operation: True)
UNKNOWN = Dialect("unknown", lambda operation: False)
TEXT = ibis.table({"x": "string"}, name="t").x


def in_spark(expression: ibis.Value) -> str:
    return " ".join(str(ibis.to_sql(expression, dialect="pyspark")).split())


def test_a_hash_is_sha_256() -> None:
    connection = ibis.duckdb.connect()
    found = connection.to_pyarrow(DUCKDB.sha256(ibis.literal("a\u00e9"))).as_py()
    assert found == hashlib.sha256("a\u00e9".encode()).hexdigest()
    assert "SHA2(CAST(`t0`.`x` AS BINARY), 256)" in in_spark(IN_SPARK.sha256(TEXT))
    with pytest.raises(DataError, match="knows no hash function of the engine unknown"):
        UNKNOWN.sha256(TEXT)


def test_the_end_of_a_text_in_patterns() -> None:
    assert IN_SPARK.pattern("^[0-9]+$|^x$") == r"^[0-9]+\z|^x\z"
    assert DUCKDB.pattern("^[0-9]+$") == "^[0-9]+$"


def test_only_spaces_tabs_and_line_ends_are_trimmed_in_spark() -> None:
    """Ibis' own strip would have Spark trim the letters v and f."""
    assert r"BTRIM(`t0`.`x`, ' \t\n\r')" in in_spark(IN_SPARK.stripped(TEXT))


def test_listed_texts_are_bytes_in_spark() -> None:
    value, listed = IN_SPARK.comparable(TEXT, [("x\x0b", 0), ("\u00e9", 1)])
    assert value.type().is_binary()
    assert listed == [(b"x\x0b", 0), ("\u00e9".encode(), 1)]
    assert [IN_SPARK.entry(each) for each, _ in listed] == ["780b", "c3a9"]
    assert DUCKDB.comparable(TEXT, [("x", 0)])[1] == [("x", 0)]
    assert UNKNOWN.joinable(TEXT) is None


def test_what_an_engine_supports() -> None:
    assert (DUCKDB.has_nan, DUCKDB.has_arrays) == (True, True)
    assert (UNKNOWN.has_nan, UNKNOWN.has_arrays) == (False, False)
