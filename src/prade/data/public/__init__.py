"""Public rows: the table that the user gives, its coded rows, and the values that synthetic rows take from it."""
