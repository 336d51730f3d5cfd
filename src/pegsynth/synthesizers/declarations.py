"""What a run takes for public: every assumption that it uses, and none that it does not.

Each public input of a release has a line in the ledger: parts of the schema that the
method used, options, given values. Whatever is not listed here was not used, is an event,
or comes from who knows it: the seed pool and the number of rows from `prepare`, a query
from the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pegsynth.errors import escaped
from pegsynth.hashing.order import detail_features, plain_features
from pegsynth.options import IMPUTATION_METHODS, PEGS_METHODS
from pegsynth.privacy import assumptions
from pegsynth.privacy.assumptions import Assumption, Parameters
from pegsynth.synthesizers.drawn import drawn_features
from pegsynth.synthesizers.released_blocks import ONCE, promised

if TYPE_CHECKING:
    from pegsynth.schema import Schema
    from pegsynth.synthesizers.recipe import Recipe


def of_schema(schema: Schema) -> tuple[Assumption, ...]:
    """Return what every run takes from its schema: the codebook, and whose a row is."""
    features = schema.features
    refused = named(f.name for f in features if f.unknown == "error")
    category = named(f.name for f in features if f.unknown == "category")
    return (
        *_codebook(schema),
        assumptions.unlisted_values(refused=refused, category=category),
        *_unit(schema),
    )


def _codebook(schema: Schema) -> Iterator[Assumption]:
    if schema.reviewed:
        numeric = [feature.kind == "numeric" for feature in schema.features]
        names = named(schema.names)
        yield assumptions.reviewed_schema(
            drafted_from_data=named(schema.drafted_from_data),
            categories=[name for name, edges in zip(names, numeric, strict=True) if not edges],
            edges=[name for name, edges in zip(names, numeric, strict=True) if edges],
            rows_per_unit=schema.rows_per_unit if schema.unit else None,
        )


def _unit(schema: Schema) -> Iterator[Assumption]:
    if schema.unit:
        yield assumptions.unit_column(escaped(schema.unit), rows_per_unit=schema.rows_per_unit)


def of_heads(schema: Schema, heads: int) -> tuple[Assumption, ...]:
    """Return where public heads come from: listed ones first, then features in their order."""
    plain = plain_features(schema)
    others = {schema.names[i] for i in plain}
    listed = {schema.names[i]: len(others & set(schema.features[i].heads)) for i in plain}
    listing = named(name for name, count in listed.items() if count and heads)
    return (
        *((assumptions.public_heads(listing),) if listing else ()),
        *((assumptions.feature_order(),) if min(listed.values()) < heads else ()),
    )


def of_release(schema: Schema, recipe: Recipe) -> tuple[Assumption, ...]:
    """Return what a settled release takes for public."""
    return (*of_structure(schema, recipe), *_of_choices(schema, recipe))


def of_structure(schema: Schema, recipe: Recipe) -> tuple[Assumption, ...]:
    """Return what it takes from the schema, which a saved model knows as well."""
    return (
        *_shares(schema, recipe.draw.method),
        *_rules(schema),
        *_parents(schema, recipe),
        *_diversity(schema, recipe),
    )


def _shares(schema: Schema, method: str) -> Iterator[Assumption]:
    stated = named(feature.name for feature in schema.features if feature.shares)
    # The other methods do not look at them.
    if method == ONCE and stated:
        yield assumptions.public_shares(stated)


def _rules(schema: Schema) -> Iterator[Assumption]:
    ruled = {feature for rule in schema.rules for feature, _ in rule.forbidden}
    if ruled:
        names = named(schema.names[i] for i in sorted(ruled))
        yield assumptions.public_rules(names, count=len(schema.rules))


def _parents(schema: Schema, recipe: Recipe) -> Iterator[Assumption]:
    # Gibbs sweeps draw a detail given its parent; imputation draws it after all others.
    if recipe.draw.method in (*PEGS_METHODS, *IMPUTATION_METHODS):
        drawn = set(drawn_features(schema, recipe.draw)) & set(detail_features(schema))
        if drawn:
            yield assumptions.public_parents(named(schema.names[i] for i in sorted(drawn)))


def _diversity(schema: Schema, recipe: Recipe) -> Iterator[Assumption]:
    levels = promised(schema, recipe)
    if levels:
        yield assumptions.public_diversity(
            {escaped(schema.names[i]): levels[i] for i in sorted(levels)}
        )


def _of_choices(schema: Schema, recipe: Recipe) -> Iterator[Assumption]:
    """Yield what the user chose for this run."""
    if recipe.draw.where:
        yield assumptions.given_values(named(name for name, _ in recipe.draw.where))
    yield assumptions.public_options(_options(recipe))


def _options(recipe: Recipe) -> Parameters:
    """Return the options that the method uses, as they were settled."""
    draw = recipe.draw
    given: Parameters = {"method": draw.method, "datasets": draw.datasets}
    if draw.rows is not None:
        given["rows"] = draw.rows
    if draw.method == ONCE:
        return given | {"heads": recipe.heads}
    if draw.method in PEGS_METHODS:
        given |= {"heads": recipe.heads, "tail_bits": recipe.tail_bits, "prior": recipe.prior}
        given |= {"order": recipe.order} if recipe.heads else {}
    if draw.method in (*PEGS_METHODS, *IMPUTATION_METHODS):
        known = recipe.seed_pool in ("uniform", "marginal", "original")
        given |= {"sweeps": draw.sweeps, "seed_rows": str(recipe.seed_pool) if known else "file"}
    if draw.method == "pegs-rs":
        given["block_size"] = draw.block_size
    if draw.method == "pegs-capped" and draw.visits is not None:
        given |= {"visits": draw.visits, "chains": draw.chains or 1, "urn": bool(draw.urn)}
    if draw.method == "contingency":
        given["log_linear"] = draw.log_linear
    return given


def named(names: Iterable[str]) -> list[str]:
    """Return names as a ledger can hold them: without what steers a terminal."""
    return [escaped(name) for name in names]
