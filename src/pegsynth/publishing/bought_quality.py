"""Distances that were bought, as figures with intervals, and criteria that a release must meet.

Goes in: a session that has set a part of its budget aside (R34), and the synthetic tables as they
were written. Comes out: plain fields for QUALITY.json. The original is read once more, its units
bounded anew.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from pegsynth.codec.code_table import CodeTable
from pegsynth.codec.codec import encode_table
from pegsynth.errors import ParameterError, PegsynthError, legible
from pegsynth.kernels.arrays import Codes
from pegsynth.mechanisms.quality_distances import BoughtFigures, QualityPlan, buy, cell_counts
from pegsynth.methods.released import AnalysedTable, analysed_tables
from pegsynth.options import Publication
from pegsynth.pipeline.running import Draws
from pegsynth.publishing.quality import quality_fields, write_quality
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import unit_text
from pegsynth.tables.reader import TableReader
from pegsynth.tables.table_input import open_table

LEVEL: Final = 0.95
_LARGER: Final = 3
_LIMITS: Final = ("single", "pair", "table", "analysis")


class NotAcceptedError(PegsynthError):
    """The figures that were bought do not meet the criteria; what they cost was spent."""


@dataclass(frozen=True)
class Bought:
    """What of a release is bought, and what it must meet.

    Parameters
    ----------
    share
        The part of epsilon that buys distances.
    tables
        Features of tables that are named, beside single features and pairs.
    criteria
        By kind of table the largest share of rows out of place; empty: any. The kind
        "analysis" is that of tables of declared analyses, whatever their size.
    """

    share: float
    tables: tuple[tuple[str, ...], ...] = ()
    criteria: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, publication: Publication) -> Bought | None:
        """Return what a publication buys; None where it buys nothing."""
        if publication.quality is None:
            return None
        criteria = () if publication.accept is None else read_criteria(publication.accept)
        return cls(publication.quality, publication.quality_tables, criteria)

    def check(self, schema: Schema) -> None:
        """Refuse a criterion that no bought figure could answer, before anything is spent."""
        asked, sizes = dict(self.criteria), {len(set(each)) for each in self.tables}
        analysed = analysed_tables(schema) if "analysis" in asked or "table" in asked else ()
        sizes |= {len(each.features) for each in analysed}
        if "analysis" in asked and not analysed:
            raise ParameterError(
                "--accept: there is a criterion analysis, and the schema declares no analysis or "
                "table; declare one with --analyses, or leave the criterion out"
            )
        if "table" in asked and max(sizes, default=0) < _LARGER:
            raise ParameterError(
                "--accept: there is a criterion table, and no table of three features or more is "
                "bought; name one with --quality-table, or leave the criterion out"
            )


def read_criteria(path: Path) -> tuple[tuple[str, float], ...]:
    """Read the file of criteria: ``single``, ``pair``, ``table``, ``analysis``, each a share."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        reason = legible(str(error))
        raise ParameterError(f"{path}: the criteria cannot be read: {reason}") from None
    for name, limit in content.items():
        number = isinstance(limit, int | float) and not isinstance(limit, bool)
        if name not in _LIMITS or not number or not 0 < limit <= 1:
            raise ParameterError(
                f"{path}: criteria are single, pair, table and analysis, each a share of the rows "
                f"between 0 and 1, as pair = 0.05; {legible(str(name))} is not"
            )
    if not content:
        raise ParameterError(f"{path}: there is no criterion in it; state one, as pair = 0.05")
    return tuple((name, float(limit)) for name, limit in content.items())


def buy_quality(
    draws: Draws, schema: Schema, bought: Bought, public: Path, tables: Sequence[Path]
) -> None:
    """Buy the distances, judge by them, and put them into the quality statement."""
    fields = bought_fields(draws, schema, tables)
    check_accepted(fields, bought.criteria)
    stated = {
        **quality_fields(schema, draws.session.ledger),
        "computed_from": "schema and ledger; the fields of bought from the original, paid for",
        "bought": fields,
    }
    if bought.criteria:
        stated["accepted_by"] = dict(bought.criteria)
    write_quality(public, stated)


def bought_fields(draws: Draws, schema: Schema, tables: Sequence[Path]) -> dict[str, Any]:
    """Buy the distances; `schema` is the codebook of what was written."""
    plan = draws.settled.quality
    if plan is None:
        raise ParameterError("no part of the budget was set aside for distances")
    stream = draws.session.stream
    # The rows that were counted for the release, and no others of the same units.
    original = CodeTable(draws.reader, schema, stream, kept=draws.session.model.counted)
    figures = buy(
        plan,
        cell_counts(original.batches(), schema, plan),
        cell_counts(_written(tables, schema), schema, plan),
        stream,
        units_cut=_units_cut(draws.reader, schema) if plan.units else 0,
    )
    return figure_fields(plan, figures, schema)


def figure_fields(plan: QualityPlan, figures: BoughtFigures, schema: Schema) -> dict[str, Any]:
    """Write figures with their intervals as plain fields."""
    half, total = figures.half_width, figures.total
    analysed = analysed_tables(schema)
    bought = {frozenset(table) for table in plan.tables}
    fields: dict[str, Any] = {
        "level": LEVEL,
        "rows_counted": _interval(total, figures.total_half_width),
        "distances": [
            {
                "features": [schema.names[i] for i in table],
                "declared": [a.name for a in analysed if _places(a, schema) == frozenset(table)],
                "rows_out_of_place": _interval(value, half, 0.5),
                "share": _interval(value, half, 0.5 / total),
            }
            for table, value in zip(plan.tables, figures.distances, strict=True)
        ],
        "declared_not_bought": [
            each.name for each in analysed if _places(each, schema) not in bought
        ],
    }
    if figures.units_cut is not None:
        fields["units_cut"] = _interval(figures.units_cut, half)
    return fields


def _places(analysed: AnalysedTable, schema: Schema) -> frozenset[int]:
    return frozenset(schema.index(name) for name in analysed.features)


def check_accepted(fields: Mapping[str, Any], criteria: Sequence[tuple[str, float]]) -> None:
    """Refuse a release whose bought figures, upper ends of their intervals, exceed a limit."""
    kinds = {1: "single", 2: "pair"}
    for name, limit in criteria:
        for each in fields["distances"]:
            high = each["share"]["high"]
            own = {kinds.get(len(each["features"]), "table")}
            own |= {"analysis"} if each["declared"] else set()
            if name in own and high > limit:
                features = ", ".join(each["features"])
                raise NotAcceptedError(
                    f"the release was not accepted: of the table of {features} up to {high:.2%} of "
                    f"the rows are out of place, and the criterion {name} allows {limit:.2%}"
                )


def _interval(value: float, half: float, unit: float = 1.0) -> dict[str, float]:
    ends = {"value": value, "low": value - half, "high": value + half}
    return {name: float(f"{max(0.0, each) * unit:.6g}") for name, each in ends.items()}


def _written(tables: Sequence[Path], schema: Schema) -> Iterator[Codes]:
    for path in tables:
        with open_table(str(path), dialect=schema.dialect) as reader:
            # Synthetic rows belong to nobody: the column of the unit is not written.
            yield from encode_table(reader, schema, need_unit=False)


def _units_cut(reader: TableReader, schema: Schema) -> int:
    unit = schema.unit or ""
    names = [unit_text(batch.get_column(unit)) for batch in reader.batches([unit])]
    rows = pl.concat(names).value_counts().get_column("count")
    return int((rows > schema.rows_per_unit).sum())
