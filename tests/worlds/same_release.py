"""Whether several ways make the same release: noise that can be repeated, and what a release's folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from prade.release.release import read_manifest

MADE = ("plan.toml", "measurements.parquet", "estimates.parquet", "support.parquet", "synthetic.parquet")
RECORDS = ("estimates.json", "synthetic.json")


def fixed_noise(counts: Any, law: str, scale: Any, **_: Any) -> Any:
    """The same noise for the same counts: a test may fix what the product never does."""
    noise = np.random.default_rng(7).laplace(scale=float(scale), size=counts.shape)
    return counts + np.rint(noise).astype(np.int64)


def content(folder: Path) -> dict[str, bytes]:
    """What a release's folder holds, without the times and the ledger's entries."""
    manifest = read_manifest(folder)
    facts = {name: getattr(manifest, name) for name in ("plan", "dataset", "files")}
    return {name: (folder / name).read_bytes() for name in (*MADE, *RECORDS)} | {"release": json.dumps(facts).encode()}
