"""Names of the files that are derived from a release and kept in its folder (`prade.release.derived_files`)."""

ESTIMATES, SUPPORT, SYNTHETIC = "estimates.parquet", "support.parquet", "synthetic.parquet"
WEIGHTS = "weights.npy"
