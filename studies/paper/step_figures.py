"""Figures 1 to 3 and the table of sampling steps, from runs that were written down."""

from __future__ import annotations

from collections.abc import Sequence

from pegsynth.methods.gibbs.samplers import TraceStep
from pegsynth.publishing.report.figure import Figure
from pegsynth.schema import Schema
from studies.paper import step_charts as charts
from studies.paper.album import Drawing, Rows
from studies.paper.demonstration import Demonstration, Visit

HOW = "How it works: a run on three features"
COUNTED, PERTURBED = "counted", "perturbed"
ANSWERED, WAS_RESET = "from perturbed counts", "reset: uniform"


def step_figures(run: Demonstration) -> list[Drawing]:
    """Draw the blocks, the visits of one row, and the visits of a whole block."""
    names = ", ".join(run.schema.names)
    return [
        Drawing(
            HOW,
            Figure(
                "figure-1-blocks",
                f"Blocks of {names}: counted, then perturbed",
                "Every column is an entry, one combination of the other two features; its colours "
                f"are the shares of the categories. Empty entries are blank on the left; with "
                f"alpha = {run.alpha:.3g} virtual rows a category they answer uniformly.",
                charts.entries,
                block_rows(run),
            ),
            block_rows(run),
        ),
        Drawing(
            HOW,
            Figure(
                "figure-2-visits",
                "One row of PeGS: the entries it visits, and what is drawn",
                f"The seed row is {_row_text(run.schema, run.seed_row)}. Each feature in turn is "
                "drawn from the entry that the other two name.",
                charts.answers,
                [row | {"series": row["drawn"]} for row in answer_rows(run)],
            ),
            answer_rows(run),
        ),
        Drawing(
            HOW,
            Figure(
                "figure-3-reset",
                f"A block of {run.visits[-1].row} rows with reset: what was visited before",
                "An entry answers from its perturbed counts once; from its second visit on it "
                "answers with the uniform distribution.",
                charts.visits,
                [
                    row | {"line": row["feature"], "label": row["drawn"], "series": row["answer"]}
                    for row in visit_rows(run)
                ],
            ),
            visit_rows(run),
        ),
    ]


def block_rows(run: Demonstration) -> Rows:
    """Return the distribution of every entry, counted and perturbed."""
    rows: Rows = []
    for target, feature in enumerate(run.schema.features):
        others = ", ".join(run.schema.names[head] for head in run.heads[target])
        tables = {COUNTED: run.counted(target), PERTURBED: run.perturbed(target)}
        for stage, table in tables.items():
            for key, line in enumerate(table):
                counts = run.counts[target][key]
                for code, label in enumerate(feature.labels):
                    rows.append(
                        {
                            "facet": f"{feature.name} given {others}: {stage}",
                            "key": key,
                            "category": label,
                            "count": int(counts[code]),
                            "value": float(line[code])
                            if stage == PERTURBED or counts.any()
                            else None,
                        }
                    )
    return rows


def answer_rows(run: Demonstration) -> Rows:
    """Return what the entries of the first row answered with."""
    rows: Rows = []
    for visit in (each for each in run.visits if each.row == 1):
        feature = run.schema.features[visit.target]
        line = run.line(visit.target, visit.key)
        counted, perturbed = run.counted(visit.target)[line], run.perturbed(visit.target)[line]
        for code, label in enumerate(feature.labels):
            rows.append(
                {
                    "facet": f"{feature.name} given | {run.key_text(visit.target, visit.key)}",
                    "category": label,
                    "count": int(run.counts[visit.target][line][code]),
                    "counted": float(counted[code]),
                    "perturbed": float(perturbed[code]),
                    "drawn": "drawn" if code == visit.drawn else "not drawn",
                }
            )
    return rows


def visit_rows(run: Demonstration) -> Rows:
    """Return every draw of the block."""
    return [_visit_row(run, visit) for visit in run.visits]


def _visit_row(run: Demonstration, visit: Visit) -> dict[str, object]:
    feature = run.schema.features[visit.target]
    answer = ANSWERED if visit.answered else WAS_RESET
    key = run.key_text(visit.target, visit.key)
    return {
        "row": visit.row,
        "feature": feature.name,
        "key": key,
        "answer": answer,
        "before": feature.labels[visit.before],
        "drawn": feature.labels[visit.drawn],
        "text": f"row {visit.row}, {feature.name} given {key}: {feature.labels[visit.drawn]}, "
        f"{answer}",
    }


def steps_table(schema: Schema, seed: Sequence[int], steps: Sequence[TraceStep]) -> Rows:
    """Return the paper's table of sampling steps; the drawn value stands between asterisks."""
    lines = [{"sequence": "seed", **_texts(schema, seed)}]
    for step in steps:
        texts = _texts(schema, step.row)
        name = schema.names[step.feature]
        texts[name] = f"*{texts[name]}*"
        lines.append({"sequence": f"X{step.feature + 1} | X-{step.feature + 1}", **texts})
    changed = [n for n, a, b in zip(schema.names, seed, steps[-1].row, strict=True) if a != b]
    marks = {name: "changed" if name in changed else "as in the seed" for name in schema.names}
    return [*lines, {"sequence": "final row", **marks}]


def _texts(schema: Schema, row: Sequence[int]) -> dict[str, str]:
    return {f.name: f.labels[code] for f, code in zip(schema.features, row, strict=True)}


def _row_text(schema: Schema, row: Sequence[int]) -> str:
    return ", ".join(_texts(schema, row).values())
