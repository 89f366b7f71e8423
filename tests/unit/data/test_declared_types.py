"""Programs read the synthetic file as the same types as the public one: pandas, polars and pyarrow."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Column, Schema
from prade.data.public.decode import Decoder
from prade.data.public.joint import encode
from prade.data.public.table import PublicTable
from prade.data.read.tables import read_table, write_table

ROWS = 300


def frame(seed=0):
    """One column of each kind, some with missing values, and an index that is not the rows' numbers."""
    generator = np.random.default_rng(seed)
    gaps = generator.random(ROWS) < 0.2
    return pd.DataFrame(
        {
            "CODE": pd.Series(generator.integers(1, 4, ROWS), dtype="Int64").mask(gaps),
            "SMALL": pd.Series(generator.integers(0, 100, ROWS), dtype="Int8").mask(gaps),
            "WIDE": generator.integers(0, 1000, ROWS).astype("uint16"),
            "KIND": pd.Categorical(generator.choice(["x", "y"], ROWS), ["y", "x", "never"], ordered=True),
            "REAL": np.where(gaps, np.nan, generator.normal(size=ROWS).round(3)),
            "TEXT": pd.Series(generator.choice(["a", "b"], ROWS), dtype="str").mask(gaps),
            "FLAG": pd.Series(generator.random(ROWS) < 0.5, dtype="boolean").mask(gaps),
            "DAY": pd.to_datetime("2020-01-01") + pd.to_timedelta(generator.integers(0, 900, ROWS), unit="D"),
        },
        index=pd.Index(np.arange(ROWS) + 5, name="ID"),
    )


def as_polars(public):
    return pl.from_pandas(public).with_columns(
        pl.col("TEXT").cast(pl.Categorical),
        pl.col("KIND").cast(pl.Enum(["y", "x", "never"])),
        pl.col("CODE").cast(pl.UInt8),
    )


@pytest.fixture(scope="module", params=["pandas", "polars", "pyarrow"])
def files(request, tmp_path_factory):
    """A public file, a synthetic one made from it, and the schema."""
    folder = tmp_path_factory.mktemp(request.param)
    public, synthetic = folder / "public.parquet", folder / "synthetic.parquet"
    if request.param == "pandas":
        frame().to_parquet(public)
    elif request.param == "polars":
        as_polars(frame()).write_parquet(public)
    else:
        pq.write_table(pa.Table.from_pandas(frame(), preserve_index=False).replace_schema_metadata(None), public)
    schema = Schema.infer(public, skip=["ID"] if request.param == "pandas" else [])
    write_table(Decoder.fit(schema, public).decode(encode(schema, public), seed=1), synthetic)
    return public, synthetic, schema


def test_pandas_polars_and_pyarrow_read_the_same_types(files):
    public, synthetic = map(pd.read_parquet, files[:2])
    assert synthetic.dtypes.to_dict() == public.dtypes[list(synthetic.columns)].to_dict()
    assert list(synthetic.columns) == [*files[2].names]
    assert list(synthetic.index) == list(range(ROWS))  # the public index numbers other rows
    assert synthetic["CODE"].isna().any()
    public, synthetic = map(pl.read_parquet, files[:2])
    assert synthetic.schema == public.select(synthetic.columns).schema
    public, synthetic = map(pq.read_schema, files[:2])
    for name in synthetic.names:
        assert synthetic.field(name).equals(public.field(name), check_metadata=True), name


@pytest.mark.parametrize("like", ["pandas", "polars", "pyarrow"])
def test_every_kind_of_public_table_gives_every_kind_of_frame(like):
    pandas = frame().reset_index(drop=True)
    for public in (pandas, pandas.astype({"CODE": "float64"}), as_polars(frame()), pa.Table.from_pandas(pandas)):
        schema = Schema.infer(public)
        coded = encode(schema, public)
        made = Decoder.fit(schema, public).decode(coded, seed=1, like=like)
        assert type(made).__module__.split(".")[0] == like
        again = encode(schema, made)
        assert all(np.array_equal(again.codes[name], codes) for name, codes in coded.codes.items())
        if public is pandas and like == "pandas":
            assert made.dtypes.to_dict() == public.dtypes.to_dict()
        if like == "polars":
            assert made.schema["KIND"] in (pl.Enum(["y", "x", "never"]), pl.Categorical)


@pytest.mark.parametrize(
    "cells",
    [
        *(pd.Series(["a", "b", "a"] * 9, dtype=kind) for kind in ("object", "str", "string", "string[python]")),
        *(pd.Series([1, 0, 1] * 9, dtype=kind) for kind in ("category", "Int64", "int8", "bool", "boolean", "object")),
        pd.Series([None, True, False] * 9, dtype="object"),
        pd.Series(np.linspace(0, 1, 27), dtype="float32"),
        pd.Series(pd.date_range("2020-01-01", periods=27), dtype="datetime64[ns]"),
        *(pl.Series("", ["a", "b", "a"] * 9, dtype=kind) for kind in (pl.Categorical, pl.Enum(["b", "a"]), pl.String)),
        pl.Series("", [1, None, 2] * 9, dtype=pl.Int8),
        pl.Series("", range(27)).cast(pl.Date),
    ],
    ids=lambda cells: f"{type(cells).__module__.partition('.')[0]} {cells.dtype}",
)
def test_a_frame_has_the_types_of_the_public_frame(cells):
    public = PublicTable(cells.to_frame("X"))
    schema = Schema.infer(public.source)
    made = public.decoder(schema).decode(public.rows(schema).prior, seed=0, like=public.like)["X"]
    assert made.dtype == cells.dtype
    assert set(map(type, made)) == set(map(type, cells))


def test_values_that_the_public_dictionary_lacks_come_after_its_own(tmp_path):
    public = pa.table({"KIND": pa.array(["x", "y", "x"]).dictionary_encode()})
    schema = Schema([Column("KIND", "categorical", values=["new", "y", "x"])])
    made = Decoder.fit(schema, public).decode(encode(schema, {"KIND": ["new", "y", "new"]}), seed=0)
    assert made["KIND"].combine_chunks().dictionary.to_pylist() == ["x", "y", "new"]
    assert made["KIND"].to_pylist() == ["new", "y", "new"]
    assert made.schema == public.schema


def test_whole_numbers_of_a_csv_file_stay_whole_numbers(tmp_path):
    rows = "\n".join(f"{k % 3 + 1 if k % 5 else ''},{k * 37 % 1000},{k / 4},0{k % 7}" for k in range(200))
    (tmp_path / "public.csv").write_text(f"CODE,PAY,REAL,ZIP\n{rows}\n")
    schema = Schema.infer(tmp_path / "public.csv")
    made = PublicTable(tmp_path / "public.csv").decoder(schema).decode(encode(schema, tmp_path / "public.csv"), seed=1)
    write_table(made, tmp_path / "synthetic.csv")
    cells = [line.split(",") for line in (tmp_path / "synthetic.csv").read_text().splitlines()[1:]]
    assert {code for code, *_ in cells} == {"1", "2", "3", ""}
    assert all(pay.isdigit() for _, pay, *_ in cells)
    assert {zipped.strip('"') for *_, zipped in cells} == {f"0{k}" for k in range(7)}
    public, synthetic = (read_table(tmp_path / name) for name in ("public.csv", "synthetic.csv"))
    assert synthetic.schema == public.schema


def test_several_files_keep_what_they_agree_on(tmp_path):
    one, other = frame(0), frame(1)
    other["SMALL"] = other["SMALL"].astype("Int32")  # another width
    other["WIDE"] = other["WIDE"].astype("float64")  # another type
    other["TEXT"] = pd.Series([None] * ROWS, dtype="object").to_numpy()  # no value at all
    other["KIND"] = other["KIND"].cat.set_categories(["x", "y", "more"], ordered=True)
    for name, rows in (("one", one), ("other", other)):
        rows.to_parquet(tmp_path / f"{name}.parquet", index=False)
    public = PublicTable([tmp_path / "one.parquet", tmp_path / "other.parquet"])
    schema = public.draft()
    write_table(
        public.decoder(schema).decode(public.rows(schema).prior, seed=0), path := tmp_path / "synthetic.parquet"
    )
    read = pd.read_parquet(path)
    kinds = {name: str(kind) for name, kind in read.dtypes.items()}
    expected = {"CODE": "Int64", "WIDE": "float64", "FLAG": "boolean"}
    assert {name: kinds[name] for name in expected} == expected
    assert list(read["KIND"].cat.categories) == ["y", "x", "never", "more"]
    assert kinds["TEXT"] == str(one["TEXT"].dtype)
