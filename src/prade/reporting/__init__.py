"""The page about a release."""
