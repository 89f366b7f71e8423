"""Public rows in a file that many processes map into their memory: they share one copy, and read what they use.

It is an Arrow file without compression, made for the time of one run and removed after it; `Public.save` writes the
small file that is kept.
"""

from __future__ import annotations

import json
from pathlib import Path

from prade.core.documents import Malformed
from prade.core.files import replace_file
from prade.data.parquet_with_header import HEADER, damage_reported
from prade.data.public import Public

AGAIN = "run the same command again"


def save_mapped(public: Public, path: Path) -> None:
    """Write the rows as `open_mapped` reads them."""
    import pyarrow as pa

    table, header = public.as_table()
    table = table.replace_schema_metadata({HEADER: json.dumps(header)}).combine_chunks()
    with (
        replace_file(path) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=max(1, table.num_rows))


def open_mapped(path: Path) -> Public:
    """The rows of a file that `save_mapped` wrote; their arrays are parts of the file."""
    import pyarrow as pa

    open(path, "rb").close()  # a missing file is an error that names it
    with damage_reported(path, "public rows for workers", AGAIN):
        try:
            with pa.memory_map(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid as error:
            raise Malformed(str(error)) from None
        return Public.from_table(table, path)
