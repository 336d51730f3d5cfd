"""``pegs tables``: counts of a published model, with intervals that hold its noise."""

from __future__ import annotations

import sys
from pathlib import Path

from pegsynth.errors import ParameterError, escaped
from pegsynth.fitted import published_counts
from pegsynth.io.atomic import atomic_text, check_target
from pegsynth.io.table_input import same_file


def tables(model: Path, of: str, output: Path | None, *, level: float) -> None:
    """Print the table of some features as CSV, or write it."""
    names = [name.strip() for name in of.split(",") if name.strip()]
    if output is not None:
        check_target(output)
        if same_file(output, model):
            raise ParameterError(f"{output}: this file is read as input; choose another output")
    text = published_counts(str(model), names, level=level).write_csv()
    if output is None:
        sys.stdout.write("".join(escaped(line) + "\n" for line in text.splitlines()))
    else:
        atomic_text(output, text)
