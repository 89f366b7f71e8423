"""The report: one HTML page about a release."""
