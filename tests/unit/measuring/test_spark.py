"""Addresses of Spark, as far as they can be judged without one. What Spark itself does: tests/integration."""

from __future__ import annotations

import logging
import socket
import sys
import time

import pytest

from prade.core.errors import DataError
from prade.measuring import spark
from prade.measuring.source import open_source


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_host_that_does_not_answer_is_said_at_once(scheme: str) -> None:
    pytest.importorskip("pyspark", reason="pyspark is absent")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        began = time.monotonic()
        with pytest.raises(DataError, match=r"127\.0\.0\.1, port \d+, does not answer \(.+\)\. No row was read"):
            open_source(f"{scheme}://127.0.0.1:{taken.getsockname()[1]}/default.people")
        assert time.monotonic() - began < spark.SECONDS_TO_ANSWER
    with pytest.raises(DataError, match="'no' is not a port"):
        open_source(f"{scheme}://127.0.0.1:no/default.people")
    with pytest.raises(DataError, match=rf"the {scheme} address does not end in the name of a table"):
        open_source(f"{scheme}://127.0.0.1/")
    with pytest.raises(DataError, match="memory_limit is for rows that are counted here"):
        open_source(f"{scheme}://127.0.0.1/default.people", memory_limit="1GiB")


def test_absent_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(DataError, match=r"needs the packages of Spark: pip install \"prade\[spark\]\""):
        open_source("spark://local/default.people")


def test_an_absent_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    context = pytest.importorskip("pyspark", reason="pyspark is absent").SparkContext
    monkeypatch.setattr(context, "_active_spark_context", None)
    monkeypatch.setattr(spark.shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(DataError, match="Spark needs Java: install Java 17"):
        open_source("spark://local/default.people")


def test_a_host_has_the_usual_port() -> None:
    assert spark._with_port("host", 7077) == "host:7077"
    assert spark._with_port("host:1", 7077) == "host:1"
    assert spark._with_port("[::1]", 7077) == "[::1]:7077"
    assert spark._with_port("[::1]:1", 7077) == "[::1]:1"


def test_nothing_is_logged_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with spark.without_logs():
        logging.getLogger("py4j.java_gateway").critical("hush")
    logging.getLogger("py4j.java_gateway").debug("heard")
    assert caplog.messages == ["heard"]
