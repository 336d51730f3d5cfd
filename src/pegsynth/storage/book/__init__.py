"""The budget book: one file that adds up everything that was spent on one table."""
