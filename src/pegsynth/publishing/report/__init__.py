"""Saved results as a page to read: nothing here sees data or computes from it."""
