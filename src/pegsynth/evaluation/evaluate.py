"""`pegsynth.evaluate`: two tables and a schema in, every measure of utility and risk out.

Who made the synthetic tables does not matter. Everything here is computed from the real
table and is confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pegsynth.codec.folded_reader import as_one, pair_or_several
from pegsynth.errors import ParameterError
from pegsynth.evaluation.evaluate_options import EvaluateOptions, options_of
from pegsynth.evaluation.judged_tables import read_tables
from pegsynth.evaluation.measured_codebook import measured_codebook
from pegsynth.evaluation.measuring import Evaluation, evaluate_tables
from pegsynth.evaluation.utility.pooling import published_noise
from pegsynth.inference.choice import rule_for
from pegsynth.inference.combining_rules import Rule
from pegsynth.inference.release_views import ReleaseViews, tables_of
from pegsynth.progress import Progress, quiet, shown
from pegsynth.runtime import check_threads
from pegsynth.schema import Schema


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
    options = options_of(
        codebook,
        target=target,
        known=known,
        infer=infer,
        formulas=formulas,
        per_record=per_record,
        threads=threads,
        rule=_rule(synthetic),
        noise=published_noise(synthetic.ledger, codebook)
        if isinstance(synthetic, ReleaseViews)
        else None,
        ledger=synthetic.ledger if isinstance(synthetic, ReleaseViews) else None,
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


def _rule(synthetic: Any) -> Rule | None:
    """Return the rule of a release, whose ledger tells how its tables were made."""
    if not isinstance(synthetic, ReleaseViews):
        return None
    return rule_for(synthetic.ledger, len(synthetic.frames)).rule


def evaluate_files(
    original: Any,
    synthetic: Sequence[Any],
    schema: Schema,
    options: EvaluateOptions,
    *,
    holdout: Any = None,
    progress: Progress = quiet,
) -> Evaluation:
    """Read tables and evaluate them; see `evaluate`."""
    check_threads()
    if not synthetic:
        raise ParameterError("there is no synthetic table to compare with the original")
    tables = read_tables(original, synthetic, schema, holdout=holdout, threads=options.threads)
    return evaluate_tables(tables, options, progress=progress)
