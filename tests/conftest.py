"""What all tests share: reproducible property tests, and the folder of real tables where there is one."""

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# derandomised, so that a run can be repeated; without a deadline, because the first call of a kernel compiles it
settings.register_profile("prade", derandomize=True, deadline=None)
settings.load_profile("prade")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a terminal: a shell's background ignores Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


sys.path.insert(0, str(Path(__file__).parent))
pytest_plugins = ["postgres_server"]  # the fixture postgres_url: a server of our own, started when a test asks for it


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real public tables beside the project; tests that need it are skipped where it is absent."""
    folder = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data is absent: real tables are not part of the project")
    return folder
