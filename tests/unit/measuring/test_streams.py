"""Memory does not grow with a file: what has been read of it is let go."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade.core.errors import DataError
from prade.measuring.run import measure
from prade.measuring.streams import parquet_stream
from worlds.people import IN_TOWNS, TOWN_PLAN
from worlds.plans import ledger_for


@pytest.mark.parametrize("group_rows", [2**14, 2**19], ids=["many row groups", "one row group"])
def test_a_parquet_file_is_never_in_memory_as_a_whole(group_rows: int, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).random(2**19)  # 4 MiB that no compression makes smaller
    pq.write_table(pa.table({"x": numbers}), tmp_path / "rows.parquet", row_group_size=group_rows, use_dictionary=False)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in parquet_stream([str(tmp_path / "rows.parquet")], 2**12, buffer=2**14).read(["x"]):
        rows += len(batch["x"])
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == len(numbers)
    assert most < 2**20


def test_row_groups_and_batches_lose_no_row(tmp_path: Path) -> None:
    table = pa.table({"x": range(100), "a.b": [str(number) for number in range(100)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=9)
    batches = list(parquet_stream([str(tmp_path / "rows.parquet")], 7).read(["a.b", "x"]))
    assert all(list(batch) == ["a.b", "x"] for batch in batches)
    assert [cell for batch in batches for cell in batch["x"].to_pylist()] == list(range(100))
    assert [cell for batch in batches for cell in batch["a.b"].to_pylist()] == [str(number) for number in range(100)]


def test_measure_takes_a_memory_limit(tmp_path: Path) -> None:
    ledger = ledger_for(TOWN_PLAN, tmp_path / "budget.ledger")
    with pytest.raises(DataError, match="give a size such as 500MB or 1GiB"):
        measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger, memory_limit="much")
    assert ledger.entries("people") == []
    assert measure(TOWN_PLAN, IN_TOWNS, tmp_path / "release", ledger, memory_limit="100MiB").noisy
