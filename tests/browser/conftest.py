"""A real browser, and releases to open in it; puts this folder on the path, so that the tests can import both."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def chromium():
    """One headless Chromium for all tests of a worker."""
    pytest.importorskip("websockets", reason="websockets is absent: the tests in a browser need it")
    from chromium import Chromium, program

    command = program()
    if command is None:
        pytest.skip("Chromium is absent: install Debian's package chromium to run these tests")
    browser = Chromium(command)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def census(tmp_path_factory):
    """A release of two levels: (its folder, the private table)."""
    import worlds

    folder = tmp_path_factory.mktemp("census")
    return worlds.census(folder), folder / "private.parquet"
