"""Exact noise, private selection, and the rules that restrict a draw."""

from pegsynth.mechanisms.rule_patterns import rule_tables

__all__ = ["rule_tables"]
