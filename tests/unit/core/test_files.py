"""Files that are written completely or not at all."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from prade.core import files
from prade.core.files import replace_file


@pytest.mark.skipif(os.name != "posix", reason="only POSIX systems have a mask of permissions")
def test_threads_that_write_at_once_do_not_change_who_may_read_files(tmp_path, monkeypatch):
    masks = [0o027]

    def slow(mask):
        """As the system's, with time for another thread to come between."""
        before, masks[0] = masks[0], mask
        time.sleep(0.01)
        return before

    def write(number):
        with replace_file(tmp_path / f"{number}") as temporary:
            temporary.write_text("rows")

    monkeypatch.setattr(files.os, "umask", slow)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(16)))
    assert masks == [0o027]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}
