"""Names of the files that a release's folder may have besides the release itself (`prade.release.release`)."""

ESTIMATES, SUPPORT, SYNTHETIC = "estimates.parquet", "support.parquet", "synthetic.parquet"
