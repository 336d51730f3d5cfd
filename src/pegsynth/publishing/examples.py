"""Python code for HOW-TO-ANALYSE.md that runs as it stands beside the tables.

The examples are about shares, of a category or of a range of a numeric feature: they
exist for every schema, whatever was drawn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pegsynth.codec.column_decoding import How
from pegsynth.inference.combining_rules import ReplicateDesign
from pegsynth.options.weight_names import ROW
from pegsynth.publishing.completed_texts import completed_name
from pegsynth.publishing.other_programs import weighted_share
from pegsynth.schema import Feature, Schema
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.csv_read import protect

_MOST_INPUTS = 2

_COLUMN = '''
def column(table, question):
    """Answers as 1 and 0; a missing value counts as 0."""
    return table.select(question.fill_null(False).cast(pl.Float64)).to_series().to_numpy()
'''

_FIT = """
try:
    import statsmodels.api as sm
except ImportError:
    sm = None


def fit(table):
    ones = np.ones(len(table))
    design = np.column_stack([ones, *(column(table, question) for question in inputs.values())])
    return sm.OLS(column(table, outcome), design).fit()


names = ["intercept", *inputs]
"""

_SHARE = """
result = pegsynth.combine(shares, variances, rows=len(tables[0]), {options})
low, high = result.interval(0.95)
print(f"share: {{result.estimate:.4f}}, 95 % interval {{low:.4f}} to {{high:.4f}}")
"""

_SHARE_WITHOUT = """
print(f"share: {np.mean(shares):.4f} (standard errors need rows_in)")
"""

_REGRESSION = """
print(pegsynth.pooled(fit, tables, names=names, {options}))
"""

_WEIGHTED_REGRESSION = """
def weighted_fit(table, weights):
    design = np.column_stack(
        [np.ones(len(table)), *(column(table, question) for question in inputs.values())]
    )
    fitted = sm.WLS(column(table, outcome), design, weights=weights).fit()
    return dict(zip(names, fitted.params.tolist()))


print(pegsynth.replicated(weighted_fit, table, ledger=ledger))
"""

_REGRESSION_WITHOUT = """
means = np.mean([fit(table).params for table in tables], axis=0)
print(dict(zip(names, means.tolist())), "(standard errors need rows_in)")
"""


@dataclass(frozen=True)
class _Question:
    """A yes-or-no question about a row, in words and as a Polars expression.

    Parameters
    ----------
    column
        The column that it is about, as the table has it.
    equals, least
        The text that the column is to have, or the number that it is not to be below; without
        both, whether it has any value.
    """

    words: str
    expression: str
    column: str
    equals: str | None = None
    least: float | None = None


def analysis_code(
    schema: Schema,
    *,
    datasets: int,
    table_format: str,
    decode: How,
    rows_in: int | None,
    needs_rows_in: bool,
    design: ReplicateDesign | None = None,
    beside: str = "",
    versions: int = 0,
    estimates_only: bool = False,
) -> list[str]:
    """Return Markdown: reading the tables, a share, and a regression if there are features.

    Parameters
    ----------
    schema, datasets, table_format, decode
        What the tables look like.
    rows_in
        Public number of original rows, if the ledger states it.
    needs_rows_in
        Whether the combining rule needs that number.
    design
        The replicate weights, if there are any.
    beside
        The file that holds them; empty where the table itself does.
    versions
        Completed versions of every table, which are then analysed; 0: none.
    estimates_only
        Whether no rule gives intervals for several tables.
    """
    written = schema.dialect
    first, *others = [
        _question(feature, table_format, decode, written) for feature in _subjects(schema)
    ]
    read = _reading(table_format, written)
    if design is not None:
        table = _weighted_table(read, table_format, written, design.weight, beside)
        pieces = [table, _weighted_share(first)]
        regression = _WEIGHTED_REGRESSION.lstrip()
    elif datasets == 1:
        pieces = [_one_table(read, table_format, versions), _share_alone(first)]
        regression = 'print(dict(zip(names, fit(table).params.tolist())), "(no standard errors)")\n'
    else:
        known = _rows_in_line(rows_in) if needs_rows_in else ""
        files = _completed_files(datasets, versions, table_format) if versions else ""
        share, regression = (
            without.lstrip().replace("need rows_in", "cannot be given")
            if estimates_only
            else _if_known(work, without, needs_rows_in, versions)
            for work, without in ((_SHARE, _SHARE_WITHOUT), (_REGRESSION, _REGRESSION_WITHOUT))
        )
        pieces = [_all_tables(read, table_format, known, files), _share(first, share)]
    if others:
        pieces.append(_regression(others, regression))
    blocks = [f"```python\n{piece.strip()}\n```" for piece in pieces]
    if design is not None:
        in_r = _share_in_r(first, design, beside, table_format, written)
        blocks.append(f"The same share in R:\n\n```r\n{in_r}\n```")
    return blocks


def _share_in_r(
    question: _Question, design: ReplicateDesign, beside: str, table_format: str, written: Dialect
) -> str:
    return weighted_share(
        question.column,
        equals=question.equals,
        least=question.least,
        design=design,
        beside=beside,
        table_format=table_format,
        written=written,
    )


def _subjects(schema: Schema) -> list[Feature]:
    """Return up to three features that vary, those with listed categories first.

    A feature with one category has nothing to explain and explains nothing. Where all are so,
    the first stands for the share alone.
    """
    # Dates come last: what a share or a regression of them is depends on how they are written.
    ordered = sorted(
        schema.features, key=lambda feature: (feature.kind in TEMPORAL, feature.binned)
    )
    plain = [feature for feature in ordered if feature.kind not in TEMPORAL]
    ordered = plain or ordered[:1]
    varied = [
        feature
        for feature in ordered
        if (feature.bin_count if feature.binned else feature.category_count) > 1
    ]
    return varied[: 1 + _MOST_INPUTS] or ordered[:1]


def _question(feature: Feature, table_format: str, decode: How, written_as: Dialect) -> _Question:
    csv = table_format == "csv"
    name = protect(feature.name) if csv else feature.name
    column = f"pl.col({_quoted(name)})"
    if feature.kind in TEMPORAL and decode == "values":
        return _Question(f"{feature.name} is known", f"{column}.is_not_null()", name)
    if feature.binned and decode == "values":
        edge = feature.edges[len(feature.edges) // 2]
        point = _point(written_as) if csv else ""
        number = f"{column}{point}.cast(pl.Float64, strict=False)"
        words = f"{feature.name} >= {edge:g}"
        return _Question(words, f"{number} >= {edge!r}", name, least=float(edge))
    # A feature of special categories only has labels that no cell holds: a share of 0.
    listed = feature.labels[: feature.bin_count] or feature.labels
    label = next((text for text in listed if text.strip()), listed[0])
    text = column if csv else f"{column}.cast(pl.String)"
    if not csv and not feature.dtype.startswith("string") and label.lstrip("-").isdecimal():
        # The column may hold floats, whose text is 1.0 where the category is 1.
        text += '.str.strip_suffix(".0")'
    written = protect(label) if csv else label
    words = f"{feature.name} = {label}"
    return _Question(words, f"{text} == {_quoted(written)}", name, equals=written)


def _reading(table_format: str, written: Dialect) -> str:
    if table_format != "csv":
        return "pl.read_parquet(file)"
    more = f", separator={written.separator!r}" if written.separator else ""
    more += f", encoding={written.codec!r}" if written.encoding not in ("", "utf-8") else ""
    return f"pl.read_csv(file, infer_schema=False{more})"


def _point(written: Dialect) -> str:
    """Return code that gives numbers a decimal point, where they have another mark."""
    return "" if written.decimal in ("", ".") else f'.str.replace("{written.decimal}", ".")'


def _one_table(read: str, table_format: str, versions: int) -> str:
    name = completed_name(1, 1, table_format) if versions else f"synthetic-1.{table_format}"
    return f"""import numpy as np
import polars as pl

file = "{name}"
table = {read}{_text_remark(table_format)}
"""


def _weighted_table(read: str, table_format: str, written: Dialect, name: str, beside: str) -> str:
    point = _point(written) if table_format == "csv" else ""
    joined = ""
    if beside:
        joined = f"""weights = {read.replace("(file", f'("{beside}"')}
table = table.hstack(weights.drop("{ROW}"))
"""
    return f"""from pathlib import Path

import numpy as np
import polars as pl

import pegsynth

file = "synthetic-1.{table_format}"
table = {read}{_text_remark(table_format)}
{joined}table = table.with_columns(pl.col("^{name}(_[0-9]+)?$"){point}.cast(pl.Float64))
ledger = pegsynth.Ledger.from_json(Path("privacy.json").read_text(encoding="utf-8"))
"""


def _weighted_share(question: _Question) -> str:
    return f"""{_outcome(question)}
def share(table, weights):
    return {{"share": np.average(column(table, outcome), weights=weights)}}


print(pegsynth.replicated(share, table, ledger=ledger))
"""


def _completed_files(datasets: int, versions: int, table_format: str) -> str:
    """Return code that lists the completed versions of each table one after the other."""
    return f"""files = [
    Path(f"completed-{{table}}-{{version}}.{table_format}")
    for table in range(1, {datasets + 1})
    for version in range(1, {versions + 1})
]"""


def _all_tables(read: str, table_format: str, known: str, files: str = "") -> str:
    files = files or f'files = sorted(Path().glob("synthetic-*.{table_format}"))'
    return f"""from pathlib import Path

import numpy as np
import polars as pl

import pegsynth

{files}
tables = [{read} for file in files]{_text_remark(table_format)}
ledger = pegsynth.Ledger.from_json(Path("privacy.json").read_text(encoding="utf-8"))
{known}"""


def _text_remark(table_format: str) -> str:
    return "  # as text: 007 is not 7" if table_format == "csv" else ""


def _rows_in_line(rows_in: int | None) -> str:
    hint = "" if rows_in is not None else "  # write the number of original rows here"
    return f"rows_in = {rows_in}{hint}\n"


def _share_alone(question: _Question) -> str:
    return f"""{_outcome(question)}
share = column(table, outcome).mean()
print(f"share: {{share:.4f}} (standard errors cannot be estimated from one table)")
"""


def _share(question: _Question, work: str) -> str:
    return f"""{_outcome(question)}
shares = [column(table, outcome).mean() for table in tables]
variances = [share * (1 - share) / len(tables[0]) for share in shares]
{work}"""


def _outcome(question: _Question) -> str:
    words = " ".join(question.words.split())
    return f"# The share of rows with {words}.\noutcome = {question.expression}\n\n{_COLUMN}\n"


def _regression(inputs: list[_Question], work: str) -> str:
    lines = "".join(f"    {_quoted(q.words)}: {q.expression},\n" for q in inputs)
    return f"""# A regression of the same outcome; other models go the same way.
inputs = {{
{lines}}}
{_FIT}
if sm is not None:
{_indented(work)}"""


def _if_known(work: str, otherwise: str, needs_rows_in: bool, versions: int) -> str:
    """Return code that combines, and where it needs `rows_in`, only once that is known."""
    options = "ledger=ledger" + (f", imputations={versions}" if versions else "")
    if not needs_rows_in:
        return work.format(options=options).lstrip()
    full = work.format(options=f"rows_in=rows_in, {options}").lstrip()
    return f"if rows_in is not None:\n{_indented(full)}else:\n{_indented(otherwise.lstrip())}"


def _indented(code: str) -> str:
    return "".join(f"    {line}" for line in code.splitlines(keepends=True))


def _quoted(text: str) -> str:
    """Return a text as a Python literal on one line."""
    return json.dumps(text, ensure_ascii=False)
