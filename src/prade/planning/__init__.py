"""Plans: which questions will be asked about the private table and with how much noise, decided from public data."""
