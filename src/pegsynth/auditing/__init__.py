"""Checks of the claimed guarantee: exact enumeration of the shipped code, and sampling."""
