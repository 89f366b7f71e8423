"""What all tests share: reproducible property tests, and the folder of real tables where there is one."""

import gc
import os
import signal
import uuid
from pathlib import Path

import pytest
from hypothesis import settings

# derandomised, so that a run can be repeated; without a deadline, because the first call of a kernel compiles it
settings.register_profile("prade", derandomize=True, deadline=None)
settings.load_profile("prade")

# Dask's profiler can block a worker for good where threads come and go (CPython issue 106883)
os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a terminal: a shell's background ignores Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.set_threshold(0)  # no search while tests are collected
# postgres_url: a server of our own; spark: a Java machine of our own; each is started when a test asks for it
pytest_plugins = ["worlds.postgres_server", "worlds.spark_session", "worlds.schedule"]


def pytest_collection_finish():
    """Keep the modules of tests out of the search for garbage, which is a tenth of the work and finds none there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_unconfigure():
    gc.unfreeze()  # libraries complain about what is left when Python ends


@pytest.fixture(scope="session", autouse=True)
def ledgers(tmp_path_factory):
    """No test comes near the ledger of whoever runs it: here, and in the processes that tests start."""
    folder = tmp_path_factory.mktemp("ledgers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRADE_LEDGER", str(folder / "session.sqlite"))  # for fixtures that several tests share
        patch.setenv("XDG_DATA_HOME", str(folder / "home"))
        yield folder


@pytest.fixture(autouse=True)
def custodian(ledgers):
    """The custodian's ledger of one test, which nothing has been written to."""
    place = ledgers / f"{uuid.uuid4().hex}.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRADE_LEDGER", str(place))
        yield place


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real public tables beside the project; tests that need it are skipped where it is absent."""
    folder = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data is absent: real tables are not part of the project")
    return folder
