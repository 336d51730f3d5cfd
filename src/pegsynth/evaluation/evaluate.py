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

from pegsynth.codec.encoding import moments_of, special_number
from pegsynth.codec.folding import as_one, pair_or_several
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
from pegsynth.runtime import check_threads, check_trees, usable_processors
from pegsynth.schema import Feature, Schema
from pegsynth.schema.binning import quantile_edges, within_type
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.number_text import NumberText, candidates, with_categories
from pegsynth.schema.tally import QuantileSketch
from pegsynth.tables.table_input import open_table

_FITTED = ("gaussian", "binomial")
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
    known: object = None,
    infer: object = None,
    formulas: object = None,
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
        check_trees("--target")
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
    """Read the formulas that were given; else those of declared analyses, else the paper's."""
    if given is not None:
        texts = [given] if isinstance(given, str) else list(given)
        return tuple(dict.fromkeys(read_formula(text, schema) for text in texts))
    declared = [each.formula for each in schema.analyses if each.family in _FITTED]
    try:
        return tuple(read_formula(text, schema) for text in declared or PAPER_FORMULAS)
    except ParameterError:
        return ()


def _attacks(known: Any, infer: Any) -> tuple[AttackNames, ...]:
    sets: list[tuple[str, ...]] | None = None
    if known is not None:
        # A plain list of names is one list.
        given = [known] if isinstance(known, str) else list(known)
        plain = all(isinstance(each, str) and "," not in each for each in given)
        sets = [tuple(given)] if plain and not isinstance(known, str) else list(map(_names, given))
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
        features = [schema[name] for name in schema.unsettled]
        # A column that is not there is refused with all others when the table is read.
        needed = {each: (each.name, *filter(None, [each.after])) for each in features}
        seen = [each for each, names in needed.items() if set(names) <= set(reader.columns)]
        names = tuple(dict.fromkeys(name for each in seen for name in needed[each]))
        parts: dict[str, list[pl.DataFrame]] = {each.name: [] for each in seen}
        for batch in reader.batches(names) if names else ():
            for each in seen:
                values = _values(each, batch, schema).rename("value").drop_nulls()
                parts[each.name].append(values.value_counts(name="count"))
    settled = {
        each.name: _settled(each, pl.concat(parts[each.name]) if parts.get(each.name) else None)
        for each in features
    }
    return schema.with_columns(settled.get(column.name, column) for column in schema.columns)


def _values(feature: Feature, batch: pl.DataFrame, schema: Schema) -> pl.Series:
    """Return the values of a batch as texts, or as numbers where edges are to be found.

    Dates are counted in their resolution, or from another date.
    """
    values = batch.get_column(feature.name)
    if not feature.private_edges:
        return candidates(values, feature)
    written = NumberText(schema.dialect)
    dates = DateText(feature) if feature.kind in TEMPORAL else None
    texts = (*feature.missing, *feature.not_applicable) if feature.after is None else ()
    special = [special_number(text, dates or written) for text in texts]
    if dates is not None:
        moments = moments_of(dates, values)
        if feature.after is not None:
            others = moments_of(DateText(schema[feature.after]), batch.get_column(feature.after))
            moments = np.maximum(moments - others, 0.0)
        numbers = pl.Series(moments)
    elif values.dtype.is_numeric() or values.dtype == pl.Boolean:
        numbers = values.cast(pl.Float64)
    else:
        numbers = written.numbers(as_text(values))
    numbers = numbers.fill_nan(None).drop_nulls()
    return numbers.filter(
        numbers.is_finite() & ~numbers.is_in([s for s in special if s is not None])
    )


def _settled(feature: Feature, counts: pl.DataFrame | None) -> Feature:
    """Return a feature with edges or categories of the values that were counted."""
    if counts is None:
        counts = pl.DataFrame(schema={"value": pl.Float64, "count": pl.UInt32})
    counts = counts.group_by("value").agg(pl.col("count").sum())
    if feature.private_categories:
        order = counts.sort(["count", "value"], descending=[True, False])
        return with_categories(feature, order.head(MOST_CATEGORIES)["value"])
    values, sketch = counts["value"], QuantileSketch(_SKETCH)
    low, high = 0.0, 1.0
    if not values.is_empty():
        sketch.add(values, counts["count"])
        low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    inner = sketch.quantiles(feature.bins or BINS)
    whole = feature.integer or feature.kind in TEMPORAL
    edges = quantile_edges(low, inner, high, whole=whole)
    return feature.with_edges(within_type(edges, feature.dtype))
