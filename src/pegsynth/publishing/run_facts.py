"""What a run did, read off its schema and its ledger: the facts that documents are written from.

Every sentence of a release that is not true of all releases asks one of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pegsynth.errors import escaped
from pegsynth.privacy import Ledger, NoisyCounts, NoisySums
from pegsynth.privacy.assumptions import Parameters
from pegsynth.privacy.draw_events import DRAWS
from pegsynth.privacy.events import CategoriesFound, Diversity, PooledRows, UnitBound
from pegsynth.schema import Schema


@dataclass(frozen=True)
class RunFacts:
    """What a run did.

    Parameters
    ----------
    schema
        The codebook that is published.
    ledger
        What was done, and what it costs.
    """

    schema: Schema
    ledger: Ledger

    def _parameters(self, code: str) -> list[Parameters]:
        return [each.parameters for each in self.ledger.assumptions if each.code == code]

    def assumed(self, code: str, key: str) -> tuple[str, ...]:
        """Return the features that a parameter of an assumption names."""
        stated = (each.get(key) for each in self._parameters(code))
        return self._named(n for names in stated if isinstance(names, list) for n in names)

    @property
    def options(self) -> Parameters:
        """The options of the run that the ledger states."""
        return next(iter(self._parameters("public-options")), {})

    def _named(self, stated: Iterable[str]) -> tuple[str, ...]:
        """Return the features that a ledger names; it escapes what steers a terminal.

        Of a panel it names those of the folded table: a feature stands for its first position.
        """
        names, panel = set(stated), self.schema.panel
        return tuple(
            name
            for name in self.schema.names
            if escaped(name if panel is None else panel.at(name, 1)) in names
        )

    @property
    def replaced(self) -> tuple[str, ...]:
        """Features that were drawn, where the others hold original values; else none."""
        return self.assumed("public-options", "synthesize")

    @property
    def kept(self) -> tuple[str, ...]:
        """Features that hold original values."""
        replaced = self.replaced
        return tuple(n for n in self.schema.names if n not in replaced) if replaced else ()

    @property
    def resampled(self) -> bool:
        """Whether rows have the categories of original rows, drawn with replacement."""
        method = self.options.get("method")
        if method == "contingency":
            return self.lacks_result("unperturbed") and not self.options.get("log_linear")
        return method == "bootstrap"

    def lacks_result(self, code: str) -> bool:
        """Whether something was done that no result covers, for a reason of that code."""
        return any(getattr(event, "code", "") == code for event in self.ledger.events)

    @property
    def given(self) -> tuple[str, ...]:
        """Features that have the same requested value in every row."""
        return self.assumed("given-values", "features")

    @property
    def virtual_rows(self) -> bool:
        """Whether rows were drawn under virtual rows, which pull them towards a prior."""
        return any(isinstance(event, (*DRAWS, Diversity)) for event in self.ledger.events)

    @property
    def unit(self) -> str:
        """The column that names the privacy unit; empty where a row is the unit."""
        bounds = [event.label for event in self.ledger.events if isinstance(event, UnitBound)]
        return self.schema.unit or (bounds[0] if bounds else "")

    @property
    def units_paid_for(self) -> bool:
        """Whether the number of units that were cut is among figures that were paid for."""
        paid = any(getattr(event, "purpose", "") == "quality" for event in self.ledger.events)
        return paid and self.ledger.guarantee.unit == "unit"

    @property
    def measured(self) -> tuple[str, ...]:
        """Features whose bins, or values inside them, were measured (R21)."""
        return self._counted_for("edges")

    @property
    def rare_merged(self) -> tuple[str, ...]:
        """Features whose categories were merged where their noisy count is small (R31)."""
        return self._counted_for("rare")

    def _counted_for(self, purpose: str) -> tuple[str, ...]:
        events = (e.step if isinstance(e, PooledRows) else e for e in self.ledger.events)
        return self._named(
            name
            for event in events
            if isinstance(event, NoisyCounts) and event.purpose == purpose
            for name in event.features
        )

    @property
    def categories_found(self) -> tuple[str, ...]:
        """Features whose categories were found by noisy counts (R29)."""
        found = (e for e in self.ledger.events if isinstance(e, CategoriesFound))
        return self._named(name for event in found for name in event.features)

    @property
    def drafted(self) -> tuple[str, ...]:
        """Features whose categories or edges the schema marks as first read off a table."""
        return tuple(self.schema.drafted_from_data)

    @property
    def rules_drafted(self) -> bool:
        """Whether the schema marks rules as first suggested by a table."""
        return any(rule.drafted_from_data for rule in self.schema.rules)

    @property
    def summed(self) -> tuple[str, ...]:
        """Features of which sums of values were measured for declared analyses (R26)."""
        sums = (
            event
            for event in self.ledger.events
            if isinstance(event, NoisySums) and event.purpose == "analysis"
        )
        return self._named(name for event in sums for name in event.features)

    @property
    def recoded(self) -> tuple[str, ...]:
        """Features whose values were put together by public rules; at level 0 they stay."""
        stated = self._parameters("public-recodings")
        pairs = (
            zip(*(each.get(k, ()) for k in ("features", "rules")), strict=False) for each in stated
        )
        return self._named(
            name
            for each in pairs
            for name, rule in each
            if "group" in rule or ("hierarchy" in rule and "level 0" not in rule)
        )

    @property
    def edges_measured(self) -> tuple[str, ...]:
        """Features whose bin edges were measured; those of others were stated."""
        if self._parameters("reviewed-schema"):
            stated = self.assumed("reviewed-schema", "edges")
        else:
            stated = tuple(n for n in self.measured if self.schema[n].inside == "measured")
        return tuple(name for name in self.measured if name not in stated)
