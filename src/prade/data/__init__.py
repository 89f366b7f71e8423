"""Tables and their schemas: reading tables, turning cells into codes and back, public rows and their groups."""
