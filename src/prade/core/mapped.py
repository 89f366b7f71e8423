"""A value in a folder, for other processes of the same run: its arrays are memory-mapped, not read.

The arrays go into one file, which every process that opens the value maps into its memory, so that processes of one
machine share its pages; what a process writes to an array stays its own. Everything else is pickled, as executors do
with the tasks that they send. Open only what the same run has written: a pickle from elsewhere may do anything.
"""

from __future__ import annotations

import mmap
import pickle
from pathlib import Path
from typing import Any

from prade.core.files import replace_file

ARRAYS, REST = "arrays", "rest"
ALIGNED = 64  # bytes: arrays start where the processor's cache lines do, as those that numpy makes


def write_mapped(value: object, folder: Path) -> None:
    """Write a value to a folder that is there and has none yet."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    spans = []
    with open(folder / ARRAYS, "wb") as file:
        for array in arrays:
            file.write(bytes(-file.tell() % ALIGNED))
            cells = array.raw()
            spans.append((file.tell(), cells.nbytes))
            file.write(cells)
        file.write(b"\0")  # an empty file cannot be mapped
    with replace_file(folder / REST) as temporary:
        temporary.write_bytes(pickle.dumps((spans, rest)))


def open_mapped(folder: Path) -> Any:
    """The value that `write_mapped` has written to a folder; the folder may be removed while it is in use."""
    spans, rest = pickle.loads((folder / REST).read_bytes())
    with open(folder / ARRAYS, "rb") as file:
        cells = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    return pickle.loads(rest, buffers=[cells[start : start + size] for start, size in spans])
