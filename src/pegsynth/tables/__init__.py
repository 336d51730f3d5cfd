"""The confidential table: read, bounded by unit, encoded and counted."""
