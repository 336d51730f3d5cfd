"""R code for HOW-TO-ANALYSE.md: a share with the interval that replicate weights give.

It uses the package survey and runs as it stands beside the tables.
"""

from __future__ import annotations

from pegsynth.replicate_design import ReplicateDesign
from pegsynth.schema.dialect import Dialect

_WIDEST = 0xFFFF
_LONGEST = 4


def weighted_share(
    column: str,
    *,
    equals: str | None,
    least: float | None,
    design: ReplicateDesign,
    beside: str,
    table_format: str,
    written: Dialect | None = None,
) -> str:
    """Return R code for the share of rows whose column has a value, or is not below a number.

    Parameters
    ----------
    column
        Name of the column, as the table has it.
    equals, least
        The value, or the number.
    design, beside
        The replicate weights, and the file that holds them; empty where the table itself does.
    written
        How a table that is text is written.
    """
    written = written or Dialect()
    name, count = design.weight, design.count
    if equals is not None:
        answer = f"as.character(table[[{quoted(column)}]]) %in% {quoted(equals)}"
    elif least is not None:
        answer = f"(suppressWarnings(as.numeric(table[[{quoted(column)}]])) >= {least!r}) %in% TRUE"
    else:
        answer = f"!is.na(table[[{quoted(column)}]])"
    return f"""library(survey)

{_reading(table_format, written, name, beside)}
table$answer <- as.numeric({answer})
design <- svrepdesign(
  data = table, weights = ~{name}, repweights = "^{name}_[0-9]+$", type = "other",
  scale = 1 / ({count} * {design.part:g}^2), rscales = rep(1, {count}),
  combined.weights = TRUE, mse = TRUE
)
design$degf <- {count}  # survey would count independent weights, less 1
share <- svymean(~answer, design)
print(share)
print(confint(share, df = {count}))"""


def _reading(table_format: str, written: Dialect, name: str, beside: str) -> str:
    if table_format == "parquet":
        read = 'table <- as.data.frame(arrow::read_parquet("synthetic-1.parquet"))'
        more = f'table <- cbind(table, as.data.frame(arrow::read_parquet("{beside}"))[-1])'
        return f"{read}\n{more}" if beside else read
    usual = written.encoding in ("", "utf-8")
    spelt = 'encoding = "UTF-8"' if usual else f'fileEncoding = "{written.encoding}"'
    separated = f", sep = {quoted(written.separator)}" if written.separator else ""
    number = "as.numeric"
    if written.decimal not in ("", "."):
        number = f'function(text) as.numeric(sub("{written.decimal}", ".", text, fixed = TRUE))'
    joined = f'\ntable <- cbind(table, read("{beside}")[-1])' if beside else ""
    return f"""read <- function(file) read.csv(
  file, colClasses = "character", check.names = FALSE, na.strings = "",
  {spelt}{separated}
)
table <- read("synthetic-1.csv"){joined}
weights <- grep("^{name}(_[0-9]+)?$", names(table))
table[weights] <- lapply(table[weights], {number})"""


def quoted(text: str) -> str:
    r"""Return a text as an R literal of plain letters on one line.

    >>> quoted('a "b" é')
    '"a \\"b\\" \\u00e9"'
    """
    return '"' + "".join(map(_letter, text)) + '"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if " " <= letter <= "~":
        return letter
    code = ord(letter)
    if code > _WIDEST:
        return f"\\U{code:08x}"
    return f"\\u{code:0{_LONGEST}x}"
