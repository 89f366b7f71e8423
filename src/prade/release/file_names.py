"""Names of the files that are added to a release's folder after measuring.

Those that are derived from the release have records (`prade.release.derived_files`); the file of labels has none.
"""

ESTIMATES, SUPPORT, SYNTHETIC = "estimates.parquet", "support.parquet", "synthetic.parquet"
WEIGHTS = "weights.npy"
CARRIED = "carried.parquet"  # the public table of the next release
SUPPORT_FOR_WORKERS = "support.arrow"  # in the folder of a run that is not complete
UNFINISHED_ESTIMATES = "unfinished-estimates"  # a folder (`prade.release.finished_batches`)
SYNTHETIC_PARTS = "synthetic"  # a folder: synthetic rows as a data set of several parquet files
UNFINISHED_ROWS = "unfinished-rows"  # a folder (`prade.release.finished_batches`)
LABELS = "labels.toml"
