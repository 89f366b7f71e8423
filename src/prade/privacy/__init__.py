"""The promise and its price: units of protection, budgets, and the ledger of what was spent."""
