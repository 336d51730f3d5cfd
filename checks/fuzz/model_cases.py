"""Attacks on ``model.pegs`` and the record of what was spent beside it."""

from __future__ import annotations

import json
import random
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from checks.fuzz.cases import Case, Command
from checks.fuzz.containers import (
    put_together,
    taken_apart,
    wild_arrays,
    with_manifest,
)
from checks.fuzz.corpus import MODELS, PER_ROW
from checks.fuzz.mutations import damaged
from checks.fuzz.trees import Raw, changed, json_text, toml_text


def model(source: random.Random, root: Path) -> Case:
    """Attack the reader of models: their bytes, their manifest, their counts, their arrays."""
    name = source.choice((*MODELS, "plain.pegs", "once.pegs", "capped.pegs"))
    good = (root / "good" / name).read_bytes()
    kind = source.random()
    if kind < 0.25:
        found = damaged(good, source)
    elif kind < 0.65:
        found = _changed_manifest(good, source)
    else:
        found = put_together(wild_arrays(taken_apart(good), source))
    return _model_case(name, found, source, root)


def _model_case(name: str, found: bytes, source: random.Random, root: Path) -> Case:
    files = {"m.pegs": found}
    record = root / "good" / f"{name}.spent"
    if record.exists():
        files["m.pegs.spent"] = record.read_bytes()
    # A command that draws writes what it spent beside the model.
    files = {f"out/{key}": content for key, content in files.items()}
    return Case(files, (_command(source, budgeted="plain" not in name),))


def _changed_manifest(good: bytes, source: random.Random) -> bytes:
    """Change the manifest, or the header around it."""
    parts = taken_apart(good)
    if source.random() < 0.15:
        first = {name: parts.header[name] for name in ("pegsynth", "kind", "format")}
        tree = changed(parts.header, source)
        # What a file is stands first; all else may be anything.
        header = {**first, **tree} if isinstance(tree, dict) else {**first, "x": tree}
        return put_together(replace(parts, header=header))
    text = _manifest_text({"format": 3, **parts.manifest}, source)
    return put_together(with_manifest(parts, Raw(text.decode("utf-8", "surrogatepass"))))


def _command(source: random.Random, *, budgeted: bool) -> Command:
    kind = source.random()
    if kind < 0.25:
        extra = ("--confidential",) if source.random() < 0.5 else ()
        return ("inspect", "out/m.pegs", *extra)
    if kind < 0.4:
        return ("trace", "out/m.pegs")
    budget = () if budgeted else PER_ROW
    return ("sample", "out/m.pegs", "--rows", "3", *budget, "--threads", "1", "-o", "out/o.csv")


def _manifest_text(manifest: dict[str, Any], source: random.Random) -> bytes:
    """Change the manifest, or one of the documents inside it."""
    kind = source.random()
    if kind < 0.2:
        tree = changed(tomllib.loads(manifest["schema"]), source, toml=True)
        text = toml_text(tree if isinstance(tree, dict) else {"features": tree})
        manifest["schema"] = text.encode("utf-8", "ignore").decode()
    elif kind < 0.4 and manifest.get("recipe"):
        recipe = manifest["recipe"]
        recipe["events"] = json_text(changed(json.loads(recipe["events"]), source))
    elif kind < 0.5:
        manifest["ledger"] = changed(manifest["ledger"], source)
    else:
        first = manifest["format"]
        tree = changed(manifest, source)
        # The format is looked at before all else, and stands first.
        manifest = {"format": first, **tree} if isinstance(tree, dict) else tree
    return json_text(manifest).encode("utf-8", "replace")


def spent(source: random.Random, root: Path) -> Case:
    """Attack the record of what was spent."""
    name = source.choice(("capped.pegs", "blocks.pegs", "margins.pegs"))
    good = (root / "good" / f"{name}.spent").read_bytes()
    kind = source.random()
    parts = taken_apart(good)
    if kind < 0.25:
        found = damaged(good, source)
    elif kind < 0.5 or not parts.bodies:
        tree = changed(parts.header if source.random() < 0.2 else parts.manifest, source)
        header = json_text(tree).encode("utf-8", "surrogatepass") if source.random() < 0.1 else None
        found = put_together(with_manifest(parts, tree), header)
    else:
        found = put_together(wild_arrays(parts, source))
    files = {"out/m.pegs": (root / "good" / name).read_bytes(), "out/m.pegs.spent": found}
    return Case(files, (_command(source, budgeted=True),))
