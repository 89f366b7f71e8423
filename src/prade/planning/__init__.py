"""What will be asked of the private table, at which noise: a plan is a value and a file, made from public data."""
