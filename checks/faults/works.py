"""What is killed: commands, what they must leave, and how to see that it is whole.

Each `Work` starts from outputs of an earlier run, so that "old and intact" can be told from
"new and whole", and from anything in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from checks.faults.places import Place
from pegsynth.errors import PegsynthError
from pegsynth.methods import get
from pegsynth.privacy import Ledger
from pegsynth.storage import model_file, spending
from pegsynth.storage.model_file import load_model, read_manifest
from pegsynth.storage.spending import read_spent
from pegsynth.tables.container import read_container

ROWS = 20_000

Check = Callable[[Path], None]


class BrokenError(Exception):
    """An output is neither what it was nor whole."""


@dataclass(frozen=True)
class Work:
    """A command, and what its outputs are worth.

    Parameters
    ----------
    arguments
        The command line; ``{data}``, ``{parts}``, ``{schema}`` and ``{out}`` are filled in.
    whole
        For each output by name: how to see that it is whole. Raises when it is not.
    first
        A command line that makes what is there before; None: `arguments` themselves; empty:
        nothing is there.
    compared
        How to look at an output of seeded work, if its bytes hold something random.
    allowed
        Other files that may be left: a checkpoint that was asked for.
    """

    name: str
    arguments: str
    whole: Mapping[str, Check]
    first: str | None = None
    seeded: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    compared: Callable[[Path], object] = Path.read_bytes
    allowed: tuple[str, ...] = ()

    def line(self, place: Place, *, first: bool = False) -> list[str]:
        """Return the command line in a place."""
        names = {
            "data": str(place.folder / "data.csv"),
            "parts": str(place.folder / "parts"),
            "schema": str(place.folder / "schema.toml"),
            "out": str(place.out),
        }
        chosen = self.arguments if self.first is None or not first else self.first
        return [each.format(**names) for each in chosen.split()]


def whole_table(path: Path) -> None:
    """See that a CSV or Parquet file has all its rows and columns, and its ledger."""
    if path.suffix == ".csv":
        whole_csv(path)
    else:
        _check_shape(pl.read_parquet(path), path)


def whole_csv(path: Path) -> None:
    """See that a CSV file of any name has all its rows and columns."""
    _check_shape(pl.read_csv(path), path)


def _check_shape(table: pl.DataFrame, path: Path) -> None:
    if table.shape != (ROWS, 4):
        raise BrokenError(f"{path.name}: {table.shape} rows and columns")


def whole_ledger(path: Path) -> None:
    """See that a ledger can be read."""
    Ledger.from_json(path.read_bytes(), source=path.name)


def whole_model(path: Path) -> None:
    """See that a model can be read, and that its record is there if it needs one."""
    model = load_model(path)
    if model.plan is not None and not get(model.method).released:
        read_spent(path, read_manifest(path).identity)


def whole_record(path: Path) -> None:
    """See that a record of what was spent can be read by itself."""
    with path.open("rb") as handle:
        read_container(handle, kind=spending.KIND, format_=spending.FORMAT)


def whole_release(path: Path) -> None:
    """See that a release folder holds exactly what its checksum list says."""
    import hashlib

    public = path / "public"
    listed = dict(reversed(line.split("  ")) for line in _lines(public / "SHA256SUMS"))
    there = {each.name for each in public.iterdir()} - {"SHA256SUMS"}
    if there != set(listed):
        raise BrokenError(f"{path.name}: files and checksum list differ")
    for name, digest in listed.items():
        if hashlib.sha256((public / name).read_bytes()).hexdigest() != digest:
            raise BrokenError(f"{path.name}: {name} has another checksum")
    if {each.name for each in (path / "internal").iterdir()} != {
        *("metrics.json", "report.html", "sign-off.html")
    }:
        raise BrokenError(f"{path.name}: internal is incomplete")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def model_content(path: Path) -> object:
    """Return all of a model but the number that tells it from others."""
    with path.open("rb") as handle:
        found = read_container(handle, kind=model_file.KIND, format_=model_file.FORMAT)
    manifest = json.loads(found.manifest)
    manifest.pop("identity")
    arrays = {name: (a.dtype.str, a.tolist()) for name, a in found.arrays.items()}
    return found.notice, manifest, arrays


def folder_content(path: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    files = sorted(each for each in path.rglob("*") if each.is_file())
    return {str(each.relative_to(path)): each.read_bytes() for each in files}


_FIT = "fit {data} --schema {schema} -o {out}/m.pegs"
_DRAW = f"synthesize {{data}} --schema {{schema}} --method pegs --rows {ROWS}"

_RELEASE = (
    "release {data} --schema {schema} --epsilon 5 --rows 1000 --datasets 2 --force -o {out}/run"
)

WORKS = (
    Work(
        "fit, holding all rows",
        f"{_FIT} --method bootstrap --rows 100 --seed 7",
        {"m.pegs": whole_model, "m.pegs.spent": whole_record},
        compared=lambda path: model_content(path) if path.suffix == ".pegs" else None,
    ),
    Work(
        "fit with a budget, over another model",
        f"{_FIT} --method pegs --epsilon 50 --rows 1000 --seed 7",
        {"m.pegs": whole_model, "m.pegs.spent": whole_record},
        first=f"{_FIT} --method pegs --epsilon 9 --rows 500",
        compared=lambda path: model_content(path) if path.suffix == ".pegs" else None,
    ),
    Work(
        "fit --resume",
        "fit {parts} --schema {schema} --order data --seed 7 --resume {out}/counts -o {out}/m.pegs",
        {"m.pegs": whole_model},
        environment={"FAULT_OFTEN": "1"},
        compared=model_content,
        allowed=("counts", "counts.new"),
    ),
    Work(
        "synthesize, seeded",
        f"{_DRAW} --epsilon 50 --seed 7 -o {{out}}/t.csv",
        {"t.csv": whole_table, "t.csv.privacy.json": whole_ledger},
        first=f"{_DRAW} --epsilon 50 --seed 8 -o {{out}}/t.csv",
    ),
    Work(
        "synthesize, unseeded, to a better promise",
        f"{_DRAW} --epsilon 50 -o {{out}}/t.parquet",
        {"t.parquet": whole_table, "t.parquet.privacy.json": whole_ledger},
        first=f"{_DRAW} --epsilon-per-row 1 -o {{out}}/t.parquet",
        seeded=False,
    ),
    Work(
        "release --force",
        f"{_RELEASE} --seed 7",
        {"run": whole_release},
        first=f"{_RELEASE} --seed 8",
        compared=folder_content,
    ),
)

SAMPLE = Work(
    "sample with a budget",
    f"sample {{out}}/m.pegs --rows {ROWS} -o {{out}}/t.csv",
    {"t.csv": whole_table, "t.csv.privacy.json": whole_ledger},
    seeded=False,
)
SAMPLED = Work("fit", f"{_FIT} --method pegs --epsilon-per-row 0.5", {})


BOOKED = Work(
    "synthesize with a budget book",
    f"{_DRAW} --epsilon 0.5 --book {{out}}/t.book -o {{out}}/t.csv",
    {"t.csv": whole_table, "t.csv.privacy.json": whole_ledger},
    seeded=False,
    allowed=("t.book",),
)


def spent_rows(model: Path) -> int:
    """Return how many rows a model was charged for."""
    try:
        return read_spent(model, read_manifest(model).identity).rows
    except PegsynthError as error:
        raise BrokenError(f"{model.name}: {error}") from None
