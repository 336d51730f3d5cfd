"""The text convention of CSV cells.

Spreadsheets run a cell that starts with ``=``, ``+``, ``-``, ``@``, a tab or a carriage
return as a formula. Text that starts so, and is not a number, is written with a leading
apostrophe; column names too. Readers take the apostrophe off again: from a column name
always, from a cell when the text with it is not a listed category and the text without
it is. A table that lists both ``=x`` and ``'=x`` is the one case that does not survive.
"""

from __future__ import annotations

import re

import polars as pl

_STARTS = "=+-@\t\r"
# Ranges of text that hold all the starts and little else: comparing is faster than matching.
_RANGES = (("\t", "\x0e"), ("+", "."), ("=", "A"))
_START = r"^[=+\-@\t\r]"
# With the decimal mark of any dialect: no spreadsheet takes either for a formula.
_NUMBER = r"^[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NUMBER_PATTERN = re.compile(_NUMBER)


def protect(text: str) -> str:
    """Return `text` as it is written to CSV: no spreadsheet takes it for a formula."""
    if text.startswith(tuple(_STARTS)) and not _NUMBER_PATTERN.fullmatch(text):
        return "'" + text
    return text


def unprotect(text: str) -> str:
    """Take off the apostrophe that `protect` put on."""
    if text.startswith("'") and text[1:].startswith(tuple(_STARTS)):
        return text[1:]
    return text


def protect_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Protect every text cell and every column name of a frame.

    Categories of enumerated columns are looked at once, not row by row.
    """
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    near = [pl.col(texts).is_between(pl.lit(a), pl.lit(b), closed="left") for a, b in _RANGES]
    risky = _any(frame, near[0] | near[1] | near[2]) if texts else []
    risky += [
        name
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Categorical)
        or (isinstance(dtype, pl.Enum) and dtype.categories.str.contains(_START).any())
    ]
    return frame.with_columns(_protected(name) for name in risky).rename(protect)


def _any(frame: pl.DataFrame, condition: pl.Expr) -> list[str]:
    found = frame.select(condition.any()).row(0, named=True)
    return [name for name, yes in found.items() if yes]


def _protected(name: str) -> pl.Expr:
    text = pl.col(name).cast(pl.String)
    formula = text.str.contains(_START) & ~text.str.contains(_NUMBER)
    return pl.when(formula).then(pl.lit("'") + text).otherwise(text).alias(name)
