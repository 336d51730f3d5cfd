"""Methods: how stages are put together to make synthetic tables."""
