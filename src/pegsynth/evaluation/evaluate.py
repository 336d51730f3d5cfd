"""`pegsynth.evaluate`: two tables and a schema in, every measure of utility and risk out.

Who made the synthetic tables does not matter. Everything here is computed from the real
table and is confidential.

Where a release was to measure edges or find categories, the codebook to judge by is read off the
original: bins that hold about the same number of rows, and the most frequent values. That says
nothing of the edges and categories that a release has paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pegsynth.codec.column_encoders import moments_of
from pegsynth.codec.encoding import special_number
from pegsynth.codec.folded_reader import as_one, pair_or_several
from pegsynth.errors import ParameterError
from pegsynth.evaluation.evaluated_tables import read_tables
from pegsynth.evaluation.measuring import Evaluation, evaluate_tables
from pegsynth.evaluation.risk.intruder import attacks_of
from pegsynth.inference.choice import rule_for
from pegsynth.inference.combining_rules import Rule
from pegsynth.inference.formula import Formula, read_formula, read_response
from pegsynth.inference.ledger_support import published_noise
from pegsynth.inference.release_views import ReleaseViews, tables_of
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, quiet, shown
from pegsynth.runtime import check_threads, usable_processors
from pegsynth.schema import Feature, Schema
from pegsynth.schema.binning import quantile_edges, within_type
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.number_text import NumberText, candidates, with_categories
from pegsynth.schema.tally import QuantileSketch
from pegsynth.tables.table_input import open_table

PAPER_FORMULAS = (
    "I(charge > 25000) ~ age.yrs + sev + cat + los",
    "charge ~ age.yrs + sev + cat + los",
)
AttackNames = tuple[tuple[str, ...] | None, tuple[str, ...] | None]
BINS = 12
MOST_CATEGORIES = 100
_SKETCH = 100_000


@dataclass(frozen=True)
class EvaluateOptions:
    """What to measure beside the tables.

    Parameters
    ----------
    formulas
        Regressions to compare.
    attacks
        What the intruder knows and infers, names of features; None: by the roles of the schema.
    target
        What a model trained on synthetic rows predicts; None: no such model.
    per_record
        Whether figures for every row of the original are wanted.
    threads
        Parts of the work done at a time.
    rule
        How several synthetic tables were made, which decides their intervals; None: not known.
    noise
        Features to the standard deviation of the best count published of them, as
        `published_noise` reads it off a ledger; empty: not known.
    ledger
        That of the release, which tells what published tables hold; None: not known.
    """

    formulas: tuple[Formula, ...] = ()
    attacks: tuple[AttackNames, ...] = ((None, None),)
    target: str | None = None
    per_record: bool = False
    threads: int = 1
    rule: Rule | None = None
    noise: Mapping[frozenset[str], float] = field(default_factory=dict)
    ledger: Ledger | None = None


def evaluate(
    original: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    holdout: Any = None,
    target: str | None = None,
    known: Any = None,
    infer: Any = None,
    formulas: Any = None,
    per_record: bool = False,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> Evaluation:
    """Compare one or more synthetic tables with their original.

    Parameters
    ----------
    original
        The confidential table: a file, a glob of files or a dataframe.
    synthetic
        The synthetic table, a list of several that were made alike, or a `Release`.
    schema
        The codebook, or its file; it need not be reviewed. Edges and categories that it leaves
        to a release are read off the original.
    holdout
        Real rows of the same population that the synthesizer never saw.
    target
        Feature, or comparison such as ``I(charge > 25000)``, that a model trained on
        synthetic rows is to predict in real ones.
    known, infer
        What an intruder knows and infers; by default the quasi-identifiers and each
        sensitive feature, on the built-in discharge data the paper's two attacks. For
        several attacks a list of lists of names, and as many names.
    formulas
        Regressions such as ``charge ~ age + C(sev) + I(los > 7)``; by default none, on the
        built-in discharge data the paper's two.
    per_record
        Whether to keep figures for every row of the original.
    threads
        Parts of the work done at a time; all processors by default.
    progress
        By default a bar on a terminal and in a notebook; False shows none, and a function is
        called with the stage, what is done of it and the total.

    Returns
    -------
    Evaluation
        `summary`, `records`, `marginals`, `to_json()`; a value of None has its reason in the
        note. All of it is confidential.

    Raises
    ------
    DataError
        A file cannot be read, the original does not fit its schema, or the synthetic tables
        have no column in common with it.
    ParameterError
        A name, formula or attack cannot be read.
    """
    codebook = schema if isinstance(schema, Schema) else Schema.load(schema)
    original = as_one(original, codebook)
    codebook = measured_codebook(original, codebook)
    release = isinstance(synthetic, ReleaseViews)
    options = options_of(
        codebook,
        target=target,
        known=known,
        infer=infer,
        formulas=formulas,
        per_record=per_record,
        threads=threads,
        ledger=synthetic.ledger if release else None,
        datasets=len(synthetic.frames) if release else 1,
    )
    with shown(progress) as told:
        return evaluate_files(
            original,
            [as_one(table, codebook) for table in tables_of(pair_or_several(synthetic, codebook))],
            codebook,
            options,
            holdout=holdout,
            progress=told,
        )


def evaluate_files(
    original: object,
    synthetic: Sequence[object],
    schema: Schema,
    options: EvaluateOptions,
    *,
    holdout: object = None,
    progress: Progress = quiet,
) -> Evaluation:
    """Read tables and evaluate them; see `evaluate`."""
    check_threads()
    if not synthetic:
        raise ParameterError("there is no synthetic table to compare with the original")
    tables = read_tables(original, synthetic, schema, holdout=holdout, threads=options.threads)
    return evaluate_tables(tables, options, progress=progress)


def options_of(
    schema: Schema,
    *,
    target: str | None = None,
    known: Any = None,
    infer: Any = None,
    formulas: Any = None,
    per_record: bool = False,
    threads: int | None = None,
    ledger: Ledger | None = None,
    datasets: int = 1,
) -> EvaluateOptions:
    """Read what the user asked for.

    Parameters
    ----------
    schema
        The codebook that all names refer to.
    target
        A feature, or a comparison such as ``I(charge > 25000)``.
    known
        What an intruder knows: names, or one text of names with commas; or, for several
        attacks, a list of such lists, as many as `infer` has names.
    infer
        The feature or features to be inferred.
    formulas
        One or more regressions; None: the paper's two where the schema has their features,
        else none.
    per_record, threads
        As in `EvaluateOptions`; by default as many threads as there are processors.
    ledger, datasets
        That of the release, and how many synthetic tables it made; None: not known.

    Raises
    ------
    ParameterError
        Something cannot be read, or names a feature that the schema lacks.
    """
    if threads is not None and threads < 1:
        raise ParameterError("threads must be at least 1")
    if target is not None:
        read_response(target, schema)
    attacks = _attacks(known, infer)
    for names in attacks:
        attacks_of(schema, *names)
    return EvaluateOptions(
        _formulas(formulas, schema),
        attacks,
        None if target is None else " ".join(target.split()),
        per_record,
        threads or usable_processors(),
        rule=None if ledger is None else rule_for(ledger, datasets).rule,
        noise={} if ledger is None else published_noise(ledger, schema),
        ledger=ledger,
    )


def _formulas(given: Any, schema: Schema) -> tuple[Formula, ...]:
    if given is not None:
        texts = [given] if isinstance(given, str) else list(given)
        return tuple(dict.fromkeys(read_formula(text, schema) for text in texts))
    try:
        return tuple(read_formula(text, schema) for text in PAPER_FORMULAS)
    except ParameterError:
        return ()


def _attacks(known: Any, infer: Any) -> tuple[AttackNames, ...]:
    sets = _name_sets(known)
    targets = None if infer is None else _names(infer)
    if sets is None or len(sets) == 1:
        return ((None if sets is None else sets[0], targets),)
    if targets is None or len(targets) != len(sets):
        raise ParameterError(
            f"there are {len(sets)} lists of known features and {len(targets or ())} features to "
            "infer; give one list for all (--known F,F), or one before each --infer"
        )
    pairs = zip(sets, targets, strict=True)
    return tuple((features, (target,)) for features, target in pairs)


def _name_sets(known: Any) -> list[tuple[str, ...]] | None:
    """Return the lists of known features; a plain list of names is one list."""
    if known is None:
        return None
    if isinstance(known, str):
        return [_names(known)]
    given = list(known)
    if all(isinstance(each, str) for each in given) and not any("," in each for each in given):
        return [tuple(given)]
    return [_names(each) for each in given]


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names from a text with commas, or from a list of texts."""
    if isinstance(given, str):
        return tuple(filter(None, map(str.strip, given.split(","))))
    return tuple(name for each in given for name in _names(each))


def measured_codebook(original: object, schema: Schema) -> Schema:
    """Return the schema with edges and categories of the original where it has none."""
    if not schema.unsettled:
        return schema
    with open_table(original, dialect=schema.dialect) as reader:
        if reader.once:
            raise ParameterError(
                f"{reader.source}: feature {schema.unsettled[0]!r} has no listed edges or "
                "categories, which takes two passes over the table; give the schema that the "
                "release published, or write the table to a file first"
            )
        looks = {name: _Look(schema, schema[name]) for name in schema.unsettled}
        # A column that is not there is refused with all others when the table is judged.
        seen = [look for look in looks.values() if set(look.columns) <= set(reader.columns)]
        names = tuple(dict.fromkeys(name for look in seen for name in look.columns))
        for batch in reader.batches(names) if names else ():
            for look in seen:
                look.add(batch)
    return schema.with_columns(
        looks[column.name].settled() if column.name in looks else column
        for column in schema.columns
    )


class _Look:
    """What one column of the original holds."""

    def __init__(self, schema: Schema, feature: Feature) -> None:
        self._feature, self._written = feature, NumberText(schema.dialect)
        self._dates = DateText(feature) if feature.kind in TEMPORAL else None
        self._other = None if feature.after is None else DateText(schema[feature.after])
        after = () if feature.after is None else (feature.after,)
        self.columns: tuple[str, ...] = (feature.name, *after)
        texts = (*feature.missing, *feature.not_applicable) if feature.after is None else ()
        found = (special_number(text, self._dates or self._written) for text in texts)
        self._taken = [number for number in found if number is not None]
        self._sketch = QuantileSketch(_SKETCH)
        self._range: tuple[float, float] | None = None
        self._counts = pl.DataFrame(schema={"value": pl.String, "count": pl.UInt32})

    def add(self, batch: pl.DataFrame) -> None:
        """Take in the next batch."""
        values = batch.get_column(self._feature.name)
        if self._feature.private_edges:
            self._add_numbers(self._numbers(values, batch))
        else:
            text = candidates(values, self._feature).rename("value").drop_nulls()
            both = pl.concat([self._counts, text.value_counts(name="count")])
            self._counts = both.group_by("value").agg(pl.col("count").sum())

    def _numbers(self, values: pl.Series, batch: pl.DataFrame) -> pl.Series:
        """Return values as numbers; dates by their resolution, or counted from another date."""
        if self._dates is not None:
            moments = moments_of(self._dates, values)
            if self._other is not None:
                others = moments_of(self._other, batch.get_column(self.columns[1]))
                moments = np.maximum(moments - others, 0.0)
            return pl.Series(moments)
        if values.dtype.is_numeric() or values.dtype == pl.Boolean:
            return values.cast(pl.Float64)
        return self._written.numbers(as_text(values))

    def _add_numbers(self, numbers: pl.Series) -> None:
        numbers = numbers.fill_nan(None).drop_nulls().rename("value")
        numbers = numbers.filter(numbers.is_finite() & ~numbers.is_in(self._taken))
        if numbers.is_empty():
            return
        counted = numbers.value_counts(name="count")
        self._sketch.add(counted["value"], counted["count"])
        low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
        before = self._range or (low, high)
        self._range = min(low, before[0]), max(high, before[1])

    def settled(self) -> Feature:
        """Return the feature with what was seen."""
        feature = self._feature
        if feature.private_categories:
            order = self._counts.sort(["count", "value"], descending=[True, False])
            return with_categories(feature, order.head(MOST_CATEGORIES)["value"])
        low, high = self._range or (0.0, 1.0)
        inner = self._sketch.quantiles(feature.bins or BINS)
        edges = quantile_edges(low, inner, high, whole=feature.integer or feature.kind in TEMPORAL)
        return feature.with_edges(within_type(edges, feature.dtype))
