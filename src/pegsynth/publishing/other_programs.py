"""R code for HOW-TO-ANALYSE.md: a share with the interval that replicate weights give.

It uses the package survey and runs as it stands beside the tables.

HOW-TO-ANALYSE.md in R, Stata and SAS: the same share as the Python code, from the same files.

The R code is run by the tests where R is installed; for replicate weights `r_example` has it.
Stata and SAS are not to be had for tests, and the page says so.
"""

from __future__ import annotations

from pegsynth.inference.combining_rules import ReplicateDesign
from pegsynth.options.weight_names import ROW
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.csv_read import protect

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


_NOTE = (
    "The R code below is run by the tests of pegsynth; the code for Stata and SAS is shown, and "
    "was never run. All three compute the estimate alone."
)
_WEIGHTED_NOTE = "The code for Stata and SAS is shown, and was never run."


def other_programs(
    schema: Schema,
    *,
    datasets: int,
    table_format: str,
    design: ReplicateDesign | None,
    beside: str,
    labels: bool,
) -> str:
    """Return the section; empty where no example fits, as for Parquet and panels of two tables.

    Text of another form than the usual one has none either: each program reads that its own way.

    Parameters
    ----------
    design, beside
        The replicate weights, if there are any, and the file that holds them; empty where the
        table itself does.
    labels
        Whether numbers are written as labels of bins.
    """
    feature = _subject(schema, labels=labels)
    two_tables = schema.panel is not None and schema.panel.tables is not None
    if feature is None or table_format != "csv" or two_tables or schema.dialect:
        return ""
    column, value = protect(feature.name), protect(_category(feature))
    if design is not None:
        blocks = _weighted(column, value, design, beside)
        return "\n\n".join((f"## In Stata and SAS\n\n{_WEIGHTED_NOTE}", *blocks))
    blocks = _plain(column, value, datasets)
    return "\n\n".join((f"## In R, Stata and SAS\n\n{_NOTE}", *blocks))


def _subject(schema: Schema, *, labels: bool) -> Feature | None:
    """Return the first feature whose cells hold texts of its categories."""
    listed = (each for each in schema.features if labels or not each.binned)
    return next((each for each in listed if each.category_count > 1 and _category(each)), None)


def _category(feature: Feature) -> str:
    labels = feature.labels[: feature.bin_count] or feature.labels
    # Line breaks and quotes differ between the three; a plain category is asked for.
    plain = (text for text in labels if text.strip() and text.isprintable() and '"' not in text)
    return next((text for text in plain if "\\" not in text), "")


def _plain(column: str, value: str, datasets: int) -> tuple[str, ...]:
    return (
        f"""```r
files <- sort(Sys.glob("synthetic-*.csv"))
tables <- lapply(files, read.csv, colClasses = "character", check.names = FALSE)
shares <- sapply(tables, function(table) mean(table[[{quoted(column)}]] %in% {quoted(value)}))
cat(sprintf("share: %.4f\\n", mean(shares)))
```""",
        f"""```stata
* Not run. Stata changes names of columns that it cannot have; see "describe".
forvalues number = 1/{datasets} {{
    import delimited using "synthetic-`number'.csv", varnames(1) stringcols(_all) clear
    generate byte outcome = {_stata_name(column)} == "{value}"
    summarize outcome
}}
```""",
        f"""```sas
/* Not run. */
proc import datafile="synthetic-1.csv" out=synthetic dbms=csv replace;
    guessingrows=max;
run;
proc freq data=synthetic;
    tables '{column.replace("'", "''")}'n / missing;
run;
```""",
    )


def _weighted(column: str, value: str, design: ReplicateDesign, beside: str) -> tuple[str, ...]:
    name, fay = design.weight, f"{1 - design.part:g}"
    stata = f"""import delimited using "{beside}", varnames(1) clear
tempfile weights
save `weights'
import delimited using "synthetic-1.csv", varnames(1) clear
merge 1:1 _n using `weights', nogenerate"""
    sas = f"""proc import datafile="{beside}" out=weights dbms=csv replace;
    guessingrows=max;
run;
data synthetic;
    merge synthetic weights(drop={ROW});
run;
"""
    alone = 'import delimited using "synthetic-1.csv", varnames(1) clear'
    return (
        f"""```stata
* Not run. Stata changes names of columns that it cannot have; see "describe".
{stata if beside else alone}
tostring {_stata_name(column)}, replace
generate byte outcome = {_stata_name(column)} == "{value}"
svyset [pw={_stata_name(name)}], brrweight({_stata_name(name)}_*) fay({fay}) vce(brr) mse
svy: mean outcome
```""",
        f"""```sas
/* Not run. */
proc import datafile="synthetic-1.csv" out=synthetic dbms=csv replace;
    guessingrows=max;
run;
{sas if beside else ""}proc surveyfreq data=synthetic varmethod=brr(fay={fay});
    weight {name};
    repweights {name}_1-{name}_{design.count};
    tables '{column.replace("'", "''")}'n / cl;
run;
```""",
    )


def _stata_name(column: str) -> str:
    """Return a column as Stata would call it: letters, digits and underscores."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in column.lower())
    return name if name[:1].isalpha() or name[:1] == "_" else f"v_{name}"
