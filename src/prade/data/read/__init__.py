"""Reading and writing tables: files and frames, as columns of cells."""
