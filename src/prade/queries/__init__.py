"""Questions about rows: predicates, one-way and two-way tables, workloads, and how much one person changes counts."""
