"""People in places of states: the columns of most tests with levels."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from prade import Column, Schema
from prade.data.public.decode import Decoder

STATE, PLACE = Column("STATE", "group"), Column("PLACE", "group")
AGE = Column("AGE", "numeric", edges=[18, 40, 65])
YEARS = Column("AGE", "numeric", integer=True, min=0, max=99, edges=[18, 40, 65])  # whole ones
SEX = Column("SEX", "categorical", values=[1, 2])
WORK = Column("WORK", "categorical", values=["none", "part", "full"])
PERHAPS_WORK = replace(WORK, missing=True)

SCHEMA = Schema([STATE, PLACE, AGE, SEX, WORK])
THREE_PLACES = {"STATE": [1, 1, 2], "PLACE": ["p", "q", "p"]}
FIVE_PLACES = {"STATE": [1, 1, 1, 2, 2], "PLACE": ["p", "q", "r", "p", "s"]}


def people(seed, states, rows, unknown=0.0, places=("p", "q")):
    """Invented people in the places of these states; the work of a share of them is not known."""
    generator = np.random.default_rng(seed)
    columns = {
        "STATE": generator.choice(states, rows),
        "PLACE": generator.choice(places, rows),
        "AGE": generator.integers(0, 90, rows),
        "SEX": generator.integers(1, 3, rows),
    }
    work = generator.choice(["none", "part", "full"], rows)
    return pa.table({**columns, "WORK": pa.array(work, mask=generator.random(rows) < unknown)})


def plain_decoder(schema):
    """A decoder without public values: listed values as the schema lists them, numbers uniform within their bin."""
    types = {column.name: column.domain.natural_type() for column in schema if not column.groups}
    return Decoder.fit(schema, pa.table({name: pa.array([], kind) for name, kind in types.items()}))
