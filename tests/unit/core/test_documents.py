"""TOML and JSON within limits: what comes out is a tree that readers can use without a further thought."""

import os

import pytest

from prade import DataError
from prade.core.documents import MOST_LEVELS, Malformed, file_text, json_value, structured, toml_table
from prade.core.files import replace_file


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "text",
    [
        f'{{"a": {nested(MOST_LEVELS + 1)}}}',
        f'{{"a": 1{"0" * 300}}}',
        f'{{"a": -1{"0" * 300}}}',
        '{"a": [[1e999]]}',
        '{"a": [{"b": "\\ud800"}]}',
        '{"a": [{"\\udfff": 1}]}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1} 2',
        "",
    ],
)
def test_json_that_is_refused(text):
    for document in (text, text.encode()):
        with pytest.raises(Malformed):
            json_value(document)


def test_json_at_the_limits():
    text = f'{{"a": {nested(MOST_LEVELS - 2)}, "b": {"9" * 300}, "c": "\\ud83d\\ude00", "d": 1e300}}'
    tree = json_value(text)
    assert (tree["b"], tree["c"], tree["d"]) == (10**300 - 1, "\N{GRINNING FACE}", 1e300)


def test_toml_at_the_limits():
    tree = toml_table(f"a = {nested(MOST_LEVELS - 2)}\n{'b.' * 30}b = 1\nc = nan\nd = [{', '.join(['0.5'] * 1000)}]")
    assert len(tree["d"]) == 1000
    assert toml_table(f'x = "{"a." * 50}"')["x"] == "a." * 50  # dots in a text are not a key


def test_files(tmp_path):
    for content, words in ((b"x" * 11, "too large for a plan"), (b"\xff", "not a UTF-8 text file")):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(DataError, match=words):
            file_text(tmp_path / "a", "plan", most=10)
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfxyz")
    assert file_text(tmp_path / "a", "plan") == "xyz"
    with pytest.raises(DataError, match="there is no plan at"):
        file_text(tmp_path, "plan")


def test_a_structure_names_what_is_wrong():
    with pytest.raises(Malformed, match="Expected `int`, got `str`"):
        structured({"a": "x"}, dict[str, int])


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
