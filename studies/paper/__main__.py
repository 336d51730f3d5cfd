"""``python -m studies.paper [--quick] -o FOLDER``: tables and figures of the paper, and verdicts.

An error is one message on standard error and exit status 2. The text of an unexpected exception
may quote a cell of the table, so only its type and place are printed.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from pegsynth.errors import ParameterError, PegsynthError, escaped, legible
from pegsynth.progress import shown
from pegsynth.runtime import usable_processors
from pegsynth.schema import Schema
from studies import paper


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study, write its folder, print the verdicts and return an exit status."""
    options = _options(arguments)
    try:
        _run(options)
    except PegsynthError as error:
        print(f"study: {legible(str(error))}", file=sys.stderr)
        return 2
    except Exception as error:  # noqa: BLE001 (its text may hold a value of the data)
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        print(f"study: {type(error).__name__} in {place}", file=sys.stderr)
        return 3
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies.paper", description=__doc__)
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, help="folder; a stopped study goes on there")
    add("--quick", action="store_true", help="a smaller table and fewer repeats: minutes")
    add("--data", help="your own table instead of the built-in one")
    add("--schema", type=Path, help="the schema.toml of that table")
    add("--seed", type=int, default=1, help="fixes every table and every draw")
    add("--threads", type=int, default=usable_processors(), help="cells at a time")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> None:
    output = options.output
    if (options.data is None) != (options.schema is None):
        raise ParameterError("--data and --schema go together: a table and its schema")
    if options.data is not None:
        _check_not_input(output, options.data)
    schema = None if options.schema is None else Schema.load(options.schema)
    with shown() as progress:
        study = paper.run_study(
            output,
            size=paper.QUICK if options.quick else paper.FULL,
            data=options.data,
            schema=schema,
            seed=options.seed,
            threads=options.threads,
            progress=progress,
        )
    for each in study.conclusions:
        print(f"{each.number}. {each.title}: {each.verdict}")
    kind = "CONFIDENTIAL: made from the original table. " if options.data else ""
    print(escaped(f"{output}: {kind}Read FINDINGS.md and report.html."), file=sys.stderr)


def _check_not_input(output: Path, data: str) -> None:
    if output.exists() and not output.is_dir():
        raise ParameterError(f"{output}: a study is written to a folder, and this is a file")
    if Path(data) == output:
        raise ParameterError(f"{output}: the folder of the study is the table itself")


if __name__ == "__main__":
    sys.exit(main())
