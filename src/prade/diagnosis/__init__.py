"""How far the public table is from what was measured: alarms and distances, from answers that are already paid for."""
