"""Values whose arrays other processes map: the same bits, shared pages, and no trace on the file when they write."""

import numpy as np

from prade.core.execution import ALIGNED, ARRAYS, open_mapped, write_mapped


def test_a_value_comes_back_with_its_arrays_bit_for_bit(tmp_path):
    value = {
        "codes": np.arange(7, dtype=np.uint8),
        "shares": np.array([[0.1, np.nan], [-0.0, np.inf]]),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "every other": np.arange(10)[::2],
        "empty": np.empty((0, 3), np.int32),
        "words": ("a", 1, None),
    }
    write_mapped(value, tmp_path)
    found = open_mapped(tmp_path)
    assert found["words"] == value["words"]
    for name in list(value)[:-1]:
        assert found[name].dtype == value[name].dtype
        assert found[name].shape == value[name].shape
        assert found[name].tobytes() == value[name].tobytes()
        assert found[name].flags.writeable  # as others: compiled code is not compiled a second time
    assert found["shares"].ctypes.data % ALIGNED == 0
    assert found["columns"].flags.f_contiguous


def test_what_is_written_to_an_array_stays_in_its_process(tmp_path):
    write_mapped(np.arange(5.0), tmp_path)
    one, other = open_mapped(tmp_path), open_mapped(tmp_path)
    one[0] = 100.0
    assert other[0] == open_mapped(tmp_path)[0] == 0.0


def test_a_value_without_arrays_and_one_whose_folder_is_gone(tmp_path):
    write_mapped("text", tmp_path)
    assert open_mapped(tmp_path) == "text"
    write_mapped(np.ones(3), tmp_path)
    found = open_mapped(tmp_path)
    for file in tmp_path.iterdir():
        file.unlink()
    np.testing.assert_array_equal(found, [1, 1, 1])


def test_arrays_are_not_in_the_part_that_is_read(tmp_path):
    write_mapped(np.zeros(10**6), tmp_path)
    assert (tmp_path / ARRAYS).stat().st_size > 8 * 10**6
    assert sum(file.stat().st_size for file in tmp_path.iterdir() if file.name != ARRAYS) < 1_000
