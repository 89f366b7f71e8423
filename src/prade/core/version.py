"""The version of the package, which is also written into its files."""

__version__ = "0.11.0.dev1"
