"""Strategies: what to measure so that a whole workload is answered with the least variance."""
