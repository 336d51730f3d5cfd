"""The release folder: what may be published, and what may not."""
