"""What a draft can tell its reviewer beyond categories and edges. Everything here is confidential.

Names suggest roles and kinds; counts show who is alone; codes that often mean "missing" are asked
about; columns that go together, combinations that never occur and identifiers that repeat are
pointed out. All of it is comments, one a column: nothing is changed by it but by a person.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from pegsynth.schema.dtypes import unit_text
from pegsynth.schema.feature import Feature
from pegsynth.schema.tally import FEW_PEOPLE
from pegsynth.schema.words import named, public_words

PAIRED_ROWS = 50_000
MOST_PAIRED = 60
MOST_SHOWN = 12
MOST_RULE_CATEGORIES = 12
LEAST_EXPECTED = 30.0
MOST_RULES = 5
NEARLY_CONSTANT = 0.9


def role_note(name: str) -> tuple[str, ...]:
    """Suggest a role by the name of a column."""
    if named(name, "sensitive"):
        return ('by its name it may be sensitive: consider role = "sensitive"',)
    if named(name, "quasi-identifier"):
        return ('by its name others may know it of a person: consider role = "quasi-identifier"',)
    return ()


def missing_note(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Ask about values that often mean that nothing is known."""
    known = public_words()["missing"]
    words = [text for text in counts if text.strip().lower() in known["words"]]
    whole = [int(text) for text in counts if re.fullmatch(r"-?\d{1,9}", text)]
    others = [number for number in whole if str(number) not in known["codes"]]
    numbers: list[str] = []
    if others:
        low, high = min(others), max(others)
        # A code for "not known" lies apart from the values.
        apart = max(2.0, 0.5 * (high - low))
        listed = [text for text in known["codes"] if text in counts]
        numbers = [text for text in listed if not low - apart <= int(text) <= high + apart]
    found = [*words, *numbers]
    if not found:
        return ()
    quoted = ", ".join(map(_text, found))
    return (f"does {quoted} mean that nothing is known? If so, move it to missing",)


def rare_note(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Show the listed categories that few rows have, with their rows."""
    rare = sorted((n, text) for text, n in counts.items() if n < FEW_PEOPLE)
    if not rare:
        return ()
    shown = ", ".join(f"{_text(text)} {n}" for n, text in rare[:MOST_SHOWN])
    more = f" and {len(rare) - MOST_SHOWN} more" if len(rare) > MOST_SHOWN else ""
    return (f"rows of rare categories: {shown}{more}",)


def with_notes(columns: Sequence[Feature], batches: Sequence[pl.DataFrame]) -> tuple[Feature, ...]:
    """Add what columns have to do with each other; of all remarks on one, the first is kept.

    They come in the order of what hangs on them: who is protected, what is dropped or missing,
    what belongs together, and roles.

    Parameters
    ----------
    batches
        The first rows of the table.
    """
    first = pl.concat(batches, how="vertical_relaxed") if batches else pl.DataFrame()
    rows = first.select(unit_text(series) for series in first)
    listed = {each.name: each.categories for each in columns if each.categories}
    alike = "looks like an identifier"
    keys = [
        each.name
        for each in columns
        if each.role == "identifier" or any(alike in note for note in each.notes)
    ]
    notes = {each.name: list(each.notes) for each in columns}
    for name, note in together(rows, listed):
        notes[name].append(note)
    for name, note in unit_notes(rows, keys):
        notes[name].insert(0, note)
    for each in columns:
        if each.role != "identifier":
            notes[each.name] += role_note(each.name)
    return tuple(replace(each, notes=tuple(notes[each.name][:1])) for each in columns)


def together(look: pl.DataFrame, listed: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield notes on pairs of columns, by the name of the column that each belongs to.

    Those that matter most come first: columns that say the same, then details with the finest
    feature that they belong to, then combinations that never occur.
    """
    look = look.head(PAIRED_ROWS)
    several = [name for name, values in listed.items() if len(values) > 1]
    rows_of = {n: look[n].drop_nulls().value_counts(name="rows")["rows"].to_list() for n in several}
    # What goes with a column that is nearly constant says nothing.
    names = [n for n, rows in rows_of.items() if rows and max(rows) < NEARLY_CONSTANT * sum(rows)]
    details: list[tuple[int, str, str]] = []
    rules: list[tuple[str, str]] = []
    for first, second in itertools.combinations(names[:MOST_PAIRED], 2):
        if max(len(listed[first]), len(listed[second])) > 300:
            continue
        # Values that are not listed are too rare to be named.
        known = pl.col(first).is_in(listed[first]) & pl.col(second).is_in(listed[second])
        pairs = look.select(first, second).filter(known).group_by(first, second).len()
        a, b = pairs[first].n_unique(), pairs[second].n_unique()
        if a == b == pairs.height and a > 2:
            yield (
                second,
                f"corresponds to {first!r} one to one: a code and its description? Drop one",
            )
        elif pairs.height == a and a > 2 * b:
            details.append((b, first, second))
        elif pairs.height == b and b > 2 * a:
            details.append((a, second, first))
        elif max(a, b) <= MOST_RULE_CATEGORIES and len(rules) < MOST_RULES:
            rules += ((second, rule) for rule in _never(pairs, first, second))
    for _, name, of in sorted(details, key=lambda each: -each[0]):
        yield (
            name,
            f"every value belongs to one value of {of!r}: consider parent = {_text(of)}",
        )
    yield from rules[:MOST_RULES]


def _never(pairs: pl.DataFrame, first: str, second: str) -> Iterator[str]:
    """Yield combinations that never occur though many were to be expected."""
    rows = int(pairs["len"].sum())
    one = dict(pairs.group_by(first).agg(pl.col("len").sum()).iter_rows())
    two = dict(pairs.group_by(second).agg(pl.col("len").sum()).iter_rows())
    there = set(pairs.select(first, second).iter_rows())
    for (a, n), (b, m) in itertools.product(sorted(one.items()), sorted(two.items())):
        if (a, b) not in there and n * m / rows >= LEAST_EXPECTED:
            forbidden = f"{_text(first)} = [{_text(a)}], {_text(second)} = [{_text(b)}]"
            yield (
                f"never with {first} = {_text(a)} in the rows looked at; only if that is publicly "
                f"known to be impossible, add: [[rules]] forbid = {{ {forbidden} }}, "
                "drafted_from_data = true"
            )


def unit_notes(look: pl.DataFrame, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield notes on identifiers that repeat: rows may belong to fewer people."""
    for name in names:
        sizes = look[name].drop_nulls().value_counts(name="rows")["rows"]
        if sizes.is_empty() or sizes.max() == 1 or len(sizes) == len(look):
            continue
        histogram = sizes.value_counts(name="units").sort("rows")
        shown = ", ".join(f"{n} with {k}" for k, n in histogram.head(MOST_SHOWN).iter_rows())
        most = int(histogram["rows"][-1])
        more = f", up to {most}" if histogram.height > MOST_SHOWN else ""
        yield (
            name,
            f"its values repeat: if it names people, set unit = {_text(name)} under [table]. Rows "
            f"for each in the {len(look):,} rows looked at: {shown}{more}",
        )


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
