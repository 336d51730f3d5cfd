"""Releases and models of a table whose noisy numbers are given, as bytes (R30).

Whatever two neighbouring tables differ in once their noisy numbers are the same was not
paid for. Random numbers are fixed without a seed, which would be written down.
"""

from __future__ import annotations

import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

from pegsynth.auditing.interference import Answers
from pegsynth.cli import working
from pegsynth.options import Publication
from pegsynth.pipeline.request import Request

ROWS = 30
REQUEST = Request(rows=ROWS, method="pegs-once", epsilon=3.0, threads=1)


def request() -> Request:
    """Return a request that gets the same paid answers and random words, whatever the table."""
    return replace(REQUEST, streams=Answers().stream)


def everything(build, schema, folder: Path, kind: str) -> dict[str, bytes]:
    """Return all that a table's release and its model consist of, and what was printed.

    Parameters
    ----------
    build
        Makes the table below a folder and returns what the commands are given.
    folder
        Used and emptied: both tables lie at the same place, whose name may be written.
    kind
        "csv" or "parquet".
    """
    shutil.rmtree(folder, ignore_errors=True)
    data, out = folder / "data", folder / "out"
    data.mkdir(parents=True)
    out.mkdir()
    schema.save(out / "schema.toml")
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        working.fit(build(data), out / "schema.toml", out / "model.pegs", request())
        shutil.rmtree(data)
        data.mkdir()
        working.release(
            build(data),
            out / "schema.toml",
            out / "release",
            request(),
            Publication(public_only=True, table_format=kind),
        )
    found = {"model.pegs": (out / "model.pegs").read_bytes(), "printed": said.getvalue().encode()}
    for path in (out / "release").rglob("*"):
        if path.is_file():
            found[str(path.relative_to(out / "release"))] = path.read_bytes()
    return found


def unlike(plain: dict[str, bytes], more: dict[str, bytes]) -> list[str]:
    """Return the names of the files that differ."""
    return sorted(name for name in {*plain, *more} if plain.get(name) != more.get(name))
