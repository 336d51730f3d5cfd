"""Slow, obvious twins of the distances: dictionaries over rows, no arrays."""

from collections import Counter
from math import comb


def table(rows, features):
    """Shares of every combination that occurs."""
    counts = Counter(tuple(row[f] for f in features) for row in rows)
    return {cell: count / len(rows) for cell, count in counts.items()}


def total_variation(rows, others, features):
    p, q = table(rows, features), table(others, features)
    return sum(abs(p.get(cell, 0) - q.get(cell, 0)) for cell in p.keys() | q.keys()) / 2


def marginal(rows, others, feature):
    p, q = table(rows, [feature]), table(others, [feature])
    return sum((p.get(cell, 0) - q.get(cell, 0)) ** 2 for cell in p.keys() | q.keys())


def conditional(rows, others, target, given, sizes):
    """Every value of `given` in turn; a table without it answers with zeros."""
    total = 0.0
    for value in range(sizes[given]):
        ours = [row for row in rows if row[given] == value]
        theirs = [row for row in others if row[given] == value]
        for category in range(sizes[target]):
            p = sum(row[target] == category for row in ours) / max(len(ours), 1)
            q = sum(row[target] == category for row in theirs) / max(len(theirs), 1)
            total += (q - p) ** 2
    return total


def binomial(n, p):
    return [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
