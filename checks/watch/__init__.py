"""Watches the checks themselves: how often they cry wolf, and whether they see one."""
