"""HOW-TO-ANALYSE.md: what the tables are, the rule that fits them, code that runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pegsynth.codec.column_decoding import How
from pegsynth.inference.choice import (
    Choice,
    design_of,
    from_released_blocks,
    rows_in_of,
    rule_for,
    without_intervals,
)
from pegsynth.inference.combining_rules import REPLICATED
from pegsynth.options.weight_names import ROW
from pegsynth.publishing.completed_texts import (
    LIMITS_OF_IMPUTING,
    combining_completed,
    completed_tables,
    nested_in_r,
)
from pegsynth.publishing.deed_texts import deeds_section, names_in
from pegsynth.publishing.examples import analysis_code
from pegsynth.publishing.facts import Facts, blanks
from pegsynth.publishing.other_programs import other_programs
from pegsynth.publishing.policy import Policy
from pegsynth.publishing.wanted_texts import analyses_section, wanted_section
from pegsynth.schema import Schema

_FORMULAS = {
    "plug-in": "T = (n/N) v + b/K",
    "shared-urn": "T = 2 (n/N) v + b/K",
    "partial": "T = v + b/K",
    "own-noise": "T = (1 + 1/K) b, with K - 1 degrees of freedom",
}


def how_to_analyse(facts: Facts) -> str:
    """Return HOW-TO-ANALYSE.md: what the tables are, the rule that fits (R16), code that runs."""
    schema, ledger = facts.schema, facts.ledger
    datasets, versions, table_format = facts.datasets, facts.versions, facts.table_format
    choice = rule_for(ledger, datasets)
    if versions and choice.rule == "plug-in":
        choice = Choice("nested", f"{choice.reason}, and missing values were imputed in each")
    estimates_only = datasets > 1 and without_intervals(ledger)
    needs_rows_in = choice.rule not in ("partial", *REPLICATED) and not estimates_only
    # Without N the rule gives no variance, and the code prints none.
    can_combine = not needs_rows_in or rows_in_of(ledger) is not None
    decode: How = "labels" if facts.decode == "labels" else "values"
    code = _code(
        schema,
        datasets=datasets,
        table_format=table_format,
        decode=decode,
        rows_in=rows_in_of(ledger),
        needs_rows_in=needs_rows_in,
        design=design_of(ledger),
        beside=facts.weight_file,
        versions=versions,
        estimates_only=estimates_only,
    )
    counted = "rows" if schema.panel is None else "units"
    sections = [
        _opening(facts),
        _weights(facts),
        completed_tables(datasets, versions, table_format) if versions else "",
        _panel(facts, choice),
        deeds_section(facts),
        _dependent(facts, choice),
        _blanked(facts.policy),
        blanks(schema),
        _ESTIMATES_ONLY
        if estimates_only
        else _combining(facts, choice, counted, can_combine=can_combine),
        _original_rows(rows_in_of(ledger), counted) if datasets > 1 and needs_rows_in else "",
        _before_code(code),
        *code,
        ""
        if versions
        else other_programs(
            schema,
            datasets=datasets,
            table_format=table_format,
            design=design_of(ledger),
            beside=facts.weight_file,
            labels=decode == "labels",
        ),
        nested_in_r(datasets, versions, table_format)
        if choice.rule == "nested" and datasets > 1 and not estimates_only
        else "",
        analyses_section(facts),
        wanted_section(schema),
        _limits(facts, choice, can_combine=can_combine),
        LIMITS_OF_IMPUTING if versions else "",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _before_code(code: Sequence[str]) -> str:
    ours = any("import pegsynth" in block for block in code)
    return "## Code\n\nRun it in this folder" + (", with `pegsynth` installed." if ours else ".")


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


def _panel(facts: Facts, choice: Choice) -> str:
    """Say that rows of a unit depend on each other (R24)."""
    panel = facts.schema.panel
    if panel is None:
        return ""
    unit = panel.unit
    more = ""
    if facts.weight_columns:
        more = """Replicate weights are those of whole units, so intervals from them hold that, and
nothing is to be clustered."""
    elif choice.rule == "own-noise":
        more = """Every table has units of its own, so the spread between tables holds that; the
rule below needs no more."""
    elif facts.datasets > 1:
        more = f"""Cluster standard errors by `{unit}`, or analyse one row for each unit. With
statsmodels: `model.fit(cov_type="cluster", cov_kwds={{"groups": table["{unit}"]}})`; in R, with the
package sandwich: `vcovCL(model, cluster = ~{unit})`. Where tables are combined, the variance of
every estimate is the clustered one, and n and N count units. The code below takes rows for
independent; its intervals are too short for questions about rows."""
    pooled = (
        f"""

How one row leads to the next was measured for all positions together. Given the row before, what is
fixed, the number of rows and how many are left, earlier rows of a `{unit}` tell nothing more:
analyses that look further back than one row find no relation that was measured."""
        * panel.pooled
    )
    return f"""## Rows of one unit belong together

`{unit}` names the unit of a row; the numbers are new and mean nothing else. Rows of a unit are
in the order of `{panel.time}`, at most {panel.most} of them, and depend on each other.
{more}{pooled}""".rstrip()


def _opening(facts: Facts) -> str:
    said = [
        f"The folder holds {_held(facts)}.",
        _made(facts),
        f"{names_in(facts.given)} has the value that was requested in every row: estimates are "
        "about such rows alone."
        if facts.given
        else "",
        "`schema.toml` lists every feature with its categories or bins.",
        *_numbers(facts),
    ]
    title = f"# How to analyse {'this table' if facts.datasets == 1 else 'these tables'}"
    return f"{title}\n\n" + " ".join(sentence for sentence in said if sentence)


def _held(facts: Facts) -> str:
    """Say how many tables there are, and of how many rows or units."""
    rows, panel, kind = facts.rows, facts.schema.panel, facts.kind_of_data
    tables = f"1 {kind} table" if facts.datasets == 1 else f"{facts.datasets} {kind} tables"
    each = "" if facts.datasets == 1 else " each"
    if panel is None:
        return f"{tables} of {rows} rows{each}"
    units = f"{rows} units (`{panel.unit}`){each}, with their rows"
    if panel.tables is None:
        return f"{tables} of {units}"
    pairs = (
        f"2 {kind} tables" if facts.datasets == 1 else f"{facts.datasets} pairs of {kind} tables"
    )
    return f"{pairs}, `{panel.tables[0]}` and `{panel.tables[1]}`, of {units}"


def _made(facts: Facts) -> str:
    if facts.kept:
        kept, drawn = names_in(facts.kept), names_in(facts.replaced)
        return f"Columns with original values: {kept}. Drawn from a model: {drawn}."
    if facts.lacks_result("kept-columns"):
        return (
            "Some columns hold original values, which `privacy.json` names; the others were drawn "
            "from a model."
        )
    if facts.resampled:
        return "Every row has the categories of an original row, drawn with replacement."
    return "Every row was drawn from what the method keeps of the original table."


def _numbers(facts: Facts) -> Iterator[str]:
    """Say how numbers and dates were drawn inside bins, and of which features."""
    binned = [f for f in facts.schema.features if f.binned and f.name not in facts.kept]
    if facts.lacks_result("kept-columns") and not facts.kept:
        return
    if facts.decode == "labels":
        if binned:
            yield f"{names_in([f.name for f in binned])}: the bin is written, and no value in it."
        return
    edges, shaped = facts.edges_measured, facts.measured
    groups = (
        (
            [f.name for f in binned if f.name in shaped and f.inside != "uniform"],
            "values inside bins have a shape that was measured with noise (purpose `edges` in "
            "`privacy.json`).",
        ),
        (
            [f.name for f in binned if f.name in edges and f.inside == "uniform"],
            "values are drawn uniformly inside bins that were measured with noise, so nothing "
            "finer than a bin is information.",
        ),
        (
            [f.name for f in binned if f.name not in shaped and f.name not in facts.summed],
            "values are drawn uniformly inside stated bins, so nothing finer than a bin is "
            "information.",
        ),
        (
            [f.name for f in binned if f.name not in shaped and f.name in facts.summed],
            "values are drawn inside stated bins so that they agree with the sums of declared "
            "analyses; nothing else that is finer than a bin is information.",
        ),
    )
    for names, words in groups:
        if names:
            yield f"{names_in(names)}: {words}"


def _dependent(facts: Facts, choice: Choice) -> str:
    if not from_released_blocks(facts.ledger):
        return ""
    if choice.rule == "own-noise":
        return _OWN_NOISE
    order = (
        "Rows come in random order: a part of a table is a random part of it, with sampling error."
        if facts.schema.panel is None
        else "Units come in random order: some of them, with all their rows, are a random part, "
        "with sampling error."
    )
    if choice.rule == "replicate-weights":
        return f"{_WEIGHTED_ROWS} {order}"
    several = _SEVERAL if facts.datasets > 1 else ""
    return f"{_DEPENDENT}{several}\n- {order}"


def _blanked(policy: Policy) -> str:
    if policy.k is None:
        return ""
    return f"""## Blank values

{", ".join(policy.k_features)} are blank in rows whose combination was rare among the synthetic
rows. This is policy (see `PRIVACY.md`). Blank values are not missing at random: rare combinations
are underrepresented, and no rule corrects that."""


def _limits(facts: Facts, choice: Choice, *, can_combine: bool) -> str:
    """Say what no interval covers; where there are none, another section has said it."""
    if choice.rule in REPLICATED:
        state = (
            'pegsynth.replicated(.., ledger=ledger, analysis="y ~ x")'
            if choice.rule == "replicate-weights"
            else 'pegsynth.combine(.., ledger=ledger, analysis="y ~ x")'
        )
        return _LIMITS_OF_REPLICATES.format(state=state)
    if from_released_blocks(facts.ledger) and facts.datasets == 1:
        return f"## What the table does not tell\n\n{_LIMITS_OF_NOISE}"
    if from_released_blocks(facts.ledger):
        limits = f"{_LIMITS_OF_NOISE} No combining rule covers either."
    elif facts.datasets == 1 or without_intervals(facts.ledger):
        return ""
    else:
        limits = _LIMITS_OF_VIRTUAL_ROWS if facts.virtual_rows else _LIMITS_OF_MODELS
    about = _ABOUT_INTERVALS if can_combine else _ABOUT_INTERVALS_TO_COME
    return f"## What no rule covers\n\n{limits}\n{about}"


def _combining(facts: Facts, choice: Choice, counted: str, *, can_combine: bool) -> str:
    if facts.weight_columns:
        return ""
    if facts.datasets == 1:
        return _one_table(facts)
    told: dict[str, Any] = {"rows": facts.rows, "datasets": facts.datasets, "counted": counted}
    if facts.versions:
        return combining_completed(choice, versions=facts.versions, **told)
    return _rule(choice, can_combine=can_combine, **told)


def _weights(facts: Facts) -> str:
    design = design_of(facts.ledger)
    if design is None:
        return ""
    main, *replicates = design.names
    first, last, count, imported = replicates[0], replicates[-1], design.count, main.lower()
    counted = "have the requested values" if facts.given else "were counted"
    table, beside = f"synthetic-1.{facts.table_format}", facts.weight_file
    where = "The table has them as its last columns."
    if beside:
        where = f"""They are in `{beside}`, whose lines are those of `{table}` in the same
order: its column `{ROW}` numbers them from 1 on."""
    return f"""## Intervals: use the replicate weights

Rows count alike, so **estimates need no weight**. For intervals every row has {count} replicate
weights, `{first}` to `{last}`, which lie around the weight `{main}` that all rows share. {where}
Each column of weights adds up to about the number of original rows that {counted}.
Do the analysis once more with each of the replicates. Let q be the estimate and q_k those with the
replicates:

- estimate: q
- variance: T = {design.scale:g} x sum of (q_k - q)^2, with {count} degrees of freedom

Replicates have a part f = {design.part:g} of the sampling error and of the noise that protects
people, so that weights stay near each other; {design.scale:g} is 1/({count} f^2), which makes up
for that. `pegsynth.replicated` does this, and in R the package survey. Code for both is below, and
is run by the tests of pegsynth. In Stata: `svyset [pw={imported}], brrweight({imported}_*)
fay({1 - design.part:g}) vce(brr) mse`. In SAS: `VARMETHOD=BRR(FAY={1 - design.part:g})` and
`REPWEIGHTS {first}-{last}`. These two were never run."""


def _one_table(facts: Facts) -> str:
    if facts.virtual_rows:
        return _PULLED_TABLE
    panel = facts.schema.panel
    weighted = from_released_blocks(facts.ledger) and not (panel and (panel.pooled or panel.tables))
    way = "`--replicates`" if weighted else "`--datasets`"
    return f"""## One table has no standard errors

Analyse the table as if it were the original: estimates are what they seem. Standard errors
are not. They cannot be estimated from one {facts.kind_of_data} table, which does not tell how much
drawing it again would change them; those that your software prints are too small. Ask the
publisher for a release with {way} if you need them."""


_PULLED_TABLE = """## One table has no standard errors

Virtual rows that protect people pull this table towards a prior distribution, and estimates from
it with them: the more, the fewer rows stand behind a figure, which is confidential. So no standard
error or interval can be given, and more tables would be pulled alike. Do not test hypotheses with
this table. A release by `pegs-once` with `--replicates` has intervals that hold."""


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


def _rule(choice: Choice, *, rows: int, datasets: int, counted: str, can_combine: bool) -> str:
    figures = (
        f"mean of the estimates and b their variance between tables (divisor K - 1); K = {datasets}"
        if choice.rule == "own-noise"
        else "mean of the estimates, b their variance between tables (divisor K - 1) and v the "
        f"mean of\ntheir variances; K = {datasets} and n = {rows} {counted}"
    )
    needed, option = ("", "") if can_combine else (", once N is known", " --rows-in N")
    return f"""## Combine the tables

Analyse each table as if it were the original, then combine the {datasets} results. Let q be the
{figures}. The rule that fits this release is
**{choice.rule}**, because {choice.reason}:

- estimate: q
- variance: {_FORMULAS[choice.rule]}

`pegsynth.combine` does this and adds degrees of freedom and intervals{needed}. For
estimates in a file with the columns term, estimate, and variance or std_error, so does
`pegs combine FILE --ledger privacy.json --rows {rows}{option}`."""


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
  a sample do not know this; a test of fit finds the table too good."""

_SEVERAL = """
- Tables of one release differ less than independent samples would. Their variance b is about
  drawing alone, and understates the error of the estimates: a small b is no sign that they
  are precise. Never use the rule `fully` here, which takes v off b."""


_WEIGHTED_ROWS = """## Rows are not independent draws

Noisy counts of the original were published once, and rows were drawn from them. Tests and standard
errors that treat rows as a sample do not know this: use the replicate weights."""


_LIMITS_OF_NOISE = """The noise that protects people was drawn once. It moves all estimates, the
more the smaller epsilon and the smaller the group, and nothing in the rows tells how far.
`privacy.json` says how large it is on every count, and of which features each noisy table is.
Relations between features that no published table supports are filled in as if they were not
there."""


_LIMITS_OF_REPLICATES = """## What no rule covers

Sampling error and the noise that protects people are in the intervals. Relations between
features that no published table supports are not: they are filled in as if they were not there,
everywhere alike. An interval for such a relation is **not supported**, however it was
made. `privacy.json` says of which features each noisy table is: state the analysis, as
`{state}` or `pegs combine --analysis "y ~ x"`,
and a note says whether published tables support it."""


_LIMITS_OF_VIRTUAL_ROWS = """Virtual rows that protect people pull every table towards a prior
distribution. No combining rule corrects that bias."""


_LIMITS_OF_MODELS = """Whatever the method gets wrong about the original, it gets wrong in every
table alike."""


_ABOUT_INTERVALS = "The intervals are about sampling and synthesis only."

_ABOUT_INTERVALS_TO_COME = """Intervals that the rule gives once N is known are about sampling and
synthesis only."""
