"""Mutations of valid inputs: of bytes, of trees (TOML, JSON), of tables (parquet) and of texts made of tokens."""

import copy
import datetime
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

BYTES = [b"\0", b"\xff", b"\xef\xbb\xbf", *(bytes([mark]) for mark in b"\r\n\"'[]{}=,.-\\")]
DEEP = [b"[" * 3000, b"{" * 3000, b'{"a":' * 2000, b"a." * 3000]
NUMBERS = b"NaN -Infinity 1e999 nan null inf true 9999-99-99 0001-01-01 25:61:00 1979-05-27T07:32:00+99:00".split()
LONG = [b"1" * 5000, b"0x" + b"f" * 5000, b"9" * 300]
TEXTS = [b"\\ud800", b"\\u0000", b'""', b"", b"[[column]]\n", b'{"a": 1, "a": 2}', b"\xed\xa0\x80"]
TOKENS = [*DEEP, *NUMBERS, *LONG, *TEXTS]


def bytes_of(seeds, rng):
    """A seed with a few bytes changed, moved, repeated or taken away, or two seeds joined."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        at, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        end = min(end, at + rng.choice([1, 4, 64, 4096]))
        other = rng.choice(seeds)
        flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1])
        spliced = other[rng.randint(0, len(other)) :][:4096]
        pieces = [b"", flipped, data[at:end] * rng.choice([2, 50]), rng.choice(BYTES), spliced, rng.randbytes(end - at)]
        data[at : rng.choice([at, end])] = rng.choice([*pieces, rng.choice(TOKENS)])
    return bytes(data)


def value(rng):
    """A value that a reader may not expect where it comes."""
    deep: Any = 1
    for _ in range(rng.choice([3, 30, 100])):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    whole = rng.choice([0, 1, -1, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, -(10**299), 10**308, 10**400])
    number = rng.choice([0.5, -0.0, 1e308, -1e308, 5e-324, float("inf"), float("nan"), 1e16, 0.1])
    strings = ["", "a", "\0", "é" * 50, "x" * 10_000, "=1", "1", "1/3", "1e-400", "\ud800", "AGE", "categorical", "nan"]
    text = rng.choice([*strings, "﹢", "all"])
    dates = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.time(7, 32), datetime.datetime(2020, 1, 1)]
    date = rng.choice(dates)
    return rng.choice(
        [whole, number, text, date, deep, True, False, None, [], {}, [whole], [[text]], {text: number}, [text] * 50]
    )


def tree(found, rng):
    """A copy of a tree with some of its nodes exchanged, removed, doubled or wrapped."""
    root = {"root": copy.deepcopy(found)}
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        places = list(_places(root))
        if not places:
            break
        home, key = rng.choice(places)
        other, name = rng.choice(places)
        changed = rng.choice([value(rng), value(rng), copy.deepcopy(other[name]), [home[key]]])
        if home is root or rng.random() < 0.6:
            home[key] = changed
        elif isinstance(home, dict):
            gone = home.pop(key)
            if rng.random() < 0.5:
                home[rng.choice([f"{key}x", "name", "", "values", "by"])] = gone
        else:
            home[:] = rng.choice([home[:key] + home[key + 1 :], home[:50] * 21])
    return root["root"]


def _places(node):
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        yield node, key
        if isinstance(child, (dict, list)):
            yield from _places(child)


def json_of(trees, rng):
    """A mutated tree as JSON."""
    return json.dumps(tree(rng.choice(trees), rng), default=str).encode()


def toml_of(trees, rng):
    """A mutated tree as TOML, as far as TOML can say it."""
    while True:
        try:
            return tomli_w.dumps(tree(rng.choice(trees), rng)).encode()
        except (TypeError, ValueError, AttributeError, RecursionError):
            continue


def parquet_of(tables, rng):
    """A table with columns or its header changed, as a parquet file that is well-formed."""
    while True:
        table = rng.choice(tables)
        try:
            for _ in range(rng.choice([1, 1, 2, 3])):
                table = _changed(table, rng)
            stream = io.BytesIO()
            pq.write_table(table, stream)
            return stream.getvalue()
        except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError, LookupError):
            continue


def _changed(table, rng):
    place, rows = rng.randrange(max(table.num_columns, 1)), range(table.num_rows)
    name, column, names = table.column_names[place], table.column(place), list(table.column_names)
    kind = rng.choice([pa.string(), pa.float32(), pa.int8(), pa.int64(), pa.float64(), pa.binary(), pa.bool_()])
    names[place] = rng.choice(["", "x", "\0", "=A", names[0]])
    cells = column.to_pylist()
    cells[rng.randrange(len(cells))] = rng.choice([None, cells[0], value(rng)])
    header = (table.schema.metadata or {}).get(b"prade", b"{}")
    changes: list[Callable[[], pa.Table]] = [
        lambda: table.remove_column(place),
        lambda: table.rename_columns(names),
        lambda: table.take(pa.array(rng.choices(rows, k=rng.choice([0, 1, len(rows), 3000])))),
        lambda: table.set_column(place, name, _odd_column(table.num_rows, rng)),
        lambda: table.set_column(place, name, column.cast(kind, safe=False)),
        lambda: table.set_column(place, name, pa.array(cells)),
        lambda: table.replace_schema_metadata({b"prade": json_of([json.loads(header)], rng)}),
        lambda: table.replace_schema_metadata({b"prade": bytes_of([header], rng)}),
    ]
    return rng.choice(changes)()


def _odd_column(rows, rng):
    large = rng.choice([2**62, -(2**62), 2**40])
    cells, kind = rng.choice(
        [
            *((None, kind) for kind in (pa.null(), pa.month_day_nano_interval())),
            *((cell, None) for cell in ([1], {"a": 1}, b"\xff\xfe", float("nan"), 1e300, datetime.date(9999, 12, 31))),
            ("x", pa.dictionary(pa.int32(), pa.string())),
            (2**63, pa.uint64()),
            (-(2**63), pa.int64()),
            (2**62, pa.timestamp("us")),
            (rng.choice([2**30, -(2**30)]), pa.date32()),
            (large, pa.timestamp("s", rng.choice([None, "UTC"]))),
            (10**12, pa.duration("s")),
            (1, pa.time64("us")),
            (rng.randrange(-5, 300), pa.int64()),
        ]
    )
    if isinstance(cells, bytes) and rng.random() < 0.5:  # text that is not text
        return pa.array([cells] * rows).cast(pa.string(), safe=False)
    if kind == pa.date32():
        return pa.array([cells] * rows, pa.int32()).cast(kind)
    return pa.array([cells] * rows, kind)


def text_of(tokens, rng, most=12, seeds=()):
    """Tokens one after the other, or a sound text with some of them in it, now and then with a foreign character."""
    found = [rng.choice(tokens) for _ in range(rng.randint(0, most))]
    if seeds and rng.random() < 0.7:
        found = rng.choice(seeds).split(" ")
        for _ in range(rng.choice([0, 1, 1, 2])):
            found[rng.randrange(len(found))] = rng.choice(tokens)
    if rng.random() < 0.15:
        odd = rng.choice([0, 9, 10, 0x2028, 0xD800, 0x661, 0xB2, 0x1D7D9, rng.randrange(0x3000)])
        found.insert(rng.randint(0, len(found)), chr(odd))
    if rng.random() < 0.02:
        found = found * rng.choice([10, 300])
    return rng.choice(["", " ", " ", " "]).join(found)
