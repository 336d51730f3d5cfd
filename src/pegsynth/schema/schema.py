"""The public codebook of a table: its features, unit and rules.

`Schema` is a value. It is made by hand, loaded from ``schema.toml``, or drafted from a
table; everything downstream takes its codes, key spaces and rules from here and nowhere
else, so that none of them depends on the data.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.declared import Analysis, WantedTable, check_declared
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.feature import Feature, category_counts
from pegsynth.schema.keys import PRIVATE, keys_of
from pegsynth.schema.panel import Panel, check_panel, structural_rules
from pegsynth.schema.related_columns import check_related
from pegsynth.schema.rule_text import named_rules, resolved
from pegsynth.schema.rules import NamedRule, Rule
from pegsynth.schema.temporal import check_order
from pegsynth.views import aligned

_DECLARED = (
    *("categories", "edges", "kind", "missing", "not_applicable", "unknown", "shares"),
    *("private_edges", "lowest", "highest", "private_categories", "recoding", "label_of"),
    *("format", "resolution", "weekday", "after"),
)
"""What a reviewer declares to be public."""


_LISTED = ("nominal", "ordinal")


@dataclass(frozen=True)
class Schema:
    """What is publicly known about a table.

    Parameters
    ----------
    columns
        All described columns in table order, identifiers and the unit column included.
    unit
        Column that names the privacy unit, or None when a row is the unit. It is an
        identifier, whatever its role is said to be.
    rows_per_unit
        The most rows one unit may contribute; public, never observed.
    rules
        Forbidden combinations, by name (`Rule.forbid`) or by the indices of `features`.
    reviewed
        A person has declared categories, order, edges and `rows_per_unit` to be public.
    dialect
        How the table is written, where it is written as text.
    reviewer, reviewed_on
        Who that person is, and the day; `reviewed_by` states both.
    panel
        How the rows of a unit belong together, where they are to be kept together (R24).
    analyses, tables_wanted
        What a release is to hold: it is paid for out of the budget (R26).
    """

    columns: tuple[Feature, ...]
    unit: str | None = None
    rows_per_unit: int = 1
    rules: tuple[Rule, ...] = ()
    reviewed: bool = False
    dialect: Dialect = field(default_factory=Dialect)
    reviewer: str = ""
    reviewed_on: str = ""
    panel: Panel | None = None
    analyses: tuple[Analysis, ...] = ()
    tables_wanted: tuple[WantedTable, ...] = ()

    def __post_init__(self) -> None:
        self._take_panel()
        columns = (
            replace(each, role="identifier") if each.name == self.unit else each
            for each in self.columns
        )
        object.__setattr__(self, "columns", tuple(columns))
        if any(isinstance(rule, NamedRule) for rule in self.rules):
            object.__setattr__(self, "rules", resolved(self.rules, self.features))
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            twice = min(name for name in names if names.count(name) > 1)
            raise SchemaError(f"feature {twice!r} is described twice")
        if not self.features:
            raise SchemaError("the schema has no feature left to synthesize")
        if self.rows_per_unit < 1:
            raise SchemaError("rows_per_unit must be at least 1")
        known = set(self.names)
        for feature in self.features:
            for other in (*feature.heads, *((feature.parent,) if feature.parent else ())):
                if other not in known or other == feature.name:
                    raise SchemaError(
                        f"feature {feature.name!r}: head or parent {other!r} is not another "
                        "feature of this schema"
                    )
            if len(set(feature.heads)) < len(feature.heads):
                raise SchemaError(f"feature {feature.name!r}: a head is listed twice")
        check_related(self.columns, self.rules)
        check_order(self.features)
        check_declared(self.analyses, self.tables_wanted, self.names)
        if self.panel is not None:
            check_panel(self.panel, self.columns)
            if self.panel.wide:
                structural = structural_rules(self.panel, self.features)
                object.__setattr__(self, "rules", (*self.rules, *structural))
        self._check_rules()

    def _check_rules(self) -> None:
        counts = category_counts(self.features)
        for number, rule in enumerate(self.rules, start=1):
            name = f"rule {rule.label!r}" if rule.label else f"rule {number}"
            if any(
                not 0 <= index < len(counts) or not 0 <= min(codes) <= max(codes) < counts[index]
                for index, codes in rule.forbidden
            ):
                raise SchemaError(f"{name}: it speaks of features or categories the schema lacks")
            if all(len(codes) == counts[index] for index, codes in rule.forbidden):
                raise SchemaError(f"{name}: it forbids every row; list fewer categories")

    def _take_panel(self) -> None:
        """Let the unit be that of the panel: its rows are one row of a folded table (R24)."""
        if self.panel is None:
            return
        if self.unit not in (None, self.panel.unit):
            raise SchemaError(
                f"[table] names the unit {self.unit!r} and [panel] another one; leave out that "
                "of [table]"
            )
        if self.rows_per_unit != 1:
            raise SchemaError(
                "[table]: rows_per_unit cannot be combined with [panel], which says how many rows "
                "of a unit count (most); remove it"
            )
        if self.analyses or self.tables_wanted:
            raise SchemaError(
                "[[analyses]] and [[tables_wanted]] cannot be combined with [panel]; leave them out"
            )
        object.__setattr__(self, "unit", self.panel.unit)
        # Structural rules follow from features, which may be others than before.
        own = tuple(rule for rule in self.rules if not getattr(rule, "structural", False))
        object.__setattr__(self, "rules", own)

    def __getitem__(self, name: str) -> Feature:
        """Return the column of a name, identifiers included."""
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(
            f"the schema has no feature {name!r}; it has "
            f"{', '.join(column.name for column in self.columns)}"
        )

    def with_feature(self, name: str, **changes: Any) -> Schema:
        """Return this schema with some properties of a feature changed.

        Properties are those of `Feature`. What no longer suits is forgotten: a listed feature that
        gets `edges` becomes numeric, a number that gets `categories` becomes nominal, and a dropped
        column that gets either is modelled, unless `kind` or `role` say otherwise. Rules are kept
        by the names of their categories; a category that a rule names cannot go. Whoever changes
        categories, order or edges has to review the schema again.

        Raises
        ------
        SchemaError
            There is no such feature or property, or the feature is not valid with it.

        Examples
        --------
        >>> schema = Schema((Feature("age", "ordinal", categories=("17", "18")),), reviewed=True)
        >>> schema.with_feature("age", role="sensitive")["age"].role
        'sensitive'
        >>> measured = schema.with_feature("age", edges="private", lowest=0)
        >>> measured["age"].kind, measured.reviewed
        ('numeric', False)
        """
        old = self[name]
        unknown = [key for key in changes if key not in Feature.__dataclass_fields__]
        if unknown:
            raise SchemaError(f"a feature has no property {unknown[0]!r}")
        new = replace(old, **(_following(old, changes) | changes))
        changed = self.with_columns(new if column is old else column for column in self.columns)
        same = all(getattr(old, key) == getattr(new, key) for key in _DECLARED)
        return replace(changed, reviewed=self.reviewed and same)

    def reviewed_by(self, name: str, on: dt.date | None = None) -> Schema:
        """Return this schema as a person declares it: everything in it is public knowledge.

        Parameters
        ----------
        name
            Who has checked it; it is written into the schema and the documents of a release.
        on
            The day; today unless stated.

        Examples
        --------
        >>> schema = Schema((Feature("sex", categories=("f", "m")),)).reviewed_by("A. Nowak")
        >>> schema.reviewed, schema.reviewer
        (True, 'A. Nowak')
        """
        if not isinstance(name, str) or not name.strip():
            raise SchemaError('a review needs the name of a person, as in reviewed_by("A. Nowak")')
        day = on or dt.datetime.now(tz=dt.UTC).date()
        return replace(self, reviewed=True, reviewer=name.strip(), reviewed_on=day.isoformat())

    def with_columns(self, columns: Iterable[Feature]) -> Schema:
        """Return this schema with other columns; rules keep their categories by name."""
        named: Any = tuple(named_rules(self.rules, self.features))
        return replace(self, columns=tuple(columns), rules=named)

    def with_rules(self, *rules: Rule | NamedRule) -> Schema:
        """Return this schema with further rules; it has to be reviewed again."""
        together: Any = (*self.rules, *rules)
        return replace(self, rules=together, reviewed=False)

    def __repr__(self) -> str:
        """Return the codebook as a table."""
        lines = [("feature", "kind", "categories", "role", "missing")]
        for column in self.columns:
            dropped = not column.modelled
            what = "" if dropped else column.kind
            count = "" if dropped else f"{column.bin_count}"
            if column.private_edges or column.private_categories:
                count = PRIVATE
            gaps = "yes" if column.missing else ""
            unit = "unit" if column.name == self.unit else column.role
            lines.append((column.name, what, count, unit, gaps))
        table = "\n".join(aligned(lines))
        most = self.panel.most if self.panel else self.rows_per_unit
        per_unit = f", at most {most} rows per unit" if self.unit else ""
        reviewed = "reviewed" if self.reviewed else "not reviewed"
        return f"Schema: {reviewed}, {len(self.rules)} rules{per_unit}\n{table}"

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The modelled columns: neither dropped ones, nor descriptions, nor the unit column."""
        return tuple(column for column in self.columns if column.modelled)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the modelled columns."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def category_counts(self) -> tuple[int, ...]:
        """C_1 .. C_M of the modelled columns.

        Raises
        ------
        SchemaError
            The edges or categories of a feature are private and were not measured yet.
        """
        if self.unsettled:
            what = "categories" if self[self.unsettled[0]].private_categories else "edges"
            raise SchemaError(
                f"feature {self.unsettled[0]!r}: its {what} are private and were not measured, so "
                f"it has no codes yet; list its {what}, or let a release measure them"
            )
        return category_counts(self.features)

    @cached_property
    def _folded(self) -> Schema:
        """The codebook of the folded table of a panel, made once; see `wide_schema`."""
        from pegsynth.schema.wide_schema import folded

        return folded(self)

    @property
    def unsettled(self) -> tuple[str, ...]:
        """Names of the features whose edges or categories are not measured yet (R21, R29)."""
        return tuple(
            feature.name
            for feature in self.features
            if feature.private_edges or feature.private_categories
        )

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """Smallest unsigned integer type that holds every code."""
        return np.min_scalar_type(max(self.category_counts) - 1)

    @property
    def drafted_from_data(self) -> tuple[str, ...]:
        """Names of the features whose categories or edges were read off a table."""
        return tuple(feature.name for feature in self.features if feature.drafted_from_data)

    @property
    def drafted_rules(self) -> tuple[Rule, ...]:
        """Rules that a program found by looking at a table."""
        return tuple(rule for rule in self.rules if rule.drafted_from_data)

    def index(self, name: str) -> int:
        """Position of a modelled feature."""
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(
                f"the schema has no feature {name!r}; it has {', '.join(self.names)}"
            ) from None

    def breaks_a_rule(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """Say for every row of a code matrix whether it breaks any rule."""
        broken = np.zeros(len(codes), dtype=bool)
        for rule in self.rules:
            broken |= rule.broken_by(codes)
        return broken

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read ``schema.toml``."""
        from pegsynth.schema.toml import load

        return load(path)

    def save(self, path: str | Path) -> None:
        """Write ``schema.toml``."""
        from pegsynth.schema.toml import save

        save(self, path)

    @classmethod
    def draft(
        cls,
        data: Any,
        *,
        min_count: int | None = None,
        bins: int | None = None,
        binning: Literal["private", "equal-width", "quantile"] = "private",
        unit: str | None = None,
        dialect: Dialect | None = None,
        private: bool = False,
        types: Mapping[str, str] | None = None,
    ) -> Schema:
        """Draft a schema from a table; it stays unreviewed until a person says otherwise.

        Parameters
        ----------
        data
            A path, a glob of paths, or a dataframe.
        min_count
            Values with fewer rows are not listed; 10 unless stated, and 1 lists all of them. A
            feature of texts or codes then has a category "other", one of numbers is measured.
        bins, binning
            The most bins of a numeric feature, and how they are made: "private" ones are measured
            by a release.
        unit
            Column that names the privacy unit; it is dropped.
        dialect
            What is known of how a text file is written; the rest is recognised.
        private
            Read no row: edges and categories are all left to the release (R21, R29).
        types
            With `private`: Arrow types of columns that the table does not declare.
        """
        from pegsynth.runtime import check_threads
        from pegsynth.schema.draft import draft, draft_private

        check_threads()
        if private:
            return draft_private(data, unit=unit, dialect=dialect, types=types)
        return draft(
            data, min_count=min_count, bins=bins, binning=binning, unit=unit, dialect=dialect
        )


def _following(old: Feature, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what follows from the changes of a feature, where it is not stated."""
    edges, categories = changes.get("edges"), changes.get("categories")
    kind = changes.get("kind", old.kind)
    if "kind" not in changes and edges and not old.binned:
        kind = "numeric"
    elif "kind" not in changes and categories and old.binned:
        kind = "nominal"
    follows = {"kind": kind}
    if old.dropped and (edges or categories):
        follows["role"] = "other"
    lost = {
        key.name
        for key in keys_of(Feature)
        if key.of and (kind not in key.of or (key.of == TEMPORAL and kind != old.kind))
    }
    listed = kind in _LISTED
    if listed and old.binned:
        lost |= {"edges", "private_edges"}
    elif not listed and not old.binned:
        lost |= {"categories", "private_categories", "unknown", "shares", "value_labels"}
    # What is listed now takes the place of what was, or will be, measured or found.
    if edges is not None and not isinstance(edges, str) and tuple(edges) != old.edges:
        lost |= {"private_edges", "lowest", "highest", "bins"}
    if categories and not isinstance(categories, str):
        lost.add("private_categories")
    defaults = {each.name: each.default for each in fields(Feature)}
    return follows | {name: defaults[name] for name in lost}
