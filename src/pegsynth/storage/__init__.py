"""Model files, and records of what was spent."""
