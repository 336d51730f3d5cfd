"""How much of a draw comes from the data, predicted from public figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegsynth.methods.base import Prediction
from pegsynth.methods.forecast import guarantees
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan, used_entries
from pegsynth.methods.plan_model import expected, figures_of

if TYPE_CHECKING:
    from pegsynth.methods.gibbs.method import GibbsMethod
    from pegsynth.schema import Schema

LEVEL_TIMES = 64.0
"""About how many times the smallest alpha the virtual rows of merged levels are."""


def predict_gibbs(method: GibbsMethod, schema: Schema, plan: GibbsPlan) -> Prediction:
    """Predict errors by the fitted formula, and the part of the draws that virtual rows answer."""
    mean_count = sum(schema.category_counts) / len(schema.category_counts)
    times = {"uniform": mean_count, "marginal": plan.resolution * mean_count, "levels": LEVEL_TIMES}
    virtual = plan.alpha * times[plan.prior]
    prior_share = 1 - _data_share(method, schema, plan, virtual)
    error = expected(method.name, figures_of(schema, plan))
    pure, stated = guarantees(plan)
    detail = method.detail(plan)
    return Prediction(
        plan,
        error.pairs,
        pure,
        stated,
        f"{detail}; order {plan.keys.order}, prior {plan.prior}, seeds {plan.seed_pool}",
        heads=plan.keys.heads,
        alpha=plan.alpha,
        virtual_rows=virtual,
        prior_share=prior_share,
        columns_error=error.columns,
    )


def _data_share(method: GibbsMethod, schema: Schema, plan: GibbsPlan, virtual: float) -> float:
    """Predict the share of an average draw that comes from the data."""
    options = plan.options
    rows = (options.rows or 1) * options.datasets
    entries = used_entries(schema, plan.keys.heads, plan.keys.tail_bits)
    held = (options.rows_in or rows) / entries
    answered = method.answered(plan, entries)
    return answered * held / (held + virtual) if held + virtual > 0 else 0.0
