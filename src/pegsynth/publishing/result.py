"""What a synthesis gives back in Python: tables, their ledger, and the codebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pegsynth.errors import DataError, ParameterError
from pegsynth.privacy import Ledger
from pegsynth.release_views import ReleaseViews
from pegsynth.schema import Schema

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
    """

    frames: list[Any] = field(repr=False)
    ledger: Ledger = field(repr=False)
    schema: Schema | None = field(default=None, repr=False)
    folder: Path | None = None

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self.frames)

    def __iter__(self) -> Iterator[Any]:
        """Yield the tables."""
        return iter(self.frames)

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
        from pegsynth.publishing.fill_folder import save_public

        if self.schema is None:
            raise ParameterError("a release without its schema cannot be saved")
        save_public(
            Path(folder),
            list(self._tables()),
            self.schema,
            self.ledger,
            table_format=table_format,
            force=force,
        )
        return replace(self, folder=Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read what ``pegs release`` or `save` wrote; `folder` or its ``public`` part."""
        import polars as pl

        folder = Path(folder)
        public = folder / "public" if (folder / "public").is_dir() else folder
        ledger = public / "privacy.json"
        if not ledger.is_file():
            raise DataError(f"{folder}: there is no privacy.json; give the folder of a release")
        schema = Schema.load(public / "schema.toml")
        found = [*public.glob("synthetic-*.csv"), *public.glob("synthetic-*.parquet")]
        paths = sorted(found, key=lambda path: int(path.stem.rpartition("-")[2]))
        frames = [
            pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
            for path in paths
        ]
        return cls(
            frames, Ledger.from_json(ledger.read_bytes(), source=str(ledger)), schema, folder
        )
