"""Names of the files that are added to a release's folder after measuring.

Those that are derived from the release have records (`prade.release.derived_files`); the file of labels has none.
"""

ESTIMATES, SUPPORT, SYNTHETIC = "estimates.parquet", "support.parquet", "synthetic.parquet"
WEIGHTS = "weights.npy"
LABELS = "labels.toml"
