"""What the paper leaves open, and what the study settled: printed with every result."""

from __future__ import annotations

from pegsynth.methods.gibbs.gibbs_plan import DEFAULT_HEADS
from pegsynth.options import DEFAULT_BLOCK_SIZE
from studies.paper.demonstration import EPSILON
from studies.paper.populations import HELD_OUT
from studies.paper.setting import Setting
from studies.paper.size import StudySize
from studies.paper.study_design import BLOCK_EPSILON, CHAIN_EPSILON
from studies.paper.workshop import Population

Decision = tuple[str, str]


def decisions(
    setting: Setting, size: StudySize, population: Population, rows: int, *, built_in: bool
) -> list[Decision]:
    """List what was settled, as pairs of question and answer."""
    schema = setting.schema
    heads = min(DEFAULT_HEADS, len(schema.features) - 1)
    used = min(len(population.codes), size.model_rows)
    return [
        ("Table", _table(population, built_in=built_in)),
        ("Synthetic rows", f"{rows:,} in every table, as in the paper" + _fewer(rows, size)),
        (
            "Repeats and intervals",
            f"{size.repeats} tables of each paper method at each epsilon, {size.other_repeats} of "
            "all others, each from a random stream of its own; intervals are 95 % t intervals "
            "over repeats, given the one original table",
        ),
        (
            "Epsilon",
            "per synthetic row, as the paper counts; n rows cost n times as much, and the map by "
            "total epsilon shows that. All draws of a study are seeded, so none of these tables "
            "carries a guarantee: epsilon is the price of the same draws unseeded",
        ),
        (
            "Keys",
            f"m = {heads} head features and a tail of 1 bit, the paper names no m; heads by mutual "
            "information in the data as in the paper, which no result covers (R10); repeated with "
            "heads by mutual information in the public pool, and with m = 1",
        ),
        (
            "Seed rows",
            "from the public pool in the main comparison; side by side from the uniform pool and "
            "from the original rows, which leaves no guarantee. The paper does not say; one sweep "
            "does not forget where it started",
        ),
        ("Block size of PeGS.rs", f"B = {DEFAULT_BLOCK_SIZE}, the paper's"),
        (
            "PMI",
            "elastic-net multinomial regressions, penalty by cross-validation, fitted once to "
            f"{used:,} evenly spaced rows and perturbed at every draw (R8)",
        ),
        (
            "Conditioning values that a small table lacks",
            "their conditional counts as all zeros there, so they add the sum of squares of the "
            "original's; a value in neither table adds nothing; every value weighs the same",
        ),
        (
            "Targets without a matching row",
            "the intruder falls back on the most frequent category, or the mean, of all released "
            "rows; the share of matched targets is in the tables",
        ),
        (
            "Ties between most frequent categories",
            "broken at random; the figure is the expectation",
        ),
        (
            "Numeric roles",
            "a bin stands for its midpoint; rows with a missing number are left out of "
            "regressions, means and targets",
        ),
        ("Bootstrap", f"{rows:,} original rows drawn with replacement, as many as synthetic rows"),
        (
            "Hold-out",
            f"{rows:,} rows "
            + ("of another seed of the generator" if built_in else "of the held-out part")
            + ", never given to a synthesizer: what the population alone betrays",
        ),
        (
            "Uniqueness",
            "share of rows that are alone; the original's is its exact expectation among as many "
            "of its rows",
        ),
        (
            "Sampling floor",
            f"what a bootstrap of {rows:,} rows has on average, (1 - sum p^2)/n for marginals; "
            "rows that are not drawn independently of each other can lie below it",
        ),
        (
            "Histograms as blocks grow",
            f"chains at epsilon {CHAIN_EPSILON:g} for the whole chain whatever its length, so that "
            "the reset and not the perturbation is seen; without reset the same draws would cost "
            "that epsilon for every row",
        ),
        ("Block sizes", f"compared at epsilon {BLOCK_EPSILON:g} per row"),
        ("Three-feature run", f"epsilon {EPSILON:g} for the block, seed row from the public pool"),
        (
            "l-diversity",
            "entropy l-diversity of the sensitive features, or of all when none is marked; no "
            "differential privacy",
        ),
        (
            "Methods without a price per row",
            "get the same total at once: epsilon per row times the number of rows",
        ),
        (
            "Map by total epsilon",
            "every method as a user would call it: order and marginals, where it needs them, are "
            f"chosen privately and paid out of epsilon; {_deltas(size)}",
        ),
    ]


def _table(population: Population, *, built_in: bool) -> str:
    size = f"N = {len(population.codes):,} rows, {len(population.schema.features)} features"
    pool = f"{len(population.pool):,} rows"
    if built_in:
        return (
            f"pegsynth.datasets.discharge, invented data; {size}; the paper states no N. The "
            f"public pool ({pool}) and the hold-out ({len(population.fresh):,} rows) come from "
            "other seeds of the generator, as last year's public file would"
        )
    return (
        f"the user's own; {size} after holding out {HELD_OUT:.0%}. Half of the held-out rows stand "
        f"in for a public pool ({pool}; they are not public, so no guarantee would hold), half are "
        "the hold-out. A row is the unit"
    )


def _deltas(size: StudySize) -> str:
    stated = [f"{delta:g}" for delta in size.deltas if delta is not None]
    also = f", and again with delta = {', '.join(stated)}" if stated else ""
    return f"pure{also}"


def _fewer(rows: int, size: StudySize) -> str:
    return "" if rows == size.rows else f", which would be {size.rows:,}; the table is smaller"
