"""pegsynth: synthetic categorical microdata with a disclosure risk that is quantified and true.

Describe the table
    `Schema`, `Feature`, `Rule`: the public codebook; `Schema.load`, `Schema.draft`.
Synthesize
    `synthesize`: a table in, synthetic tables and a ledger out.
    `fit`, `load`: a model to sample from as long as its budget lasts.
    `PeGS`: the same as an estimator.
    `plan`: what every method could do with a budget, no data read.
    `release`: a folder that may be published.
    `spark.fit`, `spark.sample`: the same on a Spark cluster.
Judge what came out, whoever made it
    `evaluate`, `report`: utility and disclosure risk against the original; a page of it.
Analyse the synthetic tables
    `combine`, `pooled`: one estimate and a valid interval from several tables.
    `replicated`: a formula, statistic or function on one table with replicate weights.
    `procedures`: quantiles, survival, rates, tests of such a table.
    `impute`: missing values of synthetic tables, imputed from synthetic rows.
    `supported`: whether a published model can answer an analysis.
    `published_counts`: counts that a published model holds, with intervals.
Say what it costs
    `Budget`, `Ledger`: what may be spent, and what was.
    `audit`: the claimed guarantee against what the shipped code does.
    `verify`: a paid answer whether an analysis of the original agrees with a release.
Try it
    `datasets.discharge`: built-in, invented hospital discharges.
When something is wrong
    `PegsynthError` and its kinds: one message that names the thing and the remedy.

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegsynth import runtime as _forks  # noqa: F401 (it must hear of every fork from now on)
from pegsynth.runtime import __version__ as __version__

if TYPE_CHECKING:
    from pegsynth import datasets, spark
    from pegsynth.api.fitted import PeGS, published_counts, supported
    from pegsynth.api.functions import audit, fit, impute, load, plan, release, report, synthesize
    from pegsynth.errors import (
        BudgetError,
        DataError,
        EngineError,
        ModelError,
        OutputError,
        ParameterError,
        PegsynthError,
        SchemaError,
    )
    from pegsynth.evaluation.evaluate import evaluate
    from pegsynth.inference import procedures
    from pegsynth.inference.combine import combine
    from pegsynth.inference.pooled import pooled
    from pegsynth.inference.procedures import replicated
    from pegsynth.privacy import Budget, Ledger
    from pegsynth.publishing.result import Release
    from pegsynth.publishing.verify_release import verify
    from pegsynth.schema import Feature, Rule, Schema

_HOMES = {
    "Schema": "pegsynth.schema",
    "Feature": "pegsynth.schema",
    "Rule": "pegsynth.schema",
    "synthesize": "pegsynth.api.functions",
    "fit": "pegsynth.api.functions",
    "load": "pegsynth.api.functions",
    "plan": "pegsynth.api.functions",
    "release": "pegsynth.api.functions",
    "audit": "pegsynth.api.functions",
    "report": "pegsynth.api.functions",
    "Release": "pegsynth.publishing.result",
    "PeGS": "pegsynth.api.fitted",
    "evaluate": "pegsynth.evaluation.evaluate",
    "combine": "pegsynth.inference",
    "pooled": "pegsynth.inference",
    "supported": "pegsynth.api.fitted",
    "verify": "pegsynth.publishing.verify_release",
    "published_counts": "pegsynth.api.fitted",
    "procedures": "pegsynth.inference.procedures",
    "replicated": "pegsynth.inference.procedures",
    "impute": "pegsynth.api.functions",
    "Budget": "pegsynth.privacy",
    "Ledger": "pegsynth.privacy",
    "datasets": "pegsynth.datasets",
    "spark": "pegsynth.spark",
    "PegsynthError": "pegsynth.errors",
    "ParameterError": "pegsynth.errors",
    "SchemaError": "pegsynth.errors",
    "DataError": "pegsynth.errors",
    "BudgetError": "pegsynth.errors",
    "ModelError": "pegsynth.errors",
    "OutputError": "pegsynth.errors",
    "EngineError": "pegsynth.errors",
}

__all__ = [
    "Budget",
    "BudgetError",
    "DataError",
    "EngineError",
    "Feature",
    "Ledger",
    "ModelError",
    "OutputError",
    "ParameterError",
    "PeGS",
    "PegsynthError",
    "Release",
    "Rule",
    "Schema",
    "SchemaError",
    "audit",
    "combine",
    "datasets",
    "evaluate",
    "fit",
    "impute",
    "load",
    "plan",
    "pooled",
    "procedures",
    "published_counts",
    "release",
    "replicated",
    "report",
    "spark",
    "supported",
    "synthesize",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pegsynth' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    # Some public names are modules themselves.
    return getattr(home, name, home)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
