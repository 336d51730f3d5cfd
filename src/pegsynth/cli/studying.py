"""``pegs study``: every table and figure of the paper, and a verdict on its findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pegsynth.cli.console import progress_bar, say
from pegsynth.errors import ParameterError
from pegsynth.schema import Schema


@dataclass(frozen=True)
class StudyRequest:
    """What the command line asked for."""

    output: Path
    quick: bool
    data: str | None
    schema: Path | None
    seed: int
    threads: int


def run(request: StudyRequest) -> None:
    """Run the study, write its folder and print the verdicts."""
    from pegsynth.study import FULL, QUICK, run_study

    if (request.data is None) != (request.schema is None):
        raise ParameterError("--data and --schema go together: a table and its codebook")
    if request.data is not None and request.schema is not None:
        _check_not_input(request.output, request.data)
    schema = None if request.schema is None else Schema.load(request.schema)
    with progress_bar() as progress:
        study = run_study(
            request.output,
            size=QUICK if request.quick else FULL,
            data=request.data,
            schema=schema,
            seed=request.seed,
            threads=request.threads,
            progress=progress,
        )
    for each in study.conclusions:
        print(f"{each.number}. {each.title}: {each.verdict}")
    kind = "CONFIDENTIAL: made from the original table. " if request.data else ""
    say(f"{request.output}: {kind}Read FINDINGS.md and report.html.")


def _check_not_input(output: Path, data: str) -> None:
    if output.exists() and not output.is_dir():
        raise ParameterError(f"{output}: a study is written to a folder, and this is a file")
    if Path(data) == output:
        raise ParameterError(f"{output}: the folder of the study is the table itself")
