"""Names of files that more than one stage knows. (Those of a release itself are in `prade.release`.)"""

LEDGER = "prade.ledger"  # beside the release, where no other place is named
SYNTHETIC = "synthetic.parquet"  # in the release's folder
