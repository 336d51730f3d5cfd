"""What an office's policy does to synthetic rows: rounding, and suppression of rare combinations.

All of it is a function of the synthetic rows, so it costs nothing and protects nobody further
(R31). Frames of one table go in, the same rows come out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from pegsynth.codec.column_decoding import multiples_inside
from pegsynth.codec.encoding import ColumnEncoder, special_number
from pegsynth.errors import ParameterError
from pegsynth.options import Publication
from pegsynth.schema import Feature, Schema
from pegsynth.schema.number_text import NumberText

_COUNT = "rows"


@dataclass(frozen=True)
class Policy:
    """What is done to synthetic rows before they are published.

    Parameters
    ----------
    k
        Features are blanked in rows whose combination fewer rows share; None: none are.
    k_features
        The features whose combination counts; empty: the quasi-identifiers.
    round_to
        Features with numbers, and the multiples that they are rounded to.
    """

    k: int | None = None
    k_features: tuple[str, ...] = ()
    round_to: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, publication: Publication) -> Policy:
        """Return the policy of a publication."""
        return cls(publication.k, publication.k_features, publication.round_to)

    def __bool__(self) -> bool:
        return self.k is not None or bool(self.round_to)

    def settled(self, schema: Schema, *, labels: bool = False, completed: bool = False) -> Policy:
        """Return the policy with its features named, refusing what a schema has no use for.

        Parameters
        ----------
        labels
            Whether bins are written by their labels, which cannot be rounded.
        completed
            Whether completed versions are published too: these would fill what is blanked.
        """
        if self and completed:
            raise ParameterError(
                "--complete fills what --k blanks, and imputes numbers that --round has not seen; "
                "leave out one of them"
            )
        for name, step in self.round_to:
            _check_rounded(schema, name, step, labels=labels)
        if self.k is None:
            return self
        named = self.k_features or tuple(
            feature.name for feature in schema.features if feature.role == "quasi-identifier"
        )
        if not named:
            raise ParameterError(
                "--k: the schema marks no feature as quasi-identifier; name some with --k-features"
            )
        for name in named:
            if name not in schema.names:
                raise ParameterError(f"--k-features: the schema has no feature {name!r}")
        return replace(self, k_features=tuple(dict.fromkeys(named)))

    def codebook(self, schema: Schema) -> Schema:
        """Return the codebook of what is published: blanked features may be missing."""
        if self.k is None:
            return schema
        columns = tuple(
            _with_missing(column) if column.name in self.k_features else column
            for column in schema.columns
        )
        return replace(schema, columns=columns)

    def applied(
        self, frames: Iterator[pl.DataFrame], schema: Schema, folder: Path
    ) -> Iterator[pl.DataFrame]:
        """Yield the frames of one table as they are published.

        Which combinations are rare is known after the last row, so that rows wait in a hidden
        folder inside `folder`.
        """
        frames = (self._rounded(frame, schema) for frame in frames)
        if self.k is None:
            yield from frames
            return
        blanked = [
            column.name
            for column in schema.columns
            if (column.label_of or column.name) in self.k_features and not column.dropped
        ]
        with TemporaryDirectory(dir=folder, prefix=".pegs-") as waiting:
            counted, parts = self._counted(frames, schema, Path(waiting))
            for part in parts:
                frame = pl.read_ipc(part)
                rare = self._codes(frame, schema).join(
                    counted, on=self.k_features, how="left", maintain_order="left"
                )
                hit = rare.get_column(_COUNT) < self.k
                yield frame.with_columns(
                    pl.when(pl.lit(~hit)).then(pl.col(name)).alias(name)
                    for name in blanked
                    if name in frame.columns
                )
                part.unlink()

    def _counted(
        self, frames: Iterator[pl.DataFrame], schema: Schema, waiting: Path
    ) -> tuple[pl.DataFrame, list[Path]]:
        """Count combinations by categories and bins, and let the rows wait."""
        total: pl.DataFrame | None = None
        parts = []
        for number, frame in enumerate(frames):
            parts.append(waiting / f"{number}.arrow")
            frame.write_ipc(parts[-1])
            codes = self._codes(frame, schema).group_by(self.k_features).len(name=_COUNT)
            together = codes if total is None else pl.concat([total, codes])
            total = together.group_by(self.k_features).agg(pl.col(_COUNT).sum())
        empty = pl.DataFrame(schema={**dict.fromkeys(self.k_features, pl.Int64), _COUNT: pl.UInt32})
        return empty if total is None else total, parts

    def _codes(self, frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
        """Return the published rows as codes: numbers are told apart by their bins."""
        written = NumberText(schema.dialect)
        columns = []
        for name in self.k_features:
            feature = _with_missing(schema[name])
            codes = ColumnEncoder(feature, numbers=written).encode(frame.get_column(name))
            columns.append(pl.Series(name, codes).cast(pl.Int64))
        return pl.DataFrame(columns)

    def _rounded(self, frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
        return frame.with_columns(
            _multiples(frame.get_column(name), step, schema[name], NumberText(schema.dialect))
            for name, step in self.round_to
        )


NO_POLICY = Policy()


def _check_rounded(schema: Schema, name: str, step: object, *, labels: bool) -> None:
    if name not in schema.names or schema[name].kind != "numeric":
        raise ParameterError(f"--round: the schema has no numeric feature {name!r}")
    if labels:
        raise ParameterError("--round requires numbers, and --decode labels writes bins")
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < math.inf:
        raise ParameterError(f"--round {name}: the step must be a number greater than 0")
    if schema[name].integer and step != int(step):
        raise ParameterError(f"--round {name}: a whole number is rounded to whole steps")


def _multiples(column: pl.Series, step: float, feature: Feature, written: NumberText) -> pl.Series:
    """Return numbers as the nearest multiples between the public bounds of their feature.

    Numbers that mean "missing" stay, and so does a column of text, with special values.
    """
    if not column.dtype.is_numeric():
        return column
    numbers = column.cast(pl.Float64).to_numpy()
    texts = (*feature.missing, *feature.not_applicable)
    found = (special_number(text, written) for text in texts)
    special = [number for number in found if number is not None]
    # One bin from the first to the last number.
    one = np.zeros(len(numbers), dtype=np.int64)
    made = multiples_inside(numbers, one, feature.public_bounds, float(step))
    made = np.where(np.isin(numbers, special), numbers, made)
    return pl.Series(column.name, made).fill_nan(None).cast(column.dtype)


def _with_missing(feature: Feature) -> Feature:
    """Return a feature that may be blank; its other codes stay what they are."""
    if feature.missing and not (feature.keep_missing_codes and "" not in feature.missing):
        return feature
    if "" in (*feature.categories, *feature.not_applicable):
        raise ParameterError(
            f"--k-features {feature.name}: an empty value is one of its categories and cannot mean "
            "that it is blank; leave it out"
        )
    shares = (*feature.shares, 0.0) if feature.shares else ()
    return replace(feature, missing=(*feature.missing, ""), shares=shares)
