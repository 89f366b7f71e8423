"""Files that are written completely or not at all."""

import os

import pytest

from prade.core.files import replace_file


@pytest.mark.skipif(os.name != "posix", reason="only POSIX systems have a mask of permissions")
def test_a_file_has_the_permissions_that_open_gives_unless_it_is_for_its_owner_only(tmp_path):
    before = os.umask(0o027)
    try:
        for owner_only in (False, True):
            with replace_file(tmp_path / f"{owner_only}", owner_only=owner_only) as temporary:
                temporary.write_text("rows")
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {"False": 0o640, "True": 0o600}
