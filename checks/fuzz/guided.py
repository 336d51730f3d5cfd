"""Coverage-guided fuzzing with atheris, where it is installed, on the same readers and judge.

``python -m checks.fuzz.guided csv [libFuzzer flags]`` runs until it finds something;
``-runs=10000`` or ``-max_total_time=60`` stop it earlier, and a folder as the last argument
keeps the inputs that reached new code. atheris is no dependency of the project: install it
beside it (``pip install atheris``).
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

ONE = ("--threads", "1")
SCHEMA = ("--schema", "good/schema.toml")
READERS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "csv": ("t.csv", ("schema", "in/t.csv", "-o", "out/s.toml"), ("data.csv",)),
    "parquet": ("t.parquet", ("fit", "in/t.parquet", *SCHEMA, *ONE, "-o", "out/m.pegs"), ()),
    "arrow": ("t.arrow", ("fit", "in/t.arrow", *SCHEMA, *ONE, "-o", "out/m.pegs"), ()),
    "schema": ("s.toml", ("inspect", "in/s.toml"), ("schema.toml", "rich.toml")),
    "model": ("m.pegs", ("inspect", "in/m.pegs"), ("plain.pegs", "once.pegs")),
    "ledger": ("p.json", ("inspect", "in/p.json"), ("once.json", "row.json")),
    "estimates": ("e.csv", ("combine", "in/e.csv", "--rows", "9", "--rows-in", "9"), ()),
}
"""By name: the file that is made of the input, what reads it, and files to start from."""


def main() -> None:
    """Hand the readers to libFuzzer."""
    import atheris

    name, *flags = sys.argv[1:]
    file, command, starts = READERS[name]
    _import_kernels()
    with atheris.instrument_imports(include=["pegsynth"]):
        pass
    from checks.fuzz.cases import Case, prepare, run_case

    warnings.simplefilter("error")
    root = Path(tempfile.mkdtemp(prefix="pegs-guided-"))
    flags = [flag if flag.startswith("-") else os.path.abspath(flag) for flag in flags]
    prepare(root)
    seeds = root / "seeds"
    seeds.mkdir(exist_ok=True)
    for start in starts:
        (seeds / start).write_bytes((root / "good" / start).read_bytes())

    def one(data: bytes) -> None:
        verdict = run_case(Case({file: data}, (command,)), root, [])
        if verdict.faults:
            raise RuntimeError(f"{verdict.faults}\n{verdict.detail}")

    atheris.Setup([sys.argv[0], *flags, str(seeds)], one)
    atheris.Fuzz()


def _import_kernels() -> None:
    """Import kernels first: they are compiled from their bytecode, which must stay as it is."""
    import pegsynth.kernels

    for module in pkgutil.iter_modules(pegsynth.kernels.__path__, "pegsynth.kernels."):
        importlib.import_module(module.name)


if __name__ == "__main__":
    main()
