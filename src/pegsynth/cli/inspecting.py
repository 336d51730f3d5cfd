"""``pegs inspect``: what a model, a ledger or a schema says.

``pegs tables``: counts of a published model, with intervals that hold its noise.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from pegsynth.api.fitted import published_counts, supported
from pegsynth.cli.notes import say
from pegsynth.errors import ModelError, ParameterError, escaped
from pegsynth.methods import get
from pegsynth.methods.session import Session
from pegsynth.privacy import Event, Ledger, verify
from pegsynth.privacy.events import UnknownEvent
from pegsynth.privacy.noise_events import NoisyCounts, NoisyResiduals, NoisySums
from pegsynth.privacy.privacy_json import event_to_builtins
from pegsynth.privacy.rounding import display_up
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.storage.model_file import load_model, notice_of, read_manifest
from pegsynth.storage.spending import read_spent
from pegsynth.tables.atomic import atomic_text, check_target
from pegsynth.tables.table_input import same_file

_EMPTY: tuple[Any, ...] = ("", None, [], ())


def inspect(files: Sequence[Path], *, confidential: bool, analyses: Sequence[str] = ()) -> int:
    """Print what the files hold; return 1 when a ledger's claim is not what its events give."""
    kinds = {_kind(file) for file in files}
    if analyses:
        if kinds != {"model"} or len(files) > 1:
            raise ParameterError("--analysis requires exactly one model file")
        for formula in analyses:
            _show(f"{formula}\n{supported(files[0], formula)}")
        return 0
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
    if isinstance(event, NoisyCounts | NoisyResiduals | NoisySums):
        amount = float(Fraction(fields.pop("scale_numerator"), fields.pop("scale_denominator")))
        gaussian = event.mechanism == "discrete-gaussian"
        shown = math.sqrt(amount) if gaussian else amount
        one_table = not isinstance(event, NoisyCounts) or event.cells == 1
        unit = " rows" if isinstance(event, NoisyCounts) else ""
        fields["sigma" if gaussian else "scale"] = f"{shown:.6g}{unit}"
        # One row changes one cell of one table; of several tables, one cell of each.
        fields = _joined(fields, " x " if one_table else " + ")
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
    if schema.panel:
        panel = schema.panel
        _show(f"panel: {panel.unit} in the order of {panel.time}, at most {panel.most} rows each")
    elif schema.unit:
        _show(f"unit: {schema.unit}, at most {schema.rows_per_unit} rows each")
    for feature in schema.features:
        _show(f"  {feature.name}: {feature.kind}, {feature.role}, {feature.category_count} levels")
    _show(f"{len(schema.rules)} rules")


def _print_budget(session: Session | None) -> None:
    """Say what the model may still give."""
    if session is None:
        return
    left = session.left()
    rows = "any number of" if left is None else f"{left}"
    _show(f"budget: {session.plan.method}, {rows} rows left")
    guarantee = session.ledger.guarantee
    if guarantee.epsilon is not None:
        _show(f"in total: epsilon {display_up(guarantee.epsilon)}, delta {guarantee.delta:g}")


def _inspect_model(file: Path, *, confidential: bool) -> None:
    manifest = read_manifest(file)
    model = load_model(file)
    method = get(model.method)
    # Before anything is printed: the record may be missing or damaged.
    session = None
    if model.plan is not None:
        spent = None if method.released else read_spent(file, manifest.identity)
        session = Session(model, model.plan, RandomStream(), spent=spent)
    ledger = session.ledger if session else model.ledger
    # Not what the file calls itself, which may be a lie.
    _show(notice_of(model))
    if not method.released:
        _show(f"format {manifest.format}; {len(model.schema.features)} features")
    for line in method.describe(model, confidential=confidential):
        _show(line)
    _print_budget(session)
    # What stands in the way of a guarantee, and what it assumes.
    for line in ledger.not_covered:
        _show(f"not covered by any guarantee: {line}")
    for assumption in ledger.assumptions:
        _show(f"assumed: {assumption.text}")
    if confidential and (figures := method.confidential_figures(model)):
        _show("CONFIDENTIAL figures read off the counts:")
        for line in figures:
            _show(line)


def tables(model: Path, of: str, output: Path | None, *, level: float) -> None:
    """Print the table of some features as CSV, or write it."""
    names = [name.strip() for name in of.split(",") if name.strip()]
    if output is not None:
        check_target(output)
        if same_file(output, model):
            raise ParameterError(f"{output}: this file is read as input; choose another output")
    text = published_counts(str(model), names, level=level).write_csv()
    if output is None:
        sys.stdout.write("".join(escaped(line) + "\n" for line in text.splitlines()))
    else:
        atomic_text(output, text)
