"""Which features are drawn, which are given, and which must be l-diverse (R7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegsynth.errors import ParameterError, escaped
from pegsynth.methods.gibbs.order import detail_features, plain_features
from pegsynth.options import GivenOptions, MethodOptions, PartialOptions
from pegsynth.privacy import Diversity

if TYPE_CHECKING:
    from pegsynth.methods.base import Plan
    from pegsynth.privacy import Budget
    from pegsynth.schema import Schema


def given_values(options: MethodOptions) -> tuple[tuple[str, str], ...]:
    """Return the features that ``--where`` keeps fixed; not every method takes it."""
    return options.where if isinstance(options, GivenOptions) else ()


def replaced_features(options: MethodOptions) -> tuple[str, ...]:
    """Return the features that ``--synthesize`` replaces; empty where whole rows are drawn."""
    return options.synthesize if isinstance(options, PartialOptions) else ()


def clamped_codes(schema: Schema, options: MethodOptions) -> dict[int, int]:
    """Return the features that ``--where`` keeps fixed, with the code of their value."""
    import polars as pl

    from pegsynth.codec.encoding import column_encoders

    clamped: dict[int, int] = {}
    encoders = column_encoders(schema) if given_values(options) else []
    for name, text in given_values(options):
        encoder = encoders[schema.index(name)]
        code = int(encoder.encode(pl.Series(name, [text], dtype=pl.String))[0])
        if encoder.unknown or encoder.absent:
            raise ParameterError(f"--where {name}={text}: the schema has no such category")
        if schema.index(name) in clamped:
            raise ParameterError(f"--where {name}: the feature is given twice")
        clamped[schema.index(name)] = code
    if len(clamped) == len(schema.features):
        raise ParameterError("--where fixes every feature; leave at least one to be drawn")
    return clamped


def drawn_features(schema: Schema, options: MethodOptions) -> tuple[int, ...]:
    """Return the features that are drawn, in order."""
    if replaced := replaced_features(options):
        chosen = {schema.index(name) for name in replaced}
    else:
        chosen = set(range(len(schema.features))) - set(clamped_codes(schema, options))
    # Details come last: they are drawn given what their parent has become.
    order = (*plain_features(schema), *detail_features(schema))
    return tuple(feature for feature in order if feature in chosen)


def stated_levels(schema: Schema, budget: Budget) -> dict[int, float]:
    """Return the l that ``--l`` states for features, drawn or not (R7).

    A feature's own `l` in the schema, else the stated l for the sensitive features, or
    for all features when none is marked sensitive.
    """
    if budget.l is None:
        return {}
    sensitive = [i for i, f in enumerate(schema.features) if f.role == "sensitive"]
    levels = dict.fromkeys(sensitive or range(len(schema.features)), budget.l)
    own = {i: f.l for i, f in enumerate(schema.features) if f.l is not None}
    return levels | own


def diversity_levels(schema: Schema, budget: Budget, options: MethodOptions) -> dict[int, float]:
    """Return the l of every feature that ``--l`` applies to and that is drawn (R7).

    Given values and kept columns are drawn from no distribution. Features that are there
    because none is marked sensitive do not count then; those that the schema asks an l
    for are refused.
    """
    levels = stated_levels(schema, budget)
    drawn = drawn_features(schema, options) if levels else ()
    for index in levels.keys() - set(drawn):
        feature = schema.features[index]
        if feature.role == "sensitive" or feature.l is not None:
            why = (
                "keeps its original values; name it in --synthesize too"
                if replaced_features(options)
                else "has a given value; leave it out of --where"
            )
            raise ParameterError(
                f"feature {feature.name!r}: --l asks for l-diverse values of it, which only drawn "
                f"values can be, and it {why}, or leave out --l"
            )
    return {index: levels[index] for index in drawn if index in levels}


def promised_levels(schema: Schema, plan: Plan) -> dict[int, float]:
    """Return the l of every feature that the ledger of a plan names (R7).

    A model may be sampled with other options than it was fitted with, and its ledger is not
    written anew.
    """
    named = {
        name for event in plan.events if isinstance(event, Diversity) for name in event.features
    }
    stated = stated_levels(schema, plan.budget)
    return {i: level for i, level in stated.items() if escaped(schema.names[i]) in named}
