"""What the page of results shows of finished releases, and what may be handed on of them."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from pegsynth.privacy import Ledger

INTERNAL = {"report": "report.html", "sign-off": "sign-off.html"}
"""Pages of a release that stay in the house, by the names that the studio has for them."""


@dataclass(frozen=True)
class Result:
    """A finished release."""

    name: str
    promise: str
    kind: str
    files: tuple[tuple[str, int], ...]
    internal: tuple[str, ...]
    comparable: bool


def result(folder: Path) -> Result:
    """Return what the page of results says of a release."""
    public, internal = folder / "public", folder / "internal"
    ledger = Ledger.from_json((public / "privacy.json").read_text(encoding="utf-8"))
    files = tuple((file.name, file.stat().st_size) for file in sorted(public.iterdir()))
    promise = ledger.statement().split("\n\n")[0].split(" In plain words")[0]
    pages = tuple(name for name, file in INTERNAL.items() if (internal / file).is_file())
    comparable = (internal / "metrics.json").is_file()
    return Result(folder.name, promise, ledger.guarantee.kind, files, pages, comparable)


def maps(folder: Path) -> tuple[str, ...]:
    """Return the names of the drawn maps of risk and utility."""
    return tuple(file.stem for file in sorted(folder.glob("map-*.svg")))


def pack(folder: Path, target: Path) -> None:
    """Write what may be published of a release into one file, and nothing else."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((folder / "public").iterdir()):
            archive.write(file, file.name)
