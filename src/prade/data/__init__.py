"""Tables and what they are declared to hold: schemas, cells into codes and back, public rows and their groups."""
