"""What a synthesis gives back in Python: tables, their ledger, and the codebook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pegsynth.errors import DataError, ParameterError
from pegsynth.inference.release_views import ReleaseViews
from pegsynth.options import ROW
from pegsynth.privacy import Ledger
from pegsynth.schema import Schema

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.inference.pooled_result import Pooled

TableFormat = Literal["csv", "parquet"]


@dataclass(frozen=True, repr=False)
class Release(ReleaseViews):
    """Synthetic tables of the caller's own kind, and what they cost.

    Parameters
    ----------
    frames
        The tables.
    ledger
        What they promise together.
    schema
        The codebook.
    folder
        Where they are, if they were written.
    completed
        For every table its completed versions, whose missing values were imputed from
        synthetic rows (R23); empty where none were asked for.
    weights
        For every table the weights of its rows, where these stand in a file of their own (R28).
    """

    frames: list[Any] = field(repr=False)
    ledger: Ledger = field(repr=False)
    schema: Schema | None = field(default=None, repr=False)
    folder: Path | None = None
    completed: list[list[Any]] = field(default_factory=list, repr=False)
    weights: list[pl.DataFrame] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self.frames)

    def __iter__(self) -> Iterator[Any]:
        """Yield the tables."""
        return iter(self.frames)

    @property
    def weighted(self) -> list[Any]:
        """The tables with the weights of their rows as last columns, if there are any."""
        if not self.weights:
            return list(self.frames)
        pairs = zip(self.frames, self.weights, strict=True)
        return [_plain(table).hstack(weights) for table, weights in pairs]

    def replicated(self, fit: Any, **options: Any) -> Pooled:
        """Analyse the table with each of its replicate weights, as `pegsynth.replicated` does.

        Parameters
        ----------
        fit
            A formula, a statistic of `pegsynth.procedures`, or a function of a table and weights.
        **options
            Those of `pegsynth.replicated`.
        """
        from pegsynth.inference.procedures.replicating import replicated

        return replicated(fit, self, **options)

    def save(
        self, folder: str | Path, *, table_format: TableFormat = "csv", force: bool = False
    ) -> Release:
        """Write a folder that may be published: the ledger first, then tables and texts.

        Parameters
        ----------
        folder
            Where to write; nothing may be there yet.
        table_format
            ``csv`` or ``parquet``.
        force
            Replace an earlier release or an empty folder.

        Returns
        -------
        Release
            The same tables, with their folder.
        """
        from pegsynth.publishing.public_part import save_public

        if self.schema is None:
            raise ParameterError("a release without its schema cannot be saved")
        save_public(
            Path(folder),
            [_pair(each) if isinstance(each, tuple) else _plain(each) for each in self.weighted],
            self.schema,
            self.ledger,
            completed=[[_plain(each) for each in versions] for versions in self.completed],
            table_format=table_format,
            force=force,
        )
        return replace(self, folder=Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read what ``pegs release`` or `save` wrote; `folder` or its ``public`` part."""
        folder = Path(folder)
        public = folder / "public" if (folder / "public").is_dir() else folder
        ledger = public / "privacy.json"
        if not ledger.is_file():
            raise DataError(f"{folder}: there is no privacy.json; give the folder of a release")
        schema = Schema.load(public / "schema.toml")
        frames: list[Any]
        weights: list[pl.DataFrame] = []
        if schema.panel is not None and schema.panel.tables is not None:
            named = (
                _tables_in(public, rf"synthetic-(\d+)-{re.escape(n)}", schema)
                for n in schema.panel.tables
            )
            frames = list(zip(*(found.values() for found in named), strict=True))
        else:
            frames = list(_tables_in(public, r"synthetic-(\d+)", schema).values())
            beside = _tables_in(public, r"synthetic-(1)-weights", schema).values()
            weights = [table.drop(ROW) for table in beside]
        completed: list[list[pl.DataFrame]] = [[] for _ in frames]
        for (number, _), table in _tables_in(public, r"completed-(\d+)-(\d+)", schema).items():
            completed[number - 1].append(table)
        return cls(
            frames,
            Ledger.from_json(ledger.read_bytes(), source=str(ledger)),
            schema,
            folder,
            completed if any(completed) else [],
            weights,
        )


def _plain(table: object) -> pl.DataFrame:
    from pegsynth.tables.caller_frames import from_frame

    return from_frame(table).lazy().collect()


def _pair(tables: tuple[Any, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return _plain(tables[0]), _plain(tables[1])


def _tables_in(public: Path, stem: str, schema: Schema) -> dict[tuple[int, ...], pl.DataFrame]:
    """Return the tables of a release folder with such names by their numbers, in order."""
    found = {
        tuple(map(int, name.groups())): path
        for path in sorted(public.iterdir())
        if path.suffix in (".csv", ".parquet") and (name := re.fullmatch(stem, path.stem))
    }
    return {numbers: _table_of(found[numbers], schema) for numbers in sorted(found)}


def _table_of(path: Path, schema: Schema) -> pl.DataFrame:
    """Read a table of a release; text is in the dialect of the original."""
    import polars as pl

    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    written = schema.dialect.settled(path.name)
    return pl.read_csv(
        path,
        separator=written.separator,
        decimal_comma=written.decimal == ",",
        encoding="utf8" if written.encoding == "utf-8" else written.codec,
        infer_schema_length=None,  # a text may come late in a column that begins with numbers
    )
