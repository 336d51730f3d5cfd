"""``pegs impute``: completed versions of synthetic tables, in a folder or in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pegsynth.api.completed import impute
from pegsynth.cli.console import progress_bar, say
from pegsynth.cli.working import check_not_inputs
from pegsynth.errors import ParameterError
from pegsynth.publishing.facts import completed_name
from pegsynth.publishing.folder import check_folder, new_folder
from pegsynth.schema import Schema
from pegsynth.tables.file_sets import table_format
from pegsynth.tables.table_output import check_writable, open_writer

if TYPE_CHECKING:
    import polars as pl


def run(
    synthetic: list[str],
    schema_file: Path,
    output: Path,
    *,
    imputations: int,
    seed: int | None,
    threads: int | None,
) -> None:
    """Complete the tables and write all versions, or none."""
    one_file = table_format(output) is not None
    if one_file:
        check_writable(output)
        check_not_inputs((output,), synthetic[0], schema_file)
        if len(synthetic) > 1 or imputations > 1:
            raise ParameterError(
                f"{output}: {len(synthetic) * imputations} tables do not go into one file; name a "
                "folder with -o, or state --imputations 1 and one table"
            )
    else:
        check_folder(output, force=False)
    schema = Schema.load(schema_file)
    with progress_bar() as progress:
        completed = impute(
            synthetic,
            schema,
            imputations=imputations,
            seed=seed,
            threads=threads,
            progress=progress,
        )
    if one_file:
        _write(output, completed[0][0], schema)
        say(f"{output}: 1 completed table.")
        return
    with new_folder(output) as fresh:
        for number, versions in enumerate(completed, start=1):
            suffix = "parquet" if table_format(synthetic[number - 1]) == "parquet" else "csv"
            for version, frame in enumerate(versions, start=1):
                _write(fresh / completed_name(number, version, suffix), frame, schema)
    say(f"{output}: {len(completed) * imputations} completed tables.")


def _write(path: Path, frame: pl.DataFrame, schema: Schema) -> None:
    with open_writer(path, codebook=schema) as writer:
        writer.write(frame)
