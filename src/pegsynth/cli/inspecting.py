"""``pegs inspect``: what a model, a ledger or a schema says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from pegsynth.cli.console import say
from pegsynth.errors import ModelError, ParameterError, escaped
from pegsynth.once import NoisyTable, Released
from pegsynth.privacy import Event, Ledger, NotPrivate, verify
from pegsynth.privacy.events import NoisyCounts, UnknownEvent
from pegsynth.privacy.files import event_to_builtins
from pegsynth.privacy.rounding import display_up
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.synthesizers.model import Model
from pegsynth.synthesizers.model_file import load_model, notice_of, read_manifest
from pegsynth.synthesizers.session import Session
from pegsynth.synthesizers.spending import read_spent

_EMPTY: tuple[Any, ...] = ("", None, [], ())


def inspect(files: Sequence[Path], *, confidential: bool) -> int:
    """Print what the files hold; return 1 when a ledger's claim is not what its events give."""
    kinds = {_kind(file) for file in files}
    if kinds == {"ledger"}:
        return _inspect_ledgers(files)
    if len(files) > 1:
        raise ParameterError("several files can be inspected together only if all are ledgers")
    if kinds == {"schema"}:
        _inspect_schema(files[0])
    else:
        _inspect_model(files[0], confidential=confidential)
    return 0


def _show(text: str) -> None:
    """Print a line; names in a file from elsewhere must not steer the terminal."""
    print(escaped(text))


def _kind(file: Path) -> str:
    if file.is_dir():
        ledger = file / "public" / "privacy.json"
        inside = f", such as {ledger}" if ledger.is_file() else ": a model, a ledger or a schema"
        raise ModelError(f"{file}: this is a folder; give a file in it{inside}")
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file; check the name")
    return {".json": "ledger", ".toml": "schema"}.get(file.suffix.lower(), "model")


def _inspect_ledgers(files: Sequence[Path]) -> int:
    ledgers, wrong = [], False
    for file in files:
        text = _read(file)
        ledgers.append(Ledger.from_json(text, source=str(file)))
        for line in verify(text, source=str(file)):
            wrong = True
            say(f"pegs: {file}: {line}")
    combined = Ledger.combine(ledgers)
    if len(files) > 1:
        _show(f"{len(files)} runs on the same table, taken together:\n")
    _show(combined.statement())
    _show("\nEvents (numbers rounded; the file has them as exact fractions):")
    for number, event in enumerate(combined.events, start=1):
        _show(f"  {number}. {_described(event)}")
    return 1 if wrong else 0


def _described(event: Event) -> str:
    """Return an event as its kind and its public parameters, fractions as decimal numbers."""
    fields = {
        name: value for name, value in event_to_builtins(event).items() if value not in _EMPTY
    }
    kind = fields.pop("kind", "event")
    if isinstance(event, NoisyCounts):
        amount = float(Fraction(fields.pop("scale_numerator"), fields.pop("scale_denominator")))
        gaussian = event.mechanism == "discrete-gaussian"
        shown = math.sqrt(amount) if gaussian else amount
        fields["sigma" if gaussian else "scale"] = f"{shown:.6g} rows"
        # One row changes one cell of one table; of several tables, one cell of each.
        fields = _joined(fields, " x " if event.cells == 1 else " + ")
    elif not isinstance(event, UnknownEvent):
        fields = _joined(_with_decimals(fields), " + ")
    return f"{kind}: " + ", ".join(f"{name.replace('_', ' ')} {v}" for name, v in fields.items())


def _joined(fields: Mapping[str, Any], sign: str) -> dict[str, Any]:
    """Return an event's parameters with lists of names and levels as text."""
    signs = {"features": sign, "levels": sign, "chosen": " x "}
    return {
        name: signs[name].join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in fields.items()
    }


def _with_decimals(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's parameters with one number for each numerator and denominator."""
    shown: dict[str, Any] = {}
    for name, value in fields.items():
        stem = name.removesuffix("_numerator")
        if stem != name:
            number = float(Fraction(value, fields[f"{stem}_denominator"]))
            shown[stem] = f"{number:.6g} virtual rows" if stem == "alpha" else f"{number:.6g}"
        elif not name.endswith("_denominator"):
            shown[name] = value
    return shown


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file}: the file cannot be read ({error.strerror})") from None


def _inspect_schema(file: Path) -> None:
    schema = Schema.load(file)
    _show(f"schema of {len(schema.features)} features, reviewed: {str(schema.reviewed).lower()}")
    if schema.unit:
        _show(f"unit: {schema.unit}, at most {schema.rows_per_unit} rows each")
    for feature in schema.features:
        _show(f"  {feature.name}: {feature.kind}, {feature.role}, {feature.category_count} levels")
    _show(f"{len(schema.rules)} rules")


def _session_of(file: Path, identity: str, model: Model) -> Session | None:
    """Return a session on a model with a budget, with its record of what was spent."""
    if model.recipe is None:
        return None
    spent = None if model.released is not None else read_spent(file, identity)
    return Session(model, model.recipe, RandomStream(), spent=spent)


def _print_budget(session: Session | None) -> None:
    """Say what the model may still give."""
    if session is None:
        return
    left = session.left()
    rows = "any number of" if left is None else f"{left}"
    _show(f"budget: {session.recipe.draw.method}, {rows} rows left")
    guarantee = session.ledger.guarantee
    if guarantee.epsilon is not None:
        _show(f"in total: epsilon {display_up(guarantee.epsilon)}, delta {guarantee.delta:g}")


def _print_released(model: Model) -> None:
    """Show the structure of released blocks: all of it was paid for."""
    released, names = model.released, model.schema.names
    if released is None:
        return
    heads = {block.features[-1]: block for block in released.blocks}
    rows = max(released.total[0], 0)
    _show(f"about {rows} rows (noisy); noise is given as its standard deviation, in rows")
    _show("features in the order of drawing:")
    for feature in released.order:
        block = heads.get(feature)
        given = ", ".join(names[h] for h in block.features[:-1]) if block else "nothing"
        noise = f", {_size(released, block)}" if block else ""
        _show(f"  {names[feature]}: {_levels(released, feature)}, given {given}{noise}")
    if released.extra:
        _show("tables of the second round, in the order of measuring:")
    times: dict[tuple[int, ...], int] = {}
    for number, table in enumerate(released.extra, start=1):
        shown = " x ".join(names[f] for f in table.features)
        times[table.features] = times.get(table.features, 0) + 1
        again = f", time {times[table.features]}" if times[table.features] > 1 else ""
        _show(f"  {number}. {shown}{again}: {_size(released, table)}")


def _levels(released: Released, feature: int) -> str:
    """Say how many levels a feature has, and of how many categories they were merged."""
    levels, categories = released.sizes[feature], len(released.levels[feature])
    merged = f" of {categories} categories" if levels < categories else ""
    return f"{_counted(levels, 'level')}{merged}"


def _size(released: Released, table: NoisyTable) -> str:
    """Say how large a table is, on levels and not on categories, and how loud its noise."""
    levels = " x ".join(str(released.sizes[feature]) for feature in table.features)
    cells = _counted(len(table.counts), "cell")
    return f"{cells} ({levels} levels), noise {table.deviation:.4g} rows"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _print_terms(ledger: Ledger) -> None:
    """Say what stands in the way of a guarantee, and what it assumes."""
    for line in ledger.not_covered:
        _show(f"not covered by any guarantee: {line}")
    for assumption in ledger.assumptions:
        _show(f"assumed: {assumption.text}")


def _inspect_model(file: Path, *, confidential: bool) -> None:
    manifest = read_manifest(file)
    model = load_model(file)
    spec = model.blocks.spec
    # Heads read off the data are not public, whatever else the manifest is.
    heads_public = confidential or not any(
        isinstance(event, NotPrivate) and event.code == "data-order"
        for event in model.ledger.events
    )
    # Before anything is printed: the record may be missing or damaged.
    session = _session_of(file, manifest.identity, model)
    ledger = session.ledger if session else model.ledger
    # Not what the file calls itself, which may be a lie.
    _show(notice_of(model))
    if model.released is not None:
        _print_released(model)
        _print_budget(session)
        _print_terms(ledger)
        return
    _show(f"format {manifest.format}; {len(spec.names)} features; tail bits: {spec.tail_bits}")
    for target, name in enumerate(spec.names):
        heads = ", ".join(spec.names[head] for head in spec.heads[target]) or "none"
        shown = f", heads {heads}, key space {spec.key_space(target)}" if heads_public else ""
        _show(f"  {name}: {spec.category_counts[target]} categories{shown}")
    _print_budget(session)
    _print_terms(ledger)
    if confidential:
        _show("CONFIDENTIAL figures read off the counts:")
        for name, block in zip(spec.names, model.blocks.blocks, strict=True):
            keys, _, counts = block.cells()
            _show(f"  {name}: {len(set(keys.tolist()))} keys seen, {int(counts.sum())} rows")
