"""What the methods of the paper's first table hold, measured on a table.

Each method is described by its model, and by how many numbers that model has on the table
at hand: cells that are possible and cells that occur, entries, coefficients, leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pegsynth.methods.gibbs.gibbs_plan import DEFAULT_HEADS, Keys
from studies.paper.arms import PAPER_TAIL_BITS, Arm
from studies.paper.cell_file import CellValues
from studies.paper.intruder_targets import row_keys
from studies.paper.size import StudySize
from studies.paper.workshop import Population, Workshop

PARAMETERS = "parameters"
"""Name of the cell that holds these numbers."""


@dataclass(frozen=True)
class Description:
    """A method in the words of the paper's table."""

    name: str
    model: str
    parameters: str
    measured: str
    needs: str = ""
    """A figure without which the line is left out, although it does not print it."""


DESCRIPTIONS = {
    "contingency": Description(
        "Contingency table",
        "Pr_D(x)",
        "non-parametric",
        "{contingency_cells:.3g} possible cells, {contingency_seen:,.0f} occur",
    ),
    "marginal": Description(
        "Marginal Bayesian bootstrap",
        "prod_i Pr_D(x_i)",
        "non-parametric",
        "{marginal_cells:,.0f} cells",
    ),
    "mi": Description(
        "Multiple imputation (elastic net)",
        "prod_i Pr_w(x_i | x_-i)",
        "w: model coefficients for glm",
        "{glm_coefficients:,.0f} coefficients, {glm_nonzero:,.0f} not zero; penalties "
        "{glm_lowest:.2g} to {glm_highest:.2g}",
    ),
    "pmi": Description(
        "Perturbed multiple imputation (PMI)",
        "prod_i (Pr_w(x_i | x_-i) + alpha)/(1 + C_i alpha)",
        "w, and alpha: privacy parameter",
        "as above; alpha = {alpha_pmi:.4g} at eps 1 per row",
    ),
    "pegs": Description(
        "Perturbed Gibbs sampler (PeGS)",
        "prod_i Pr_D,alpha(x_i | h(x_-i))",
        "alpha: privacy parameter",
        "{blocks_keys:,.0f} possible entries, {blocks_seen:,.0f} occur, {blocks_cells:,.0f} counts "
        "not zero; alpha = {alpha_pegs:.4g} at eps 1 per row",
    ),
    "pegs-rs": Description(
        "Block PeGS with reset (PeGS.rs)",
        "prod_b prod_i Pr_D,alpha(x_i | h(x_-i))",
        "B: sample block size",
        "the same entries; B = 10, alpha = {alpha_pegs_rs:.4g} at eps 1 per row",
    ),
    "pegs-capped": Description(
        "PeGS with a visit cap (not in the paper)",
        "prod_i Pr_D,alpha(x_i | h(x_-i)), T visits an entry",
        "T: visits of an entry in the whole release",
        "T = {capped_visits:.0f} for {rows:.0f} rows",
    ),
    "pegs-once": Description(
        "Released blocks (not in the paper)",
        "prod_i Pr_noisy(x_i | h(x_-i))",
        "noise, once on every cell",
        "heads chosen privately, tables and noise by the budget; any number of rows",
        needs="once",
    ),
    "cart": Description(
        "Multiple imputation (trees; not in the paper)",
        "prod_i Pr_tree(x_i | x_-i)",
        "one tree a feature",
        "{cart_nodes:,.0f} nodes",
    ),
    "forest": Description(
        "Multiple imputation (forests; not in the paper)",
        "prod_i Pr_forest(x_i | x_-i)",
        "one forest a feature",
        "{forest_nodes:,.0f} nodes",
    ),
    "bootstrap": Description(
        "Bootstrap (reference)", "rows of D", "none", "{bootstrap_rows:,.0f} rows"
    ),
}


def measure_models(
    workshop: Workshop, population: Population, size: StudySize, methods: tuple[str, ...]
) -> CellValues:
    """Count what the models of some methods hold."""
    counts = population.schema.category_counts
    values: dict[str, float] = {
        "rows": float(size.rows),
        "contingency_cells": float(math.prod(counts)),
        "contingency_seen": float(len(np.unique(row_keys(population.codes.T, counts)))),
        "marginal_cells": float(sum(counts)),
        "bootstrap_rows": float(len(population.codes)),
    }
    arm = Arm(PARAMETERS, "pegs")
    heads = min(DEFAULT_HEADS, len(counts) - 1)
    blocks = workshop.blocks_model(arm, Keys(heads, PAPER_TAIL_BITS, "data")).content.blocks
    cells = [block.cells() for block in blocks.blocks]
    values["blocks_keys"] = float(sum(map(blocks.spec.key_space, range(len(counts)))))
    values["blocks_seen"] = float(sum(len(np.unique(keys)) for keys, _, _ in cells))
    values["blocks_cells"] = float(sum(len(keys) for keys, _, _ in cells))
    for method in ("pegs", "pegs-rs", "pmi"):
        plan = workshop.plan(Arm(PARAMETERS, method, pool="uniform"), 1.0, size.rows)
        values[f"alpha_{method.replace('-', '_')}"] = plan.alpha
    if "pegs-capped" in methods:
        plan = workshop.plan(Arm(PARAMETERS, "pegs-capped", "rows"), 1.0, size.rows)
        values["capped_visits"] = float(plan.options.visits or 0)
    if "pegs-once" in methods:
        values["once"] = 1.0
    if "pmi" in methods:
        values |= _regressions(workshop)
    for method in ("cart", "forest"):
        if method in methods:
            values[f"{method}_nodes"] = _nodes(workshop, method)
    return dict(values)


def table_of_methods(values: CellValues) -> list[dict[str, str]]:
    """Return the paper's first table with what was measured, a line per method."""
    lines = []
    known = {name: value for name, value in values.items() if isinstance(value, (int, float))}
    for method, words in DESCRIPTIONS.items():
        if words.needs and words.needs not in known:
            continue
        try:
            measured = words.measured.format(**known)
        except KeyError:
            continue
        lines.append(
            {
                "method": method,
                "name": words.name,
                "model": words.model,
                "parameters": words.parameters,
                "measured": measured,
            }
        )
    return lines


def _regressions(workshop: Workshop) -> dict[str, float]:
    from pegsynth.methods.baselines.glm import GlmModel

    model = workshop.conditionals(Arm(PARAMETERS, "pmi"))
    if not isinstance(model, GlmModel):
        return {}
    tables = [each.coefficients for each in model.regressions.values()]
    penalties = [each.penalty for each in model.regressions.values()]
    return {
        "glm_coefficients": float(sum(table.size for table in tables)),
        "glm_nonzero": float(sum(np.count_nonzero(np.isfinite(t) & (t != 0)) for t in tables)),
        "glm_lowest": min(penalties),
        "glm_highest": max(penalties),
    }


def _nodes(workshop: Workshop, method: str) -> float:
    from pegsynth.methods.baselines.trees import TreeModel

    model = workshop.conditionals(Arm(PARAMETERS, method))
    if not isinstance(model, TreeModel):
        return math.nan
    return float(sum(len(trees.nodes[0]) for trees in model.trees.values()))
