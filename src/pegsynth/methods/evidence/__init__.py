"""Published tables and other evidence from elsewhere: `pegs-tables` (R36)."""
