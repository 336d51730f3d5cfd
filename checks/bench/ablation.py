"""What each step of `pegs-once` brings: the same releases, with one step left out.

A line is a step, its figures are errors without it over errors with it, from the same seeds: what
lies above 1 is what the step brings. Columns are the mean total variations of all columns, pairs
and 100 triples, the mean error of correlations of codes, and the error of logistic coefficients.
The part that a figure is off by chance (twice the standard error of a paired difference) follows
that of pairs. Tuning and confirming tables of `checks.bench.family` are printed apart, and at the
end the most that a step brings on any table of either group::

    python -m checks.bench.ablation --tables labsup panel-2 --epsilons 0.1 1 10 --runs 3

``--keep FILE`` writes every run down as it ends, and takes up where a stopped one left off.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev
from unittest.mock import patch

import numpy as np

from checks.bench.distances import tvd1, tvd2, tvd3
from checks.bench.family import CONFIRMING, EPSILONS, TUNING, Kept, Scores, one_release
from checks.bench.peers.scores import logit_error
from checks.bench.peers.tables import Codes, NoDataError, Table, data_folder, load
from pegsynth.methods.released import _budget, _draw, _estimates, _joint_fit, _pair_pool, _pairs
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._choosing import Round

SCORES = ("tvd1", "tvd2", "tvd3", "cor", "logit")
WORTH_KEEPING = 1.03
"""A step that brings less on every table is not worth its code."""


@dataclass(frozen=True)
class Without:
    """A release without one step.

    Parameters
    ----------
    steps
        Fields of `Steps`.
    replaced
        Where the step has no field: what to put in the place of a name, by its owner.
    """

    steps: Mapping[str, object] = field(default_factory=dict)
    replaced: Sequence[tuple[object, str, object]] = ()

    @contextmanager
    def taken(self) -> Iterator[Steps]:
        """Leave the step out for a while."""
        with ExitStack() as stack:
            for owner, name, value in self.replaced:
                stack.enter_context(patch.object(owner, name, value))
            yield replace(Steps(), **self.steps)  # type: ignore[arg-type]


def _unsmoothed(one_way_shares: Callable[..., object]) -> Callable[..., object]:
    return lambda table, total, **_: one_way_shares(table, total, smooth=False)


def _without_classes(
    cls: type[_pair_pool.PairModel], residuals: object, pool: object, *_: object
) -> _pair_pool.PairModel:
    estimates = _pairs.PairEstimates.of(residuals, pool.sizes)  # type: ignore[arg-type, attr-defined]
    return cls(tuple(residuals), estimates, None, crowded=False)  # type: ignore[call-overload]


ALL_STEPS = "all steps"
VARIANTS: dict[str, Without] = {
    "merging of levels": Without({"merge": False}),
    "maps (R33)": Without({"dependences": False}),
    "triples": Without({"triples": False}),
    "exchange of rows": Without({"exchange": 0}),
    "rows meet unmeasured pairs too": Without(replaced=[(_joint_fit, "_MOST_AIMS", 0)]),
    "blocks pulled to independence": Without({"care": _budget.Care(pulled=0.0)}),
    "all pairs at once (R27)": Without({"residuals": False}),
    "all pairs where merging makes them quiet": Without(
        replaced=[(_budget, "_MERGED_PAIRS_BELOW", 0.0)]
    ),
    "residuals in the second round (R27)": Without(
        replaced=[(Round, "_by_residual", lambda self, _: self.links is not None)]
    ),
    "a second round after all pairs": Without(replaced=[(_budget, "_LEAST_PAIRS", 0.97)]),
    "blocks beside all pairs": Without({"blocks_beside_pairs": 0.0}),
    "latent classes": Without(
        replaced=[(_pair_pool.PairModel, "of", classmethod(_without_classes))]
    ),
    "sums of ordered products": Without(
        replaced=[(_joint_fit.JointFit, "_add_products", lambda *_: None)]
    ),
    "ordered products of drawn rows": Without(
        replaced=[(_joint_fit.JointFit, "_tilted", lambda _self, _axes, table, _: table)]
    ),
    "smoothed one-way counts": Without(
        replaced=[(_draw, "one_way_shares", _unsmoothed(_estimates.one_way_shares))]
    ),
    "margins of measured tables": Without(replaced=[(_estimates.Margins, "fold", lambda *_: None)]),
    "a third head": Without({"heads": 2}),
    "a second head": Without({"heads": 1}),
    "care under loud noise": Without(replaced=[(Steps, "under_noise", lambda self, **_: self)]),
    "no choices where noise drowns them": Without({"drowned_above": float("inf")}),
}


def correlation_error(table: Table, rows: Codes) -> float:
    """Return how far correlations of codes are off, the mean over pairs."""
    original, released = (
        np.nan_to_num(np.corrcoef(each.astype(np.float64), rowvar=False))
        for each in (table.train, rows)
    )
    apart: float = np.abs(original - released)[np.triu_indices(len(original), 1)].mean()
    return float(apart)


def scores(table: Table, rows: Codes) -> Scores:
    """Compare rows with those that were learned from."""
    return {
        "tvd1": tvd1(table.train, rows, table.levels),
        "tvd2": tvd2(table.train, rows, table.levels, threads=1),
        "tvd3": tvd3(table.train, rows, table.levels, threads=1),
        "cor": correlation_error(table, rows),
        "logit": logit_error(table, rows),
    }


def runs_of(
    kept: Kept,
    table: Table,
    epsilon: float,
    name: str,
    count: int,
    whole: Sequence[Scores] = (),
) -> list[Scores]:
    """Return the scores of so many releases without a step, seeded by their numbers.

    A step that takes no part in the first one is taken to take no part in the others.
    """
    found: list[Scores] = []
    without = VARIANTS.get(name, Without())
    for seed in range(count):
        if found and whole and found[0] == whole[0]:
            return list(whole)

        def run(seed: int = seed) -> Scores:
            with without.taken() as steps:
                return scores(table, one_release(table, epsilon, seed, steps))

        found += kept.runs(table.name, epsilon, f"{name}, seed {seed}", 1, run)
    return found


@np.errstate(divide="ignore", invalid="ignore")
def ratio_and_chance(without: Sequence[float], whole: Sequence[float]) -> tuple[float, float]:
    """Return a mean over another, and by how much chance may have moved it."""
    below = mean(whole)
    if not below > 0:
        return float("nan"), float("nan")
    apart = [first - second for first, second in zip(without, whole, strict=True)]
    error = stdev(apart) / len(apart) ** 0.5 if len(apart) > 1 else float("nan")
    return mean(without) / below, 2 * error / below


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what every step brings on every table, and the most that it brings on any."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--tables", nargs="+", default=["labsup", "panel-2"], choices=(*TUNING, *CONFIRMING))
    add("--epsilons", nargs="+", type=float, default=EPSILONS)
    add("--runs", type=int, default=3)
    add("--steps", nargs="+", default=list(VARIANTS), choices=list(VARIANTS), metavar="STEP")
    add("--keep", type=Path, metavar="FILE", help="where runs are written down as they end")
    options = parser.parse_args(arguments)
    kept = Kept(options.keep, "ablation")
    for title, group in (("Tuning", TUNING), ("Confirming", CONFIRMING)):
        names = [name for name in options.tables if name in group]
        most: dict[str, tuple[float, str]] = {}
        for name in names:
            try:
                table = load(name, data_folder())
            except NoDataError as error:
                print(f"passed over: {name}: {error}", flush=True)
                continue
            for epsilon in options.epsilons:
                _print_cell(kept, table, epsilon, options, most)
        if most:
            print(f"\n## {title} tables: the most that a step brings to any score\n")
            for step, (gain, where) in most.items():
                mark = "" if gain >= WORTH_KEEPING else " (not worth its code)"
                print(f"- {step}: {gain:.3f}, {where}{mark}", flush=True)


def _print_cell(
    kept: Kept,
    table: Table,
    epsilon: float,
    options: argparse.Namespace,
    most: dict[str, tuple[float, str]],
) -> None:
    """Print a table at one epsilon; keep the most that every step brings in `most`."""
    whole = runs_of(kept, table, epsilon, ALL_STEPS, options.runs)
    print(f"\n### {table.name}, epsilon {epsilon:g}, {options.runs} runs each\n")
    means = " / ".join(f"{key} {mean(each[key] for each in whole):.4f}" for key in SCORES)
    print(f"With all steps: {means}\n")
    print(f"| without | {' | '.join(SCORES)} | chance of tvd2 |\n" + "|---" * 7 + "|", flush=True)
    for step in options.steps:
        runs = runs_of(kept, table, epsilon, step, options.runs, whole)
        shown = []
        for key in SCORES:
            ratio, chance = ratio_and_chance([r[key] for r in runs], [r[key] for r in whole])
            shown.append(f"{ratio:.3f}")
            if key == "tvd2":
                by_chance = chance
            if ratio > most.get(step, (0.0, ""))[0]:
                most[step] = (ratio, f"{key} of {table.name} at {epsilon:g} (chance {chance:.3f})")
        print(f"| {step} | {' | '.join(shown)} | {by_chance:.3f} |", flush=True)


if __name__ == "__main__":
    main()
