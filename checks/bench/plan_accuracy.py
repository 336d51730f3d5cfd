"""How well ``pegs plan`` predicts: ``python -m checks.bench.plan_accuracy [--fit]``.

Prints, for the twelve confirming tables at every epsilon of 0.1 to 10, what was predicted from
schema, budget and rows alone beside what was measured (``checks/bench/plan_cells.csv``), how many
cells are within a factor of 1.5, and whether ``--method auto`` ever takes a method that measured
worse. ``--fit`` fits the formula anew on the other tables and writes
``src/pegsynth/methods/plan_model.json``; every table is also predicted by a fit on all tables but
itself. After a change of a method's accuracy::

    python -m checks.bench.plan_cells --again && python -m checks.bench.plan_accuracy --fit
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from checks.bench.plan_cells import METHODS, Measured, load_cells
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.plan_model import FILE, TERMS, PublicFigures, expected, stored_model
from pegsynth.privacy import Budget

WITHIN = 1.5
OUTPUT = Path(__file__).parents[2] / "src" / "pegsynth" / "methods" / FILE
LIKE_BOUNDS = (0.003, 0.01, 0.03, 0.1, 0.3)
"""Cells are alike whose noise on one-way counts lies between the same two of these."""
_ROUNDS = 30
_LEAST_TRUTH = 1e-5
_RIDGE = 0.3
_SIGNED = (0, 5, 6)
"""Places of terms whose coefficient may be negative."""

Float64 = NDArray[np.float64]


def figures_of(cell: Measured) -> PublicFigures:
    """Return what was public of a cell before it was measured."""
    budget = Budget(epsilon=cell.epsilon, delta=cell.delta)
    price = Price(budget.whole("pure" if cell.delta is None else "zcdp"))
    return PublicFigures.of(cell.levels, price, rows_in=cell.rows_in, rows=cell.rows)


def fitted(cells: Sequence[Measured]) -> dict[str, dict[str, list[float]]]:
    """Fit the formula for every method that was measured."""
    found: dict[str, dict[str, list[float]]] = {}
    for method in METHODS:
        own = [cell for cell in cells if cell.method == method]
        if own:
            design = np.array([figures_of(cell).logarithms for cell in own])
            found[method] = {
                name: _coefficients(design, [getattr(cell, score) for cell in own])
                for name, score in (("columns", "tvd1"), ("pairs", "tvd2"))
            }
    return found


def _coefficients(design: Float64, truth: Iterable[float]) -> list[float]:
    """Fit logarithms by least absolute differences; noise and drawing never lower an error."""
    wanted = np.log(np.maximum(list(truth), _LEAST_TRUTH))
    # The constant, columns and a missing delta may have either sign: each goes in twice.
    signed = np.column_stack([design, -design[:, list(_SIGNED)]])
    weights = np.ones(len(wanted))
    pull = _RIDGE * np.eye(signed.shape[1])
    pull[0, 0] = pull[len(TERMS), len(TERMS)] = 0.0
    for _ in range(_ROUNDS):
        rows = np.vstack([signed * weights[:, None], pull])
        found, _ = nnls(rows, np.concatenate([wanted * weights, np.zeros(len(pull))]))
        apart = np.abs(signed @ found - wanted)
        weights = 1 / np.sqrt(np.maximum(apart, 0.1))
    plain = found[: len(TERMS)].copy()
    plain[list(_SIGNED)] -= found[len(TERMS) :]
    return [round(float(each), 4) for each in plain]


def like_ratios(cells: Sequence[Measured]) -> list[dict[str, float]]:
    """Return for every class of noise how the pair errors of methods compare with the best."""
    classes: list[dict[str, list[float]]] = [{} for _ in range(len(LIKE_BOUNDS) + 1)]
    for group in groups(cells):
        place = int(np.searchsorted(LIKE_BOUNDS, figures_of(group[0]).noise))
        for cell in group:
            classes[place].setdefault(cell.method, []).append(
                math.log(max(cell.tvd2, _LEAST_TRUTH))
            )
    found = []
    for each in classes:
        means = {method: fmean(logs) for method, logs in each.items()}
        least = min(means.values(), default=0.0)
        found.append({method: round(math.exp(m - least), 3) for method, m in means.items()})
    return found


def groups(cells: Sequence[Measured]) -> list[list[Measured]]:
    """Return cells that differ by their method alone, where all methods were measured."""
    found: dict[tuple[object, ...], list[Measured]] = {}
    for cell in cells:
        key = (cell.table, cell.epsilon, cell.delta, cell.rows_in, cell.rows)
        found.setdefault(key, []).append(cell)
    return [group for group in found.values() if len(group) == len(METHODS)]


def factor(predicted: float, truth: float) -> float:
    """Return how far a prediction is from the truth, as a factor of at least 1."""
    ratio = predicted / max(truth, _LEAST_TRUTH)
    return max(ratio, 1 / ratio)


def hit_rate(
    cells: Sequence[Measured], model: Mapping[str, Any] | None = None
) -> tuple[float, float]:
    """Return the share of cells within the factor, of columns and of pairs."""
    hits = []
    for cell in cells:
        said = expected(cell.method, figures_of(cell), model)
        hits.append(
            (factor(said.columns, cell.tvd1) <= WITHIN, factor(said.pairs, cell.tvd2) <= WITHIN)
        )
    columns, pairs = zip(*hits, strict=True)
    return fmean(columns), fmean(pairs)


def left_out(cells: Sequence[Measured]) -> tuple[float, float]:
    """Return the hit rates where every table is predicted by a fit on all others."""
    rates, sizes = [], []
    for table in sorted({cell.table for cell in cells}):
        model = {"methods": fitted([cell for cell in cells if cell.table != table])}
        own = [cell for cell in cells if cell.table == table]
        rates.append(hit_rate(own, model))
        sizes.append(len(own))
    return tuple(np.average(rates, axis=0, weights=sizes))  # type: ignore[return-value]


def chosen_worse(cells: Sequence[Measured]) -> list[tuple[Measured, Measured]]:
    """Return the choices of ``auto`` that measured worse than another method on their cell."""
    from pegsynth.methods.plan_model import beaten

    found = []
    for group in groups(cells):
        figures = figures_of(group[0])
        kept = [cell for cell in group if not beaten(cell.method, METHODS, figures)]
        taken = min(kept, key=lambda cell: expected(cell.method, figures).pairs)
        best = min(group, key=lambda cell: cell.tvd2)
        if taken.tvd2 > best.tvd2:
            found.append((taken, best))
    return found


def write_model(cells: Sequence[Measured]) -> None:
    """Fit on the tables that are for fitting, and store what comes out."""
    fitting = [cell for cell in cells if not cell.confirming]
    content = {
        "made_by": "python -m checks.bench.plan_accuracy --fit",
        "cells": len(fitting),
        "tables": len({cell.table for cell in fitting}),
        "terms": TERMS,
        "methods": fitted(fitting),
        "like": {"bounds": LIKE_BOUNDS, "ratios": like_ratios(fitting)},
    }
    OUTPUT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    stored_model.cache_clear()


def page(cells: Sequence[Measured]) -> None:
    """Print predictions beside what was measured."""
    confirming = [cell for cell in cells if cell.confirming]
    print("| table | method | eps | delta | rows | columns: said / true | pairs: said / true | |")
    print("|---" * 8 + "|")
    for cell in confirming:
        said = expected(cell.method, figures_of(cell))
        far = [
            name
            for name, each, truth in (
                ("columns", said.columns, cell.tvd1),
                ("pairs", said.pairs, cell.tvd2),
            )
            if factor(each, truth) > WITHIN
        ]
        delta = "-" if cell.delta is None else f"{cell.delta:g}"
        print(
            f"| {cell.table} {cell.rows_in:,} x {len(cell.levels)} | {cell.method} | "
            f"{cell.epsilon:g} | {delta} | {cell.rows:,} | {said.columns:.4f} / {cell.tvd1:.4f} | "
            f"{said.pairs:.4f} / {cell.tvd2:.4f} | {', '.join(far)} |"
        )
    print()
    summary(cells)


def summary(cells: Sequence[Measured]) -> None:
    """Print how often predictions are within the factor, and what auto would have taken."""
    confirming = [cell for cell in cells if cell.confirming]
    fitting = [cell for cell in cells if not cell.confirming]
    for title, group in (("Confirming", confirming), ("Fitted on", fitting)):
        tables = len({cell.table for cell in group})
        for method in (*METHODS, ""):
            own = [cell for cell in group if method in ("", cell.method)]
            if own:
                columns, pairs = hit_rate(own)
                print(
                    f"{title}, {tables} tables, {method or 'all methods'}: within a factor of "
                    f"{WITHIN} in {columns:.0%} of {len(own)} cells for columns, {pairs:.0%} for "
                    "pairs"
                )
    columns, pairs = left_out(fitting)
    print(f"Every table left out of its own fit: {columns:.0%} for columns, {pairs:.0%} for pairs")
    worse = chosen_worse(confirming)
    print(f"auto, confirming: {len(worse)} of {len(groups(confirming))} choices measured worse")
    for taken, best in worse:
        print(
            f"  {taken.table}, epsilon {taken.epsilon:g}, {taken.rows:,} rows: {taken.method} "
            f"{taken.tvd2:.4f}, {best.method} {best.tvd2:.4f}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit if asked, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", action="store_true", help="fit the formula anew and store it")
    parser.add_argument("--brief", action="store_true", help="print the rates alone")
    asked = parser.parse_args(arguments)
    cells = load_cells()
    if asked.fit:
        write_model(cells)
    (summary if asked.brief else page)(cells)


if __name__ == "__main__":
    main()
