"""Hostile files by the thousand: every reader of the product, and what must never happen.

A *target* makes cases: a few small files and the commands that read them. A *case* is fixed
by its target, its number and the seed. A *worker* runs cases in a process of its own, through
the entry of the command line; the *oracle* judges what they did. The *campaign* watches the
workers from outside and keeps what was found.

``make fuzz`` runs a campaign; ``python -m checks.fuzz.run --help`` says how to go on with one, and
how to run one case again.
"""
