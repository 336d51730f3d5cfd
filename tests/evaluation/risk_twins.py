"""Slow, obvious twins of the risk measures: loops over rows, no arrays; and small tables."""

import math
from collections import Counter

import numpy as np

from pegsynth.evaluation.measuring import risk_records
from pegsynth.evaluation.risk.intruder import attacks_of
from pegsynth.evaluation.risk.risk_tables import risk_tables
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema

SIZES = (4, 3, 2, 5, 3)
QUASI, SENSITIVE = (0, 1, 2), (3,)


def make_schema(sizes=SIZES, quasi=QUASI, sensitive=SENSITIVE, **changes):
    """Features f0, f1, ..; `changes` are further arguments by feature name."""

    def feature(i, size):
        role = "quasi-identifier" if i in quasi else "sensitive" if i in sensitive else "other"
        given = {"categories": tuple(f"c{c}" for c in range(size))} | changes.get(f"f{i}", {})
        return Feature(f"f{i}", role=role, **given)

    return Schema(tuple(feature(i, size) for i, size in enumerate(sizes)))


def all_risks(original, released, schema, *, attacks=((None, None),), **given):
    """Every risk; of the attacks, names of features, the first stands for the roles."""
    known, infer = attacks[0]
    tables = risk_tables(original, released, schema, known=known, infer=infer, **given)
    return risk_records(tables, [each for names in attacks for each in attacks_of(schema, *names)])


def population(rows, seed, sizes=SIZES):
    """Skewed, dependent rows: the same population for every seed."""
    rng = np.random.default_rng(seed)
    common = rng.random(rows)
    columns = [np.minimum(rng.random(rows), common) ** 2 * size for size in sizes]
    return np.stack(columns, axis=1).astype(np.uint8)


def values_of(row, features):
    return tuple(row[f] for f in features)


def error_by_category(rows, released, known, sensitive):
    """Chance of a wrong guess for every row, ties broken at random."""
    errors = []
    for row in rows:
        matching = [r for r in released if values_of(r, known) == values_of(row, known)]
        counts = Counter(r[sensitive] for r in matching or released)
        modes = [code for code, count in counts.items() if count == max(counts.values())]
        errors.append(1 - (row[sensitive] in modes) / len(modes))
    return errors


def error_by_mean(rows, released, known, sensitive, numbers):
    """Absolute error for every row; None where the truth has no number."""
    usable = [r for r in released if not math.isnan(numbers[r[sensitive]])]
    errors = []
    for row in rows:
        matching = [r for r in usable if values_of(r, known) == values_of(row, known)]
        guesses = [numbers[r[sensitive]] for r in matching or usable]
        truth = numbers[row[sensitive]]
        missing = math.isnan(truth) or not guesses
        errors.append(None if missing else abs(sum(guesses) / len(guesses) - truth))
    return errors


def matched(rows, released, known):
    keys = {values_of(r, known) for r in released}
    return sum(values_of(row, known) in keys for row in rows) / len(rows)


def uniques(rows, features):
    counts = Counter(values_of(row, features) for row in rows)
    return [key for key, count in counts.items() if count == 1]


def match_counts(row, released, known, sensitive):
    """Released rows that agree on what is known, and those that are right."""
    found = [r for r in released if values_of(r, known) == values_of(row, known)]
    return len(found), sum(values_of(r, sensitive) == values_of(row, sensitive) for r in found)


def nearest(row, released, features):
    """Smallest number of differing features, and the released rows at that distance."""
    apart = [sum(r[f] != row[f] for f in features) for r in released]
    return min(apart), [r for r, d in zip(released, apart, strict=True) if d == min(apart)]


def area(members, others):
    wins = [(m > o) + 0.5 * (m == o) for m in members for o in others]
    return sum(wins) / len(wins)


def advantage(members, others):
    def share(scores, threshold):
        return sum(s >= threshold for s in scores) / len(scores)

    thresholds = {*members, *others, math.inf}
    return max(share(members, t) - share(others, t) for t in thresholds)
