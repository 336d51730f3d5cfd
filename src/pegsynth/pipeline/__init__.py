"""The one way through: what was requested, settle, reserve, fit, draw, decode, publish."""
