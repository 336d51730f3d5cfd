"""What a synthesis gives back in Python: tables, their ledger, and the codebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pegsynth.errors import DataError, ParameterError
from pegsynth.inference.release_views import ReleaseViews
from pegsynth.options.weight_names import ROW, weight_file
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
        frames: list[Any] = []
        weights: list[pl.DataFrame] = []
        if schema.panel is not None and schema.panel.tables is not None:
            frames = list(zip(*_pairs_in(public, schema), strict=True))
        else:
            frames += [table for _, table in _tables_in(public, "synthetic", schema)]
            weights += _weights_in(public, schema)
        completed: list[list[pl.DataFrame]] = [[] for _ in frames]
        for (number, _), table in _tables_in(public, "completed", schema):
            completed[number - 1].append(table)
        return cls(
            frames,
            Ledger.from_json(ledger.read_bytes(), source=str(ledger)),
            schema,
            folder,
            completed if any(completed) else [],
            weights,
        )


def _plain(table: Any) -> pl.DataFrame:
    from pegsynth.tables.caller_frames import from_frame

    return from_frame(table).lazy().collect()


def _pair(tables: tuple[Any, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return _plain(tables[0]), _plain(tables[1])


def _pairs_in(public: Path, schema: Schema) -> Iterator[list[pl.DataFrame]]:
    """Yield both tables of a release of two, each for all datasets in order."""
    names = schema.panel.tables if schema.panel is not None else None
    for name in names or ():
        found = [path for path in public.glob("synthetic-*") if path.stem.endswith(f"-{name}")]
        files = [path for path in found if path.suffix in (".csv", ".parquet")]
        ordered = sorted(files, key=lambda path: int(path.name.split("-")[1]))
        yield [_table_of(path, schema) for path in ordered]


def _tables_in(
    public: Path, name: str, schema: Schema
) -> Iterator[tuple[tuple[int, ...], pl.DataFrame]]:
    """Yield the tables of a release folder of that name, with their numbers, in order."""
    found = [*public.glob(f"{name}-*.csv"), *public.glob(f"{name}-*.parquet")]
    tables = [path for path in found if path.name not in map(weight_file, found)]
    numbered = {tuple(map(int, path.stem.split("-")[1:])): path for path in tables}
    for numbers, path in sorted(numbered.items()):
        yield numbers, _table_of(path, schema)


def _weights_in(public: Path, schema: Schema) -> Iterator[pl.DataFrame]:
    """Yield the weights of a release folder that stand in a file of their own."""
    found = [*public.glob("synthetic-1.csv"), *public.glob("synthetic-1.parquet")]
    for path in found:
        if (beside := path.with_name(weight_file(path))).is_file():
            yield _table_of(beside, schema).drop(ROW)


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
