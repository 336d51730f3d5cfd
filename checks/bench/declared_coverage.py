"""Declared regressions: how near they are, and how often their intervals hold the truth (R26).

``python -m checks.bench.declared_coverage [--rows N] [--releases K] [--share S] ..`` samples
invented discharges repeatedly, releases every sample by `pegs-once` with private edges and both
regressions declared, with replicate weights, and asks `replicated` for both regressions of their
*values*. The truth is that of 2,000,000 rows, not clipped. ``--share 0`` declares nothing. With
``--results FILE`` every release is written as soon as it is there, and a run goes on where another
one stopped. The last column counts the releases in which a coefficient is called supported.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
import polars as pl
from numpy.typing import NDArray

from checks.bench.coverage_tally import Interval, Release, Tally, run
from checks.bench.released_numbers import NUMBERS, RESPONSE_ABOVE, private_schema
from pegsynth import replicated, synthesize
from pegsynth.datasets import discharge
from pegsynth.inference.ledger_support import SUPPORTED
from pegsynth.schema import Schema
from pegsynth.schema.declared import Analysis

Array = NDArray[np.float64]

DELTA = 1e-9
TRUTH_ROWS = 2_000_000
TRUTH_SEED = 987_654
NORMAL = 1.959964
RULE = "replicate-weights"
ERROR, STATUS = "relative error", "status"
TERMS = ("age.yrs", "sev", "cat", "los")
FORMULA = " + ".join(TERMS)
RESPONSES = {"linear": "charge", "logistic": f"I(charge > {RESPONSE_ABOVE})"}
NAMES = tuple(f"{kind} {term}" for kind in RESPONSES for term in TERMS)


def declaring(share: float) -> Schema:
    """Return a schema with private edges and both regressions declared."""
    schema = private_schema()
    if not share:
        return schema
    analyses = (
        Analysis(f"charge ~ {FORMULA}", "gaussian", share),
        Analysis(f"I(charge > {RESPONSE_ABOVE}) ~ {FORMULA}", "binomial", share),
    )
    return replace(schema, analyses=analyses)


@dataclass(frozen=True)
class Fitted:
    """Coefficients of both regressions, and their usual standard errors (robust, linear)."""

    estimates: Array
    errors: Array


def fitted(table: pl.DataFrame, weights: Array | None = None) -> Fitted:
    """Fit both regressions to the values of complete rows."""
    kept = table.select(*NUMBERS, "sev", "cat")
    complete = kept.select(pl.all_horizontal(pl.all().is_not_null())).to_series().to_numpy()
    kept = kept.filter(pl.Series(complete))
    columns = [kept["age.yrs"], kept["sev"], kept["cat"] == "Surgical", kept["los"]]
    design = np.column_stack([np.ones(len(kept)), *(c.cast(pl.Float64) for c in columns)])
    charge = kept["charge"].cast(pl.Float64).to_numpy()
    weight = np.ones(len(kept)) if weights is None else weights[complete]
    linear, inverse = _least_squares(design, charge, weight)
    left = charge - design @ linear
    middle = (design * (weight * left**2)[:, None]).T @ design
    logistic, information = _logistic(design, (charge > RESPONSE_ABOVE) * 1.0, weight)
    variances = np.concatenate([np.diag(inverse @ middle @ inverse)[1:], np.diag(information)[1:]])
    return Fitted(np.concatenate([linear[1:], logistic[1:]]), np.sqrt(variances))


def _least_squares(design: Array, response: Array, weight: Array) -> tuple[Array, Array]:
    inverse = np.linalg.inv((design * weight[:, None]).T @ design)
    return inverse @ (design.T @ (weight * response)), inverse


def _logistic(design: Array, response: Array, weight: Array) -> tuple[Array, Array]:
    scale = np.abs(design).max(axis=0)
    scaled = design / scale
    odds = np.zeros(design.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ odds, -30, 30)))
        curve = (scaled * (weight * (chance * (1 - chance) + 1e-9))[:, None]).T @ scaled
        step = np.linalg.solve(curve, scaled.T @ (weight * (response - chance)))
        odds += step
        if np.abs(step).max() < 1e-9:
            break
    return odds / scale, np.linalg.inv(curve) / np.outer(scale, scale)


@dataclass(frozen=True)
class How:
    """How releases are made and analysed."""

    share: float = 0.15
    replicates: int = 20


def release(which: Release, how: How) -> tuple[Fitted, dict[str, tuple[float, float, float, str]]]:
    """Sample, release and analyse.

    Returns the original's fit, and of every coefficient estimate, interval and status.
    """
    table = discharge(which.rows, seed=which.seed)
    made = synthesize(
        table,
        declaring(how.share),
        method="pegs-once",
        epsilon=which.epsilon,
        delta=DELTA,
        rows_in=which.rows,
        rows=which.rows,
        replicates=how.replicates,
        progress=False,
    )
    found = {}
    for kind, response in RESPONSES.items():
        asked = replicated(f"{response} ~ {FORMULA}", made).combined
        for place, term in enumerate(asked.names[1:], start=1):
            low, high = (np.atleast_1d(end)[place] for end in asked.interval(0.95))
            value = np.atleast_1d(asked.estimate)[place]
            name = f"{kind} {term.partition('[')[0]}"
            found[name] = (float(value), float(low), float(high), asked.statuses[place])
    return fitted(table), found


def measure(which: Release, how: How, truth: Array) -> Iterator[Interval]:
    """Yield the intervals of one release, and under `ERROR` how far estimates are off."""
    original, found = release(which, how)
    for place, name in enumerate(NAMES):
        value, low, high, status = found[name]
        width = (high - low) / (2 * NORMAL * float(original.errors[place]))
        yield Interval(name, RULE, bool(low <= truth[place] <= high), width)
        yield Interval(name, ERROR, True, abs(value / float(original.estimates[place]) - 1))
        yield Interval(name, STATUS, status == SUPPORTED, 0.0)


def lines(tallies: Sequence[Tally]) -> Iterator[str]:
    """Yield a line for each coefficient: coverage, width, error, releases."""
    for name in NAMES:
        own = [each for each in tallies if each.group == name and each.rule == RULE]
        coverage = fmean(each.hits for each in own)
        width = median(each.width for each in own)
        errors = [each.width for each in tallies if each.group == name and each.rule == ERROR]
        supported = sum(e.hits for e in tallies if e.group == name and e.rule == STATUS)
        yield (
            f"| {name} | {coverage:.3f} | {width:.2f} | {fmean(errors):.3f} | "
            f"{median(errors):.3f} | {len(own)} | {supported} |"
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.15, help="of each of the two analyses")
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--truth", type=int, default=TRUTH_ROWS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="a file to write to, and to go on from")
    chosen = parser.parse_args(arguments)
    truth = fitted(discharge(chosen.truth, seed=TRUTH_SEED)).estimates
    how = How(chosen.share, chosen.replicates)
    method = f"declared {chosen.share:g}"
    releases = [
        Release("discharge", chosen.rows, chosen.epsilon, method, seed)
        for seed in range(chosen.seed, chosen.seed + chosen.releases)
    ]
    found = run(releases, lambda which: measure(which, how, truth), chosen.results)
    print(
        "| coefficient | coverage | median width | mean relative error | median | releases "
        "| supported |"
    )
    print("|---|---|---|---|---|---|---|")
    for line in lines(found):
        print(line, flush=True)


if __name__ == "__main__":
    main()
