"""Files of our own: models, records of what was spent, checkpoints."""
