"""Protection against spreadsheet formulas: a CSV cell that begins with =, +, -, @, a tab or a line break can be run.

A text in a public table may begin like that by accident, or because somebody wants to run a formula on the reader's
computer. `prade.data.tables.write_table(..., spreadsheet_safe=True)` puts a single quote before such texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prade.data.cells import is_text

if TYPE_CHECKING:
    import pyarrow as pa

FORMULA = "\\A[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"  # the last four are full-width forms of the first four


def quoted(table: pa.Table) -> pa.Table:
    """The table with a single quote before such texts and column names; numbers are not changed.

    >>> import pyarrow as pa
    >>> quoted(pa.table({"A": ["=1+1", "1+1"], "B": [-1, 1]})).to_pylist()
    [{'A': "'=1+1", 'B': -1}, {'A': '1+1', 'B': 1}]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [
        pc.replace_substring_regex(column.cast(pa.large_string()), FORMULA, r"'\0") if is_text(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=[re.sub(FORMULA, r"'\g<0>", name) for name in table.column_names])
