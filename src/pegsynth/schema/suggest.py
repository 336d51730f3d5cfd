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
from dataclasses import dataclass, field, replace

import polars as pl

from pegsynth.schema.dtypes import unit_text
from pegsynth.schema.feature import Feature
from pegsynth.schema.tally import FEW_PEOPLE

LOOKED_AT = 200_000
MOST_CELLS = 1 << 23
PAIRED_ROWS = 50_000
MOST_PAIRED = 60
MOST_SHOWN = 12
MOST_RULE_CATEGORIES = 12
LEAST_EXPECTED = 30.0
MOST_RULES = 5
NEARLY_CONSTANT = 0.9

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
    r"(^|[_\W\d])(id|code|cd|kind|type|category|status|source|sex|gender|race|region|state|zip|plz|"
    r"fips|puma|tract|postcode|precinct|district|county|province|country|nationality|religion|"
    r"ethnic\w*|marital\w*|language|vote|party|mode|cause|reason|disposition|department|dept|hospital|"
    r"clinic|ward|school|site|cent(er|re)|plot|panel|batch|brand|occ|occupation_?code|isco|naics|nace|"
    r"sic|icd|drg|dx|group|class)[_\W\d]*$",
    re.IGNORECASE,
)
_IN_ORDER = re.compile(
    r"(age|income|size|weight|wage|time|edu\w*)[_\W]*(group|class|category|code)", re.IGNORECASE
)
_PEOPLE = re.compile(
    r"(^|[_\W\d])(patient|person|member|subject|customer|client|household|family|pupil|student|child|"
    r"employee|participant|respondent|individual|firm|ssn|mrn|pid)[_\W]*"
    r"(id|idno|no|nr|nbr|num|number|key|code)?$",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"(^|[_\W\d])(id|ids|id(num|no|nr)|ident\w*|uuid|guid|key|rownames?|rowid|index|serial|account|"
    r"kennung|(row|license|licence|record|case|serial|account|lfd)[_\W]*(no|nr|num|number))$"
    r"|[a-z](?<!ac)(?<!cov)(?<!flu)(?<!gr)(?<!hum)(?<!lip)(?<!pa)(?<!o)(?<!val)id$",
    re.IGNORECASE,
)
_PERSONAL = re.compile(
    r"(^|[_\W\d])((first|last|sur|fore|family|full|given|maiden|middle|nach|vor)[_\W]*name|"
    r"e?[_\W]*mail|phone|telephone|street|address|iban)$",
    re.IGNORECASE,
)
_WORDS_MISSING = frozenset(
    ("?", "unknown", "unbekannt", "n.a.", "n/a", "none", "not available", "missing", "k.a.", ".")
)
_NUMBERS_MISSING = ("-9", "-99", "-999", "-1", "9", "99", "999", "9999", "-8", "-7", "98")


def role_note(name: str) -> tuple[str, ...]:
    """Suggest a role by the name of a column."""
    plain = _plain(name)
    if _SENSITIVE.search(plain):
        return ('by its name it may be sensitive: consider role = "sensitive"',)
    if _QUASI.search(plain):
        return ('by its name others may know it of a person: consider role = "quasi-identifier"',)
    return ()


def _plain(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)


def names_codes(name: str) -> bool:
    """Say whether a column is called as one of codes, which have no order."""
    return bool(_CODE.search(_plain(name))) and not _IN_ORDER.search(_plain(name))


def names_people(name: str) -> bool:
    """Say whether a column is called as one that tells people, or other units, apart."""
    return bool(_PEOPLE.search(_plain(name)))


def names_identifiers(name: str) -> bool:
    """Say whether a column is called as one of keys, be they of rows, people or groups."""
    return bool(_IDENTIFIER.search(_plain(name)))


def names_personal_texts(name: str) -> bool:
    """Say whether a column is called as one of names or addresses of people."""
    return bool(_PERSONAL.search(_plain(name)))


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


def rare_note(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Show the listed categories that few rows have, with their rows."""
    rare = sorted((n, text) for text, n in counts.items() if n < FEW_PEOPLE)
    if not rare:
        return ()
    shown = ", ".join(f"{_text(text)} {n}" for n, text in rare[:MOST_SHOWN])
    more = f" and {len(rare) - MOST_SHOWN} more" if len(rare) > MOST_SHOWN else ""
    return (f"rows of rare categories: {shown}{more}",)


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


def with_notes(columns: Sequence[Feature], look: Look) -> tuple[Feature, ...]:
    """Add what columns have to do with each other; of all remarks on one, the first is kept.

    They come in the order of what hangs on them: who is protected, what is dropped or missing,
    what belongs together, and roles.
    """
    rows = look.frame()
    listed = {each.name: each.categories for each in columns if each.categories}
    keys = [each.name for each in columns if each.role == "identifier" or _seems_one(each)]
    notes = {each.name: list(each.notes) for each in columns}
    for name, note in together(rows, listed):
        notes[name].append(note)
    for name, note in unit_notes(rows, keys):
        notes[name].insert(0, note)
    for each in columns:
        if each.role != "identifier":
            notes[each.name] += role_note(each.name)
    return tuple(replace(each, notes=tuple(notes[each.name][:1])) for each in columns)


def _seems_one(feature: Feature) -> bool:
    return any("looks like an identifier" in note for note in feature.notes)


def together(look: pl.DataFrame, listed: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield notes on pairs of columns, by the name of the column that each belongs to.

    Those that matter most come first: columns that say the same, then details with the finest
    feature that they belong to, then combinations that never occur.
    """
    look = look.head(PAIRED_ROWS)
    names = [name for name, values in listed.items() if len(values) > 1 and _varied(look[name])]
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
            yield second, f"goes with {first!r} one to one: a code and its description? Drop one"
        elif pairs.height == a and a > 2 * b:
            details.append((b, first, _detail(second)))
        elif pairs.height == b and b > 2 * a:
            details.append((a, second, _detail(first)))
        elif max(a, b) <= MOST_RULE_CATEGORIES and len(rules) < MOST_RULES:
            rules += ((second, rule) for rule in _never(pairs, first, second))
    for _, name, note in sorted(details, key=lambda each: -each[0]):
        yield name, note
    yield from rules[:MOST_RULES]


def _varied(column: pl.Series) -> bool:
    """Say whether a column is not nearly constant: what goes with such a one says nothing."""
    counts = column.drop_nulls().value_counts(name="rows")["rows"].to_list()
    return bool(counts) and max(counts) < NEARLY_CONSTANT * sum(counts)


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
