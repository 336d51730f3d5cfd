"""What a draft can tell its reviewer beyond categories and edges. Everything here is confidential.

Names suggest roles and kinds; counts show who is alone; codes that often mean "missing" are asked
about; columns that go together, combinations that never occur and identifiers that repeat are
pointed out. All of it is comments: nothing is changed by it but by a person.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from pegsynth.schema.dtypes import unit_text

LOOKED_AT = 200_000
MOST_CELLS = 1 << 23
PAIRED_ROWS = 50_000
MOST_PAIRED = 60
FEW = 10
MOST_SHOWN = 12
MOST_RULE_CATEGORIES = 12
LEAST_EXPECTED = 30.0
MOST_RULES = 5
NEARLY_CONSTANT = 0.99

_QUASI = re.compile(
    r"(^|[_\W\d])(age|alter|sex|gender|geschlecht|zip|postcode|plz|postal|race|ethnic\w*|birth\w*|"
    r"dob|marital\w*|region|county|city|town|state|nationality|religion|education|occupation)"
    r"($|[_\W\d])",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"(^|[_\W\d])(diag\w*|icd\w*|charge\w*|cost\w*|income|salary|wage\w*|disease|condition|"
    r"procedure|medication|drug\w*|hiv|outcome|death|verdict|debt)($|[_\W\d])",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(^|[_\W\d])(id|code|kind|type|class|category|group|status|source|sex|gender|race|region|"
    r"state|zip|plz)($|[_\W\d])",
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"(^|[_\W\d])(patient\w*|person\w*|member\w*|subject\w*|customer\w*|client\w*|household\w*|"
    r"pupil\w*|student\w*|employee\w*|participant\w*|respondent\w*|ssn|mrn|pid)($|[_\W\d])",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"(^|[_\W\d])(id|ids|ident\w*|idnum|uuid|guid|key|rownames?|rowid|row_?(no|nr|number)|index|"
    r"serial|account|kennung|lfd_?nr)($|[_\W\d])",
    re.IGNORECASE,
)
_WORDS_MISSING = frozenset(
    ("?", "unknown", "unbekannt", "n.a.", "n/a", "none", "not available", "missing", "k.a.", ".")
)
_NUMBERS_MISSING = ("-9", "-99", "-999", "-1", "9", "99", "999", "9999", "-8", "-7", "98")


def role_note(name: str) -> tuple[str, ...]:
    """Suggest a role by the name of a column."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    if _SENSITIVE.search(plain):
        return ('by its name it may be sensitive: consider role = "sensitive"',)
    if _QUASI.search(plain):
        return ('by its name others may know it of a person: consider role = "quasi-identifier"',)
    return ()


def names_codes(name: str) -> bool:
    """Say whether a column is called as one of codes, which have no order."""
    return bool(_CODE.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)))


def have_gaps(values: Sequence[str]) -> bool:
    """Say whether whole numbers lie as codes do: counts are dense, and amounts are in steps."""
    numbers = sorted(int(value) for value in values if value not in _NUMBERS_MISSING)
    step = math.gcd(*(number - numbers[0] for number in numbers)) or 1
    return len(numbers) > 3 and numbers[-1] - numbers[0] > 10 * step * len(numbers)


def names_people(name: str) -> bool:
    """Say whether a column is called as one that tells people apart."""
    return bool(_PEOPLE.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)))


def names_identifiers(name: str) -> bool:
    """Say whether a column is called as one that tells rows or people apart."""
    return bool(_IDENTIFIER.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)))


def identifier_note(name: str) -> tuple[str, ...]:
    """Suggest by the name of a column, which has many values, that it tells rows apart."""
    if not names_identifiers(name):
        return ()
    return ('by its name it tells rows or people apart: consider role = "identifier"',)


def missing_note(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Ask about values that often mean that nothing is known."""
    words = [text for text in counts if text.strip().lower() in _WORDS_MISSING]
    numbers: list[str] = []
    whole = [int(text) for text in counts if re.fullmatch(r"-?\d{1,9}", text)]
    others = [number for number in whole if str(number) not in _NUMBERS_MISSING]
    if others:
        low, high = min(others), max(others)
        # A code for "not known" lies apart from the values.
        apart = max(2.0, 0.5 * (high - low))
        numbers = [
            text
            for text in _NUMBERS_MISSING
            if text in counts and (int(text) > high + apart or int(text) < low - apart)
        ]
    found = [*words, *numbers]
    if not found:
        return ()
    listed = ", ".join(json.dumps(text, ensure_ascii=False) for text in found)
    return (f"does {listed} mean that nothing is known? If so, move it to missing",)


def count_notes(counts: Mapping[str, int], rows: int) -> tuple[str, ...]:
    """Show rare categories with their rows, and a category that nearly all rows have."""
    notes = []
    if counts and rows and max(counts.values()) >= NEARLY_CONSTANT * rows:
        what = "constant" if len(counts) == 1 else "nearly constant"
        notes.append(f"{what}: {max(counts.values()):,} of {rows:,} values are the same")
    rare = sorted((n, text) for text, n in counts.items() if n < FEW)
    if rare:
        shown = ", ".join(
            f"{json.dumps(text, ensure_ascii=False)} {n}" for n, text in rare[:MOST_SHOWN]
        )
        more = f" and {len(rare) - MOST_SHOWN} more" if len(rare) > MOST_SHOWN else ""
        notes.append(f"rows of rare categories: {shown}{more}")
    return tuple(notes)


@dataclass
class Look:
    """The first rows of a table, kept to see which columns go together."""

    _frames: list[pl.DataFrame] = field(default_factory=list)
    _rows: int = 0

    def add(self, batch: pl.DataFrame) -> None:
        """Take in the next rows, until there are enough."""
        wanted = min(LOOKED_AT, MOST_CELLS // max(batch.width, 1)) - self._rows
        if wanted > 0:
            part = batch.head(wanted)
            self._frames.append(part)
            self._rows += part.height

    def frame(self) -> pl.DataFrame:
        """Return the rows, every value as text."""
        frame = pl.concat(self._frames, how="vertical_relaxed") if self._frames else pl.DataFrame()
        return frame.select(unit_text(series) for series in frame)


def together(look: pl.DataFrame, listed: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield notes on pairs of columns, by the name of the column that each belongs to."""
    names = [name for name, values in listed.items() if len(values) > 1][:MOST_PAIRED]
    look = look.head(PAIRED_ROWS)
    rules = 0
    for first, second in itertools.combinations(names, 2):
        if max(len(listed[first]), len(listed[second])) > 300:
            continue
        # Values that are not listed are too rare to be named.
        known = pl.col(first).is_in(listed[first]) & pl.col(second).is_in(listed[second])
        pairs = look.select(first, second).filter(known).group_by(first, second).len()
        a, b = pairs[first].n_unique(), pairs[second].n_unique()
        if a == b == pairs.height and a > 2:
            yield second, f"goes with {first!r} one to one: a code and its description? Drop one"
        elif pairs.height == a and a > 2 * b:
            yield first, _detail(second)
        elif pairs.height == b and b > 2 * a:
            yield second, _detail(first)
        elif rules < MOST_RULES and max(a, b) <= MOST_RULE_CATEGORIES:
            for rule in itertools.islice(_never(pairs, first, second), MOST_RULES - rules):
                rules += 1
                yield second, rule


def _detail(of: str) -> str:
    return f"every value belongs to one value of {of!r}: consider parent = {_text(of)}"


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
