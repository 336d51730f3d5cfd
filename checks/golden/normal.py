"""Outputs as bytes that are the same on every run: the few things that may differ are taken out.

Each rule has its reason. Nothing else is changed.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pegsynth

INPUTS = "in"
"""Folder of a case's inputs, which are no outputs."""

_TEXT = (
    ".book",
    ".txt",
    ".csv",
    ".json",
    ".jsonld",
    ".yaml",
    ".toml",
    ".md",
    ".html",
    ".xml",
    ".svg",
)
_RULES = (
    # A new version alone changes no output.
    (re.compile(rf"(?<![\d.]){re.escape(pegsynth.__version__)}(?![\d.])"), "<version>"),
    # Budget books say when an entry was made.
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?"), "<moment>"),
)
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
# Fits add up in another order on another processor, which changes the last digits of figures.
_COMPUTED = re.compile(r"-?\b\d+\.\d{6,}(?:e[-+]?\d+)?\b")
_FIGURES = ("metrics.json", "python.json")


def hashes(folder: Path) -> dict[str, str]:
    """Return a short hash of every output below a folder."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] != INPUTS
    )
    digests: dict[str, str] = {}
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        digests.setdefault(digest, str(path.relative_to(folder)))
    # Messages name a book by its whole path.
    here = str(folder.resolve()).encode()
    return {
        str(path.relative_to(folder)): hashlib.sha256(
            content(path, digests).replace(here, b"<folder>")
        ).hexdigest()[:16]
        for path in files
    }


def content(path: Path, digests: Mapping[str, str]) -> bytes:
    """Return what is compared of a file.

    Parameters
    ----------
    path
        The file.
    digests
        Files of the case by their SHA-256. A text that states one is compared by the name of the
        file, so that a file which differs is reported once.
    """
    if path.suffix in (".pegs", ".spent"):
        return _text(_container(path.read_bytes()), digests)
    if path.suffix == ".xlsx":
        return _archive(path)
    if path.suffix in (".sav", ".dta"):
        return _statistics(path)
    if path.suffix in _TEXT or not path.suffix:
        text = path.read_text()
        if path.suffix == ".svg" or path.name in _FIGURES:
            text = _COMPUTED.sub(lambda number: f"{float(number[0]):.8g}", text)
        return _text(text, digests)
    return path.read_bytes()


def _text(text: str, digests: Mapping[str, str]) -> bytes:
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    named = _DIGEST.sub(lambda found: f"<sha256 of {digests.get(found[0], found[0])}>", text)
    return named.encode()


def _container(data: bytes) -> str:
    """Return notice, header and unpacked arrays of a file of our own (docs/file-formats.md).

    A confidential model has a random identity; packed bytes depend on the version of zlib.
    """
    notice, header, rest = data.split(b"\n", 2)
    stated: dict[str, Any] = json.loads(header)
    lines = [notice.decode()]
    for entry in stated["arrays"]:
        size = entry.pop("stored")
        body, rest = rest[:size], rest[size:]
        plain = zlib.decompress(body) if entry.pop("packed") else body
        lines.append(f"{entry['name']} {hashlib.sha256(plain).hexdigest()}")
    for holder in (stated, stated.get("manifest", {})):
        for name in ("identity", "model"):
            if re.fullmatch("[0-9a-f]{32}", str(holder.get(name, ""))):
                holder[name] = "<identity>"
    return "\n".join([*lines, json.dumps(stated, indent=1)])


def _archive(path: Path) -> bytes:
    """Return the members of a workbook; the archive and its properties hold the time."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(set(archive.namelist()) - {"docProps/core.xml"})
        return b"\n".join(name.encode() + b"\n" + archive.read(name) for name in names)


def _statistics(path: Path) -> bytes:
    """Return rows and descriptions of a file of SPSS or Stata; its header holds the time."""
    import pyreadstat

    frame, meta = getattr(pyreadstat, f"read_{path.suffix[1:]}")(path)
    described = {
        "types": meta.original_variable_types,
        "labels": meta.column_names_to_labels,
        "values": meta.variable_value_labels,
        "missing": meta.missing_ranges,
        "label": meta.file_label,
    }
    return f"{json.dumps(described, default=str, indent=1)}\n{frame.to_csv()}".encode()
