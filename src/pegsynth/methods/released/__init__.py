"""Released blocks (`pegs-once`): measure once, then draw any number of rows (R11)."""
