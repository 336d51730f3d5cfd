"""`pegs-tables`: rows, weights and intervals from published tables alone (R36).

No confidential table is read. A fit is the tables themselves, so a model file holds what was
published and nothing else; candidate rows are drawn and weighed anew wherever rows are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.errors import ModelError, ParameterError
from pegsynth.inference.choice import (
    NOISE_OPTION,
    PART_OPTION,
    REPLICATES_OPTION,
    SHARED_NOISE,
    WEIGHT_OPTION,
)
from pegsynth.inference.combining_rules import PART
from pegsynth.kernels.arrays import Codes
from pegsynth.methods.base import Fitted, Fitting, Method, Model, Plan, Rows, Sampler
from pegsynth.methods.evidence.cell_errors import check_agreement, combined
from pegsynth.methods.evidence.table_fit import TableFit, margins_of_tables
from pegsynth.methods.evidence.table_replicates import replicates_of_fit
from pegsynth.methods.evidence.table_rows import rows_of_fit
from pegsynth.methods.registry import PegsTablesOptions
from pegsynth.methods.released._draw import LOT
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.methods.stored_model import StoredModel, StoredPlan
from pegsynth.privacy import Event
from pegsynth.privacy.noise_events import PublishedCounts
from pegsynth.tables.published_tables import PublishedTable, read_evidence

if TYPE_CHECKING:
    from pegsynth.methods.released._row_replicates import Replicates
    from pegsynth.privacy import Budget
    from pegsynth.privacy.assumptions import Parameters
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema

_POOL_ROWS, _MOST_TIMES = 200_000, 4
_PART_ROWS = 1 << 16
_ARRAYS = ("low", "high", "variance")


@dataclass(frozen=True, kw_only=True)
class TablesPlan(Plan):
    """What is to be made of which tables.

    Parameters
    ----------
    read
        What the ledger says of every table.
    tables
        The tables, one for every set of features; empty for a plan from a model file.
    """

    read: tuple[Event, ...]
    tables: tuple[PublishedTable, ...] = field(default=(), repr=False)

    @property
    def events(self) -> tuple[Event, ...]:
        """The tables that were read."""
        return self.read


@dataclass(frozen=True)
class TablesFit:
    """Published tables, one for every set of features."""

    tables: tuple[PublishedTable, ...] = field(repr=False)
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]

    @property
    def total(self) -> float:
        """The number of rows that the tables are about."""
        return margins_of_tables(self.tables, self.sizes).total

    @property
    def released(self) -> Released:
        """The tables as a release of noisy counts has them, each with one usual error."""
        margins = margins_of_tables(self.tables, self.sizes)
        found = {each.features: each for each in self.tables}
        ones = []
        for feature in range(len(self.sizes)):
            # A feature that no table has alone is known by the sums of others.
            own = found.get((feature,))
            ones.append(_noisy(own, (feature,)) if own else _sums(margins.counts(feature), feature))
        features = range(len(self.sizes))
        return Released(
            (round(margins.total), 1.0),
            tuple(ones),
            (False,) * len(self.sizes),
            self.ordered,
            False,
            tuple(np.arange(size) for size in self.sizes),
            tuple(features),
            (),
            tuple(_noisy(each, each.features) for each in self.tables if len(each.features) > 1),
        )


def _noisy(table: PublishedTable, features: tuple[int, ...]) -> NoisyTable:
    middle = np.where(np.isfinite(table.high), table.middle, 0.0)
    known = table.spread[np.isfinite(table.spread)]
    deviation = float(np.sqrt(np.mean(known))) if len(known) else 0.0
    return NoisyTable(features, middle, max(deviation, 1e-3))


def _sums(counts: np.ndarray, feature: int) -> NoisyTable:
    return NoisyTable((feature,), counts, float(max(np.sqrt(counts.mean()), 1.0)))


class TablesSampler(Sampler):
    """Draws rows that meet the tables."""

    def __init__(self, model: Model, plan: TablesPlan, threads: int) -> None:
        super().__init__()
        self._tables: TablesFit = model.content
        self._schema, self._plan, self._threads = model.schema, plan, threads
        self._fitted: TableFit | None = None

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K datasets of n rows, all from one fit."""
        return [self._drawn(rows, stream) for _ in range(datasets)]

    def replicates(self, codes: Codes, rows: int, count: int, stream: RandomStream) -> Replicates:
        """Return what redraws the errors of the tables, and the rows behind them (R28)."""
        fit = self._fit(rows, stream)
        schema = self._schema
        alike = float(schema.rows_per_unit) if schema.unit else 1.0
        return replicates_of_fit(
            fit, codes, stream, count=count, rows=rows, design_effect=alike, threads=self._threads
        )

    def _fit(self, rows: int, stream: RandomStream) -> TableFit:
        if self._fitted is None:
            total = max(round(self._tables.total), rows, 1)
            times = min(max(_POOL_ROWS / total, 1), _MOST_TIMES)
            self._fitted = TableFit.of(
                self._tables.tables,
                self._tables.sizes,
                min(round(total * times), LOT),
                stream,
                rules=self._schema.rules,
                threads=self._threads,
            )
        return self._fitted

    def _drawn(self, rows: int, stream: RandomStream) -> Rows:
        dtype = self._schema.code_dtype
        for start in range(0, rows, LOT):
            fit = self._fit(rows, stream)
            columns = rows_of_fit(fit, min(LOT, rows - start), self._schema.rules)
            for first in range(0, columns.shape[1], _PART_ROWS):
                part = columns[:, first : first + _PART_ROWS]
                yield np.ascontiguousarray(part.T).astype(dtype)


class PegsTables(Method[PegsTablesOptions, TablesPlan, TablesFit]):
    """Rows from published tables."""

    name = "pegs-tables"
    summary = "rows, weights and intervals from published tables alone; no microdata is read"
    options = PegsTablesOptions
    has_proof = False
    released = True
    resumes = False
    reads_table = False

    def settle(self, schema: Schema, budget: Budget, options: PegsTablesOptions) -> TablesPlan:
        """Read the tables, which are public, and refuse those that contradict each other."""
        if options.from_tables is None:
            raise ParameterError(
                f"--method {self.name} makes rows of published tables; list them in a file and "
                "name it with --from-tables"
            )
        if schema.panel is not None or schema.unsettled or schema.unit is not None:
            raise ParameterError(
                "--from-tables needs listed categories and edges, and rows that stand alone: leave "
                'out [panel], unit, and edges or categories = "private"'
            )
        evidence = read_evidence(options.from_tables, schema)
        tables = tuple(combined(evidence.tables))
        check_agreement(evidence.tables, schema)
        sizes = dict(zip(schema.names, schema.category_counts, strict=True))
        read = tuple(
            PublishedCounts(
                file=each.file,
                sha256=each.sha256,
                features=each.features,
                levels=tuple(sizes[name] for name in each.features),
                error=each.error,
                guarantee=each.guarantee,
                by=each.by,
            )
            for each in evidence.sources
        )
        return TablesPlan(
            method=self.name, options=options, budget=budget, read=read, tables=tables
        )

    def fit(self, plan: TablesPlan, work: Fitting) -> Fitted[TablesPlan, TablesFit]:
        """Keep the tables; no row of anything is asked for."""
        from pegsynth.methods.ledgers import of_release

        # The file of the model may be published as it is, so its ledger is complete.
        ledger = work.ledger.assume(*of_release(work.schema, plan))
        return Fitted(_fit_of(plan.tables, work.schema), plan, ledger)

    def sampler(self, model: Model, plan: TablesPlan, *, threads: int) -> TablesSampler:
        """Draw from the tables alone."""
        return TablesSampler(model, plan, threads)

    def looks_at_data(self, content: TablesFit) -> bool:
        """Nothing confidential is looked at, so that a seed takes nothing away."""
        return False

    def declared_options(self, plan: TablesPlan) -> Parameters:
        """Return whether rows have replicate weights (R28)."""
        if plan.options.replicates is not None:
            return {
                REPLICATES_OPTION: plan.options.replicates,
                WEIGHT_OPTION: plan.options.weight_name,
                PART_OPTION: PART,
            }
        return {NOISE_OPTION: SHARED_NOISE} if plan.options.datasets > 1 else {}

    def store(self, content: TablesFit) -> StoredModel:
        """Return the cells of all tables."""
        tables = content.tables
        arrays = {
            name: np.concatenate([getattr(each, name) for each in tables]) for name in _ARRAYS
        }
        features = [place for each in tables for place in each.features]
        arrays["features"] = np.array(features, dtype=np.int64)
        arrays["widths"] = np.array([len(each.features) for each in tables], dtype=np.int64)
        return StoredModel(arrays=arrays)

    def load(self, stored: StoredModel, schema: Schema, plan: TablesPlan | None) -> TablesFit:
        """Rebuild the tables; every number is checked against the schema."""
        held, sizes = stored.arrays, schema.category_counts
        try:
            tables, start, first = [], 0, 0
            for width in held["widths"].tolist():
                features = tuple(held["features"][first : first + width].tolist())
                _require(list(features) == sorted(set(features)))
                _require(all(0 <= place < len(sizes) for place in features))
                cells = int(np.prod([sizes[place] for place in features], dtype=np.int64))
                lines = [held[name][start : start + cells].astype(np.float64) for name in _ARRAYS]
                _require(all(len(line) == cells for line in lines))
                tables.append(PublishedTable("the model", features, *lines))
                start, first = start + cells, first + width
            _require(start == len(held["low"]) and first == len(held["features"]))
            every = np.concatenate([held[name] for name in ("low", "variance")])
            _require(bool(np.isfinite(every).all() and (held["variance"] >= 0).all()))
            _require(bool((held["high"] >= held["low"]).all()))
        except (KeyError, ValueError, TypeError):
            raise ModelError("its published tables are damaged") from None
        return _fit_of(tables, schema)

    def load_plan(self, stored: StoredPlan, schema: Schema, model: StoredModel) -> TablesPlan:
        """Rebuild a plan, whose events say which tables were read."""
        return TablesPlan(
            method=self.name, options=stored.options, budget=stored.budget, read=stored.events
        )

    def describe(self, model: Model, *, confidential: bool) -> Iterable[str]:
        """Yield the published tables."""
        content: TablesFit = model.content
        yield f"about {content.total:,.0f} rows, by {len(content.tables)} published tables:"
        for each in content.tables:
            names = " x ".join(model.schema.names[place] for place in each.features)
            kind = (
                "exact" if each.exact else f"error of {_noisy(each, each.features).deviation:.3g}"
            )
            yield f"  {names or 'the number of rows'}: {len(each.low)} cells, {kind}"


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _fit_of(tables: Iterable[PublishedTable], schema: Schema) -> TablesFit:
    ordered = tuple(feature.kind != "nominal" for feature in schema.features)
    return TablesFit(tuple(tables), schema.category_counts, ordered)


def rows_in_tables(path: str, schema: Schema) -> int:
    """Return the number of rows that the published tables are about."""
    tables = combined(read_evidence(path, schema).tables)
    return max(round(margins_of_tables(tables, schema.category_counts).total), 1)


PEGS_TABLES = PegsTables()
