"""How many rows fit a codebook: what a reviewer with leave to see the table looks at.

A schema and its table go in; for every feature comes out how many rows each category or bin has,
how many values the codebook does not list, and how many are missing; for every rule, how many rows
break it. A release would refuse some of these, and says so too late for a reviewer. Everything here
is figures of the data, under no guarantee: CONFIDENTIAL.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.codec import check_columns
from pegsynth.codec.encoding import ColumnEncoder, column_encoders
from pegsynth.errors import DataError
from pegsynth.schema.binning import round_edges
from pegsynth.schema.feature import Feature, missing_codes
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
    with open_table(data, dialect=schema.dialect) as reader:
        check_columns(schema, reader.columns, source=reader.source, need_unit=False)
        # Values without a code are counted, and none is refused.
        encoders = {
            index: encoder
            for index, encoder in enumerate(column_encoders(schema, spare=True))
            if _is_settled(encoder.feature)
        }
        counts = {
            index: np.zeros(encoder.feature.category_count + 1, np.int64)
            for index, encoder in encoders.items()
        }
        tallies = {
            index: ColumnTally(
                feature.name,
                reader.has_type(feature.name),
                QuantileSketch(_POINTS),
                written=NumberText(reader.dialect),
            )
            for index, feature in enumerate(schema.features)
            if index not in encoders
        }
        broken: list[int | None] = [
            0 if all(index in encoders for index, _ in rule.forbidden) else None
            for rule in schema.rules
        ]
        rows = 0
        for batch in reader.batches(schema.names):
            rows += batch.height
            for tally in tallies.values():
                tally.add(batch[tally.name])
            codes = np.zeros((batch.height, len(schema.names)), dtype=np.uint32)
            for index, encoder in encoders.items():
                codes[:, index] = encoder.encode_batch(batch)
                counts[index] += np.bincount(codes[:, index], minlength=len(counts[index]))
            broken = [
                None if found is None else found + int(rule.broken_by(codes).sum())
                for found, rule in zip(broken, schema.rules, strict=True)
            ]
    return CodebookCounts(
        rows=rows,
        features=tuple(
            _counted(encoders[index], counts[index])
            if index in encoders
            else _unsettled(tallies[index], rows)
            for index in range(len(schema.names))
        ),
        broken=tuple(broken),
    )


def _is_settled(feature: Feature) -> bool:
    """Whether the levels of a feature are known before a release."""
    measured = feature.private_edges or feature.private_categories or feature.merges_rare
    return not (measured or feature.after)


def _counted(encoder: ColumnEncoder, counts: NDArray[np.int64]) -> FeatureCounts:
    """Return the rows of a feature by the levels of its schema."""
    feature = encoder.feature
    others = {feature.unknown_code, *missing_codes(feature)}
    levels = tuple(
        (label, int(counts[code]))
        for code, label in enumerate(feature.labels)
        if code not in others
    )
    listed = sum(rows for _, rows in levels)
    return FeatureCounts(
        name=feature.name,
        levels=levels,
        unlisted=encoder.unlisted,
        missing=int(counts.sum()) - listed - encoder.unlisted,
        refused=encoder.unknown + encoder.absent,
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
