"""Names of files that more than one stage knows. (Those of a release itself are in `prade.release.release`.)"""

ESTIMATES, SUPPORT = "estimates.parquet", "support.parquet"  # in the release's folder
SYNTHETIC = "synthetic.parquet"  # in the release's folder
