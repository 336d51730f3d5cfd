"""The release folder: what may leave the house, and what may not."""
