"""How long things take, as ratios to well-known work on the same machine in the same run."""
