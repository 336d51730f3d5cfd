"""A release to look at: all tables as one dataframe, pictures of its columns, a short card.

`ReleaseViews` is what a release and its tables share with the rest of the package: a function
that takes synthetic tables also takes a release (`tables_of`). Nothing here looks at the
original table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pegsynth.errors import ParameterError
from pegsynth.views import Picture, card, table

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.privacy import Ledger

NO_GUARANTEE = "CONFIDENTIAL: this release carries no guarantee"
_HEAD, _MOST_FEATURES, _MOST_SHARES, _BINS = 5, 4, 24, 12


class ReleaseViews:
    """How a release is looked at; a class with `frames`, `ledger`, `completed` builds on it."""

    frames: list[Any]
    completed: list[list[Any]]
    ledger: Ledger

    @property
    def weighted(self) -> list[Any]:
        """The tables with the weights of their rows as last columns, if there are any."""
        return list(self.frames)

    def to_frame(self) -> pl.DataFrame:
        """Return all tables under each other (Polars), numbered in a first column `dataset`."""
        import polars as pl

        tables = list(self._tables())
        name = "dataset"
        while any(name in each.columns for each in tables):
            name = f"{name}_"
        return pl.concat(
            [
                each.select(pl.lit(number, dtype=pl.Int64).alias(name), pl.all())
                for number, each in enumerate(tables, start=1)
            ],
            how="vertical_relaxed",
        )

    def plot(self, *features: str) -> Picture:
        """Draw the shares of the values of some columns, by table; by default the first four.

        Numbers of many values are drawn in bins of equal width, categories that are rare in
        the synthetic tables as one.
        """
        tables = list(self._tables())
        names = features or tuple(tables[0].columns[:_MOST_FEATURES])
        for name in names:
            if not any(name in each.columns for each in tables):
                raise ParameterError(f"the release has no column {name!r}")
        having = {name: [each for each in tables if name in each.columns] for name in names}
        rows = [row for name in names for row in _shares(having[name], name)]
        title = f"shares of values of {', '.join(names)} in the synthetic tables"
        return Picture("histograms", rows, title, confidential=self._confidential)

    def __repr__(self) -> str:
        from pegsynth.privacy.statement import promise

        return f"{type(self).__name__}({self._size()}: {promise(self.ledger.guarantee)})"

    def _size(self) -> str:
        tables = list(self._tables())
        many = "1 synthetic table" if len(tables) == 1 else f"{len(tables):,} synthetic tables"
        rows, columns = (
            f"{min(found):,}" + (f" to {max(found):,}" if min(found) < max(found) else "")
            for found in ([each.height for each in tables], [each.width for each in tables])
        )
        return f"{many} of {rows} rows and {columns} columns"

    def _repr_html_(self) -> str:
        from pegsynth.privacy.statement import promise

        first = next(self._tables())
        warning = NO_GUARANTEE if self._confidential else ""
        said = f"Promised: {promise(self.ledger.guarantee)}. ledger.statement() says what it means."
        head = table(first.columns, first.head(_HEAD).rows())
        return card(f"Release of {self._size()}", [said], table=head, warning=warning)

    @property
    def _confidential(self) -> bool:
        """Whether the tables may hold values of the original."""
        return self.ledger.guarantee.kind == "none"

    def _tables(self) -> Iterator[pl.DataFrame]:
        """Yield every table as Polars, of pairs both."""
        from pegsynth.tables.caller_frames import from_frame

        for each in self.frames:
            for one in each if isinstance(each, tuple) else (each,):
                yield from_frame(one).lazy().collect()


def _shares(tables: list[pl.DataFrame], name: str) -> Iterator[dict[str, float | str]]:
    import polars as pl

    from pegsynth.schema.dtypes import as_text

    columns = [each.get_column(name) for each in tables]
    # All tables are cut alike, or their bars could not be compared.
    every = pl.concat([column.cast(columns[0].dtype) for column in columns]).drop_nulls()
    texts = [as_text(column) for column in columns]
    if every.dtype.is_numeric() and every.n_unique() > _MOST_SHARES:
        texts = [_binned(column, every) for column in columns]
    listed = pl.concat(texts).value_counts(sort=True).to_series().head(_MOST_SHARES)
    order = _in_order(listed.drop_nulls(), numeric=every.dtype.is_numeric())
    for number, text in enumerate(texts, start=1):
        counts = dict(text.value_counts().rows())
        shown = {label: counts.pop(label, 0) for label in order}
        shown |= {"(missing)": counts.pop(None, 0), "(others)": sum(counts.values())}
        for label, count in shown.items():
            if count or label in order:
                share = count / max(len(text), 1)
                series = f"table {number}" if len(texts) > 1 else ""
                yield {"category": label, "value": share, "series": series, "facet": name}


def _binned(column: pl.Series, every: pl.Series) -> pl.Series:
    import numpy as np
    import polars as pl

    low, high = float(every.min()), float(every.max())  # type: ignore[arg-type]
    edges = np.linspace(low, high, _BINS + 1)
    places = np.clip(np.searchsorted(edges, column.to_numpy(), side="right") - 1, 0, _BINS - 1)
    labels = pl.Series([f"{edges[i]:.4g} to {edges[i + 1]:.4g}" for i in range(_BINS)])
    return labels.gather(pl.Series(places)).set(column.is_null(), None)


def _in_order(labels: pl.Series, *, numeric: bool) -> list[str]:
    """Return texts of numbers by their size and others by their frequency."""
    if not numeric:
        return labels.to_list()
    return sorted(labels, key=lambda label: float(str(label).split(" to ", maxsplit=1)[0]))


def tables_of(data: object) -> list[Any]:
    """Return the tables of a release, of a list of tables, or of one table."""
    if isinstance(data, ReleaseViews):
        return data.weighted
    return list(data) if isinstance(data, list | tuple) else [data]
