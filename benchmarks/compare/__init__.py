"""prade beside other systems, on the same data, for the same epsilon, by the same score: `make compare`."""
