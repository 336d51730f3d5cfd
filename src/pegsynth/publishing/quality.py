"""The quality statement of a release: what its published tables hold, and how precisely.

Goes in: the codebook and the ledger, both public. Comes out: QUALITY.json, its page in words and
as HTML. Nothing here was computed from the original, so that it costs nothing (R6).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from pegsynth.codec.measured_numbers import constant_numbers
from pegsynth.codec.pooled_positions import measured_tables
from pegsynth.inference.ledger_support import noise_variance, published_noise
from pegsynth.privacy import Ledger, NoisyCounts, NoisyResiduals, PooledRows
from pegsynth.privacy.statement import rows_counted
from pegsynth.publishing.facts import RunFacts
from pegsynth.publishing.rendering import markdown, page
from pegsynth.publishing.report.features import STEPS
from pegsynth.publishing.report.figure import Figure, Table, table_of
from pegsynth.publishing.report.score_card import Score, distance_level
from pegsynth.publishing.report.wording import guarantee_headline
from pegsynth.schema import Schema
from pegsynth.schema.wide_schema import long_schema
from pegsynth.tables.atomic import atomic_text

FORMAT = 1
TITLE = "What these tables can be trusted for"
TRUSTED, LEVEL_FACTOR = 0.10, 1.96
MOST_LISTED, MOST_IN_WORDS, MOST_DRAWN = 200, 10, 30
_PAIR, _CELLS = 2, (30, 100, 300, 1000, 3000, 10_000)
_TRUST = (
    f"A group is called trusted where noise moves its count by at most {TRUSTED:.0%}, 95 times in "
    "100; what drawing rows adds is not in it."
)


@dataclass(frozen=True)
class PublishedTable:
    """A table of noisy counts that the release rests on.

    Parameters
    ----------
    features, levels
        What it counts, and how many levels each feature has in it.
    noise
        Standard deviation of the noise on every cell.
    merged
        Features whose categories were merged into fewer levels.
    residual
        Whether it tells only how its features are related: what its margins do not (R27).
    """

    features: tuple[str, ...]
    levels: tuple[int, ...]
    cells: int
    noise: float
    merged: tuple[str, ...]
    purpose: str
    residual: bool = False

    @property
    def smallest(self) -> int:
        """The smallest cell that can be trusted."""
        return smallest_trusted(self.noise)


def smallest_trusted(noise: float) -> int:
    """Return the smallest count that noise moves by at most `TRUSTED`, 95 times in 100."""
    return math.ceil(LEVEL_FACTOR * noise / TRUSTED)


def published_tables(schema: Schema, ledger: Ledger) -> list[PublishedTable]:
    """List the noisy tables that the ledger records, in the order in which they were measured."""
    sizes = {name: size for table in measured_tables(schema) for name, size in table.items()}
    found = []
    for recorded in ledger.events:
        event = recorded.step if isinstance(recorded, PooledRows) else recorded
        residual = isinstance(event, NoisyResiduals)
        if not isinstance(event, NoisyCounts | NoisyResiduals) or not event.levels:
            continue
        cells = math.prod(event.levels)
        if isinstance(event, NoisyCounts) and event.table_cells != cells:
            continue
        levels = dict(zip(event.features, event.levels, strict=True))
        merged = tuple(name for name, count in levels.items() if count < sizes.get(name, count))
        # A residual counts every row C times in each feature of C levels.
        scale = cells if residual else 1
        noise = math.sqrt(float(noise_variance(event))) / scale
        found.append(
            PublishedTable(
                event.features, event.levels, cells, noise, merged, event.purpose, residual
            )
        )
    return found


def quality_fields(
    schema: Schema, ledger: Ledger, *, published: Schema | None = None
) -> dict[str, Any]:
    """Return QUALITY.json as plain fields.

    Parameters
    ----------
    schema
        The codebook of what was measured: of a panel the folded one.
    published
        That of the tables, where it is another one.
    """
    tables = published_tables(schema, ledger)
    held = {frozenset(each) for t in tables for n in (2, 3) for each in combinations(t.features, n)}
    measured = measured_tables(schema)
    names = list(dict.fromkeys(name for table in measured for name in table))
    pairs = list(dict.fromkeys(pair for table in measured for pair in combinations(table, 2)))
    noise = published_noise(ledger, schema)
    triples = [each for each in held if len(each) == 3]
    note = _note(
        tables,
        pairs=any(frozenset(pair) not in held for pair in pairs),
        triples=sum(math.comb(len(table), 3) for table in measured) > len(triples),
    )
    return {
        "format": FORMAT,
        "guarantee": {
            name: getattr(ledger.guarantee, name)
            for name in ("kind", "epsilon", "delta", "unit", "rows_per_unit")
        },
        "computed_from": "schema and ledger alone; nothing here looked at the original",
        "rows_per_unit": rows_counted(ledger),
        "before_counting": RunFacts(published or long_schema(schema), ledger).preprocessing,
        "published_tables": [
            {
                "features": list(each.features),
                "levels": list(each.levels),
                "cells": each.cells,
                "noise_sd": _rounded(each.noise),
                "smallest_trusted_cell": each.smallest,
                "merged": list(each.merged),
                "residual": each.residual,
                "purpose": each.purpose,
            }
            for each in tables
        ],
        "features": [
            {
                "feature": name,
                "noise_sd": _rounded(noise.get(frozenset((name,)))),
                "smallest_trusted_group": None
                if frozenset((name,)) not in noise
                else smallest_trusted(noise[frozenset((name,))]),
            }
            for name in names
        ],
        "pairs_held": [list(pair) for pair in pairs if frozenset(pair) in held],
        "pairs_not_held": [list(pair) for pair in pairs if frozenset(pair) not in held],
        "triples_held": sorted(sorted(each, key=names.index) for each in triples),
        "triples_in_all": sum(math.comb(len(table), 3) for table in measured),
        "trusted": _TRUST if noise else "",
        "note": " ".join((*constant_numbers(schema), *([note] if note else []))),
    }


def _note(tables: Sequence[PublishedTable], *, pairs: bool, triples: bool) -> str:
    """Say what rows do not support, where there are pairs or triples of that kind."""
    if not tables:
        return (
            "This method publishes no tables of counts. Which pairs of features its rows support, "
            "and how precisely, is in no public figure; `privacy.json` lists every event with its "
            "noise or virtual rows. Treat relations between features as unconfirmed."
        )
    said = []
    which = " and ".join(name for name, there in (("pairs", pairs), ("triples", triples)) if there)
    if which:
        said.append(
            f"{which.capitalize()} that no published table supports are filled in as if the "
            "features were independent given those that are supported: their relations are not "
            "information."
        )
    if any(each.merged for each in tables):
        said.append(
            "Where categories were merged, a table tells merged categories apart and no more."
        )
    return " ".join(said)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def write_quality(public: Path, fields: dict[str, Any]) -> None:
    """Write the quality statement, as a file, in words and as a page."""
    atomic_text(public / "QUALITY.json", quality_json(fields))
    atomic_text(public / "QUALITY.md", quality_markdown(fields))
    atomic_text(public / "QUALITY.html", quality_html(fields))


def quality_json(fields: dict[str, Any]) -> str:
    """Return QUALITY.json."""
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def quality_tables(fields: dict[str, Any], *, most: int = MOST_LISTED) -> list[Table]:
    """Return the tables of the page, each with at most so many rows; groups are all there."""
    distances = fields.get("bought", {}).get("distances", ())
    furthest = sorted(distances, key=lambda each: -each["share"]["high"])
    bought = [_bought(each) for each in furthest]
    published = [
        (
            ", ".join(each["features"]) + (" (residual)" if each["residual"] else ""),
            f"{each['cells']:,}",
            f"{each['noise_sd']:,.4g}",
            f"{each['smallest_trusted_cell']:,}",
            ", ".join(each["merged"]) or "nothing",
        )
        for each in fields["published_tables"]
    ]
    groups = [
        (
            each["feature"],
            "n/a" if each["noise_sd"] is None else f"{each['noise_sd']:,.4g}",
            "n/a"
            if each["smallest_trusted_group"] is None
            else f"{each['smallest_trusted_group']:,}",
        )
        for each in fields["features"]
    ]
    known = (
        ("supported by a published table", fields["pairs_held"]),
        ("not supported", fields["pairs_not_held"]),
    )
    pairs = [(", ".join(pair), what) for what, listed in known for pair in listed]
    triples = [(", ".join(each),) for each in fields["triples_held"]]
    paid = "Total variation distances that were paid for, with 95 % intervals"
    held = f"{len(triples):,} of {fields['triples_in_all']:,}"
    noise, smallest = "Noise (standard deviation)", "Smallest trusted"
    # Pairs are told of published tables only.
    tables: tuple[tuple[Any, str, tuple[str, ...], Sequence[tuple[str, ...]]], ...] = (
        (bought, paid, ("Features", "Distance", "Low", "High"), bought),
        (
            fields["trusted"],
            "Groups of one feature, by the best published count",
            ("Feature", noise, f"{smallest} group"),
            groups,
        ),
        (
            published,
            "Published tables",
            ("Features", "Cells", noise, smallest, "Merged"),
            published,
        ),
        (published and pairs, "Pairs of features", ("Pair", "What is known of it"), pairs),
        (triples, f"Triples that a published table supports, {held}", ("Triple",), triples),
    )
    return [
        table_of(columns, rows, caption=caption, most=max(most, len(groups) * (rows is groups)))
        for there, caption, columns, rows in tables
        if there
    ]


def _bought(each: dict[str, Any]) -> tuple[str, ...]:
    share = each["share"]
    declared = f" (declared: {'; '.join(each['declared'])})" if each.get("declared") else ""
    return (
        ", ".join(each["features"]) + declared,
        *(f"{share[end]:.2%}" for end in ("value", "low", "high")),
    )


def _ends(fields: dict[str, Any], size: int) -> list[float]:
    """Return the upper ends of the paid distances of tables of so many features."""
    distances = (fields.get("bought") or {}).get("distances", ())
    return [each["share"]["high"] for each in distances if len(each["features"]) == size]


def quality_scores(fields: dict[str, Any]) -> list[Score]:
    """Return the figures of the first screen, each with what it means."""
    scores = []
    for size, title in ((1, "Single features"), (2, "Pairs")):
        if ends := _ends(fields, size):
            word, level = distance_level(max(ends))
            scores.append(Score(title, f"{max(ends):.1%}", word, level, "at most; perfect: 0%"))
    held, pairs = len(fields["pairs_held"]), len(fields["pairs_held"] + fields["pairs_not_held"])
    if fields["published_tables"] and pairs:
        word, level = ("all", "green") if held == pairs else ("some" if held else "none", "amber")
        scores.append(Score("Supported pairs", f"{held:,}", word, level, f"of {pairs:,}"))
    if fields["triples_in_all"]:
        triples = len(fields["triples_held"])
        word = "some" if triples else "none"
        of = f"of {fields['triples_in_all']:,}"
        scores.append(Score("Supported triples", f"{triples:,}", word, "none", of))
    for kind, key, title in (
        ("features", "smallest_trusted_group", "Trusted group"),
        ("published_tables", "smallest_trusted_cell", "Trusted cell"),
    ):
        sizes = [each[key] for each in fields[kind] if each[key] is not None]
        if sizes:
            reference = f"rows; at best {min(sizes):,}"
            scores.append(Score(title, f"{max(sizes):,}", "or more", "none", reference))
    return scores


def quality_figures(fields: dict[str, Any]) -> list[Figure]:
    """Draw pairs: the distances that were paid for, or else the smallest cells to be trusted."""
    distances = (fields.get("bought") or {}).get("distances", ())
    names = [each["feature"] for each in fields["features"]]
    cells = {tuple(e["features"]): e["share"]["high"] for e in distances}
    title, bounds, percent = "Distances of pairs, upper ends", STEPS, True
    if not any(len(pair) == _PAIR for pair in cells):
        title, bounds, percent = "Smallest trusted cell of pairs", _CELLS, False
        for each in fields["published_tables"]:
            for pair in combinations(sorted(each["features"], key=names.index), _PAIR):
                cells[pair] = min(cells.get(pair, math.inf), each["smallest_trusted_cell"])
    rows = [
        {"column": pair[0], "line": pair[1], "value": value}
        for pair, value in cells.items()
        if len(pair) == _PAIR
    ]
    if not rows or len(names) > MOST_DRAWN:
        return []
    look = {"order": names, "bounds": bounds, "as_percent": percent, "width": 330, "height": 200}
    caption = "Blank: no figure for this pair. All of them are in the tables below."
    return [Figure("front-pairs", title, caption, "heat_map", rows, look)]


def quality_markdown(fields: dict[str, Any]) -> str:
    """Return QUALITY.md."""
    return markdown(
        "quality.md.j2",
        title=TITLE,
        paragraphs=_paragraphs(fields),
        tables=quality_tables(fields, most=MOST_IN_WORDS),
    )


def quality_html(fields: dict[str, Any]) -> str:
    """Return QUALITY.html."""
    return page(
        "quality.html.j2",
        title=TITLE,
        paragraphs=[_pieces(text) for text in _paragraphs(fields)],
        tables=quality_tables(fields),
        headline=guarantee_headline(fields["guarantee"]),
        scores=quality_scores(fields),
        front=quality_figures(fields),
    )


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Split Markdown at its code: texts, and whether each is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # A name holds such a mark itself: leave everything as it is.
        return [(text, False)]
    return [(part, bool(place % 2)) for place, part in enumerate(parts)]


def _paragraphs(fields: dict[str, Any]) -> list[str]:
    """Return what is said in words, the summary first."""
    bought = fields.get("bought")
    said = page(
        "quality_words.j2",
        fields={"accepted_by": None} | fields,
        bought=bought and {"declared_not_bought": (), "units_cut": None} | bought,
        ends_of=partial(_ends, fields),
    )
    return [line for line in said.split("\n") if line]
