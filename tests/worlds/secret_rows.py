"""Private rows that hold secrets, processes that run on them, and a search for the secrets in all that they leave."""

import gzip
import os
import re
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

SECRET = "hush-zulu"  # nothing that a hash in hexadecimal could spell by chance
HUGE = 8_675_309_867_530_912_345
TRACES = [b"hush", b"zulu", b"8675309", b"8.675309", HUGE.to_bytes(8, "little"), HUGE.to_bytes(8, "big")]
HONEST = [(3, "f", "1", "a", 1), (70, "m", "x", "b", 1), (None, None, "2", "c", 2), (64, "f", "2", "a", 3)]
SECRETS = [
    (HUGE, SECRET, SECRET, "a", 4),  # a rare category, a huge number, text where numbers belong
    (70, "m", str(HUGE), SECRET, HUGE),  # a place that is not listed, a person with a long number
]
MALFORMED = [
    b"70",
    f"70,{SECRET}".encode(),
    f"70,m,1,a,5,{SECRET},{HUGE}".encode(),
    b"\xff" + SECRET.encode() + b"\xfe,m,1,a,6",
    b"7\x000," + SECRET.encode() + b"\x00,1,a,7",
    b"70,m," + SECRET.encode() + b"\r,a,8",
    b'70,m,"' + SECRET.encode() + b"\n" + SECRET.encode() + b'",a,9',
    b'70,m,"' + SECRET.encode() + b'"' + SECRET.encode() + b",a,9",
    b"\xef\xbb\xbf70,m,1,a,10",
    b"70,m," + SECRET.encode() * 300_000 + b",a,11",
]

BEGIN = """
import errno, logging, sys, traceback
import pandas, pyarrow.parquet
from prade import Budget, Column, Ledger, Schema, Unit, Workload
from prade.data.public.joint import Prior
from prade.core.errors import PradeError

logging.basicConfig(level=logging.DEBUG)
columns = {
    "AGE": Column("AGE", "numeric", edges=(18, 65), missing=True),
    "SEX": Column("SEX", "categorical", values=("f", "m"), missing=True),
    "CODE": Column("CODE", "categorical", values=(1, 2, 6)),
    "HEIGHT": Column("HEIGHT", "numeric", edges=(150,)),
    "LIST": Column("LIST", "numeric", edges=(1,)),
}
broken_step = None

def fail(event, arguments):
    if event == "prade.step" and arguments[0] == broken_step:
        raise OSError(errno.ENOSPC, "no space")

sys.addaudithook(fail)
"""
END = """
for name, arguments in attempts():
    try:
        attempt(name, **arguments)
    except (PradeError, OSError) as error:
        while error is not None:
            traceback.print_exception(error)
            print(name, type(error).__name__, error, vars(error))
            error = error.__cause__ or error.__context__
"""


def csv_of(rows):
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    return "\n".join(["AGE,SEX,CODE,PLACE,ID", *lines, ""]).encode()


def sources(folder, secret):
    """The private files of a run; the same names, with and without the secret rows."""
    rows = [*HONEST[:2], *SECRETS, *HONEST[2:]] if secret else HONEST
    kinds = zip(("AGE", "SEX", "CODE", "PLACE", "ID"), (pa.int64(), *[pa.string()] * 3, pa.int64()), strict=True)
    cells = list(zip(*rows, strict=True))
    table = pa.table({name: pa.array(column, kind) for column, (name, kind) in zip(cells, kinds, strict=True)})
    pq.write_table(table, folder / "rows.parquet")
    lists = pa.array([[HUGE, 1] if secret else [1]] * len(rows))
    pq.write_table(table.append_column("LIST", lists), folder / "lists.parquet")
    with duckdb.connect(str(folder / "lists.db")) as connection:
        connection.execute(f"CREATE TABLE lists AS SELECT * FROM '{folder / 'lists.parquet'}'")
        connection.execute("CREATE VIEW broken AS SELECT * REPLACE (CAST(CODE AS BIGINT) AS AGE) FROM lists")
    (folder / "rows.csv").write_bytes(csv_of(rows))
    (folder / "rows.csv.gz").write_bytes(gzip.compress(csv_of(rows)))
    text = csv_of(HONEST[:2]) + b"".join(each + b"\n" for each in MALFORMED) if secret else csv_of(HONEST[:2])
    (folder / "malformed.csv").write_bytes(text + csv_of(HONEST[2:]).partition(b"\n")[2])
    return sorted(path.name for path in folder.iterdir())


def run(folder, secret, script, how="all", token=rb"\b[0-9a-f]{16}\b"):
    """One process, which makes the attempts of a script; its exit code, what it said, and all that it wrote, by name.

    What it said is given without addresses and tokens, which differ from run to run.
    """
    (folder / "temporary").mkdir(parents=True)
    own = {*sources(folder, secret), "temporary"}
    environment = {**os.environ, "TMPDIR": str(folder / "temporary"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "always", "-X", "faulthandler", "-c", BEGIN + script + END, how]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=300)
    said = [re.sub(token, b"TOKEN", each) for each in (done.stdout, done.stderr)]
    said = [re.sub(rb"0x[0-9a-f]+", b"ADDRESS", each.replace(bytes(folder), b"FOLDER")) for each in said]
    written = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name not in own:
            written[name] = path.read_bytes() if path.is_file() else b""
            if path.name == "measurements.parquet":
                written[name] += str(pq.read_table(path).to_pylist()).encode() + str(pq.read_metadata(path)).encode()
    return done.returncode, said, written


def traces(said, written):
    """Where a secret shows up."""
    places = {"stdout": said[0], "stderr": said[1], "names": "\n".join(written).encode(), **written}
    return [(place, trace) for place, content in places.items() for trace in TRACES if trace in content]
