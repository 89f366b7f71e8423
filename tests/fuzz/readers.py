"""Every reader that is fuzzed."""

from fuzz import file_readers as files
from fuzz import text_readers as texts
from fuzz.world import Reader, World

__all__ = ["ALL", "Reader", "World"]

DOCUMENTS = (files.schema_toml, files.plan_toml, files.targets_toml, files.geojson)
OF_A_RELEASE = (files.release, files.estimates)
TABLES = (files.groups, files.public, files.infer, files.several_public, files.private_csv)
ALL = (*DOCUMENTS, *OF_A_RELEASE, *TABLES, texts.query, texts.numbers, texts.command_line)
