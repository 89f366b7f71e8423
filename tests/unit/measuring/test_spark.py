"""Addresses of Spark, as far as they can be judged without one. What Spark itself does: tests/integration."""

from __future__ import annotations

import logging
import sys

import pytest

from prade.core.errors import DataError
from prade.measuring import spark
from prade.measuring.source import open_source


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_addresses_that_are_none(scheme: str) -> None:
    with pytest.raises(DataError, match=rf"the {scheme} address does not end in the name of a table"):
        open_source(f"{scheme}://127.0.0.1/")
    with pytest.raises(DataError, match="memory_limit is for rows that are counted here"):
        open_source(f"{scheme}://127.0.0.1/default.people", memory_limit="1GiB")


def test_absent_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(DataError, match=r"needs the packages of Spark: pip install \"prade\[spark\]\""):
        open_source("spark://local/default.people")


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)  # of Spark's pipe
def test_an_absent_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    context = pytest.importorskip("pyspark", reason="pyspark is absent").SparkContext
    monkeypatch.setattr(context, "_active_spark_context", None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(DataError, match="A driver on this machine needs Java 17"):
        open_source("spark://local/default.people")


def test_nothing_is_logged_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with spark.without_logs():
        logging.getLogger("py4j.java_gateway").critical("hush")
    logging.getLogger("py4j.java_gateway").debug("heard")
    assert caplog.messages == ["heard"]
