"""One column of the public codebook, and the codes it defines.

A `Feature` says which categories a column can hold, in order. Codes 0, 1, .. follow that
order and nothing else: first the categories (or bins), then "unknown" when the schema
accepts unlisted values, then "not applicable", then "missing", or every missing code where
these are kept apart. No code ever depends on the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Literal, get_args

from pegsynth.errors import SchemaError
from pegsynth.schema import temporal
from pegsynth.schema.calendar_units import CALENDAR, TEMPORAL
from pegsynth.schema.missing_codes import (
    MISSING_LABEL,
    check_kept_codes,
    missing_code_of,
    missing_count,
    missing_labels,
)
from pegsynth.schema.recoding import Recoding, exact

Kind = Literal["nominal", "ordinal", "numeric", "date", "time", "datetime", "duration"]
Role = Literal["identifier", "quasi-identifier", "sensitive", "other", "drop"]
Unknown = Literal["error", "category"]
Inside = Literal["measured", "uniform"]

KINDS: tuple[str, ...] = get_args(Kind)
ROLES: tuple[str, ...] = get_args(Role)

UNKNOWN_LABEL = "(other)"
PRIVATE = "private"
MOST_PRIVATE_BINS = 1_000
MOST_DECIMALS = 15
DROPPED = ("identifier", "drop")
"""Roles of columns of which nothing is kept but the name."""
MOST_LABELLED = 1 << 15
_SHARES_OFF = 1e-6
_KEPT_OF_IDENTIFIERS = ("name", "role", "notes")


@dataclass(frozen=True)
class Feature:
    """A column: what it may hold, what it means to the intruder, how it is written.

    Parameters
    ----------
    name
        Column name.
    kind
        ``nominal`` (matched as text), ``ordinal`` (the same, in order), ``numeric``
        (binned by public `edges`), or ``date``, ``datetime``, ``time`` (of day) and
        ``duration``, which are numbers of their `resolution` and binned as such.
    categories
        Listed values as text, in order; empty for numeric features and identifiers. The text
        "private" stands for categories that a release finds and pays for (R29).
    edges
        Bin edges of a numeric feature, lowest and highest included. Bins are
        half-open, the last one closed; values beyond fall in the end bins. The text
        "private" stands for edges that a release measures and pays for (R21). Edges of dates
        may be ISO texts, or a calendar step such as "month" between `lowest` and `highest`;
        they become numbers since 1970-01-01.
    missing
        Texts read as missing (nulls always are, when the tuple is not empty). Empty:
        the feature has no missing category.
    not_applicable
        Texts read as "not applicable", a category of its own, written as the first of them.
    role
        ``identifier`` and ``drop`` columns are dropped; the others are modelled. Of a dropped
        column nothing is kept but its name and role: whatever else is given may be values of
        the data.
    dtype
        Arrow type name to write ("string", "int64", "double", "bool", "date32", ..);
        empty: as the input had it.
    heads
        Public head features of this target, most important first.
    l
        Entropy l-diversity wanted of this feature.
    parent
        Feature of which this one is a detail.
    shares
        Public shares of all categories in the order of the codes, such as from a census;
        empty: not known.
    unknown
        What an unlisted value is: an error, or a category of its own, as it always is where
        categories are private.
    drafted_from_data
        The categories or edges were read off a confidential table.
    label
        A line of description.
    value_labels
        What codes mean, as pairs of a code and a text; for files that hold such labels.
    private_edges
        Whether the edges are still to be measured; set by ``edges="private"``.
    private_categories
        Whether the categories are still to be found; set by ``categories="private"``.
    lowest, highest
        Public bounds of a feature with private edges; values beyond count as these, and none is
        written. Measured edges keep `highest`: whole numbers end there, which is before the last
        edge.
    bins
        How many bins to make of a feature with private edges; None: by rows and budget.
    inside
        How values are drawn inside a bin: "measured", by a shape that was paid for, or
        "uniform"; None: "measured" where there are private edges.
    decimals
        How many decimals values have; None: as many as it takes.
    format
        How dates are written in columns of text, as "%d.%m.%Y"; empty: ISO 8601.
    resolution
        The unit of dates and times: "day", "hour", "minute" or "second".
    weekday
        Whether the shares of weekdays are measured as well (R21).
    after
        Another date of the same row from which this one is counted: what is modelled is the
        difference, so that no row has this date before the other.
    keep_missing_codes
        Whether every text of `missing` is a category of its own and comes back as it was; a
        null is then that of the empty text.
    recoding
        Public rules by which values are recoded row by row before they are counted (R31).
        Categories and edges are those after recoding.
    label_of
        Feature whose categories this column describes, by `value_labels` of its own or of
        that feature. It is neither read nor modelled, and written from the other's category.
    notes
        Remarks on a draft for its reviewer, such as counts. They are confidential: written as
        comments into a draft and nowhere else, and never read back.
    """

    name: str
    kind: Kind = "nominal"
    categories: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    missing: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    role: Role = "other"
    dtype: str = ""
    heads: tuple[str, ...] = ()
    l: float | None = None  # noqa: E741 - the literature's own letter
    parent: str | None = None
    shares: tuple[float, ...] = ()
    unknown: Unknown = "error"
    drafted_from_data: bool = False
    label: str = ""
    value_labels: tuple[tuple[str, str], ...] = ()
    private_edges: bool = False
    private_categories: bool = False
    lowest: float | None = None
    highest: float | None = None
    bins: int | None = None
    inside: Inside | None = None
    decimals: int | None = None
    format: str = ""
    resolution: str = ""
    weekday: bool = False
    after: str | None = None
    keep_missing_codes: bool = False
    recoding: Recoding | None = None
    label_of: str | None = None
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("a feature has no name; give every feature one")
        for name, value in temporal.taken(self).items():
            object.__setattr__(self, name, value)
        self._take_lists()
        if self.kind not in KINDS:
            raise self._error(f"kind {self.kind!r} is not one of {', '.join(KINDS)}")
        if self.role not in ROLES:
            raise self._error(f"role {self.role!r} is not one of {', '.join(ROLES)}")
        if self.unknown not in get_args(Unknown):
            raise self._error('unknown must be "error" or "category"')
        if self.l is not None and not (math.isfinite(self.l) and self.l >= 1):
            raise self._error("l must be a finite number of at least 1")
        if self.dropped:
            self._forget()
            return
        if self.label_of is not None:
            self._check_description()
            return
        self._check_private_categories()
        self._recode()
        self._check_numbers()
        if self.private_edges:
            self._check_private_edges()
        elif self.binned:
            self._check_edges()
        else:
            self._check_categories()
        self._check_special()
        self._check_shares()
        self._check_value_labels()

    def _take_lists(self) -> None:
        """Take any sequence where several values belong, but no text for its letters."""
        if isinstance(self.edges, str) and self.edges == PRIVATE:
            object.__setattr__(self, "edges", ())
            object.__setattr__(self, "private_edges", True)
        if isinstance(self.categories, str) and self.categories == PRIVATE:
            object.__setattr__(self, "categories", ())
            object.__setattr__(self, "private_categories", True)
        for name in ("categories", "missing", "not_applicable", "heads", "edges", "shares"):
            values = getattr(self, name)
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise self._error(f"{name} must be a list of values, not {type(values).__name__}")
            object.__setattr__(self, name, tuple(values))
        for name in ("categories", "missing", "not_applicable", "heads"):
            if not all(isinstance(text, str) for text in getattr(self, name)):
                raise self._error(f'{name} are texts; write the number 1 as "1"')

    def _forget(self) -> None:
        """Keep nothing of an identifier: what a schema says of it may be somebody's name."""
        for each in fields(self):
            if each.name not in _KEPT_OF_IDENTIFIERS:
                object.__setattr__(self, each.name, each.default)

    def _recode(self) -> None:
        """Let categories and ends be those that public rules leave (R31)."""
        if self.recoding is None:
            return
        if self.recoding.rare and (self.shares or self.parent):
            raise self._error("rare goes neither with public shares nor with a parent; keep one")
        if self.kind in TEMPORAL:
            raise self._error("recodings go with categories and numbers; bound dates by edges")
        if self.kind == "numeric" and self.recoding.changes_codes:
            raise self._error("groups, hierarchy and rare go with categories; it is numeric")
        try:
            edges = self.recoding.cut(self.edges)
        except SchemaError as error:
            raise self._error(str(error)) from None
        object.__setattr__(self, "edges", edges)
        if self.kind != "numeric":
            object.__setattr__(self, "categories", self.recoding.categories(self.categories))
        if self.private_edges:
            low = [v for v in (self.lowest, self.recoding.bottom) if v is not None]
            high = [v for v in (self.highest, self.recoding.top) if v is not None]
            ends = {"lowest": max(low, default=None), "highest": min(high, default=None)}
            for name, value in ends.items():
                object.__setattr__(self, name, value)

    def _check_description(self) -> None:
        """Refuse whatever a column that describes another one cannot have."""
        measured = self.private_edges or self.private_categories
        if self.categories or self.edges or measured or self.recoding or self.missing:
            raise self._error(
                "a column with label_of is written from another one; leave out categories, edges, "
                "missing and recodings"
            )
        self._check_value_labels()

    def _error(self, what: str) -> SchemaError:
        return SchemaError(f"feature {self.name!r}: {what}")

    def _check_private_categories(self) -> None:
        if not self.private_categories:
            return
        if self.kind != "nominal":
            raise self._error(
                'categories = "private" goes with a nominal feature, as categories that are not '
                f"known have no order; it is {self.kind}"
            )
        if self.categories:
            raise self._error('give either categories or categories = "private", not both')
        if self.recoding is not None:
            raise self._error(
                "recodings are of public categories; list the categories, or leave recodings out"
            )
        if self.shares:
            raise self._error(
                "shares are of public categories; list the categories, or leave shares out"
            )
        object.__setattr__(self, "unknown", "category")

    def _check_edges(self) -> None:
        if self.categories:
            raise self._error(f"a {self.kind} feature has edges, not categories")
        if self.lowest is not None or self.bins is not None:
            raise self._error('lowest and a number of bins go with edges = "private"')
        if len(self.edges) < 2:
            raise self._error(
                f"a {self.kind} feature needs at least two edges, lowest and highest; or "
                'edges = "private", which a release measures and pays for'
            )
        if not all(math.isfinite(edge) for edge in self.edges):
            raise self._error("edges must be finite; values beyond fall in the end bins")
        if any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise self._error("edges must increase strictly")
        if self.integer and any(edge != int(edge) for edge in self.edges):
            raise self._error("edges of an integer column must be whole numbers")
        self._check_bounds()
        if self.highest is not None and self.highest < self.edges[-2]:
            raise self._error("highest lies below the last bin; remove it, or the edges above it")

    def _check_numbers(self) -> None:
        """Check what only numbers have."""
        if not self.binned:
            for name in ("lowest", "highest", "bins", "inside", "decimals"):
                if getattr(self, name) is not None:
                    raise self._error(f"{name} goes with a numeric feature; it is {self.kind}")
            if self.private_edges:
                raise self._error(f"a {self.kind} feature has categories, not edges")
        if self.inside is not None and self.inside not in get_args(Inside):
            raise self._error('inside must be "measured" or "uniform"')
        if self.decimals is not None:
            if not 0 <= self.decimals <= MOST_DECIMALS:
                raise self._error(f"decimals must be a whole number from 0 to {MOST_DECIMALS}")
            if self.integer and self.decimals:
                raise self._error("an integer column has no decimals; change dtype or decimals")

    def _check_private_edges(self) -> None:
        if self.edges:
            raise self._error('give either edges or edges = "private", not both')
        if self.categories:
            raise self._error(f"a {self.kind} feature has edges, not categories")
        if self.shares:
            raise self._error("shares are of public bins; list the edges, or leave shares out")
        if self.bins is not None and not 2 <= self.bins <= MOST_PRIVATE_BINS:
            raise self._error(f"bins must be a whole number from 2 to {MOST_PRIVATE_BINS:,}")
        self._check_bounds()
        if self.lowest is not None and self.highest is not None and self.lowest >= self.highest:
            raise self._error("lowest must be less than highest")
        if self.lowest is not None and self.highest is not None and self.decimals is not None:
            units = 10**self.decimals
            if math.ceil(exact(self.lowest) * units) > math.floor(exact(self.highest) * units):
                raise self._error(
                    f"no number with {self.decimals} decimals lies between lowest and highest; "
                    "change one of the three"
                )

    def _check_bounds(self) -> None:
        for name in ("lowest", "highest"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise self._error(f"{name} must be a finite number")
            if value is not None and self.integer and value != int(value):
                raise self._error(f"{name} of an integer column must be a whole number")

    def _check_categories(self) -> None:
        if self.edges:
            raise self._error(f"a {self.kind} feature has categories, not edges")
        if self.category_count == 0:
            raise self._error(
                "no categories are listed; list them, make it an identifier, or state "
                'categories = "private", which a release finds and pays for'
            )

    def _check_special(self) -> None:
        if self.recoding is not None:
            recoded = {text for text, _ in self.recoding.listed_texts}
            if recoded & {*self.missing, *self.not_applicable}:
                raise self._error(
                    "a text is recoded, and listed under missing or not_applicable too; keep one"
                )
        texts = (*self.categories, *self.not_applicable)
        if len(set(texts)) != len(texts):
            raise self._error("a category is listed twice; list each once")
        check_kept_codes(self)
        if set(texts) & set(self.missing):
            raise self._error(
                "a text is listed both as a category and as missing; keep it in one list"
            )
        if self.labelled and len(set(self.labels)) != len(self.labels):
            raise self._error(
                f"a category or not-applicable text has the label of a bin, {UNKNOWN_LABEL!r} or "
                f"{MISSING_LABEL!r}; rename it"
            )

    def _check_shares(self) -> None:
        if not self.shares:
            return
        if len(self.shares) != self.category_count:
            raise self._error(
                f"shares must have one figure for each of its {self.category_count} categories, "
                "those for unlisted, not applicable and missing values included"
            )
        if not all(math.isfinite(share) and share >= 0 for share in self.shares):
            raise self._error("shares must be numbers of at least 0")
        if abs(math.fsum(self.shares) - 1) > _SHARES_OFF:
            raise self._error("shares must add up to 1")

    def _check_value_labels(self) -> None:
        pairs = (
            self.value_labels.items() if isinstance(self.value_labels, dict) else self.value_labels
        )
        object.__setattr__(self, "value_labels", tuple((code, text) for code, text in pairs))
        if not all(isinstance(text, str) for pair in self.value_labels for text in pair):
            raise self._error('value_labels are pairs of texts; write the code 1 as "1"')
        if len(dict(self.value_labels)) < len(self.value_labels):
            raise self._error("value_labels name a code twice; name each once")

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
        return self.kind == "numeric" or self.kind in TEMPORAL

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
        return self.bin_count + special + missing_count(self)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Text of every code, in order."""
        listed = self._bin_labels() if self.binned else self.categories
        special: list[str] = []
        if self.unknown == "category":
            special.append(UNKNOWN_LABEL)
        if self.not_applicable:
            special.append(self.not_applicable[0])
        return (*listed, *special, *missing_labels(self))

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
    return feature.recoding.without_ends()


def number_text(value: float) -> str:
    """Shortest text of a number; whole numbers without a decimal point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def category_counts(features: Sequence[Feature]) -> tuple[int, ...]:
    """C_1 .. C_M."""
    return tuple(feature.category_count for feature in features)
