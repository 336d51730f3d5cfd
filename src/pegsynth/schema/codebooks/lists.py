"""A list of codes and labels of one feature, as offices keep them in spreadsheets."""

from __future__ import annotations

import csv
import io

from pegsynth.errors import SchemaError
from pegsynth.schema.codebooks.described import Described

_HEADS = ("code", "codes", "value", "values", "schluessel", "schlüssel", "kod", "id")


def read_list(text: str, feature: str) -> Described:
    """Return the feature whose codes stand in the first column and labels in the second.

    The first line may name the columns. Fields are separated by commas, semicolons or tabs,
    whichever the first line has most of.
    """
    mark = max(",;\t", key=text.partition("\n")[0].count)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), delimiter=mark) if line]
    except csv.Error:
        raise SchemaError("the list cannot be read; save it as CSV") from None
    if lines and lines[0][0].strip().lower() in _HEADS:
        del lines[0]
    if not lines or any(len(line) > 2 for line in lines):
        raise SchemaError("a list of codes has two columns: the code, and what it means")
    codes = tuple((line[0].strip(), line[1].strip() if len(line) > 1 else "") for line in lines)
    if len({code for code, _ in codes}) < len(codes):
        raise SchemaError("a code is listed twice; list each once")
    return Described(feature, codes=codes)
