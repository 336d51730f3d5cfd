"""One column of the public codebook, and the codes it defines.

A `Feature` says which categories a column can hold, in order. Codes 0, 1, .. follow that
order and nothing else: first the categories (or bins), then "unknown" when the schema
accepts unlisted values, then "not applicable", then "missing", or every missing code where
these are kept apart. No code ever depends on the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Literal, get_args

from pegsynth.schema import temporal
from pegsynth.schema.binning import EqualWidth
from pegsynth.schema.calendar_units import CALENDAR, TEMPORAL
from pegsynth.schema.feature_checks import settle
from pegsynth.schema.keys import (
    MISSING_LABEL,
    UNKNOWN_LABEL,
    documented,
    needed,
    optional,
    part,
)
from pegsynth.schema.recoding import Recoding

Kind = Literal["nominal", "ordinal", "numeric", "date", "time", "datetime", "duration"]
Role = Literal["identifier", "quasi-identifier", "sensitive", "other", "drop"]
Unknown = Literal["error", "category"]
Inside = Literal["measured", "uniform"]

KINDS: tuple[str, ...] = get_args(Kind)
ROLES: tuple[str, ...] = get_args(Role)

DROPPED = ("identifier", "drop")
"""Roles of columns of which nothing is kept but the name."""
MOST_LABELLED = 1 << 15

_BINNED = ("numeric", *TEMPORAL)
_PUBLIC = "declared public by `reviewed`"


@documented
@dataclass(frozen=True)
class Feature:
    """A column: what it may hold, what it means to the intruder, how it is written.

    Of a dropped column nothing is kept but its name and role: whatever else is given may be values
    of the data. Values beyond the edges fall in the end bins; bins are half-open, the last one
    closed. Edges and bounds of dates become numbers since 1970-01-01.

    Parameters
    ----------
    private_edges, private_categories
        Whether edges are still to be measured (R21), or categories to be found (R29); set by
        ``edges="private"`` and ``categories="private"``.
    recoding
        Public rules by which values are recoded row by row before they are counted (R31).
        Categories and edges are those after recoding.
    notes
        Remarks on a draft for its reviewer, such as counts. They are confidential: written as
        comments into a draft and nowhere else, and never read back.
    """

    name: str = field(metadata=needed('"age"', "Name of the column."))
    kind: Kind = optional(
        "nominal",
        '"numeric"',
        "`nominal`: matched as text; `ordinal`: the same, in order; `numeric`: binned by `edges` "
        "or `bins`; `date`, `datetime`, `time` and `duration`: the same on a calendar "
        "([dates.md](dates.md)).",
        _PUBLIC,
        always=True,
    )
    categories: tuple[str, ...] = optional(
        (),
        '["f", "m"]',
        "The values that it may have, in order; or a CSV file beside the schema, whose first "
        "column lists them. `private`: a release finds the frequent ones of a nominal feature, and "
        'all others are "(other)" ([numbers.md](numbers.md#private-categories)).',
        f"{_PUBLIC}; a value that is not listed is refused, see `unknown`. Private ones are paid "
        "for, with a delta",
        form="listed",
    )
    edges: tuple[float, ...] = optional(
        (),
        "[0, 18, 65, 110]",
        "Edges of the bins of a numeric feature; values beyond fall in the end bins. `private`: a "
        "release measures them ([numbers.md](numbers.md)).",
        f"{_PUBLIC}; round figures, not values of the data. Private ones are paid for",
        form="edges",
    )
    missing: tuple[str, ...] = optional(
        (),
        '["", "-9"]',
        "Texts and codes that mean that the value is not known.",
        f"{_PUBLIC}; without it a missing value is refused",
        form="values",
        left_out="no missing category",
    )
    not_applicable: tuple[str, ...] = optional(
        (),
        '["-8"]',
        "Texts and codes that mean that there can be no value.",
        _PUBLIC,
        form="values",
        left_out="no such category",
    )
    role: Role = optional(
        "other",
        '"sensitive"',
        "`identifier` and `drop` columns are dropped; `quasi-identifier` and `sensitive` say what "
        "risks are measured.",
        "no value of a dropped column is kept",
        always=True,
    )
    dtype: str = optional(
        "",
        '"int64"',
        'Arrow type that the column is written in. Unless it is `"string"`, zeros at the end of a '
        "decimal do not count: 1.0 is the category `1`.",
        left_out="as the input",
    )
    heads: tuple[str, ...] = optional(
        (),
        '["age", "sex"]',
        "Head features of this one, most important first.",
        "assumption `public-heads`",
        left_out="settled by `--order`",
    )
    l: float | None = optional(  # noqa: E741 - the literature's own letter
        None,
        "2.5",
        "Entropy l-diversity wanted of this feature.",
        "l-diversity, no differential privacy",
    )
    parent: str | None = optional(
        None,
        '"chapter"',
        "Feature of which this one is a detail; `pegs-once` takes from `hierarchy` what belongs to "
        "what.",
        "public: assumption `public-parents`",
    )
    shares: tuple[float, ...] = optional(
        (),
        "[0.5, 0.5]",
        "Public shares of its categories in the order of the codes, such as from a census.",
        "assumption `public-shares`",
        left_out="not known",
    )
    unknown: Unknown = optional(
        "error",
        '"category"',
        'What an unlisted value is: `error` refuses the table, `category` is "(other)".',
        "`error` tells that such a value is there: assumption `unlisted-values`",
    )
    drafted_from_data: bool = optional(
        False,
        "true",
        "A program read the categories or edges off the table. Leave it as it is.",
        "listed in the ledger: a person declared them public afterwards",
    )
    label: str = optional("", '"age in years"', "A line of description.")
    value_labels: tuple[tuple[str, str], ...] = optional(
        (),
        '{ 1 = "male", 2 = "female" }',
        "What codes mean, or a CSV file of codes and texts; written into .sav, .dta and .xlsx "
        "files.",
        "public, as categories are",
        form="labels",
    )
    private_edges: bool = False
    private_categories: bool = False
    lowest: float | None = optional(
        None,
        "0",
        "With private edges: values below count as this one, and none is written. With a calendar "
        "step: the first edge.",
        _PUBLIC,
        form="bound",
        of=_BINNED,
    )
    highest: float | None = optional(
        None,
        "5000000",
        "With private edges: values above count as this one. With a calendar step: the last edge. "
        "With listed edges: where the last bin ends, if that is before the last edge. No value "
        "above is written.",
        _PUBLIC,
        form="bound",
        of=_BINNED,
    )
    bins: int | None = optional(
        None,
        "{ lowest = 0, highest = 100, count = 20 }",
        "Bins of equal width, instead of `edges`; with private edges, how many.",
        _PUBLIC,
        form="bins",
        inside=EqualWidth,
        of=_BINNED,
    )
    inside: Inside | None = optional(
        None,
        '"uniform"',
        "How values lie inside their bin: by a measured shape, or uniformly.",
        "a measured shape is paid for",
        left_out='`"measured"` with private edges',
        of=_BINNED,
    )
    decimals: int | None = optional(
        None,
        "2",
        "How many decimals its values have.",
        _PUBLIC,
        left_out="as many as it takes",
        of=("numeric",),
    )
    format: str = optional(
        "",
        '"%d.%m.%Y"',
        "How dates and times are written in columns of text: `%Y`, `%y`, `%m`, `%b`, `%d`, `%H`, "
        "`%M`, `%S`, `%z`. With `%z`, an offset from UTC, moments are counted; any other offset "
        "in a text is read past.",
        "public",
        left_out="ISO 8601",
        of=TEMPORAL,
    )
    resolution: str = optional(
        "",
        '"minute"',
        "The unit that dates and times are counted in; what is finer is cut off.",
        _PUBLIC,
        left_out="`day` for dates, else `second`",
        choices=("day", "hour", "minute", "second"),
        of=TEMPORAL,
    )
    weekday: bool = optional(
        False,
        "true",
        "Whether the shares of weekdays are measured, and kept inside bins.",
        "paid for, as edges are",
        of=TEMPORAL,
    )
    after: str | None = optional(
        None,
        '"admitted"',
        "Another date of the same row: the difference is modelled, so that no row has this date "
        "before it.",
        "a date before the other counts as the same: assumption `dates-in-order`",
        of=TEMPORAL,
    )
    keep_missing_codes: bool = optional(
        False,
        "true",
        "Whether every text of missing is a category of its own and comes back as it was.",
        _PUBLIC,
        left_out="`false`: one category, written as an empty cell",
    )
    recoding: Recoding | None = part(Recoding)
    label_of: str | None = optional(
        None,
        '"sex"',
        "The column describes the codes of this feature, by `value_labels` of either. It is "
        "neither read nor modelled, and written from the synthetic code.",
        "the texts are public",
    )
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    _file_order = (
        *("name", "label", "kind", "role", "dtype", "categories", "value_labels", "edges"),
        *("lowest", "highest", "bins", "decimals", "format", "after", "resolution", "weekday"),
        *("inside", "missing", "not_applicable", "keep_missing_codes", "label_of", "top"),
        *("bottom", "round", "groups", "hierarchy", "level", "rare", "unknown", "heads", "l"),
        *("parent", "shares", "drafted_from_data"),
    )
    """How a file lists its keys; the order of the fields is that of positional arguments."""

    def __post_init__(self) -> None:
        settle(self)

    @property
    def dropped(self) -> bool:
        """Whether nothing of the column is kept but its name and role."""
        return self.role in DROPPED

    @property
    def modelled(self) -> bool:
        """Whether rows are drawn with this column as a feature."""
        return not self.dropped and self.label_of is None

    @property
    def integer(self) -> bool:
        """Whether values are whole numbers, as those of dates and times are."""
        return self.kind in TEMPORAL or self.dtype.startswith(("int", "uint"))

    @property
    def binned(self) -> bool:
        """Whether values are put into bins: numbers, dates, times and lengths of time."""
        return self.kind in _BINNED

    @property
    def calendar(self) -> bool:
        """Whether bins lie on a calendar or a clock."""
        return self.kind in CALENDAR and self.after is None

    @property
    def labelled(self) -> bool:
        """Whether bins are known by their labels; those of a grid of a calendar are too many."""
        return not (self.calendar and self.bin_count > MOST_LABELLED)

    @property
    def bin_count(self) -> int:
        """Number of listed categories or bins, special categories aside.

        Private edges have no bins before they are measured, and private categories are none
        before they are found.
        """
        if self.binned:
            return max(len(self.edges) - 1, 0)
        return len(self.categories)

    @property
    def closed_edges(self) -> tuple[float, ...]:
        """Edges of the bins, the last one that of the largest value: no other is written."""
        if self.highest is None or not self.edges:
            return self.edges
        return (*self.edges[:-1], min(self.edges[-1], self.highest))

    @property
    def public_bounds(self) -> tuple[float, float]:
        """Between which its values lie, where it has edges: no other is written.

        Times of a panel may lie beyond the last edge, which is one of first rows, up to `highest`.
        """
        return self.edges[0], self.edges[-1] if self.highest is None else self.highest

    @property
    def wants_shape(self) -> bool:
        """Whether a release measures it first: edges, the shape inside bins, or what is rare."""
        measured = self.private_edges or self.inside == "measured" or self.weekday
        return measured or self.merges_rare

    @property
    def merges_rare(self) -> bool:
        """Whether categories with small noisy counts are to become one (R31)."""
        return self.recoding is not None and self.recoding.rare is not None

    def with_edges(self, edges: Iterable[float], *, highest: float | None = None) -> Feature:
        """Return the feature with edges that are listed, in place of those to be measured.

        Parameters
        ----------
        highest
            The public bound that holds for them.
        """
        return replace(
            self,
            edges=tuple(edges),
            private_edges=False,
            lowest=None,
            highest=highest,
            bins=None,
            recoding=measured_recoding(self),
        )

    @property
    def unknown_code(self) -> int | None:
        """Code of unlisted values, if they have one."""
        return self.bin_count if self.unknown == "category" else None

    @property
    def not_applicable_code(self) -> int | None:
        """Code of "not applicable", if it is a category."""
        if not self.not_applicable:
            return None
        return self.bin_count + (self.unknown == "category")

    @property
    def missing_code(self) -> int | None:
        """Code of a null, if missing values are a category."""
        return missing_code_of(self, "")

    @property
    def category_count(self) -> int:
        """Number of codes, C_i in the paper."""
        special = (self.unknown == "category") + bool(self.not_applicable)
        missing = len(self.missing) if self.keep_missing_codes else bool(self.missing)
        return self.bin_count + special + missing

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Text of every code, in order."""
        listed = self._bin_labels() if self.binned else self.categories
        special: list[str] = []
        if self.unknown == "category":
            special.append(UNKNOWN_LABEL)
        if self.not_applicable:
            special.append(self.not_applicable[0])
        missing = [MISSING_LABEL] if self.missing else []
        if self.keep_missing_codes:
            # A code alone could be the name of a bin.
            texts = (f"(missing: {each})" if each.strip() else "" for each in self.missing)
            missing = [text or MISSING_LABEL for text in texts]
        return (*listed, *special, *missing)

    def _bin_labels(self) -> tuple[str, ...]:
        labels = []
        last = self.bin_count - 1
        text = partial(temporal.bound_text, self) if self.calendar else number_text
        for index, (low, high) in enumerate(pairwise(self.closed_edges)):
            if low == high or (self.integer and index < last and high == low + 1):
                labels.append(text(low))
            else:
                close = "]" if index == last else ")"
                labels.append(f"[{text(low)}, {text(high)}{close}")
        return tuple(labels)


def measured_recoding(feature: Feature) -> Recoding | None:
    """Return the recoding of a feature whose edges are measured: top and bottom are in the edges.

    The highest number has a cell of its own on a grid, which has to end above it.
    """
    if feature.recoding is None or not feature.private_edges:
        return feature.recoding
    left = replace(feature.recoding, top=None, bottom=None)
    return None if left == Recoding() else left


def number_text(value: float) -> str:
    """Shortest text of a number; whole numbers without a decimal point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def category_counts(features: Sequence[Feature]) -> tuple[int, ...]:
    """C_1 .. C_M."""
    return tuple(feature.category_count for feature in features)


# Files of offices tell reasons apart why a value is missing: -8 for "refused", -9 for "does not
# know". A feature with `keep_missing_codes` has a category for each, and writes them as they were;
# otherwise all are one category, written as a null.


def missing_codes(feature: Feature) -> range:
    """Return all codes that mean that a value is missing."""
    count = len(feature.missing) if feature.keep_missing_codes else bool(feature.missing)
    return range(feature.category_count - count, feature.category_count)


def missing_code_of(feature: Feature, text: str) -> int | None:
    """Return the code of a text that means missing; None if it has none.

    Where codes are kept apart, a null is the empty text, and has no code unless that is listed.
    """
    codes = missing_codes(feature)
    if not feature.keep_missing_codes:
        return codes[0] if codes else None
    return codes[feature.missing.index(text)] if text in feature.missing else None


def kept_codes(feature: Feature) -> dict[int, str]:
    """Return the codes that are written as the texts they were, with these texts."""
    if not feature.keep_missing_codes:
        return {}
    pairs = zip(missing_codes(feature), feature.missing, strict=True)
    return {code: text for code, text in pairs if text.strip()}
