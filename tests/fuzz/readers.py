"""Every reader that is fuzzed."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.file_readers import (
    codebook,
    estimate,
    estimates,
    geojson,
    groups,
    infer,
    plan_toml,
    private_csv,
    public,
    release,
    schema_json,
    schema_toml,
    several_public,
    targets_toml,
)
from fuzz.text_readers import command_line, numbers, query
from fuzz.world import Reader, World

__all__ = ["ALL", "Reader", "World"]

FILES = (
    schema_toml,
    schema_json,
    codebook,
    plan_toml,
    targets_toml,
    geojson,
    release,
    estimates,
    estimate,
    groups,
    public,
    infer,
    several_public,
    private_csv,
)
ALL: tuple[Callable[[World], Reader], ...] = (*FILES, query, numbers, command_line)
