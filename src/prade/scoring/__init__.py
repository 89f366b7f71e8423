"""How far two tables are apart."""
