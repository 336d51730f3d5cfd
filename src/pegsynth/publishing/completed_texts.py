"""What HOW-TO-ANALYSE.md says of tables whose missing values were imputed (R23)."""

from __future__ import annotations

from typing import Final

from pegsynth.inference.choice import Choice

COMPLETED: Final = "completed-"
"""How the names of completed tables begin."""


def completed_name(table: int, version: int, suffix: str) -> str:
    """Return the file name of a completed table."""
    return f"{COMPLETED}{table}-{version}.{suffix}"


def completed_tables(datasets: int, versions: int, table_format: str) -> str:
    """Return what the completed tables are."""
    number = min(versions, 2)
    name, which = completed_name(1, number, table_format), ("first", "second")[number - 1]
    many = "the table" if datasets == 1 else "each table"
    stand = (
        "stands 1 completed version" if versions == 1 else f"stand {versions} completed versions"
    )
    return f"""## Completed tables

In the files `synthetic-*` values are missing as in the original: "missing" was synthesized like a
category. Beside them {stand} of {many}, `{name}` being
the {which} of table 1. Every missing value in them was imputed from the synthetic rows of that
table alone, by trees grown with redrawn weights; all other values are the same. So the completed
tables reveal nothing more, and `privacy.json` holds for all files together. Use the completed
tables for analyses that should not lose rows, and the others to study what is missing."""


def combining_completed(
    choice: Choice, *, rows: int, datasets: int, versions: int, counted: str = "rows"
) -> str:
    """Return how estimates from K r completed tables become one."""
    opening = f"""## Combine the completed tables

Analyse each of the {datasets * versions} completed tables as if it were the original, then
combine the results. K = {datasets} tables, r = {versions} versions of each, and
n = {rows} {counted}."""
    if choice.rule == "own-noise":
        return f"""{opening}
First take the mean of the {versions} estimates of each table. Let q be the mean of these
{datasets} means and b their variance (divisor K - 1). The rule that fits this release is
**own-noise**, because {choice.reason}; the
spread of imputing is in b:

- estimate: q
- variance: T = (1 + 1/K) b, with K - 1 degrees of freedom

`pegsynth.combine` does this with `imputations={versions}`."""
    return f"""{opening}
Let q be the mean of all estimates, b the variance of the {datasets} means of a table (divisor
K - 1), w the mean of the variances between the {versions} estimates of a table (divisor r - 1)
and v the mean of the variances that the analyses give. The rule that fits this release is
**nested**, because {choice.reason}:

- estimate: q
- variance: T = (n/N) (v + w) + b/K
- degrees of freedom: T^2 / (((n/N) w)^2 / (K (r - 1)) + (b/K)^2 / (K - 1))

`pegsynth.combine` does this with `imputations={versions}`. For estimates in a file with the
columns term, dataset, imputation, estimate, and variance or std_error, so does
`pegs combine FILE --ledger privacy.json --rows {rows}`. The usual rules for multiple
imputation, and those for imputed data that were partially synthesized, are wrong here."""


def nested_in_r(datasets: int, versions: int, table_format: str) -> str:
    """Return the nested rule in R, for whoever has no Python."""
    read = "read.csv(file)" if table_format == "csv" else "arrow::read_parquet(file)"
    return f"""In R, for a `fit` that takes a table, such as `function(table) lm(y ~ x, table)`,
and the number of original rows `N`. It was not run for this page.

```r
K <- {datasets}
r <- {versions}
files <- sprintf("completed-%d-%d.{table_format}", rep(1:K, each = r), rep(1:r, times = K))
fits <- lapply(files, function(file) fit({read}))
q <- sapply(fits, function(x) coef(x)[["x"]])
v <- mean(sapply(fits, function(x) vcov(x)["x", "x"]))
table <- rep(1:K, each = r)
b <- var(tapply(q, table, mean))
w <- mean(tapply(q, table, var))
share <- nobs(fits[[1]]) / N
T <- share * (v + w) + b / K
dof <- T^2 / ((share * w)^2 / (K * (r - 1)) + (b / K)^2 / (K - 1))
mean(q) + c(-1, 1) * qt(0.975, dof) * sqrt(T)
```"""


LIMITS_OF_IMPUTING: Final = """Imputed values follow the other features of their row, as far as the
synthetic rows show it. If values are missing for reasons that no other feature tells, completed
tables are off, and no rule says how far."""
