"""The golden corpus: what the program writes for fixed inputs and seeds, as hashes.

``python -m checks.golden`` runs every case and compares each output with ``hashes.json``; a change
that only moves or merges code keeps all of them. Cases use public names and commands only. Hashes
are those of the locked packages (``requirements/lock-dev.txt``).
"""
