"""Whether one row changes how the others are read, through every reader (R30)."""
