"""``pegs evaluate``: utility and risk of synthetic tables, as a table, a file and a page.

``pegs compare``: releases of one table side by side, from what their folders hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pegsynth.cli.combining import read_ledger
from pegsynth.cli.notes import progress_bar, say
from pegsynth.cli.working import check_not_inputs
from pegsynth.errors import DataError, ParameterError, legible
from pegsynth.evaluation.evaluate import evaluate_files, measured_codebook, options_of
from pegsynth.evaluation.measuring import Evaluation
from pegsynth.evaluation.records import SEPARATOR, Metrics, Record, headline
from pegsynth.evaluation.risk.risk_tables import NAME as HOLDOUT_FAULT
from pegsynth.options.command_options import EvaluateOptions
from pegsynth.pipeline.request import Request
from pegsynth.privacy import Ledger
from pegsynth.publishing.report.comparison import (
    Compared,
    comparison_figures,
    comparison_tables,
    render_comparison,
)
from pegsynth.publishing.report.drawing import save_drawing
from pegsynth.publishing.report.verdict import with_verdict
from pegsynth.publishing.report.wording import guarantee_fields
from pegsynth.schema import Schema
from pegsynth.tables.atomic import atomic_text, check_target
from pegsynth.tables.table_input import table_files
from pegsynth.tables.table_output import write_table
from pegsynth.views import aligned

PRIVATE = 0o600
MOST_FAULTS = 20
MOST_TERMS = 30
_FAULTS = ("empty_table", "missing_column", "extra_columns", "unknown_values")
_HEADER = ("measure", "value", "low", "high", "baseline", "better", "")
_REGRESSION_HEADER = ("  term", "original", "low", "high", "synthetic", "low", "high")


def run(
    original: Any,
    synthetic: Sequence[str],
    schema_file: Path,
    wishes: EvaluateOptions,
    request: Request,
) -> None:
    """Evaluate, write what was asked for and print the headline figures."""
    _check(original, synthetic, schema_file, wishes)
    schema = request.written(Schema.load(schema_file))
    schema = measured_codebook(original, schema)
    ledger = None if wishes.ledger is None else read_ledger(wishes.ledger)
    options = options_of(
        schema,
        target=wishes.target,
        known=None if not wishes.known else [text.split(",") for text in wishes.known],
        infer=wishes.infer or None,
        formulas=wishes.formulas or None,
        per_record=wishes.per_record,
        threads=request.threads,
        ledger=ledger,
        datasets=len(synthetic),
    )
    with progress_bar() as progress:
        found = evaluate_files(
            original, synthetic, schema, options, holdout=wishes.holdout, progress=progress
        )
        found = with_verdict(found)
        _write(found, ledger, wishes)
    _print(found)
    _print_regressions(found)
    # The verdict of the page, and everything that is off.
    print(legible(f"utility: {found.verdict['utility']}"))
    for fault in found.faults[:MOST_FAULTS]:
        print(legible(f"  off: {fault}"))
    if len(found.faults) > MOST_FAULTS:
        print(f"  and {len(found.faults) - MOST_FAULTS} more; --json FILE lists them")
    print(legible(f"risk: {found.verdict['risk']}"))
    if wishes.outputs:
        say("CONFIDENTIAL: made from real data; nothing that was written here may be published.")
    if wishes.per_record_file is not None:
        say(f"{wishes.per_record_file}: one line for every person; INTERNAL ONLY, never publish.")


def _check(
    original: Any, synthetic: Sequence[str], schema_file: Path, wishes: EvaluateOptions
) -> None:
    """Refuse, before any work, what could not be written."""
    if wishes.per_record and wishes.json is None:
        raise ParameterError("--per-record writes a file beside the JSON; add --json FILE")
    outputs = wishes.outputs
    for path in outputs:
        check_target(path)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ParameterError("--report and --json name the same file; give two")
    others = [file for table in (*synthetic, wishes.holdout) for file in table_files(table)]
    named = [schema_file, *([] if wishes.ledger is None else [wishes.ledger])]
    check_not_inputs(outputs, original, *others, *named)


def _write(found: Evaluation, ledger: Ledger | None, wishes: EvaluateOptions) -> None:
    if wishes.json is not None:
        atomic_text(wishes.json, found.to_json(), mode=PRIVATE)
    if wishes.per_record_file is not None and found.per_record is not None:
        write_table(wishes.per_record_file, found.per_record, mode=PRIVATE)
    if wishes.report is None:
        return
    from pegsynth.publishing.report.html import render, write_figures

    page = render(
        found,
        statement="" if ledger is None else ledger.statement(),
        guarantee=None if ledger is None else guarantee_fields(ledger),
    )
    atomic_text(wishes.report, page, mode=PRIVATE)
    if wishes.figures is not None:
        write_figures(found, wishes.figures)


def _print(found: Evaluation) -> None:
    """Print the headline figures; those that could not be computed with their reason."""
    records = [
        headline(found.records, name) or Record(name=name, subject="", value=None)
        for name in found.summary
    ]
    known = [record for record in records if record.value is not None]
    print(*aligned([_HEADER, *(_line(record) for record in known)]), sep="\n")
    for record in records:
        if record.value is None:
            print(f"{record.name}: {record.note or 'not computed'}")
    for record in found.records:
        if record.name == HOLDOUT_FAULT:
            say(f"warning: {record.note}")
        if record.name in _FAULTS:
            print(legible(f"{record.name.replace('_', ' ')}: {record.subject}: {record.note}"))


def _print_regressions(found: Evaluation) -> None:
    """Print the coefficients of every formula with their intervals, as the page has them."""
    records = {(record.name, record.subject): record for record in found.records}
    formulas: dict[str, list[tuple[str, Record, Record]]] = {}
    for (name, subject), record in records.items():
        if name == "coefficient_original":
            formula, _, term = subject.partition(SEPARATOR)
            own = records["coefficient", subject]
            formulas.setdefault(formula, []).append((term, record, own))
    for formula, terms in formulas.items():
        print(legible(f"regression {formula}"))
        lines = [
            (f"  {legible(term)}", *_ends(first), *_ends(second))
            for term, first, second in terms[:MOST_TERMS]
        ]
        print(*aligned([_REGRESSION_HEADER, *lines]), sep="\n")
        if len(terms) > MOST_TERMS:
            print(f"  and {len(terms) - MOST_TERMS} more; --json FILE lists them")
        how = next((second.note for _, _, second in terms if second.value is not None), "")
        if how:
            print(f"  synthetic: {how}")


def _ends(record: Record) -> tuple[str, ...]:
    figures = (record.value, record.low, record.high)
    return tuple("" if figure is None else f"{figure:.4g}" for figure in figures)


def _line(record: Record) -> tuple[str, ...]:
    figures = (record.value, record.low, record.high, record.baseline)
    texts = ("" if f is None else f"{f:.4g}" for f in figures)
    return (record.name, *texts, record.better, legible(record.subject))


def compare(releases: Sequence[Path], report: Path | None) -> None:
    """Read what was measured of every release, print it and write the page."""
    if len(releases) < 2:
        raise ParameterError("compare needs at least two releases; give their folders")
    if report is not None:
        check_target(report)
    found = [
        _compared(path, name) for path, name in zip(releases, _names_of(releases), strict=True)
    ]
    for table in comparison_tables(found):
        if table.rows:
            print(f"\n{table.caption}")
            for line in aligned([table.columns, *table.rows]):
                print(legible(line))
    if report is not None:
        atomic_text(report, render_comparison(found), mode=PRIVATE)
        folder = report.with_name(f"{report.stem}-figures")
        folder.mkdir(exist_ok=True)
        for figure in comparison_figures(found):
            save_drawing(figure.drawn(), folder / figure.name, mode=PRIVATE)
        say("CONFIDENTIAL: made from real data; nothing that was written here may be published.")


def _compared(path: Path, name: str) -> Compared:
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


def _names_of(paths: Sequence[Path]) -> list[str]:
    """Call releases by their folders, as far up as it takes to tell them apart."""
    whole = [path.absolute() for path in paths]
    if len(set(whole)) < len(whole):
        raise ParameterError("the same release is given twice; give every one once")
    for parts in range(1, max(len(path.parts) for path in whole) + 1):
        names = ["/".join(path.parts[-parts:]) for path in whole]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in whole]
