"""Released blocks of a panel whose transitions are pooled over positions (R24).

The budget is split by a public figure. One part buys a release of first rows, of which a unit has
one, the other a release of transitions, of which it has up to `most - 1`. Units are put together
from both: a first row and a number of rows, and then each row given the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.codec.pooled_positions import Pooling
from pegsynth.errors import ModelError, ParameterError
from pegsynth.methods.base import Sampler
from pegsynth.methods.drawn_features import clamped_codes
from pegsynth.methods.pricing import unit_bound
from pegsynth.methods.released._details import details_of, public_lines
from pegsynth.methods.released._draw import LOT, draw_rows
from pegsynth.methods.released._fit import Work, release_blocks
from pegsynth.methods.released._next_rows import POOL_ROWS, NextRows
from pegsynth.methods.released._release import ReleasedPlan, allowance_of, steps_of
from pegsynth.methods.released._replicates import Source, own_noise_tables
from pegsynth.methods.released._stored import PREFIX, TRANSITIONS, describe_released, loaded_under
from pegsynth.methods.released._values import Detail, Domain, Released
from pegsynth.privacy import (
    Allowance,
    Event,
    NoisyCounts,
    NoisyResiduals,
    PooledRows,
    Selection,
)
from pegsynth.random import RandomStream, Words
from pegsynth.schema.keys import PRIVATE
from pegsynth.schema.related_columns import ancestors

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes, Rows
    from pegsynth.methods.registry import PegsOnceOptions
    from pegsynth.methods.stored_model import StoredModel
    from pegsynth.schema import Schema


FIRST_SHARE = Fraction(1, 4)
"""What the table of first rows gets of the budget; the table of transitions gets the rest."""
_PART_UNITS = 1 << 16


@dataclass(frozen=True)
class PooledFit:
    """Two releases of blocks, which may be published.

    Parameters
    ----------
    first, transitions
        Noisy tables of first rows, and of rows with the row before.
    fresh
        Whether it was fitted in this process and not read from a file.
    """

    first: Released
    transitions: Released
    fresh: bool = False


def is_pooled(schema: Schema) -> bool:
    """Say whether the codebook of a folded table asks for pooled transitions."""
    return schema.panel is not None and schema.panel.wide and schema.panel.pooled


def check_pooled(schema: Schema, options: PegsOnceOptions) -> None:
    """Refuse what pooled transitions cannot hold, before any data is read."""
    folded = 'or state transitions = "folded" in [panel]'
    if options.replicates is not None:
        raise ParameterError(
            "--replicates cannot be combined with transitions that are pooled over positions; "
            "draw tables "
            f"with noise of their own (--datasets), {folded}"
        )
    if schema.panel is not None and schema.panel.gaps == PRIVATE:
        raise ParameterError(
            'gaps = "private" cannot be combined with transitions that are pooled over positions; '
            "list "
            f"gaps, leave them out, {folded}"
        )
    pooling = Pooling(schema)
    for place in clamped_codes(schema, options):
        if place not in pooling.first:
            raise ParameterError(
                f"--where {schema.names[place]}: where transitions are pooled over positions, "
                f"fixed features, the number of rows and the first row can be given, {folded}"
            )


def first_domain(schema: Schema, options: PegsOnceOptions) -> Domain:
    """Return the table of first rows."""
    pooling = Pooling(schema)
    places = {place: number for number, place in enumerate(pooling.first)}
    features = [schema.features[place] for place in pooling.first]
    lines = public_lines(schema)
    return Domain(
        tuple(feature.category_count for feature in features),
        tuple(feature.kind != "nominal" for feature in features),
        tuple(feature.name for feature in features),
        pooling.first_rules,
        _moved(details_of(schema), places),
        tuple(ancestors(feature) for feature in features),
        tuple(lines[place] for place in pooling.first),
        frozenset(places[place] for place in clamped_codes(schema, options)),
    )


def transition_domain(schema: Schema) -> Domain:
    """Return the table of transitions."""
    pooling = Pooling(schema)
    features, size = pooling.features, len(pooling.given)
    details = details_of(schema)
    fixed = {each.origin: n for n, each in enumerate(pooling.given) if each.origin in pooling.fixed}
    found: list[Detail] = []
    for part, start in ((pooling.given, 0), (pooling.following, size)):
        own = {each.origin: start + n for n, each in enumerate(part) if each.origin is not None}
        found += [each for each in _moved(details, fixed | own) if each.feature >= start]
    return Domain(
        tuple(each.size for each in features),
        tuple(each.ordered for each in features),
        tuple(each.name for each in features),
        pooling.rules,
        tuple(found),
        tuple(
            () if each.origin is None else ancestors(schema.features[each.origin])
            for each in features
        ),
        rows_per_unit=pooling.panel.most - 1,
    )


def _moved(details: Sequence[Detail], places: Mapping[int, int]) -> tuple[Detail, ...]:
    return tuple(
        Detail(places[each.feature], places[each.parent], each.allowed)
        for each in details
        if each.feature in places and each.parent in places
    )


def parts_of(whole: Allowance) -> tuple[Allowance, Allowance]:
    """Return what the tables of first rows and of transitions may cost: a public split."""
    first = whole.amount * FIRST_SHARE
    return replace(whole, amount=first), replace(whole, amount=whole.amount - first)


def fit_pooled(
    codes: Codes, schema: Schema, plan: ReleasedPlan, work: Work
) -> tuple[PooledFit, ReleasedPlan]:
    """Spend the budget on wide rows; return what may be published and what it cost."""
    pooling = Pooling(schema)
    first, transitions = first_domain(schema, plan.options), transition_domain(schema)
    tables = (codes[:, list(pooling.first)], pooling.pairs(codes))
    found: list[Released] = []
    spent: list[Event] = [*unit_bound(schema)]
    for domain, rows, part in zip(
        (first, transitions), tables, parts_of(allowance_of(plan.budget)), strict=True
    ):
        budget_filter = work.filter_of(
            part,
            work.stream,
            rows_per_unit=domain.rows_per_unit,
            threads=work.threads,
            names=domain.names,
            rest=plan.budget.paid is not None,
        )
        released, _ = release_blocks(
            rows,
            domain,
            budget_filter,
            replace(work, steps=work.steps or steps_of(plan)),
            rows=min(plan.options.rows, LOT) if plan.options.rows else None,
        )
        found.append(released)
        events = budget_filter.events
        spent += events if domain is first else _pooled_events(events, domain.rows_per_unit)
    return PooledFit(found[0], found[1], fresh=True), replace(plan, spent=tuple(spent))


def _pooled_events(events: Sequence[Event], rows_per_unit: int) -> list[Event]:
    """Say with every step how many rows of a unit its table has; amounts are for whole units."""
    return [
        PooledRows(rows_per_unit=rows_per_unit, step=event)
        if isinstance(event, NoisyCounts | NoisyResiduals | Selection)
        else event
        for event in events
    ]


def loaded_pooled(stored: StoredModel, schema: Schema, plan: ReleasedPlan | None) -> PooledFit:
    """Rebuild both releases, checked against the schema."""
    if plan is None:
        raise ModelError("it does not hold what its method needs")
    first, transitions = first_domain(schema, plan.options), transition_domain(schema)
    return PooledFit(
        loaded_under(stored, PREFIX, first.sizes, first.details),
        loaded_under(stored, TRANSITIONS, transitions.sizes, transitions.details),
    )


def describe_pooled(fit: PooledFit, schema: Schema) -> Iterator[str]:
    """Yield the structure of both releases: all of it was paid for."""
    pooling = Pooling(schema)
    yield "first rows of units:"
    yield from describe_released(fit.first, [schema.names[place] for place in pooling.first])
    yield "transitions from one row of a unit to the next, pooled over positions:"
    yield from describe_released(fit.transitions, [each.name for each in pooling.features])


class PooledSampler(Sampler):
    """Draws whole units from both releases, which costs nothing."""

    def __init__(self, fit: PooledFit, schema: Schema, plan: ReleasedPlan, *, threads: int) -> None:
        super().__init__()
        check_pooled(schema, plan.options)
        self._fit, self._plan, self._threads = fit, plan, threads
        self._pooling = Pooling(schema)
        self._first = first_domain(schema, plan.options)
        self._transitions = transition_domain(schema)
        places = {place: number for number, place in enumerate(self._pooling.first)}
        given = clamped_codes(schema, plan.options)
        self._given = {places[place]: code for place, code in given.items()}

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K datasets, each with noise of its own unless it is to be shared (R28)."""
        first, transitions = self._sources()
        if datasets > 1 and not self._plan.options.shared_noise:
            told = partial(own_noise_tables, stream=stream, count=datasets, threads=self._threads)
            lots, pools = told(first, rows), told(transitions, POOL_ROWS)
            return [
                self._units(own, pool, stream.child())
                for own, pool in zip(list(lots), list(pools), strict=True)
            ]
        return [
            self._units(
                self._drawn(first, rows, stream),
                self._drawn(transitions, POOL_ROWS, stream),
                stream.child(),
            )
            for _ in range(datasets)
        ]

    def _sources(self) -> tuple[Source, Source]:
        """Return both releases as replicates want them."""
        events, steps = self._plan.events, steps_of(self._plan)
        pooled = [event.step for event in events if isinstance(event, PooledRows)]
        return (
            Source(self._fit.first, events, steps, self._first.rules, given=self._given),
            Source(
                self._fit.transitions,
                pooled,
                steps,
                self._transitions.rules,
                # Transitions of one unit may all be alike: a safe bound on the variance.
                design_effect=float(self._transitions.rows_per_unit),
            ),
        )

    def _drawn(self, source: Source, rows: int, stream: RandomStream) -> Rows:
        return draw_rows(
            source.released,
            rows,
            stream,
            steps=source.steps,
            rules=source.rules,
            given=source.given,
            threads=self._threads,
        )

    def _units(self, first: Rows, pool: Rows, stream: RandomStream) -> Rows:
        """Yield wide rows: a first row, and every further one given the one before."""
        design, words = self._transitions, stream.substream()
        following = NextRows.of(
            np.concatenate(list(pool)),
            design.sizes,
            len(self._pooling.given),
            rules=design.rules,
            details=design.details,
        )
        for lot in first:
            for start in range(0, max(len(lot), 1), _PART_UNITS):
                yield self._followed(lot[start : start + _PART_UNITS], following, words)

    def _followed(self, first: Codes, following: NextRows, words: Words) -> Codes:
        pooling = self._pooling
        codes = pooling.begun(first)
        for position, units in pooling.follow(codes):
            known = pooling.known(codes[units], position - 1)
            pooling.put(codes, units, position, following.draw(known, words))
        return codes
