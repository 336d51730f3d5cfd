"""How many rows fit a codebook: what a reviewer with leave to see the table looks at.

A schema and its table go in; for every feature comes out how many rows each category or bin has,
how many values the codebook does not list, and how many are missing; for every rule, how many rows
break it. A release would refuse some of these, and says so too late for a reviewer. Everything here
is figures of the data, under no guarantee: CONFIDENTIAL.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.codec import Encoder
from pegsynth.errors import DataError
from pegsynth.schema.binning import round_edges
from pegsynth.schema.feature import Feature
from pegsynth.schema.missing_codes import missing_count
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.schema import Schema
from pegsynth.schema.tally import ColumnTally, QuantileSketch
from pegsynth.tables.table_input import open_table

FORMAT = 1
CELLS = 24
"""Bars of a feature whose edges are not known yet."""
MOST_LISTED = 24
"""Categories of a feature that has none in the schema yet; the others are added up."""
_POINTS = 10_000
_ABSENT = "(no value)"


class FeatureCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one feature.

    Parameters
    ----------
    levels
        Categories or bins, and how many rows each has.
    unlisted, missing
        Rows whose value the schema does not list, and rows without one.
    settled
        Whether the levels are those of the schema; if not, they are only for the eye.
    refused
        How many of these rows make a release refuse the table.
    """

    name: str
    levels: tuple[tuple[str, int], ...]
    unlisted: int = 0
    missing: int = 0
    settled: bool = True
    refused: int = 0


class CodebookCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of all features, and of all rules in the order of the schema.

    A rule that speaks of levels that are not known yet has no count (None).
    """

    rows: int
    features: tuple[FeatureCounts, ...]
    broken: tuple[int | None, ...] = ()
    format: int = FORMAT

    def to_json(self) -> str:
        """Return the figures as text."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def load(cls, path: Path) -> CodebookCounts:
        """Read figures that ``pegs schema count`` wrote.

        Raises
        ------
        DataError
            The file is not there, or holds something else.
        """
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError):
            raise DataError(f"{path}: no figures that pegs schema count wrote") from None
        if found.format != FORMAT:
            raise DataError(f"{path}: written by another version; count again")
        return found


def count_rows(data: Any, schema: Schema) -> CodebookCounts:
    """Count the rows of a table by what its codebook says.

    Parameters
    ----------
    data
        A table, as `open_table` takes it.
    schema
        Its codebook, reviewed or not.
    """
    known, rules = _lenient(schema)
    names = set() if known is None else set(known.names)
    counts = [] if known is None else [np.zeros(n, np.int64) for n in known.category_counts]
    broken, rows = dict.fromkeys(rules, 0), 0
    with open_table(data, dialect=schema.dialect) as reader:
        encoder = (
            None if known is None else Encoder(known, source=reader.source, columns=reader.columns)
        )
        tallies = {
            feature.name: ColumnTally(
                feature.name,
                reader.has_type(feature.name),
                QuantileSketch(_POINTS),
                written=NumberText(reader.dialect),
            )
            for feature in schema.features
            if feature.name not in names and feature.name in reader.columns
        }
        for batch in reader.batches([*names, *tallies]):
            rows += batch.height
            for name, tally in tallies.items():
                tally.add(batch[name])
            if encoder is None or known is None:
                continue
            codes = encoder.encode(batch)
            for index, found in enumerate(counts):
                counts[index] = found + np.bincount(codes[:, index], minlength=len(found))
            for place, rule in zip(rules, known.rules, strict=True):
                broken[place] += int(rule.broken_by(codes).sum())
    kept = {} if known is None else dict(zip(known.names, counts, strict=True))
    return CodebookCounts(
        rows=rows,
        features=tuple(
            _counted(feature, known[feature.name], kept[feature.name])
            if known is not None and feature.name in kept
            else _unsettled(tallies[feature.name], rows)
            for feature in schema.features
            if feature.name in kept or feature.name in tallies
        ),
        broken=tuple(broken.get(place) for place in range(len(schema.rules))),
    )


def _lenient(schema: Schema) -> tuple[Schema | None, tuple[int, ...]]:
    """Return the features whose levels are known, under which no value is refused.

    Beside it: the places in the given schema of the rules that speak of these alone.
    """
    known = {
        feature.name
        for feature in schema.features
        if not (feature.private_edges or feature.private_categories or feature.after)
        and not feature.merges_rare
    }
    if not known:
        return None, ()
    features = schema.features
    rules = {
        place: rule
        for place, rule in enumerate(schema.rules)
        if all(features[index].name in known for index, _ in rule.forbidden)
    }
    base = replace(schema, panel=None, unit=None, rows_per_unit=1, analyses=(), tables_wanted=())
    base = replace(base, rules=tuple(rules.values()))
    columns = tuple(
        replace(
            column,
            unknown="category",
            missing=column.missing or (_ABSENT,),
            heads=(),
            parent=None,
            l=None,
            shares=(),
        )
        if column.name in known
        else Feature(column.name, role="drop")
        for column in base.columns
    )
    return base.with_columns(columns), tuple(rules)


def _counted(feature: Feature, lenient: Feature, counts: NDArray[np.int64]) -> FeatureCounts:
    """Return the rows of a feature by the levels of its schema."""
    gaps = len(lenient.labels) - missing_count(lenient)
    unlisted, missing = int(counts[lenient.bin_count]), int(counts[gaps:].sum())
    refused = unlisted * (feature.unknown == "error") + missing * (not feature.missing)
    levels = [
        (label, int(rows))
        for code, (label, rows) in enumerate(zip(lenient.labels, counts, strict=True))
        if code != lenient.bin_count and code < gaps
    ]
    return FeatureCounts(
        name=feature.name,
        levels=tuple(levels),
        unlisted=unlisted,
        missing=missing,
        refused=refused,
    )


def _unsettled(tally: ColumnTally, rows: int) -> FeatureCounts:
    """Return something to look at for a feature whose levels a release finds."""
    levels: list[tuple[str, int]] = []
    if tally.numeric and tally.sketch is not None:
        levels = _cells(tally.sketch, whole=tally.whole)
    elif tally.texts is not None:
        listed = tally.texts.sort("count", "value", descending=[True, False])
        pairs = [(str(value), int(count)) for value, count in listed.iter_rows()]
        rest = sum(count for _, count in pairs[MOST_LISTED:])
        levels = [*pairs[:MOST_LISTED], *([("all others", rest)] if rest else [])]
    return FeatureCounts(
        name=tally.name, levels=tuple(levels), missing=rows - tally.rows, settled=False
    )


def _cells(sketch: QuantileSketch, *, whole: bool) -> list[tuple[str, int]]:
    """Return cells between round numbers; the outermost hundredths count at the ends."""
    inner = sketch.quantiles(100)
    if not inner or inner[0] == inner[-1]:
        return []
    edges = round_edges(inner[0], inner[-1], CELLS, whole=whole)
    named = (f"{low:g} to {high:g}" for low, high in pairwise(edges))
    return list(zip(named, sketch.weights(edges), strict=True))
