"""``pegs inspect``: what a model, a ledger or a schema says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pegsynth.cli.console import say
from pegsynth.errors import ModelError, ParameterError
from pegsynth.privacy import Ledger, NotPrivate, verify
from pegsynth.schema import Schema
from pegsynth.synthesizers.model_file import load_model, read_manifest


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


def _kind(file: Path) -> str:
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
        print(f"{len(files)} runs on the same table, taken together:\n")
    print(combined.statement())
    print("\nEvents:")
    for number, event in enumerate(combined.events, start=1):
        print(f"  {number}. {event}")
    return 1 if wrong else 0


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file}: the file cannot be read ({error.strerror})") from None


def _inspect_schema(file: Path) -> None:
    schema = Schema.load(file)
    print(f"schema of {len(schema.features)} features, reviewed: {str(schema.reviewed).lower()}")
    if schema.unit:
        print(f"unit: {schema.unit}, at most {schema.rows_per_unit} rows each")
    for feature in schema.features:
        print(f"  {feature.name}: {feature.kind}, {feature.role}, {feature.category_count} levels")
    print(f"{len(schema.rules)} rules")


def _inspect_model(file: Path, *, confidential: bool) -> None:
    manifest = read_manifest(file)
    model = load_model(file)
    spec = model.blocks.spec
    # Heads read off the data are not public, whatever else the manifest is.
    heads_public = confidential or not any(
        isinstance(event, NotPrivate) and event.code == "data-order"
        for event in model.ledger.events
    )
    print(manifest.notice)
    print(f"format {manifest.format}; {len(spec.names)} features; tail bits: {spec.tail_bits}")
    for target, name in enumerate(spec.names):
        heads = ", ".join(spec.names[head] for head in spec.heads[target]) or "none"
        shown = f", heads {heads}, key space {spec.key_space(target)}" if heads_public else ""
        print(f"  {name}: {spec.category_counts[target]} categories{shown}")
    for line in model.ledger.not_covered:
        print(f"not covered by any guarantee: {line}")
    for assumption in model.ledger.assumptions:
        print(f"assumed: {assumption.text}")
    if confidential:
        print("CONFIDENTIAL figures read off the counts:")
        for name, block in zip(spec.names, model.blocks.blocks, strict=True):
            keys, _, counts = block.cells()
            print(f"  {name}: {len(set(keys.tolist()))} keys seen, {int(counts.sum())} rows")
