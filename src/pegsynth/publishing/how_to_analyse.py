"""HOW-TO-ANALYSE.md: what the tables are, the rule that fits them, code that runs.

The code is about shares, of a category or of a range of a numeric feature: they exist for every
schema, whatever was drawn. Python comes first; R, Stata and SAS compute the same from the same
files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegsynth.inference.choice import (
    Choice,
    design_of,
    from_released_blocks,
    has_own_noise,
    rows_in_of,
    rule_for,
    without_intervals,
)
from pegsynth.inference.combining_rules import REPLICATED
from pegsynth.inference.value_columns import is_numeric
from pegsynth.options import ROW
from pegsynth.publishing.declared_code import FAMILIES_OF_PYTHON, declared_models
from pegsynth.publishing.facts import Facts
from pegsynth.publishing.rendering import markdown
from pegsynth.schema import Feature, Schema
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.csv_read import protect

_FORMULAS = {
    "plug-in": "T = (n/N) v + b/K",
    "shared-urn": "T = 2 (n/N) v + b/K",
    "partial": "T = v + b/K",
    "own-noise": "T = (1 + 1/K) b, with K - 1 degrees of freedom",
}
_MOST_INPUTS = 2
_LAST_OF_PLANE = 0xFFFF


def how_to_analyse(facts: Facts) -> str:
    """Return HOW-TO-ANALYSE.md: what the tables are, the rule that fits (R16), code that runs."""
    schema, ledger, panel = facts.schema, facts.ledger, facts.schema.panel
    many, versions, design = facts.datasets > 1, facts.versions, design_of(ledger)
    choice = rule_for(ledger, facts.datasets)
    if versions and choice.rule == "plug-in":
        choice = Choice("nested", f"{choice.reason}, and missing values were imputed in each")
    estimates_only = many and without_intervals(ledger)
    needs_rows_in = choice.rule not in ("partial", *REPLICATED) and not estimates_only
    two_tables = panel is not None and panel.tables is not None
    return markdown(
        "how_to_analyse.md.j2",
        facts=facts,
        schema=schema,
        panel=panel,
        two_tables=two_tables,
        versions=versions,
        suffix=facts.table_format,
        design=design,
        beside=facts.weight_file,
        choice=choice,
        formula=_FORMULAS.get(choice.rule, ""),
        released=from_released_blocks(ledger),
        own_noise=has_own_noise(ledger),
        estimates_only=estimates_only,
        needs_rows_in=needs_rows_in,
        rows_in=rows_in_of(ledger),
        # Without N the rule gives no variance, and the code prints none.
        can_combine=not needs_rows_in or rows_in_of(ledger) is not None,
        counted="rows" if panel is None else "units",
        drawn_inside=_drawn_inside(facts),
        preprocessing=facts.preprocessing,
        sums_of_numbers=any(is_numeric(schema[name]) for name in facts.summed),
        with_pegsynth=not two_tables and (many or design is not None),
        ROW=ROW,
        quoted=quoted,
        quoted_in_r=quoted_in_r,
        stata_name=stata_name,
        **_code(facts),
        **_declared(facts, replicated=design is not None and not two_tables),
    )


def _declared(facts: Facts, *, replicated: bool) -> Mapping[str, Any]:
    """Return the declared analyses as values for templates; none where no weights are there."""
    analyses = facts.schema.analyses if replicated and facts.decode != "labels" else ()
    csv = facts.table_format == "csv"
    written = protect if csv else str

    def listed_in_r(labels: Sequence[str]) -> str:
        return ", ".join(quoted_in_r(written(label)) for label in labels)

    models = declared_models(analyses, facts.schema)
    names = dict.fromkeys(part.feature for model in models for part in model.columns)
    return {
        "labelled": [facts.schema[name] for name in names if facts.schema[name].label.strip()],
        "in_python": [each for each in analyses if each.family in FAMILIES_OF_PYTHON],
        "models": models,
        "written": written,
        "listed_in_r": listed_in_r,
    }


def _drawn_inside(facts: Facts) -> dict[str, list[str]]:
    """Return the features with bins by how their numbers and dates were drawn inside them."""
    binned = [f for f in facts.schema.features if f.binned and f.name not in facts.kept]
    if facts.lacks_result("kept-columns") and not facts.kept:
        return {}
    if facts.decode == "labels":
        return {"labelled": [each.name for each in binned]}
    edges, shaped, summed = facts.edges_measured, facts.measured, facts.summed
    flat = [each.name for each in binned if each.inside == "uniform" and each.name in edges]
    curved = [each.name for each in binned if each.inside != "uniform" and each.name in shaped]
    stated = [each.name for each in binned if each.name not in shaped]
    return {
        "shaped": curved,
        "uniform": flat,
        "stated": [name for name in stated if name not in summed],
        "summed": [name for name in stated if name in summed],
    }


@dataclass(frozen=True)
class _Question:
    """A yes-or-no question about a row, in words and as a Polars expression.

    Parameters
    ----------
    column
        The column that it is about, as the table has it.
    equals, least
        The text that the column is to have, or the number that it is not to be below; without
        both, whether it has any value.
    """

    words: str
    expression: str
    column: str
    equals: str | None = None
    least: float | None = None


def _code(facts: Facts) -> Mapping[str, Any]:
    """Return what the templates of code are filled with."""
    csv, dialect = facts.table_format == "csv", facts.schema.dialect
    subjects = _subjects(facts.schema)
    first, *others = (_question(each, facts) for each in subjects)
    separator = f", separator={dialect.separator!r}" if dialect.separator and csv else ""
    encoding = "" if dialect.encoding in ("", "utf-8") else f", encoding={dialect.codec!r}"
    read = f"pl.read_csv(file, infer_schema=False{separator}{encoding})"
    return {
        "first": first,
        "label": " ".join(subjects[0].label.split()),
        "others": others,
        "dialect": dialect,
        "separator": separator,
        "read": read if csv else "pl.read_parquet(file)",
        "remark": "  # as text: 007 is not 7" if csv else "",
        "point": _point(dialect) if csv else "",
        "example": _example(facts),
    }


def _subjects(schema: Schema) -> Sequence[Feature]:
    """Return up to three features that vary, those with listed categories first.

    A feature with one category has nothing to explain and explains nothing. Where all are so,
    the first stands for the share alone.
    """
    # Dates come last: what a share or a regression of them is depends on how they are written.
    ordered = sorted(
        schema.features, key=lambda feature: (feature.kind in TEMPORAL, feature.binned)
    )
    plain = [feature for feature in ordered if feature.kind not in TEMPORAL]
    ordered = plain or ordered[:1]
    varied = [
        feature
        for feature in ordered
        if (feature.bin_count if feature.binned else feature.category_count) > 1
    ]
    return varied[: 1 + _MOST_INPUTS] or ordered[:1]


def _question(feature: Feature, facts: Facts) -> _Question:
    csv, labels = facts.table_format == "csv", facts.decode == "labels"
    name = protect(feature.name) if csv else feature.name
    column = f"pl.col({quoted(name)})"
    if feature.kind in TEMPORAL and not labels:
        return _Question(f"{feature.name} is known", f"{column}.is_not_null()", name)
    if feature.binned and not labels:
        edge = feature.edges[len(feature.edges) // 2]
        point = _point(facts.schema.dialect) if csv else ""
        number = f"{column}{point}.cast(pl.Float64, strict=False)"
        return _Question(
            f"{feature.name} >= {edge:g}", f"{number} >= {edge!r}", name, least=float(edge)
        )
    # A feature of special categories only has labels that no cell holds: a share of 0.
    listed = feature.labels[: feature.bin_count] or feature.labels
    label = next((text for text in listed if text.strip()), listed[0])
    text = column if csv else f"{column}.cast(pl.String)"
    if not csv and not feature.dtype.startswith("string") and label.lstrip("-").isdecimal():
        # The column may hold floats, whose text is 1.0 where the category is 1.
        text += '.str.strip_suffix(".0")'
    written = protect(label) if csv else label
    words = f"{feature.name} = {label}"
    return _Question(words, f"{text} == {quoted(written)}", name, equals=written)


def _point(dialect: Dialect) -> str:
    """Return code that gives numbers a decimal point, where they have another mark."""
    return "" if dialect.decimal in ("", ".") else f'.str.replace("{dialect.decimal}", ".")'


def _example(facts: Facts) -> tuple[str, str] | None:
    """Return a column and a text that its cells hold, for R, Stata and SAS.

    None where no example fits, as for Parquet and panels of two tables. Text of another form than
    the usual one has none either: each program reads that its own way.
    """
    schema, panel = facts.schema, facts.schema.panel
    if facts.table_format != "csv" or schema.dialect or (panel is not None and panel.tables):
        return None
    for feature in schema.features:
        listed = facts.decode == "labels" or not feature.binned
        if listed and feature.category_count > 1 and (category := _plain_category(feature)):
            return protect(feature.name), protect(category)
    return None


def _plain_category(feature: Feature) -> str:
    """Return a category without line breaks and quotes, which differ between the three."""
    labels = feature.labels[: feature.bin_count] or feature.labels
    plain = (text for text in labels if text.strip() and text.isprintable() and '"' not in text)
    return next((text for text in plain if "\\" not in text), "")


def quoted(text: str) -> str:
    """Return a text as a Python literal on one line."""
    return json.dumps(text, ensure_ascii=False)


def quoted_in_r(text: str) -> str:
    r"""Return a text as an R literal of plain letters on one line.

    >>> quoted_in_r('a "b" é')
    '"a \\"b\\" \\u00e9"'
    """
    return '"' + "".join(map(_letter, text)) + '"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if " " <= letter <= "~":
        return letter
    code = ord(letter)
    return f"\\U{code:08x}" if code > _LAST_OF_PLANE else f"\\u{code:04x}"


def stata_name(column: str) -> str:
    """Return a column as Stata would call it: letters, digits and underscores."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in column.lower())
    return name if name[:1].isalpha() or name[:1] == "_" else f"v_{name}"
