"""A real browser, and a release to open in it."""

import pytest


@pytest.fixture(scope="session")
def chromium():
    """One headless Chromium for all tests of a worker."""
    pytest.importorskip("websockets", reason="websockets is absent: the tests in a browser need it")
    from worlds.chromium import Chromium, program

    command = program()
    if command is None:
        pytest.skip("Chromium is absent: install Debian's package chromium to run these tests")
    browser = Chromium(command)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def census(tmp_path_factory):
    """A release of two levels: (its folder, the private table)."""
    from worlds import whole_releases

    folder = tmp_path_factory.mktemp("census")
    return whole_releases.census(folder), folder / "private.parquet"
