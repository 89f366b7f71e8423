"""Which synthetic rows have all values of one public row, measured on the finished table."""

import numpy as np
import pyarrow as pa

from prade import Column, Schema
from prade.data.public.decode import Decoder
from prade.data.public.joint import encode
from prade.data.read.files import copied_share, copies_in_words, noted_share

SCHEMA = Schema(
    [
        Column("PLACE", "group", values=["a", "b"]),
        Column("PAY", "numeric", edges=[100], min=0, max=999, missing=True),
        Column("WORK", "categorical", values=["full", "part", "other"], other="other", missing=True),
    ]
)
PUBLIC = pa.table(
    {
        "PLACE": ["a", "a", "b", "b"],
        "PAY": [10.5, None, 200.0, 5000.0],
        "WORK": ["full", "part", None, "none"],  # "none" is coded as "other", and 5000 as the last bin
    }
)


def test_every_value_counts():
    rows = [
        (10.5, "full", True),
        (10.4, "full", False),  # the same bin
        (10.5, "part", False),  # both occur, but not together
        (None, "part", True),
        (None, "full", False),
        (200.0, None, True),
        (200.0, "other", False),
        (5000.0, "other", False),  # outside the domain: not a value that is ever written
    ]
    pay, work, copied = map(list, zip(*rows, strict=True))
    table = pa.table({"WORK": work, "PAY": pay, "PLACE": ["b"] * len(rows)})
    assert Decoder.fit(SCHEMA, PUBLIC).copied(table).tolist() == copied


def test_types_do_not_matter_and_rows_without_weight_do_not_count():
    public = PUBLIC.append_column("W", pa.array([1.0, 0.0, 1.0, 1.0]))
    table = pa.table({"WORK": ["full", "part"], "PAY": ["10.50", None]})
    assert Decoder.fit(SCHEMA, public, weight="W").copied(table).tolist() == [True, False]


def test_rows_that_were_drawn_need_no_look_at_their_cells():
    weight = pa.array([1.0, 0.0, 1.0, 1.0])
    for public, weighs in ((PUBLIC, None), (PUBLIC.append_column("W", weight), "W")):
        decoder = Decoder.fit(SCHEMA, public, weight=weighs)
        coded = encode(SCHEMA, public.take([0, 1, 2, 3, 0, 3, 2]))  # the last three were drawn from other rows
        drawn = np.array([0, 1, 2, 3, 2, -1, 99])
        table = decoder.decode(coded, seed=0, drawn=drawn)
        expected = decoder.copied(table).tolist()
        assert decoder.copied(table, coded, drawn).tolist() == expected
        assert expected[:4] == [True, weighs is None, True, False]


def test_the_share_stays_with_the_table(tmp_path):
    import pyarrow.parquet as pq

    table = PUBLIC.replace_schema_metadata(noted_share(PUBLIC.schema, 3, 4).metadata)
    pq.write_table(table, tmp_path / "rows.parquet")
    assert copied_share(pq.read_schema(tmp_path / "rows.parquet")) == 0.75
    assert copied_share(noted_share(PUBLIC.schema, 0, 0)) == 0
    assert copied_share(PUBLIC.schema) is None
    for stated in (b"much", b"1.5", b"nan"):
        assert copied_share(PUBLIC.schema.with_metadata({b"prade:copied": stated})) is None


def test_all_is_said_only_where_it_is_all():
    for share, said in ((1.0, "100 % of"), (0.99996, "99.9 % of"), (0.5, "50 % of"), (0.0, "0 %")):
        assert copies_in_words(share).startswith(said)
    assert "not recorded" in copies_in_words(None)
