"""Names of files that more than one stage knows. (Those of a release itself are in `prade.release`.)"""

SYNTHETIC = "synthetic.parquet"  # in the release's folder
