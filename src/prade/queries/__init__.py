"""Questions about rows: predicates, one- and two-way tables, workloads, and how far one person moves their counts."""
