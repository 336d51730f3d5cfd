"""A list of codes and labels of one feature, as offices keep them in spreadsheets."""

from __future__ import annotations

from pegsynth.errors import SchemaError
from pegsynth.schema.codebooks.described import Described
from pegsynth.schema.listed_codes import listed_codes


def read_list(text: str, feature: str) -> Described:
    """Return the feature whose codes stand in the first column and labels in the second.

    The first line may name the columns. Fields are separated by commas, semicolons or tabs,
    whichever the first line has most of.
    """
    lines = [line for _, line in listed_codes(text)]
    if not lines or any(len(line) > 2 for line in lines):
        raise SchemaError("a list of codes has two columns: the code, and what it means")
    codes = tuple((line[0], line[1] if len(line) > 1 else "") for line in lines)
    if len({code for code, _ in codes}) < len(codes):
        raise SchemaError("a code is listed twice; list each once")
    return Described(feature, codes=codes)
