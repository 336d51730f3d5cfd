"""Faults on purpose: commands that are killed, starved and raced, and an hour at full load.

``python -m checks.faults.run`` kills commands at random moments and at every step that changes a
file, and looks at what is left. ``python -m checks.faults.soak`` releases and evaluates for an
hour. Both have a short form in the tests.
"""
