"""The worlds that tests share: schemas, plans, private tables, releases, observers, and processes that die."""
