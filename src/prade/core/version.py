"""The version: of the package, and in every file that it writes."""

__version__ = "0.1.0"
