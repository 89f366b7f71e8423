"""The weights of every public row in every group of the last level, kept in a file so that answers come at once.

To work the weights out takes a pass over the public rows for each group; to add them up in some cells takes one look at
the file. The first answer writes the file. It may be removed at any time: the next answer then takes longer and is the
same to the last bit, because both ways add up weights in single precision in the same order. It is used only if its
record (`prade.release.derived_files`) names the estimates and the public rows that the folder has now, and these are
the ones that were opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import compiled
from prade.core.errors import DataError
from prade.core.execution import several
from prade.core.files import replace_file
from prade.release.derived_files import KEPT_ESTIMATES, KEPT_WEIGHTS, WEIGHTS, check_kept, is_kept, recorded
from prade.release.release import Release, file_hash

Kept = NDArray[np.float32]  # [public rows, groups]

LARGEST_FILE = 2**30  # bytes; with more, every answer works the weights out again
AT_ONCE = 16  # groups that one thread reads, at least: a line of the processor's cache
WAITING = 2**26  # bytes of weights that are written together: the fewer times, the fewer pages of the file are touched
IN_MEMORY = 2**25  # bytes of the file that are mapped while it is written
SPAN = 64  # groups whose tables are added up together: those of some hundred cells stay in the cache
ROWS_AT_ONCE = 10_000


def small_enough(rows: int, groups: int) -> bool:
    """Whether the weights are few enough to be kept."""
    return 4 * rows * groups <= LARGEST_FILE


def record_of_estimates(release: Release) -> str:
    """The hash of the record of the folder's estimates, which tells them from all others."""
    return file_hash(release.path / KEPT_ESTIMATES.name)


def keep_weights(release: Release, shape: tuple[int, int], each_group: Iterable[Floats], estimates: str) -> None:
    """Write the weights of each group, [rows, groups] in all; if the disk is full, no file is written.

    Nor is one written if the folder gets other estimates meanwhile: `estimates` is the hash of their record.
    """
    with suppress(OSError), recorded(release, KEPT_WEIGHTS), replace_file(release.path / WEIGHTS) as temporary:
        offset = np.lib.format.open_memmap(temporary, "w+", np.float32, shape).offset
        waiting: list[Kept] = []
        for group, weights in enumerate(each_group):
            waiting.append(weights.astype(np.float32))
            if len(waiting) * shape[0] * 4 >= WAITING or group == shape[1] - 1:
                _write(temporary, offset, shape, group + 1 - len(waiting), waiting)
                waiting.clear()
        if record_of_estimates(release) != estimates:
            raise OSError(f"{release.path} has other estimates now")


def _write(path: Path, offset: int, shape: tuple[int, int], first: int, waiting: Sequence[Kept]) -> None:
    """Write the weights of some groups, from the number `first` on; a stretch of rows at a time."""
    step = max(1, IN_MEMORY // (4 * shape[1]))
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        stretch = np.memmap(
            path, np.float32, "r+", offset=offset + 4 * shape[1] * start, shape=(stop - start, shape[1])
        )
        stretch[:, first : first + len(waiting)] = np.stack([each[start:stop] for each in waiting], axis=1)


def kept_weights(release: Release, shape: tuple[int, int]) -> Kept | None:
    """The weights in the release's folder; None if there are none, or if they do not belong to its estimates.

    The file stays open: what another run writes under its name is another file.
    """
    if not is_kept(release, KEPT_WEIGHTS):
        return None
    try:
        check_kept(release, KEPT_WEIGHTS)
    except DataError:
        return None
    kept: Kept = np.load(release.path / WEIGHTS, mmap_mode="r")
    return kept if kept.shape == shape else None


def masses(kept: Kept, cells: Ints, size: int, times: Floats, threads: int) -> Floats:
    """Sum of weights x times in each of `size` cells: [groups, cells]. A row in no cell has the number `size`."""
    rows = np.flatnonzero(cells < size)
    cells = cells[rows].astype(np.int64)
    groups = kept.shape[1]
    # Whole lines of the processor's cache for each thread, and the same order of additions for any number of threads.
    width = -(-groups // (threads * AT_ONCE)) * AT_ONCE
    spans = [(first, min(first + width, groups)) for first in range(0, groups, width)]
    found = several(lambda span: _masses(kept, rows, cells, times, size, *span), spans, threads)
    return np.concatenate(list(found), axis=1).T


@compiled
def _masses(kept: Kept, rows: Ints, cells: Ints, times: Floats, size: int, first: int, last: int) -> Floats:
    found = np.zeros((size, last - first))
    for k in range(len(rows)):
        row, cell, factor = rows[k], cells[k], times[rows[k]]
        for group in range(first, last):
            found[cell, group - first] += factor * kept[row, group]
    return found


def tables(kept: Kept, cells: NDArray[np.int32], size: int, threads: int) -> Iterator[Floats]:
    """As `masses` for several parts in one pass: [some groups, cells of all parts], until all groups have had a turn.

    `cells` has for each row, [rows, parts], the numbers of its cells among those of all parts, or `size` for none.
    """
    groups = kept.shape[1]
    spans = [(first, min(first + SPAN, groups)) for first in range(0, groups, SPAN)]
    return several(lambda span: _tables(kept, cells, size, *span)[:size].T, spans, threads)


@compiled
def _tables(kept: Kept, cells: NDArray[np.int32], size: int, first: int, last: int) -> Floats:
    found = np.zeros((size + 1, last - first))
    for row in range(len(cells)):
        mine = kept[row, first:last]
        for part in range(cells.shape[1]):
            table = found[cells[row, part]]
            for group in range(last - first):
                table[group] += mine[group]
    return found


def together(kept: Kept, times: Floats) -> Floats:
    """The sum over groups of weights x times: [rows]."""
    return np.concatenate([kept[first : first + ROWS_AT_ONCE] @ times for first in range(0, len(kept), ROWS_AT_ONCE)])
