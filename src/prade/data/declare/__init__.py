"""Declaring what a table contains: columns, schemas, groups, and their words for readers."""
