"""Saved results as a page to read: nothing here sees data or computes from it."""

from pegsynth.report.html import render

__all__ = ["render"]
