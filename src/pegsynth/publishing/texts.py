"""HOW-TO-ANALYSE.md: what the tables are, the rule that fits them, code that runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegsynth.inference.choice import (
    Choice,
    from_released_blocks,
    replicates_of,
    rows_in_of,
    rule_for,
    without_intervals,
)
from pegsynth.inference.combining_rules import REPLICATED
from pegsynth.privacy import Ledger, NoisyCounts
from pegsynth.publishing.completed_texts import (
    LIMITS_OF_IMPUTING,
    combining_completed,
    completed_tables,
    nested_in_r,
)
from pegsynth.publishing.deed_texts import deeds_section
from pegsynth.publishing.examples import analysis_code
from pegsynth.publishing.missing_texts import blanks
from pegsynth.publishing.other_programs import other_programs
from pegsynth.publishing.wanted_texts import analyses_section, wanted_section
from pegsynth.schema import Schema
from pegsynth.schema.column_decoding import How
from pegsynth.schema.panel import Panel

_FORMULAS = {
    "plug-in": "T = (n/N) v + b/K",
    "shared-urn": "T = 2 (n/N) v + b/K",
    "partial": "T = v + b/K",
    "own-noise": "T = (1 + 1/K) b, with K - 1 degrees of freedom",
}


def how_to_analyse(
    schema: Schema,
    *,
    rows: int,
    datasets: int,
    table_format: str,
    ledger: Ledger,
    decode: How = "values",
    versions: int = 0,
    blanked: Sequence[str] = (),
) -> str:
    """Return HOW-TO-ANALYSE.md: what the tables are, the rule that fits, code that runs.

    Parameters
    ----------
    schema
        The public codebook; the example analyses are about its features.
    rows, datasets
        n rows in each of K tables.
    table_format
        "csv" or "parquet".
    ledger
        How the tables were made, which decides the combining rule (R16).
    decode
        Whether numbers are written as values or as bin labels.
    versions
        Completed versions of every table; 0: none.
    blanked
        Features that policy blanked where their combination was rare.
    """
    choice = rule_for(ledger, datasets)
    if versions and choice.rule == "plug-in":
        choice = Choice("nested", f"{choice.reason}, and missing values were imputed in each")
    released = from_released_blocks(ledger)
    weights = replicates_of(ledger)
    estimates_only = datasets > 1 and without_intervals(ledger)
    needs_rows_in = choice.rule not in ("partial", *REPLICATED) and not estimates_only
    counted = "rows" if schema.panel is None else "units"
    sections = [
        _opening(
            choice, rows=rows, datasets=datasets, measured=_measured(ledger), panel=schema.panel
        ),
        completed_tables(datasets, versions, table_format) if versions else "",
        _panel(schema, choice, datasets=datasets, weights=weights),
        deeds_section(schema, ledger),
        _dependent(choice, released=released, panel=schema.panel),
        _blanked(blanked),
        blanks(schema),
        _ESTIMATES_ONLY
        if estimates_only
        else _combining(
            choice,
            rows=rows,
            datasets=datasets,
            weights=weights,
            versions=versions,
            counted=counted,
        ),
        _original_rows(rows_in_of(ledger), counted) if datasets > 1 and needs_rows_in else "",
        "## Code\n\nRun it in this folder, with `pegsynth` installed.",
        *_code(
            schema,
            datasets=datasets,
            table_format=table_format,
            decode=decode,
            rows_in=rows_in_of(ledger),
            needs_rows_in=needs_rows_in,
            weights=weights,
            versions=versions,
            estimates_only=estimates_only,
        ),
        ""
        if versions
        else other_programs(
            schema,
            datasets=datasets,
            table_format=table_format,
            weights=weights,
            labels=decode == "labels",
        ),
        nested_in_r(datasets, versions, table_format)
        if choice.rule == "nested" and not estimates_only
        else "",
        analyses_section(schema),
        wanted_section(schema),
        "" if estimates_only else _limits(choice, released=released),
        LIMITS_OF_IMPUTING if versions else "",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _code(schema: Schema, *, table_format: str, **told: Any) -> Sequence[str]:
    """Return code that runs: of two tables how they are put together."""
    panel = schema.panel
    if panel is None or panel.tables is None:
        return analysis_code(schema, table_format=table_format, **told)
    read = "read_parquet" if table_format == "parquet" else "read_csv"
    separator = schema.dialect.separator if table_format == "csv" else ""
    more = f", separator={separator!r}" if separator else ""
    units, rows = (f"synthetic-1-{name}.{table_format}" for name in panel.tables)
    return (
        f"""```python
import polars as pl

units = pl.{read}("{units}"{more})
rows = pl.{read}("{rows}"{more})
table = rows.join(units, on="{panel.unit}")
print(table.height, units.height)
```""",
    )


def _panel(schema: Schema, choice: Choice, *, datasets: int, weights: int | None) -> str:
    """Say that rows of a unit depend on each other (R24)."""
    panel = schema.panel
    if panel is None:
        return ""
    unit = panel.unit
    if weights:
        more = """Replicate weights are those of whole units, so intervals from them hold that, and
nothing is to be clustered."""
    elif choice.rule == "own-noise":
        more = """Every table has units of its own, so the spread between tables holds that; the
rule below needs no more."""
    else:
        more = f"""Cluster standard errors by `{unit}`, or analyse one row for each unit. With
statsmodels: `model.fit(cov_type="cluster", cov_kwds={{"groups": table["{unit}"]}})`; in R, with the
package sandwich: `vcovCL(model, cluster = ~{unit})`."""
        if datasets > 1:
            more += """ Where tables are combined, the variance of every
estimate is the clustered one, and n and N count units. The code below takes rows for independent;
its intervals are too short for questions about rows."""
    pooled = (
        f"""

How one row leads to the next was measured for all positions together. Given the row before, what is
fixed, the number of rows and how many are left, earlier rows of a `{unit}` tell nothing more:
analyses that look further back than one row find no relation that was measured."""
        * panel.pooled
    )
    return f"""## Rows of one unit belong together

`{unit}` says whose a row is; the numbers are new and mean nothing else. Rows of a unit are
in the order of `{panel.time}`, at most {panel.most} of them, and depend on each other.
{more}{pooled}"""


def _measured(ledger: Ledger) -> bool:
    """Whether edges and shapes of numeric features were measured (R21)."""
    return any(isinstance(e, NoisyCounts) and e.purpose == "edges" for e in ledger.events)


def _opening(
    choice: Choice, *, rows: int, datasets: int, measured: bool, panel: Panel | None = None
) -> str:
    kept = choice.rule == "partial"
    made = (
        "Some columns hold original values, which `privacy.json`\nnames; the others were drawn "
        "from a model."
        if kept
        else "Every row was drawn anew from what\nthe method keeps of the original table."
    )
    return f"""# How to analyse {"this table" if datasets == 1 else "these tables"}

The folder holds {_held(rows, datasets, panel)}. {made}
`schema.toml` lists every feature with its categories. {_MEASURED if measured else _UNIFORM}"""


def _held(rows: int, datasets: int, panel: Panel | None) -> str:
    """Say how many tables there are, and of how many rows or units."""
    tables = "1 synthetic table" if datasets == 1 else f"{datasets} synthetic tables"
    each = "" if datasets == 1 else " each"
    if panel is None:
        return f"{tables} of {rows} rows{each}"
    units = f"{rows} units (`{panel.unit}`){each}, with their rows"
    if panel.tables is None:
        return f"{tables} of {units}"
    pairs = "2 synthetic tables" if datasets == 1 else f"{datasets} pairs of synthetic tables"
    return f"{pairs}, `{panel.tables[0]}` and `{panel.tables[1]}`, of {units}"


_UNIFORM = """Numeric features are drawn uniformly
inside public bins, so nothing finer than a bin is information."""

_MEASURED = """Numeric features that `privacy.json`
names under the purpose "edges" were measured with noise: values inside their bins have the
measured shape. Other numeric features are drawn uniformly inside public bins."""


def _dependent(choice: Choice, *, released: bool, panel: Panel | None) -> str:
    if not released:
        return ""
    if choice.rule == "own-noise":
        return _OWN_NOISE
    order = _RANDOM_ROWS if panel is None else _RANDOM_UNITS
    return f"{_DEPENDENT}\n{order}"


def _blanked(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"""## Blank values

{", ".join(names)} are blank in rows whose combination was rare among the synthetic rows. This is
policy (see `PRIVACY.md`). Blank values are not missing at random: rare combinations are
underrepresented, and no rule corrects that."""


def _limits(choice: Choice, *, released: bool) -> str:
    if choice.rule in REPLICATED:
        return _LIMITS_OF_REPLICATES
    return _LIMITS_OF_NOISE if released else _LIMITS


def _combining(
    choice: Choice, *, rows: int, datasets: int, weights: int | None, versions: int, counted: str
) -> str:
    if weights is not None:
        return _weights(weights)
    if datasets == 1:
        return _one_table()
    if versions:
        return combining_completed(
            choice, rows=rows, datasets=datasets, versions=versions, counted=counted
        )
    return _rule(choice, rows=rows, datasets=datasets, counted=counted)


def _weights(count: int) -> str:
    return f"""## Use the weights

Every row has a `weight`, and {count} replicate weights `weight_1` to `weight_{count}`. Weighted
estimates with `weight` are estimates for the original table; all weights add up to about the
number of its rows that were counted. Do the analysis once more with each of the replicates. Let q
be the estimate with `weight` and q_k those with the replicates:

- estimate: q
- variance: T = mean of (q_k - q)^2, with {count} degrees of freedom

The noise that protects people is in the replicates, so it is in the interval. `pegsynth.replicated`
does this, and in R the package survey. Code for both is below, and is run by the tests of pegsynth.
In Stata: `svyset [pw=weight], sdrweight(weight_*) vce(sdr) mse`, whose standard errors are twice as
large as they should be. In SAS: `VARMETHOD=JACKKNIFE` and
`REPWEIGHTS weight_1-weight_{count} / JKCOEFS={1 / count:g}`. These two were never run."""


def _one_table() -> str:
    return """## One table has no standard errors

Analyse the table as if it were the original: estimates are what they seem. Standard errors
are not. They cannot be estimated from one synthetic table, which does not tell how much
synthesis itself varies; those that your software prints are too small. Ask the publisher for
a release of several tables (`--datasets`) if you need them."""


_ESTIMATES_ONLY = """## These tables have no intervals

Analyse each table as if it were the original, and take the mean of the estimates. Do not
print an interval or a standard error with it, and do not test hypotheses with these tables.

Virtual rows that protect people pull all tables towards a prior distribution in the same
direction. The tables agree with each other, and not with the original. How far they are off
depends on how many rows stand behind every figure, which is confidential, so no combining
rule can know it. Measured on 20,000 rows at an epsilon of 1, 10 and 100, intervals of 95 %
held the truth in 0 to 93 of 100 cases for shares, in 0 to 61 for cells of two-way tables, and
in at most 1 for coefficients of linear regressions. `pegsynth.combine` refuses such intervals
when it is given `privacy.json`. A release by `pegs-once` with `--replicates` has intervals
that hold."""


def _rule(choice: Choice, *, rows: int, datasets: int, counted: str) -> str:
    return f"""## Combine the tables

Analyse each table as if it were the original, then combine the {datasets} results. Let q be the
mean of the estimates, b their variance between tables (divisor K - 1) and v the mean of
their variances; K = {datasets} and n = {rows} {counted}. The rule that fits this release is
**{choice.rule}**, because {choice.reason}:

- estimate: q
- variance: {_FORMULAS[choice.rule]}

`pegsynth.combine` does this and adds degrees of freedom and intervals. For estimates in a
file with the columns term, estimate, and variance or std_error, so does
`pegs combine FILE --ledger privacy.json --rows {rows}`."""


def _original_rows(rows_in: int | None, counted: str) -> str:
    if rows_in is not None:
        return f"N, the number of original {counted}, was stated by the publisher to be {rows_in}."
    return f"""N, the number of original {counted}, is not part of this release. Standard errors
need it, exact or rounded: if the publisher has made it known, write it after `rows_in =` below (and
after `--rows-in`). Until then the code prints estimates only."""


_OWN_NOISE = """## Every table has noise of its own

Noisy counts of the original were published once. Each table was drawn from a copy of them with
fresh sampling and fresh noise of the same size. So the tables differ as estimates from the
original would, and their spread tells how precise they are. One of them alone is noisier than a
table that is drawn from the published counts themselves: use all of them together."""


_DEPENDENT = """## Rows are not independent draws

Noisy counts of the original were published once, and rows were drawn from them so that the
counts in a table come out nearly as in the model, up to a few rows and not up to sampling
error. So rows depend on each other:

- Estimates from a table are what they seem. Tests and standard errors that treat its rows as
  a sample do not know this; a test of fit finds the table too good.
- Tables of one release differ less than independent samples would. Their variance b is about
  drawing alone, and understates the error of the estimates: a small b is no sign that they
  are precise. Never use the rule `fully` here, which takes v off b."""

_RANDOM_ROWS = """- Rows come in random order. A part of a table is a random part of it, with
  sampling error."""

_RANDOM_UNITS = """- Units come in random order, each with all its rows. A part of the units is a
  random part of them, with sampling error."""


_LIMITS_OF_NOISE = """## What no rule covers

The noise that protects people was drawn once and is the same in all tables. It moves all
estimates together, the more the smaller epsilon and the smaller the group, and nothing in the
tables tells how far. `privacy.json` says how large it is on every count, and of which features
each noisy table is. Relations between features that no published table holds are filled in as
if they were not there. No combining rule covers either: the intervals are about sampling and
synthesis only."""


_LIMITS_OF_REPLICATES = """## What no rule covers

Sampling error and the noise that protects people are in the intervals. Relations between
features that no published table holds are not: they are filled in as if they were not there, in
every replicate alike. An interval for such a relation is **not supported**, however it was
made. `privacy.json` says of which features each noisy table is: state the analysis, as
`pegsynth.replicated(.., ledger=ledger, analysis="y ~ x")` or `pegs combine --analysis "y ~ x"`,
and a note says whether published tables hold it. `pegs inspect MODEL --analysis` says the same
of a model."""


_LIMITS = """## What no rule covers

Virtual rows that protect people pull every table towards a prior distribution, more so at a
small epsilon. No combining rule corrects that bias, nor noise that all tables share. The
intervals are about sampling and synthesis only."""
