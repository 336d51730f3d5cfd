"""``pegs schema``: draft a codebook, or do something with one.

A review asks a person what is still open, one question at a time. Questions go to standard error
and answers come from standard input. Nothing is written before the end; a review that stops early
leaves the file as it was.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pegsynth.cli.notes import say
from pegsynth.cli.working import check_not_inputs
from pegsynth.codec.codebook_counts import count_rows
from pegsynth.errors import OutputError, ParameterError, PegsynthError, escaped
from pegsynth.options.command_options import DraftOptions
from pegsynth.schema import Feature, Schema
from pegsynth.schema.assumed import assumed
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.codebooks import read_codebook, write_codebook
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.draft import Binning, table_dialect
from pegsynth.schema.feature import ROLES
from pegsynth.schema.rule_text import said
from pegsynth.schema.tally import FEW_PEOPLE
from pegsynth.schema.temporal import bound_text
from pegsynth.schema.toml import save, with_comments
from pegsynth.schema.toml_text import confidential
from pegsynth.tables.atomic import atomic_text, check_target
from pegsynth.tables.table_input import open_table
from pegsynth.views import aligned

if TYPE_CHECKING:
    from pegsynth.pipeline.request import Request


def run(words: Sequence[str], output: Path | None, options: DraftOptions, request: Request) -> None:
    """Find out what was asked for, and do it.

    Parameters
    ----------
    words
        A table; or an action and a schema file.
    """
    actions: dict[str, Callable[[Path], None]] = {
        "check": check,
        "show": show,
        "review": review,
    }
    first = words[0] if words else ""
    if first == "count" and options.codebook is None and options.export is None:
        _count(words, output, request)
        return
    if first in actions and options.codebook is None and options.export is None:
        if len(words) != 2:
            raise ParameterError(
                f"pegs schema {first} takes one schema file; a table called {first} is ./{first}"
            )
        actions[first](Path(words[1]))
        return
    wanted = 0 if options.codebook is not None else 1
    if len(words) != wanted:
        raise ParameterError(
            "pegs schema takes one table, or one schema file with --to, or --from CODEBOOK and no "
            "table, or check, show or review and a schema file, or count, a schema file and a table"
        )
    if output is None:
        raise ParameterError("pegs schema needs -o FILE for what it writes")
    if options.codebook is not None:
        take(options.codebook, output, options.feature, force=options.force)
        return
    source = words[0]
    if options.export is not None:
        give(Path(source), output, options.export)
        return
    draft(request.source(source), output, options, request.dialect)


def _count(words: Sequence[str], output: Path | None, request: Request) -> None:
    """Count rows by a codebook, for a person who may see the table."""
    if len(words) != 3:
        raise ParameterError(
            "pegs schema count takes a schema file and its table; a table called count is ./count"
        )
    file, source = Path(words[1]), request.source(words[2])
    if output is not None:
        check_target(output)
        check_not_inputs((output,), source, file)
    count(file, source, output)


def draft(data: Any, output: Path, wishes: DraftOptions, stated: Dialect) -> None:
    """Draft a schema and say what to do with it; a reviewed one is replaced with `force` only."""
    check_replaceable(output, force=wishes.force)
    check_not_inputs((output,), data)
    if wishes.private:
        _draft_unseen(data, output, wishes, stated)
        return
    dialect = table_dialect(data, stated)
    with open_table(data, dialect=dialect) as reader:
        schema = Schema.draft(
            reader,
            min_count=wishes.min_count,
            bins=wishes.bins,
            binning=cast("Binning", wishes.binning),
            unit=wishes.unit,
        )
    schema.save(output)
    if schema.dialect:
        found = "as stated" if stated.over(dialect) == stated else "recognised, not certain"
        say(f"Read as text of this form ({found}; see [table] of the schema): {dialect.said()}.")
    say(*_fates(schema))
    dropped = [column.name for column in schema.columns if column.dropped]
    least = wishes.min_count or FEW_PEOPLE
    say(
        f"{output}: {len(schema.features)} features drafted; a value that fewer than {least} rows "
        f"have is not listed. {_identifiers(dropped)}The file is CONFIDENTIAL until a person "
        "has checked that it holds public knowledge only and set reviewed = true."
    )


def _draft_unseen(data: Any, output: Path, wishes: DraftOptions, stated: Dialect) -> None:
    """Draft a schema from names and declared types, and say what is still to be reviewed."""
    with open_table(data, dialect=stated) as reader:
        schema = Schema.draft(reader, unit=wishes.unit, private=True, types=wishes.declared)
    save(schema, output, notes=True)
    say(*_fates(schema))
    say(
        f"{output}: {len(schema.features)} features drafted; no row was read. Categories and edges "
        "need no review: a release finds and measures them, and pays with --epsilon and --delta. "
        "Check roles, unit and rules, and set reviewed = true."
    )


def _fates(schema: Schema, most: int = 200) -> Iterator[str]:
    """Yield a line for every column: what became of it."""
    width = min(40, max(len(column.name) for column in schema.columns))
    for column in schema.columns[:most]:
        if column.name == schema.unit:
            what = "the unit; dropped"
        elif column.dropped:
            what = "dropped as an identifier"
        elif column.private_categories:
            what = "nominal, categories found by the release"
        elif column.private_edges:
            what = f"{column.kind}, edges measured by the release"
        elif column.binned:
            what = f"{column.kind}, {column.bin_count} bins"
        else:
            what = f"{column.kind}, {column.bin_count} categories"
        more = "; see the comments" if column.notes and not column.dropped else ""
        yield f"  {column.name[:40].ljust(width)}  {what}{more}"
    if len(schema.columns) > most:
        yield f"  and {len(schema.columns) - most} more columns"


def take(codebook: Path, output: Path, feature: str | None, *, force: bool) -> None:
    """Make a schema of a codebook; a list of codes goes into the schema that is there."""
    check_replaceable(output, force=force)
    check_not_inputs((output,), "", codebook)
    schema = read_codebook(codebook, feature=feature)
    if feature is not None and output.is_file():
        (told,) = schema.features
        there = Schema.load(output)
        schema = there.with_feature(
            feature,
            categories=told.categories,
            value_labels=told.value_labels,
            drafted_from_data=False,
        )
    save(schema, output, notes=True)
    left = [column.name for column in schema.columns if column.dropped]
    say(
        f"{output}: {len(schema.features)} features from {codebook}; no row was read. "
        f"{_identifiers(left)}Check it, and set reviewed = true (pegs schema review {output})."
    )


def give(schema_file: Path, output: Path, form: str) -> None:
    """Write a schema as a codebook of another program."""
    check_target(output)
    check_not_inputs((output,), "", schema_file)
    schema = Schema.load(schema_file)
    if confidential(schema):
        raise ParameterError(
            f"{schema_file}: it was drafted from data and nobody reviewed it; a codebook is for "
            "others to read"
        )
    atomic_text(output, write_codebook(schema, form))
    say(f"{output}: {len(schema.features)} features as {form}.")


def check_replaceable(output: Path, *, force: bool) -> None:
    """Refuse to write where that cannot be done, or where somebody has reviewed a schema."""
    check_target(output)
    if not force and _reviewed(output):
        raise OutputError(
            f"{output}: this schema is reviewed, and a draft would replace it; choose another "
            "name, or replace it with --force"
        )


def _reviewed(file: Path) -> bool:
    """Whether a file says that a person has reviewed it, be it valid otherwise or not."""
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig")).get("reviewed") is True
    except (OSError, ValueError, RecursionError):
        return False


def _identifiers(names: Sequence[str], most: int = 10) -> str:
    """Say which columns a draft drops, if any."""
    if not names:
        return ""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"Dropped as identifiers: {', '.join(map(repr, names[:most]))}{more}. "


HEADER: tuple[str, ...] = (
    *("feature", "role", "kind", "levels", "pair cells", "values", "missing", "else"),
)
_WIDTH = 44


def check(file: Path) -> None:
    """Validate a schema file, and say what will be assumed."""
    schema = Schema.load(file)
    print(escaped(f"{file}: valid, {len(schema.features)} features, {len(schema.rules)} rules."))
    for line in assumed(schema):
        print(escaped(f"  {line}"))


def count(file: Path, data: Any, output: Path | None) -> None:
    """Say how many rows fit a schema; nothing of it may be published."""
    schema = Schema.load(file)
    found = count_rows(data, schema)
    print(f"{found.rows:,} rows.")
    for each in found.features:
        if each.refused:
            print(
                escaped(
                    f"{each.name}: {each.unlisted:,} values are not listed and {each.missing:,} "
                    "are missing; a release would refuse the table."
                )
            )
    for rule, broken in zip(schema.rules, found.broken, strict=True):
        told = "cannot be counted yet" if broken is None else f"{broken:,} rows break it"
        print(escaped(f"rule {rule.label or ''}: never {said(rule, schema.features)}: {told}"))
    if output is not None:
        atomic_text(output, found.to_json(), mode=0o600)
    say("CONFIDENTIAL: figures of the data under no guarantee; nothing of them may be published.")


def show(file: Path) -> None:
    """Print the codebook as a table."""
    schema = Schema.load(file)
    print(escaped(_unit(schema)))
    if schema.dialect:
        print(escaped(f"Text: {schema.dialect.said()}"))
    total = sum(feature.category_count for feature in schema.features)
    lines = [HEADER, *(_line(column, total) for column in schema.columns)]
    for line in aligned(lines):
        print(escaped(line))
    for column in schema.features:
        if column.recoding is not None:
            print(escaped(f"recoded {column.name}: {column.recoding.said()}"))
        if column.parent is not None:
            print(escaped(f"detail {column.name}: drawn given {column.parent}"))
    for rule in schema.rules:
        drafted = " (found in the data)" if rule.drafted_from_data else ""
        print(escaped(f"rule {rule.label or ''}: never {said(rule, schema.features)}{drafted}"))
    print(
        "levels: categories with those for unlisted, not applicable and missing values. pair "
        "cells: noisy counts of all its pairs with others, over which a budget is spread."
    )


def _unit(schema: Schema) -> str:
    most = f", at most {schema.rows_per_unit} rows"
    if schema.panel is not None:
        most = f", at most {schema.panel.most} rows, folded in the order of {schema.panel.time!r}"
    unit = "a row" if schema.unit is None else f"{schema.unit!r}{most}"
    return f"Unit: {unit}. Reviewed: {'yes' if schema.reviewed else 'no'}."


def _line(column: Feature, total: int) -> tuple[str, ...]:
    if column.dropped:
        return (column.name, column.role, "", "", "", "dropped", "", "")
    if column.label_of is not None:
        return (column.name, column.role, "", "", "", f"describes {column.label_of!r}", "", "")
    levels = column.category_count
    open_ = column.private_edges or column.private_categories
    return (
        column.name,
        column.role,
        column.kind,
        *(("private", "") if open_ else (str(levels), f"{levels * (total - levels):,}")),
        _values(column),
        ", ".join(map(repr, column.missing)) or "refused",
        "(other)" if column.unknown == "category" else "refused",
    )


def _values(column: Feature) -> str:
    labels = column.labels[: column.bin_count]
    if column.private_categories:
        text = "categories found privately"
    elif column.private_edges:
        text = "edges measured privately"
    elif column.binned:
        low, high = (
            bound_text(column, edge) if column.kind in TEMPORAL else f"{edge:g}"
            for edge in column.public_bounds
        )
        text = f"{len(labels)} bins from {low} to {high}"
    else:
        named = dict(column.value_labels)
        text = ", ".join(f"{each} {named[each]}" if each in named else each for each in labels)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 2]}.."


_MOST_SHOWN = 40
_KEEP, _LATER, _DROP = "keep", "later", "drop"


class _StoppedError(Exception):
    """The answers ended before the questions."""


def review(file: Path) -> None:
    """Ask, and write the reviewed schema at the end."""
    schema = Schema.load(file)
    if schema.reviewed:
        raise ParameterError(
            f"{file}: this schema is reviewed already; set reviewed to false to review it again"
        )
    # What a draft says of its columns is in comments, and a reviewer should see it.
    schema = with_comments(schema, file.read_text(encoding="utf-8"))
    try:
        found, left = _walk(schema)
    except _StoppedError:
        say("Stopped: the file is as it was.")
        return
    found.save(file)
    if left:
        names = ", ".join(map(repr, left))
        say(f"{file}: answers are saved. Still open, so that it is not reviewed: {names}.")
    else:
        say(f"{file}: reviewed by {found.reviewer} on {found.reviewed_on}.")


def _walk(schema: Schema) -> tuple[Schema, list[str]]:
    """Ask all questions; return the schema, and the features that are still open."""
    schema = _asked_unit(schema)
    left = []
    for feature in schema.features:
        if not feature.drafted_from_data:
            continue
        schema, answer = _asked_feature(schema, feature)
        if answer == _LATER:
            left.append(feature.name)
    schema = _asked_rules(schema)
    if left:
        return schema, left
    for line in assumed(replace(schema, reviewed=True)):
        say(f"  {line}")
    name = _ask("Your name, if all of this is public knowledge (empty: not yet)")
    if not name:
        return schema, ["the declaration"]
    return schema.reviewed_by(name), []


def _ask(question: str, choices: tuple[str, ...] = ()) -> str:
    """Ask until the answer is one of the choices; a choice may be cut short."""
    while True:
        listed = f" [{'/'.join(choices)}]" if choices else ""
        print(escaped(f"{question}{listed}: "), end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)
            raise _StoppedError
        answer = line.strip()
        if not choices:
            return answer
        fitting = [each for each in choices if answer and each.startswith(answer.lower())]
        if len(fitting) == 1:
            return fitting[0]


def _asked_unit(schema: Schema) -> Schema:
    if schema.panel is not None:
        return schema
    if schema.unit is None:
        names = [column.name for column in schema.columns]
        for column in schema.columns:
            for note in column.notes:
                if "set unit" in note:
                    say(f"{column.name}: {note}")
        while True:
            unit = _ask(
                "Column that tells whose a row is, if a person can have several (empty: none)"
            )
            if not unit:
                return schema
            if unit in names:
                break
            say(f"There is no column {unit!r}.")
        schema = replace(schema, unit=unit)
    say("The most rows of one unit that count: a public figure, never the observed maximum.")
    while True:
        answer = _ask(f"Rows per unit (empty: {schema.rows_per_unit})")
        if not answer:
            return schema
        if answer.isdecimal() and int(answer) >= 1:
            return replace(schema, rows_per_unit=int(answer))


def _asked_feature(schema: Schema, feature: Feature) -> tuple[Schema, str]:
    """Ask about one feature that was read off the data."""
    labels = _shown(feature)
    more = f" and {len(labels) - _MOST_SHOWN} more" if len(labels) > _MOST_SHOWN else ""
    say(f"{feature.name} ({feature.kind}, {feature.role}): {', '.join(labels[:_MOST_SHOWN])}{more}")
    for note in feature.notes:
        say(f"  {note}")
    while True:
        answer = _ask(
            "Is that public knowledge, whoever is in the table?",
            (_KEEP, "role", "categories", "edges", _DROP, _LATER),
        )
        if answer in (_KEEP, _LATER):
            return schema, answer
        try:
            changed = _changed(schema, feature.name, answer)
        except PegsynthError as error:
            say(str(error))
            continue
        schema = changed
        if answer == _DROP:
            return schema, answer
        say(f"  now: {', '.join(_shown(schema[feature.name])[:_MOST_SHOWN])}")


def _shown(feature: Feature) -> tuple[str, ...]:
    """Return what a feature may hold, in words where a release finds out."""
    measured = {
        "edges are measured by the release": feature.private_edges,
        "categories are found by the release": feature.private_categories,
        f"{feature.decimals} decimals": feature.decimals is not None,
    }
    return (*(text for text, holds in measured.items() if holds), *feature.labels)


def _changed(schema: Schema, name: str, what: str) -> Schema:
    if what == _DROP:
        return schema.with_feature(name, role="identifier")
    if what == "role":
        return schema.with_feature(name, role=_ask("Its role", tuple(ROLES)))
    if what == "categories":
        listed = _ask("All of its categories in order, with | between them")
        categories = tuple(text.strip() for text in listed.split("|") if text.strip())
        return schema.with_feature(name, categories=categories)
    listed = _ask("Edges of its bins, with spaces between them")
    if schema[name].kind in TEMPORAL:
        return schema.with_feature(name, edges=tuple(map(_bound, listed.split())))
    try:
        edges = tuple(float(text) for text in listed.split())
    except ValueError:
        raise ParameterError("edges are numbers") from None
    return schema.with_feature(name, edges=edges)


def _bound(text: str) -> Any:
    """Return an edge of dates or lengths of time: a number if it is one, else text."""
    return int(text) if text.isdecimal() and text.isascii() else text


def _asked_rules(schema: Schema) -> Schema:
    """Ask about rules that were found in the data; those that are no public knowledge go."""
    kept = []
    for rule in schema.rules:
        if rule.drafted_from_data:
            say(f"Never in the data: {said(rule, schema.features)}")
            if _ask("Is it publicly known that this cannot occur?", ("yes", "no")) == "no":
                continue
        kept.append(rule)
    return replace(schema, rules=tuple(kept))
