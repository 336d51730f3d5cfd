"""What a feature may say: texts and lists become tuples and numbers, and the rest is refused.

In go the keys of a feature as a person wrote them: lists, ISO texts, a calendar step such as
"month", or "private". Out come tuples, and edges and bounds as numbers; those of dates as whole
numbers of the feature's resolution, so that all that is done with numbers is done with them (R21).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pegsynth.errors import SchemaError
from pegsynth.schema.binning import MOST_PRIVATE_BINS, exact
from pegsynth.schema.calendar_units import (
    CALENDAR,
    STEPS,
    TEMPORAL,
    DateFormat,
    moment,
    resolution_of,
    stepped,
)
from pegsynth.schema.keys import MISSING_LABEL, PRIVATE, UNKNOWN_LABEL, Key, keys_of

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature

MOST_DECIMALS = 15
_SHARES_OFF = 1e-6
_KEPT = ("name", "role", "notes")
_TEXTS = ("categories", "missing", "not_applicable", "heads")

Problems = Iterator[str]


def settle(feature: Feature) -> None:
    """Put what a feature says into its final form, and refuse what it cannot say.

    Raises
    ------
    SchemaError
        With the name of the feature and the first thing that is wrong.
    """
    if not isinstance(feature.name, str) or not feature.name:
        raise SchemaError("a feature has no name; give every feature one")
    if feature.role != "identifier":
        _take_moments(feature)
    _take_lists(feature)
    _refuse(feature, _of_any)
    if feature.dropped:
        # Nothing of an identifier is kept: what a schema says of it may be somebody's name.
        _set(feature, **{f.name: f.default for f in fields(feature) if f.name not in _KEPT})
        return
    if feature.label_of is not None:
        _refuse(feature, _of_descriptions)
        _take_value_labels(feature)
        return
    _refuse(feature, _of_private_categories, _of_recodings)
    if feature.private_categories:
        _set(feature, unknown="category")
    _recode(feature)
    own = _of_categories
    if feature.private_edges:
        own = _of_private_edges
    elif feature.binned:
        own = _of_edges
    _refuse(feature, _of_numbers, own, _of_special_texts, _of_shares)
    _take_value_labels(feature)


def _set(feature: Feature, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(feature, name, value)


def _error(feature: Feature, what: object) -> SchemaError:
    return SchemaError(f"feature {feature.name!r}: {what}")


def _refuse(feature: Feature, *checks: Callable[[Feature], Problems]) -> None:
    for check in checks:
        for what in check(feature):
            raise _error(feature, what)


# What is taken in another form than it was written in.


def _take_lists(feature: Feature) -> None:
    """Take any sequence where several values belong, but no text for its letters."""
    for name in ("edges", "categories"):
        if isinstance(said := getattr(feature, name), str) and said == PRIVATE:
            _set(feature, **{name: (), f"private_{name}": True})
    for name in (*_TEXTS, "edges", "shares"):
        values = getattr(feature, name)
        if isinstance(values, str) or not isinstance(values, Iterable):
            what = f"{name} must be a list of values, not {type(values).__name__}"
            raise _error(feature, what)
        if not isinstance(values, tuple):
            _set(feature, **{name: tuple(values)})
    for name in _TEXTS:
        if not all(isinstance(text, str) for text in getattr(feature, name)):
            raise _error(feature, f'{name} are texts; write the number 1 as "1"')


def _take_value_labels(feature: Feature) -> None:
    said: Any = feature.value_labels
    pairs = tuple((code, text) for code, text in (said.items() if isinstance(said, dict) else said))
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise _error(feature, 'value_labels are pairs of texts; write the code 1 as "1"')
    if len(dict(pairs)) < len(pairs):
        raise _error(feature, "value_labels name a code twice; name each once")
    _set(feature, value_labels=pairs)


def _take_moments(feature: Feature) -> None:
    """Take dates and calendar steps as numbers of the resolution."""
    _refuse(feature, _of_moments)
    if feature.kind not in TEMPORAL:
        return
    try:
        resolution = resolution_of(feature.kind, feature.resolution)
    except ValueError as error:
        raise _error(feature, error) from None
    _set(feature, resolution=resolution)
    for name in ("lowest", "highest"):
        if getattr(feature, name) is not None:
            _set(feature, **{name: _moment(feature, name, getattr(feature, name))})
    edges: Any = feature.edges
    if isinstance(edges, str) and edges != PRIVATE:
        _refuse(feature, _of_steps)
        low, high = feature.lowest or 0.0, feature.highest or 0.0
        try:
            listed = stepped(feature.kind, resolution, edges, low, high)
        except ValueError as error:
            raise _error(feature, f"edges {error}") from None
        _set(feature, edges=listed, lowest=None, highest=None)
    elif isinstance(edges, tuple) and all(type(edge) is float for edge in edges):
        # They are numbers already; a grid has very many.
        pass
    elif isinstance(edges, Sequence) and not isinstance(edges, str):
        _set(feature, edges=tuple(_moment(feature, "edges", edge) for edge in edges))
    if feature.after is not None:
        _hold_after(feature)


def _moment(feature: Feature, name: str, value: object) -> float:
    kind = "duration" if feature.after is not None else feature.kind
    try:
        return moment(kind, feature.resolution, value)
    except ValueError as error:
        raise _error(feature, f"{name} {error}") from None


def _hold_after(feature: Feature) -> None:
    """Hold a difference at zero from below: no row is before the date that it is counted from."""
    private = feature.private_edges or isinstance(feature.edges, str)
    first = () if isinstance(feature.edges, str) else feature.edges[:1]
    if any(end is not None and end < 0 for end in (*first, feature.lowest)):
        raise _error(feature, f"a date after {feature.after!r} is 0 or more units from it")
    if private and feature.lowest is None:
        _set(feature, lowest=0.0)


def _recode(feature: Feature) -> None:
    """Let categories and ends be those that public rules leave (R31)."""
    recoding = feature.recoding
    if recoding is None:
        return
    try:
        _set(feature, edges=recoding.cut(feature.edges))
    except SchemaError as error:
        raise _error(feature, error) from None
    if feature.kind != "numeric":
        _set(feature, categories=recoding.categories(feature.categories))
    if feature.private_edges:
        low = [each for each in (feature.lowest, recoding.bottom) if each is not None]
        high = [each for each in (feature.highest, recoding.top) if each is not None]
        _set(feature, lowest=max(low, default=None), highest=min(high, default=None))


# What is wrong; the first problem of a feature is the one that is told.


@cache
def _chosen(own: type) -> tuple[Key, ...]:
    """Return the keys that have certain values only."""
    return tuple(key for key in keys_of(own) if key.choices and not key.part)


@cache
def _foreign(own: type, kind: str, temporal: bool) -> tuple[Key, ...]:
    """Return the keys that go with other kinds of feature."""
    keys = (key for key in keys_of(own) if key.of and kind not in key.of)
    return tuple(key for key in keys if (key.of == TEMPORAL) == temporal)


def _of_any(feature: Feature) -> Problems:
    own: type = type(feature)
    for each in _chosen(own):
        value = getattr(feature, each.name)
        if value in (each.default, *each.choices) or (each.of and feature.dropped):
            continue
        yield f"{each.name} {value!r} is not one of {', '.join(each.choices)}"
    if feature.l is not None and not (math.isfinite(feature.l) and feature.l >= 1):
        yield "l must be a finite number of at least 1"


def _of_other_kinds(feature: Feature, *, temporal: bool) -> Problems:
    own: type = type(feature)
    for each in _foreign(own, str(feature.kind), temporal):
        if getattr(feature, each.name) != each.default:
            yield f"{each.name} requires a kind of {', '.join(each.of)}; it is {feature.kind}"


def _of_moments(feature: Feature) -> Problems:
    kind = feature.kind
    if kind not in TEMPORAL:
        yield from _of_other_kinds(feature, temporal=True)
        return
    if kind not in CALENDAR and (feature.format or feature.weekday or feature.after):
        yield "format, weekday and after require dates, and this is a duration"
    if kind == "time" and (feature.weekday or feature.after):
        yield "weekday and after require dates, and this is a time of day"
    if feature.weekday and feature.after:
        yield "a date that is counted from another has no weekday of its own"
    if feature.weekday and feature.inside == "uniform":
        yield 'weekday = true is a measured shape; leave inside = "uniform" out'
    if feature.format:
        try:
            DateFormat(feature.format, kind)
        except ValueError as error:
            yield f"format {error}"


def _of_steps(feature: Feature) -> Problems:
    step: Any = feature.edges
    if feature.kind not in CALENDAR or feature.after is not None:
        yield 'edges must be a list of numbers, or "private"'
    if step not in STEPS:
        yield f'edges must be a list of dates, "private", or a step: {", ".join(STEPS)}'
    if feature.lowest is None or feature.highest is None:
        yield f'edges = "{step}" needs lowest and highest'
    elif feature.lowest >= feature.highest:
        yield "lowest must be less than highest"


def _of_descriptions(feature: Feature) -> Problems:
    measured = feature.private_edges or feature.private_categories
    if feature.categories or feature.edges or measured or feature.recoding or feature.missing:
        yield (
            "a column with label_of is written from another one; leave out categories, edges, "
            "missing and recodings"
        )


def _of_private_categories(feature: Feature) -> Problems:
    if not feature.private_categories:
        return
    if feature.kind != "nominal":
        yield (
            'categories = "private" requires a nominal feature, as categories that are not known '
            f"have no order; it is {feature.kind}"
        )
    if feature.categories:
        yield 'give either categories or categories = "private", not both'
    if feature.recoding is not None:
        yield "recodings are of public categories; list the categories, or leave recodings out"
    if feature.shares:
        yield "shares are of public categories; list the categories, or leave shares out"


def _of_recodings(feature: Feature) -> Problems:
    if feature.recoding is None:
        return
    if feature.recoding.rare and (feature.shares or feature.parent):
        yield "rare goes neither with public shares nor with a parent; keep one"
    if feature.kind in TEMPORAL:
        yield "recodings require categories or numbers; bound dates by edges"
    recoding = feature.recoding
    if feature.kind == "numeric" and (recoding.groups or recoding.hierarchy or recoding.rare):
        yield "groups, hierarchy and rare require categories, and this is numeric"


def _of_numbers(feature: Feature) -> Problems:
    yield from _of_other_kinds(feature, temporal=False)
    if feature.private_edges and not feature.binned:
        yield f"a {feature.kind} feature has categories, not edges"
    if feature.decimals is not None:
        if not 0 <= feature.decimals <= MOST_DECIMALS:
            yield f"decimals must be a whole number from 0 to {MOST_DECIMALS}"
        if feature.integer and feature.decimals:
            yield "an integer column has no decimals; change dtype or decimals"


def _of_edges(feature: Feature) -> Problems:
    edges = feature.edges
    if feature.categories:
        yield f"a {feature.kind} feature has edges, not categories"
    if feature.lowest is not None or feature.bins is not None:
        yield 'lowest and a number of bins require edges = "private"'
    if len(edges) < 2:
        yield (
            f"a {feature.kind} feature needs at least two edges, lowest and highest; or "
            'edges = "private", which a release measures and pays for'
        )
    if not all(map(math.isfinite, edges)):
        yield "edges must be finite; values beyond fall in the end bins"
    if any(a >= b for a, b in pairwise(edges)):
        yield "edges must increase strictly"
    if feature.integer and any(edge != int(edge) for edge in edges):
        yield "edges of an integer column must be whole numbers"
    yield from _of_bounds(feature)
    if feature.highest is not None and feature.highest < edges[-2]:
        yield "highest lies below the last bin; remove it, or the edges above it"


def _of_private_edges(feature: Feature) -> Problems:
    low, high = feature.lowest, feature.highest
    if feature.edges:
        yield 'give either edges or edges = "private", not both'
    if feature.categories:
        yield f"a {feature.kind} feature has edges, not categories"
    if feature.shares:
        yield "shares are of public bins; list the edges, or leave shares out"
    if feature.bins is not None and not 2 <= feature.bins <= MOST_PRIVATE_BINS:
        yield f"bins must be a whole number from 2 to {MOST_PRIVATE_BINS:,}"
    yield from _of_bounds(feature)
    if low is None or high is None:
        return
    if low >= high:
        yield "lowest must be less than highest"
    units = 10 ** (feature.decimals or 0)
    if feature.decimals is not None and math.ceil(exact(low) * units) > exact(high) * units:
        yield (
            f"no number with {feature.decimals} decimals lies between lowest and highest; change "
            "one of the three"
        )


def _of_bounds(feature: Feature) -> Problems:
    for name in ("lowest", "highest"):
        value = getattr(feature, name)
        if value is not None and not math.isfinite(value):
            yield f"{name} must be a finite number"
        if value is not None and feature.integer and value != int(value):
            yield f"{name} of an integer column must be a whole number"


def _of_categories(feature: Feature) -> Problems:
    if feature.edges:
        yield f"a {feature.kind} feature has categories, not edges"
    if feature.category_count == 0:
        yield (
            "no categories are listed; list them, make it an identifier, or state "
            'categories = "private", which a release finds and pays for'
        )


def _of_special_texts(feature: Feature) -> Problems:
    texts = (*feature.categories, *feature.not_applicable)
    if feature.recoding is not None:
        recoded = {text for text, _ in feature.recoding.listed_texts}
        if recoded & {*feature.missing, *feature.not_applicable}:
            yield "a text is recoded, and listed under missing or not_applicable too; keep one"
    if len(set(texts)) != len(texts):
        yield "a category is listed twice; list each once"
    if not isinstance(feature.keep_missing_codes, bool):
        yield "keep_missing_codes is true or false"
    if feature.keep_missing_codes and not feature.missing:
        yield "keep_missing_codes requires missing; list the codes there"
    stripped = {text.strip() for text in feature.missing}
    if feature.keep_missing_codes and len(stripped) < len(feature.missing):
        yield "a missing code is listed twice; list each once"
    if set(texts) & set(feature.missing):
        yield "a text is listed both as a category and as missing; keep it in one list"
    if feature.labelled and len(set(feature.labels)) != len(feature.labels):
        yield (
            f"a category or not-applicable text has the label of a bin, {UNKNOWN_LABEL!r} or "
            f"{MISSING_LABEL!r}; rename it"
        )


def _of_shares(feature: Feature) -> Problems:
    if not feature.shares:
        return
    if len(feature.shares) != feature.category_count:
        yield (
            f"shares must have one figure for each of its {feature.category_count} categories, "
            "those for unlisted, not applicable and missing values included"
        )
    if not all(math.isfinite(share) and share >= 0 for share in feature.shares):
        yield "shares must be numbers of at least 0"
    if abs(math.fsum(feature.shares) - 1) > _SHARES_OFF:
        yield "shares must add up to 1"
