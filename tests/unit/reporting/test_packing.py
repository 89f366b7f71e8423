"""Packed arrays: what the page's script reads, by an independent reader; what does not fit is refused."""

import base64
import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from prade.reporting.html import packed, plain, unpacked

SHARES = st.floats(0, 1) | st.just(float("nan"))


@given(arrays(np.float64, array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6), elements=SHARES))
def test_shares_come_back_within_half_a_unit(shares):
    entry = packed(shares, unit=20_000)
    again = unpacked(entry)
    assert again.shape == shares.shape
    assert (np.isnan(again) == np.isnan(shares)).all()
    known = ~np.isnan(shares)
    assert (np.abs(again - shares)[known] <= 0.5 / 20_000 + 1e-12).all()


@pytest.mark.parametrize(("kind", "code"), [("u8", "B"), ("u16", "H"), ("i32", "i"), ("f32", "f")])
def test_bytes_are_little_endian_numbers_of_the_type(kind, code):
    entry = packed([[1, 2, 3], [4, 5, 6]], unit=10, type=kind)
    content = zlib.decompress(base64.b64decode(entry["packed"]))
    assert struct.unpack(f"<6{code}", content) == (10, 20, 30, 40, 50, 60)
    assert (entry["type"], entry["shape"], entry["unit"]) == (kind, [2, 3], 10)
    json.dumps(entry, allow_nan=False)


def test_what_is_absent_is_the_largest_number_or_nan():
    def numbers(kind, code):
        return struct.unpack(
            f"<2{code}", zlib.decompress(base64.b64decode(packed([0.5, np.nan], unit=2, type=kind)["packed"]))
        )

    assert [numbers("u8", "B"), numbers("u16", "H"), numbers("i32", "i")] == [(1, 255), (1, 65535), (1, 2**31 - 1)]
    assert np.isnan(numbers("f32", "f")[1])


@pytest.mark.parametrize(("value", "kind"), [(-0.1, "u16"), (65_535, "u16"), (255, "u8"), (2**31 - 1, "i32")])
def test_what_does_not_fit_is_refused(value, kind):
    with pytest.raises(ValueError, match=rf"do not fit {kind} with the unit 10?"):
        packed([0.0, value], unit=1 if value > 0 else 10, type=kind)


def test_plain_lists_have_no_digits_that_mean_nothing():
    data = {"a": [packed([[1 / 3, np.nan]], unit=1000)], "b": None, "c": ("x", 1)}
    assert plain(data) == {"a": [[[0.333, None]]], "b": None, "c": ["x", 1]}
