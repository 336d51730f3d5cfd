"""How near synthetic tables are to the original: tables, numbers, regressions, predictions."""
