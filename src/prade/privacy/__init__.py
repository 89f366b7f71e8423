"""What is promised and what it costs: units of protection, privacy budgets, and the ledger of what has been spent."""
