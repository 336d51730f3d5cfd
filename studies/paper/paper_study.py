"""The paper's study: draw, measure, judge and write everything.

``python -m studies.paper`` calls `run_study`. It can be stopped at any time and started again
on the same folder: finished cells are read from its checkpoint, and what comes out is the same
as without the interruption.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.methods.gibbs.samplers import trace_row
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.toml import dumps
from pegsynth.views import CONFIDENTIAL, card, table
from studies.paper.album import Album, Drawing, Rows
from studies.paper.arms import MAIN, Arm
from studies.paper.cell_file import CellValues
from studies.paper.conclude import Conclusion, conclude, findings_text
from studies.paper.decisions import decisions
from studies.paper.demonstration import demonstrate
from studies.paper.figures import more_figures, paper_figures
from studies.paper.inventory import PARAMETERS, measure_models, table_of_methods
from studies.paper.output import Folder, check_rows, estimate_rows, page, results_text
from studies.paper.populations import built_in, of_user
from studies.paper.results import Results
from studies.paper.setting import Setting, setting_of
from studies.paper.size import FULL, StudySize
from studies.paper.step_figures import step_figures, steps_table
from studies.paper.study_design import StudyDesign, design_of
from studies.paper.work_cells import Cell, one_thread_each, run
from studies.paper.workshop import Population, Workshop
from studies.paper.yardstick import Yardstick

if TYPE_CHECKING:
    import polars as pl

CHECKPOINT = "checkpoint.jsonl"
TITLE = "Perturbed Gibbs samplers: the study"
_VERSION = 1


@dataclass(frozen=True)
class Study:
    """A finished study.

    Parameters
    ----------
    folder
        Where it was written.
    conclusions
        The verdict on every finding.
    results
        Every figure that was measured.
    """

    folder: Path
    conclusions: tuple[Conclusion, ...]
    results: Results = field(repr=False)

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each figure of each repeat (Polars)."""
        return self.results.to_frame()

    def _repr_html_(self) -> str:
        rows = [(each.number, each.title, each.verdict) for each in self.conclusions]
        verdicts = table(("finding", "what the paper says", "verdict"), rows)
        note = f"Figures, tables and the page are in {self.folder}."
        return card("The paper's study", [note], table=verdicts, warning=CONFIDENTIAL)


@dataclass(frozen=True)
class _Frame:
    """What a study works with."""

    size: StudySize
    rows: int
    seed: int
    populations: Mapping[str, Population]
    setting: Setting
    design: StudyDesign
    workshop: Workshop
    yardsticks: Mapping[str, Yardstick]

    def work(self, cell: Cell, stream: RandomStream) -> CellValues:
        """Draw a table and measure it; the one nameless cell measures the models."""
        if cell.arm == PARAMETERS:
            methods = tuple(arm.method for arm in self.design.arms.values())
            return measure_models(self.workshop, self.populations[MAIN], self.size, methods)
        arm = self.design.arms[cell.arm]
        drawn = self.workshop.draw(arm, cell.level, self.rows, stream)
        yardstick = self.yardsticks[arm.population]
        shares = yardstick.histograms(drawn.codes) if arm.axis == "chain" else {}
        price: CellValues = {"epsilon": drawn.epsilon, "alpha": drawn.alpha}
        return {**price, **yardstick.measure(drawn.codes), **shares}

    def configuration(self) -> dict[str, Any]:
        """All that the values of cells depend on."""
        digests = {
            name: hashlib.sha256(p.codes.tobytes() + p.pool.tobytes() + p.fresh.tobytes())
            for name, p in self.populations.items()
        }
        return {
            "version": _VERSION,
            "study": self.size.name,
            "size": {k: v for k, v in asdict(self.size).items() if k not in ("name", "figures")},
            "rows": self.rows,
            "methods": sorted({arm.method for arm in self.design.arms.values()}),
            "schema": hashlib.sha256(dumps(self.setting.schema).encode()).hexdigest(),
            "tables": {name: digest.hexdigest() for name, digest in digests.items()},
        }


def run_study(
    folder: str | Path,
    *,
    size: StudySize = FULL,
    data: Any = None,
    schema: Schema | None = None,
    seed: int = 1,
    threads: int = 1,
    progress: Progress = quiet,
) -> Study:
    """Run the study and write its folder.

    Parameters
    ----------
    folder
        Where to write; a study that was stopped there goes on.
    size
        How much work it is.
    data, schema
        A user's table and its codebook; without them the built-in table is studied.
    seed
        Fixes every table and every draw.
    threads
        Cells at a time; nothing depends on it.
    """
    target = Folder(Path(folder), confidential=data is not None)
    target.make()
    frame = _frame(size, data, schema, seed, threads, progress)
    cells = [Cell(PARAMETERS, None, 0), *frame.design.cells()]
    with one_thread_each():
        found = run(
            cells,
            frame.work,
            seed=seed,
            checkpoint=target.path / CHECKPOINT,
            configuration=frame.configuration(),
            mode=target.mode or 0o644,
            threads=threads,
            progress=progress,
        )
        floors = {name: y.floors(frame.rows) for name, y in frame.yardsticks.items()}
        coefficients = {name: y.coefficients() for name, y in frame.yardsticks.items()}
    models = found.pop(cells[0])
    results = Results.of(found, floors=floors, coefficients=coefficients)
    conclusions = conclude(results, frame.design, frame.setting)
    _write(target, frame, results, conclusions, models, progress)
    return Study(target.path, tuple(conclusions), results)


def _frame(
    size: StudySize,
    data: Any,
    schema: Schema | None,
    seed: int,
    threads: int,
    progress: Progress,
) -> _Frame:
    if data is None or schema is None:
        populations = built_in(size, seed)
    else:
        size = replace(size, other_rows_in=())
        populations = of_user(data, schema, seed)
    setting = setting_of(populations[MAIN].schema)
    return _Frame(
        size,
        min(size.rows, *(len(p.codes) for p in populations.values())),
        seed,
        populations,
        setting,
        design_of(size),
        Workshop(populations, model_rows=size.model_rows, threads=threads, progress=progress),
        {name: Yardstick.of(setting, p.codes) for name, p in populations.items()},
    )


def _write(
    folder: Folder,
    frame: _Frame,
    results: Results,
    conclusions: list[Conclusion],
    models: CellValues,
    progress: Progress,
) -> None:
    population = frame.populations[MAIN]
    settled = decisions(
        frame.setting, frame.size, population, frame.rows, built_in=not folder.confidential
    )
    tables: dict[str, Rows] = {
        "table-1-methods": list(map(dict, table_of_methods(models))),
        "table-2-variables": _variables(frame.setting.schema),
        "table-3-sampling-steps": _steps(frame),
    }
    for name, rows in tables.items():
        folder.table(name, rows)
    folder.table("findings", check_rows(conclusions))
    estimates = estimate_rows(results)
    folder.table("estimates", estimates)
    drawn = _drawings(frame, results)
    for number, drawing in enumerate(drawn):
        progress("figures", number, len(drawn))
        folder.drawing(drawing)
    progress("figures", len(drawn), len(drawn))
    left_out = (*frame.setting.left_out, *_not_drawn(results))
    text = findings_text(conclusions, settled, left_out, notice=folder.notice)
    folder.text("FINDINGS.md", text)
    configuration = {"seed": frame.seed, **frame.configuration()}
    folder.text(
        "results.json",
        results_text(results, estimates, conclusions, settled, configuration, notice=folder.notice),
    )
    html = page(
        TITLE,
        folder.notice,
        conclusions,
        tables,
        drawn,
        settled,
        left_out,
        confidential=folder.confidential,
    )
    folder.text("report.html", html)


def _drawings(frame: _Frame, results: Results) -> list[Drawing]:
    album = Album(results, frame.design, frame.setting, frame.size.epsilons)
    steps: list[Drawing] = []
    population = frame.populations[MAIN]
    if frame.setting.trio:
        stream = RandomStream(f"study {frame.seed} three features")
        small = demonstrate(
            population.codes, population.schema, frame.setting.trio, stream, pool=population.pool
        )
        steps = step_figures(small)
    drawn = [*steps, *paper_figures(album), *more_figures(album)]
    wanted = frame.size.figures
    return [each for each in drawn if not wanted or each.figure.name in wanted]


def _not_drawn(results: Results) -> list[str]:
    """Say once for every arm why it could not be drawn."""
    reasons = {(arm, reason) for (arm, _), reason in results.reasons().items()}
    return [f"{arm}: {reason}" for arm, reason in sorted(reasons)]


def _variables(schema: Schema) -> Rows:
    """Return the paper's table of variables."""
    return [
        {
            "variable": feature.name,
            "description": feature.label,
            "kind": feature.kind,
            "role": feature.role,
            "levels": feature.category_count,
            "categories": "; ".join(feature.labels),
        }
        for feature in schema.features
    ]


def _steps(frame: _Frame) -> Rows:
    """Return the paper's table of sampling steps: one row of PeGS at eps 1."""
    stream = RandomStream(f"study {frame.seed} sampling steps")
    ready = frame.workshop.prepared(Arm("sampling steps", "pegs"), 1.0, 1, stream)
    seed_row, steps = trace_row(ready.machine, ready.pool, 1, stream)
    return steps_table(frame.setting.schema, seed_row, steps)
