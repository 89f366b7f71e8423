"""As `test_noninterference.py`: with the noise held fixed, any two tables of a PostgreSQL make the same run."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from worlds.observation import differences
from worlds.private_tables import NAMES, TABLES
from worlds.small_plan import EMPTY, Runs, succeeded


@pytest.mark.parametrize("kinds", ["bigint text float8 text bigint", "numeric varchar numeric text numeric"])
def test_any_two_tables(kinds: str, postgres_url: str, tmp_path: Path) -> None:
    import psycopg

    columns = [f'"{name}" {kind}' for name, kind in zip(NAMES, kinds.split(), strict=True)]

    def postgres(table: pa.Table, folder: Path) -> str:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("DROP TABLE IF EXISTS observed")
            connection.execute(f"CREATE TABLE observed ({', '.join(columns)})")
            cells = zip(*(table[name].to_pylist() for name in NAMES), strict=True)
            rows = [[cell.replace("\0", "") if isinstance(cell, str) else cell for cell in row] for row in cells]
            with connection.cursor() as cursor, cursor.copy("COPY observed FROM STDIN") as copy:
                for row in rows:  # no text of PostgreSQL has a NUL in it
                    copy.write_row(row)
        return f"{postgres_url}/observed"

    runs = Runs(tmp_path)
    nobody = succeeded(runs.measured(postgres, EMPTY))
    for name in ("thousands", "all missing", "wild"):
        assert differences(runs.measured(postgres, TABLES[name]), nobody) == [], name
