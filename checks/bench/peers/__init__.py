"""Other people's synthesizers and ours: same tables, same total budget, same metric code.

`tables` gives every table as integer codes with a public domain, `tools` names every
synthesizer, `environments` installs each peer apart from the others, `programs` holds what
runs inside such an environment, `execute` runs one of them under a time cap and scores what
it wrote, `results` keeps the outcome, `report` writes ``checks/bench/RESULTS.md``. Start it
with ``python -m checks.bench.peers.run`` or ``make bench-peers``.
"""
