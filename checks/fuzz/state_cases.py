"""Attacks on what a run leaves for itself: metrics, checkpoints of a study, counts so far."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from checks.fuzz.cases import Case
from checks.fuzz.containers import put_together, taken_apart, wild_arrays, with_manifest
from checks.fuzz.mutations import damaged
from checks.fuzz.trees import changed, json_text, wild

PAGES = 0.02
VERDICTS = 0.05
CONFIGURATION = {"version": 1, "rows": 3, "tables": {"main": "0"}}


def metrics_call(content: bytes, source: random.Random) -> Callable[[], object]:
    """Read metrics and, now and then, make the page of them, which takes much longer."""
    whole_page = source.random() < PAGES

    def read() -> object:
        from pegsynth.evaluation.records import Metrics
        from pegsynth.publishing.report.html import render

        found = Metrics.from_json(content, source="in/m.json")
        return render(found) if whole_page else found.to_json()

    return read


@cache
def _design() -> tuple[Any, Any, list[Any]]:
    from pegsynth.datasets import discharge_schema
    from studies.paper.inventory import PARAMETERS
    from studies.paper.setting import setting_of
    from studies.paper.size import QUICK
    from studies.paper.study_design import design_of
    from studies.paper.work_cells import Cell

    design = design_of(QUICK)
    cells = [Cell(PARAMETERS, None, 0), *(c for c in design.cells() if c.repeat < 1)]
    return design, setting_of(discharge_schema()), cells


def _lines(source: random.Random, cells: list[Any]) -> list[dict[str, Any]]:
    figures = ("tvd1", "tvd2", "tvd3", "epsilon", "alpha", "marginal_distance", "uniqueness")
    settings = {"seed": 1, **CONFIGURATION}
    header = {"format": 1, "configuration": settings}
    return [header] + [
        {"cell": cell.name, "values": {name: source.random() for name in figures}} for cell in cells
    ]


def study(source: random.Random, root: Path) -> Case:
    """Attack the checkpoint of a study, and all that is made of its figures."""
    judged = source.random() < VERDICTS
    cells = _design()[2][: None if judged else 20]
    lines = _lines(source, cells)
    if source.random() < 0.6:
        for _ in range(source.choice((1, 1, 2, 4))):
            place = source.randrange(len(lines))
            lines[place] = changed(lines[place], source) if source.random() < 0.8 else wild(source)
    found = b"".join(_checked_line(line, source) for line in lines)
    found = damaged(found, source) if source.random() < 0.4 else found
    return Case({"out/c.jsonl": found}, calls=(lambda: _go_on(cells, judged=judged),))


def _checked_line(content: Any, source: random.Random) -> bytes:
    """Write a line with the checksum that its reader will work out, where it can."""
    text = json_text(content)
    try:
        parsed = json.loads(text)
        check = zlib.crc32(json.dumps(parsed, sort_keys=True).encode())
    except (ValueError, RecursionError):
        check = source.choice((0, -1))
    if text.startswith("{"):
        rest = text[1:] if text == "{}" else "," + text[1:]
        text = '{"check": ' + str(check) + rest
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _go_on(cells: list[Any], *, judged: bool) -> None:
    """Do what a study does that goes on; its verdicts take longest and come now and then."""
    from studies.paper.conclude import conclude
    from studies.paper.inventory import table_of_methods
    from studies.paper.output import estimate_rows
    from studies.paper.results import Results
    from studies.paper.work_cells import run

    design, setting, _ = _design()
    found = run(
        cells,
        lambda cell, stream: {"tvd1": 0.5},
        seed=1,
        checkpoint="out/c.jsonl",
        configuration=CONFIGURATION,
    )
    table_of_methods(found.pop(cells[0]))
    results = Results.of(found)
    estimate_rows(results)
    results.reasons()
    if judged:
        conclude(results, design, setting)


def resume(source: random.Random, root: Path) -> Case:
    """Attack the file of ``--resume``."""
    good = (root / "good/counts.resume").read_bytes()
    kind = source.random()
    if kind < 0.25:
        found = damaged(good, source)
    else:
        parts = taken_apart(good)
        if source.random() < 0.5:
            parts = with_manifest(parts, _wild_places(parts.manifest, source))
        found = put_together(wild_arrays(parts, source) if source.random() < 0.7 else parts)
    command = ("fit", "good/data.csv", "--schema", "good/schema.toml", "--threads", "1")
    return Case(
        {"out/c.resume": found}, ((*command, "-o", "out/m.pegs", "--resume", "out/c.resume"),)
    )


def _wild_places(manifest: dict[str, Any], source: random.Random) -> dict[str, Any]:
    if source.random() < 0.5:
        return {**manifest, "stages": changed(manifest["stages"], source)}
    return {**manifest, "rows": source.choice((1, 40, -1, 1 << 40, 1 << 70))}
