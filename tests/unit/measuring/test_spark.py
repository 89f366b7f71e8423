"""Addresses of Spark, as far as they can be judged without one. What Spark itself does: tests/integration."""

import logging
import sys

import pytest

from prade.core.errors import DataError
from prade.measuring import spark
from prade.measuring.source import open_source


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("spark://127.0.0.1/", "the spark address does not end in the name of a table"),
        ("sc://127.0.0.1/", "the sc address does not end in the name of a table"),
        ("spark://host:7077/default.people", r"use its Spark Connect server with sc://host:port/database\.table"),
    ],
)
def test_addresses_that_are_none(address, words):
    with pytest.raises(DataError, match=words):
        open_source(address)


def test_absent_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(DataError, match=r"needs the packages of Spark: pip install \"prade\[spark\]\""):
        open_source("spark://session/default.people")


def test_nothing_is_logged_for_a_while(caplog):
    caplog.set_level(logging.DEBUG)
    with spark.without_logs():
        logging.getLogger("py4j.java_gateway").critical("hush")
    logging.getLogger("py4j.java_gateway").debug("heard")
    assert caplog.messages == ["heard"]
