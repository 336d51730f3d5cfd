"""Everything that tries the program, outside the wheel."""
