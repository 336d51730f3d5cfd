"""``pegs compare``: releases of one table side by side, from what their folders hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pegsynth.cli.combining import read_ledger
from pegsynth.cli.notes import say
from pegsynth.errors import DataError, ParameterError, legible
from pegsynth.evaluation.records import Metrics
from pegsynth.publishing.report.comparison import (
    Compared,
    comparison_figures,
    comparison_tables,
    render_comparison,
)
from pegsynth.publishing.report.drawing import save_drawing
from pegsynth.publishing.report.figure import Table
from pegsynth.publishing.report.wording import guarantee_fields
from pegsynth.tables.atomic import atomic_text, check_target
from pegsynth.views import aligned

PRIVATE = 0o600


def run(releases: Sequence[Path], report: Path | None) -> None:
    """Read what was measured of every release, print it and write the page."""
    if len(releases) < 2:
        raise ParameterError("compare needs at least two releases; give their folders")
    if report is not None:
        check_target(report)
    found = [_read(path, name) for path, name in zip(releases, _names(releases), strict=True)]
    for table in comparison_tables(found):
        if table.rows:
            _print(table)
    if report is not None:
        atomic_text(report, render_comparison(found), mode=PRIVATE)
        folder = report.with_name(f"{report.stem}-figures")
        folder.mkdir(exist_ok=True)
        for figure in comparison_figures(found):
            save_drawing(figure.drawn(), folder / figure.name, mode=PRIVATE)
        say("CONFIDENTIAL: made from real data; nothing that was written here may be published.")


def _read(path: Path, name: str) -> Compared:
    file = path / "internal" / "metrics.json" if path.is_dir() else path
    ledger = path / "public" / "privacy.json"
    try:
        text = file.read_bytes()
    except OSError:
        raise DataError(
            f"{path}: there are no saved figures; give the folder of a release with its internal/ "
            "part, or a metrics.json that pegs evaluate wrote"
        ) from None
    metrics = Metrics.from_json(text, source=str(file))
    promised = guarantee_fields(read_ledger(ledger)) if ledger.is_file() else None
    return Compared(name, metrics, promised)


def _names(paths: Sequence[Path]) -> list[str]:
    """Call releases by their folders, as far up as it takes to tell them apart."""
    whole = [path.absolute() for path in paths]
    if len(set(whole)) < len(whole):
        raise ParameterError("the same release is given twice; give every one once")
    for parts in range(1, max(len(path.parts) for path in whole) + 1):
        names = ["/".join(path.parts[-parts:]) for path in whole]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in whole]


def _print(table: Table) -> None:
    print(f"\n{table.caption}")
    for line in aligned([table.columns, *table.rows]):
        print(legible(line))
