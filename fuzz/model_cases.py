"""Attacks on ``model.pegs`` and the record of what was spent beside it."""

from __future__ import annotations

import base64
import io
import json
import random
import tomllib
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.cases import Case, Command
from fuzz.containers import (
    DTYPES,
    Parts,
    put_together,
    taken_apart,
    wild_arrays,
    with_manifest,
)
from fuzz.corpus import MODELS, OLDER, PER_ROW
from fuzz.mutations import damaged
from fuzz.tables import pickled
from fuzz.trees import Raw, changed, json_text, toml_text

_KEY = b"pegsynth"


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


def older_model(source: random.Random, root: Path) -> Case:
    """Attack the reader of models of formats 1 and 2, which are Parquet."""
    name = source.choice(sorted(OLDER))
    found = (root / "good" / name).read_bytes()
    kind = source.random()
    if kind < 0.25:
        found = damaged(found, source)
    else:
        table = pq.read_table(io.BytesIO(found))
        manifest = json.loads(table.schema.metadata[_KEY])
        if kind < 0.65:
            text = _manifest_text(manifest, source)
            found = _written(table.replace_schema_metadata({_KEY: text}))
        elif kind < 0.85:
            found = _written(_with_wild_cells(table, source))
        else:
            found = _with_wild_arrays(table, manifest, source)
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


def _written(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _with_wild_cells(table: pa.Table, source: random.Random) -> pa.Table:
    """Change types, values, order, names or number of the columns."""
    kind = source.choice(("value", "value", "value", "type", "order", "drop", "rename", "rows"))
    index = source.randrange(table.num_columns)
    field, column = table.schema.field(index), table.column(index)
    if kind == "value" and pa.types.is_integer(field.type):
        values = column.to_pylist()
        for _ in range(source.choice((1, 2, 5))):
            wild = (0, -1, 1, 77, 1 << 31, 1 << 40, (1 << 63) - 1, None)
            values[source.randrange(len(values))] = source.choice(wild)
        return table.set_column(index, pa.field(field.name, pa.int64()), [pa.array(values)])
    if kind == "type":
        kinds = (pa.string(), pa.float64(), pa.int8(), pa.uint64(), pa.binary(), pa.date32())
        try:
            changed_column = column.cast(source.choice(kinds))
        except pa.ArrowException:
            changed_column = pa.chunked_array([pa.nulls(table.num_rows)])
        return table.set_column(index, field.name, changed_column)
    if kind == "order":
        return table.take(source.sample(range(table.num_rows), table.num_rows))
    if kind == "drop":
        return table.drop_columns([field.name])
    if kind == "rename":
        names = table.schema.names
        names[index] = source.choice(("a", names[0], ""))
        return table.rename_columns(names)
    return pa.concat_tables([table.slice(0, source.randrange(table.num_rows)), table])


def _with_wild_arrays(table: pa.Table, manifest: dict[str, Any], source: random.Random) -> bytes:
    """Change what the manifest says of arrays, and their bytes."""
    arrays = manifest["arrays"]
    contents = table.column("content").to_pylist()
    if not arrays or source.random() < 0.3:
        arrays = [{"name": "original rows", "dtype": "|O", "shape": [1]}]
        manifest["arrays"] = arrays
        contents[-1] = pickled()
    each = source.choice(arrays)
    kind = source.random()
    if kind < 0.25:
        each["dtype"] = source.choice(DTYPES)
    elif kind < 0.5:
        shape = each["shape"]
        wild = (0, 1, -1, 1 << 31, 1 << 40, 10**12, 10**30)
        each["shape"] = source.choice(
            (shape[::-1], [*shape, 1], [source.choice(wild)], [], [0, *shape])
        )
    else:
        places = [i for i, content in enumerate(contents) if content]
        if places:
            place = source.choice(places)
            size = len(contents[place])
            flipped = damaged(contents[place], source)
            contents[place] = (flipped + bytes(size))[:size] if kind < 0.9 else flipped
    index = table.schema.get_field_index("content")
    column = pa.array(contents, pa.large_binary())
    table = table.set_column(index, table.schema.field(index), [column])
    return _written(table.replace_schema_metadata({_KEY: json_text(manifest).encode()}))


@cache
def _bomb() -> str:
    return base64.b85encode(zlib.compress(bytes(1 << 26))).decode()


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
    elif kind < 0.75:
        found = put_together(wild_arrays(parts, source))
    else:
        found = _older_record(parts, source)
    files = {"out/m.pegs": (root / "good" / name).read_bytes(), "out/m.pegs.spent": found}
    return Case(files, (_command(source, budgeted=True),))


def _older_record(parts: Parts, source: random.Random) -> bytes:
    """Write the record as format 1 did, JSON with counters in base 85, and change it."""
    arrays = parts.header["arrays"]
    lines = (zlib.compress(parts.plain(each["name"])) for each in arrays)
    tree = {
        "format": 1,
        "notice": parts.notice.decode(),
        **parts.manifest,
        "entries": arrays[0]["shape"][0] if arrays else 0,
        "counters": [base64.b85encode(line).decode() for line in lines],
    }
    if source.random() < 0.3:
        tree["counters"] = [_bomb()] * source.choice((1, len(tree["counters"]) or 1))
        tree["entries"] = source.choice((1, 1 << 22, 1 << 28, tree["entries"]))
    return json_text(changed(tree, source)).encode("utf-8", "surrogatepass")
