"""Measure and print: ``python -m checks.bench.run [NAME ..] [--quick] [--output FOLDER]``.

Prints a table and writes the same figures to ``results.json`` in the output folder.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from checks.bench import foundation, panels, released, scale, spark
from checks.bench.foundation import Setting
from checks.bench.timing import Figure

FIGURES = foundation.FIGURES | released.FIGURES | panels.FIGURES | scale.FIGURES | spark.FIGURES

HEADER = f"{'ours':>12} {'reference':>12} {'figure':>8} {'asked':>6} {'met':>4} {'load':>5}  what"


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="checks.bench.run", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes; the values mean nothing")
    parser.add_argument("--output", type=Path, default=Path("bench-out"), help="folder to write")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(FIGURES))
    if unknown:
        parser.error(f"{unknown[0]!r} is not one of {', '.join(FIGURES)}")
    figures: list[Figure] = []
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}\n{HEADER}")
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting.quick(Path(folder)) if options.quick else Setting(Path(folder))
        setting = replace(setting, output=options.output)
        for name in options.names or FIGURES:
            for figure in FIGURES[name](setting):
                figures.append(figure)
                print(line(figure), flush=True)
    save(figures, options.output, quick=options.quick)
    return figures


def line(figure: Figure) -> str:
    """Return one figure as a line of the table."""
    ours = f"{figure.ours:.3f} {figure.unit}"
    reference = "" if figure.reference is None else f"{figure.reference:.3f} {figure.unit}"
    asked = "" if figure.asked is None else f"{figure.asked:g}"
    met = {True: "yes", False: "NO", None: ""}[figure.met]
    note = f" ({figure.note})" if figure.note else ""
    return (
        f"{ours:>12} {reference:>12} {figure.value:>8.2f} {asked:>6} {met:>4} "
        f"{figure.load:>5.2f}  {figure.what}{note}"
    )


def save(
    figures: Sequence[Figure], folder: Path, *, quick: bool, name: str = "results.json"
) -> None:
    """Write all figures as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{**asdict(figure), "met": figure.met} for figure in figures]
    text = json.dumps({"processors": os.cpu_count(), "quick": quick, "figures": lines}, indent=1)
    (folder / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
