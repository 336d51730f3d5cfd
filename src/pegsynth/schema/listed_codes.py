"""Lists of codes as offices keep them in spreadsheets: the text of a CSV file in, lines out."""

from __future__ import annotations

import csv
import io

from pegsynth.errors import SchemaError

_HEADS = ("code", "codes", "value", "values", "schluessel", "schlüssel", "kod", "id")


def listed_codes(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines of a list, each with its number in the file, cells without spaces around.

    The first line may name the columns. Fields are separated by commas, semicolons or tabs,
    whichever the first line has most of. Empty lines are passed over.
    """
    mark = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in line]) for line in reader if line]
    except csv.Error:
        raise SchemaError("the list cannot be read; save it as CSV") from None
    if lines and lines[0][1][0].lower() in _HEADS:
        del lines[0]
    return lines
