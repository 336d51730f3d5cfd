"""Measure thousands of small synthetic tables against one original.

A `Yardstick` tabulates the original once. `measure` then compares a small synthetic table
with it: the distances, attacks and regressions of `pegsynth.evaluation`, as named figures
without intervals; intervals come from repeats. `floors` are the values that a bootstrap of
the same size would have on average.

A figure is called ``name`` or ``name[subject]``, after the records of an evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pegsynth.codec.tabulation import column_major, group_sizes, one_way
from pegsynth.evaluation.risk.reappearance import expected_uniqueness
from pegsynth.evaluation.utility.distances import (
    conditional_distance,
    conditional_floor,
    marginal_distance,
    marginal_floor,
    total_variation,
)
from pegsynth.inference.formula import Formula, read_formula
from pegsynth.inference.model_matrix import INTERCEPT, Column, columns_of, sample_of
from pegsynth.inference.regression_fit import fit
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.schema import Schema
from studies.paper.intruder_targets import Targets, row_keys
from studies.paper.setting import Setting

Figures = dict[str, float]

EVERY = "*"


def figure(name: str, subject: str = "") -> str:
    """Return the name of a figure."""
    return f"{name}[{subject}]" if subject else name


def conditional_subject(feature: str, given: str) -> str:
    """Return the subject of a conditional distance; feature `EVERY` is the mean over features."""
    return f"{feature} | {given}"


def headlines(setting: Setting) -> dict[str, str]:
    """Return the distances of all features together: words and figure."""
    given = {
        f"distance given {name}": figure("conditional_distance", conditional_subject(EVERY, name))
        for name in setting.given
    }
    return {"marginal distance": "marginal_distance", **given}


def kinds_of(setting: Setting) -> tuple[str, ...]:
    """Return the kinds of regression that are fitted."""
    return ("logistic", "linear") if setting.formulas else ()


def uniqueness_name(setting: Setting) -> str:
    """Return the figure of rows that are alone; empty where no feature identifies."""
    return figure("uniqueness", ", ".join(setting.unique)) if setting.unique else ""


def coefficient_words(name: str) -> str:
    """Return what the figure of a coefficient is about: kind of regression and term."""
    return name.removeprefix("coefficient[").removesuffix("]")


@dataclass(frozen=True)
class Regression:
    """A regression with the columns that the original gives it.

    Parameters
    ----------
    formula, columns, schema
        The model, its coefficients but for the intercept, and the codebook.
    """

    formula: Formula
    columns: tuple[Column, ...]
    schema: Schema

    @classmethod
    def of(cls, text: str, original: Codes, schema: Schema) -> Regression:
        """Settle the columns of a formula by the original, one feature a row."""
        formula = read_formula(text, schema)
        sample = sample_of(formula, original, schema)
        return cls(formula, columns_of(formula, [sample], schema), schema)

    def coefficients(self, table: Codes) -> Figures:
        """Return the coefficients that a table gives, NaN unless it gives all of them."""
        sample = sample_of(self.formula, table, self.schema)
        found = fit(sample, self.columns, self.formula.kind)
        names = (INTERCEPT, *(column.name for column in self.columns))
        if found.reason or found.absent:
            return dict.fromkeys(names, math.nan)
        return {name: found.estimates[name].value for name in names}


def regression_distance(original: Mapping[str, float], found: Mapping[str, float]) -> float:
    """Return the paper's regression distance: sum of |(b_synth - b_orig)/b_orig|."""
    return float(sum(abs((found[term] - value) / value) for term, value in original.items()))


@dataclass(frozen=True)
class Yardstick:
    """An original table, and what to measure against it.

    Parameters
    ----------
    setting
        Which features play which part.
    original
        Its codes, one feature a row.
    """

    setting: Setting
    original: Codes

    @classmethod
    def of(cls, setting: Setting, original: Codes) -> Yardstick:
        """Make a yardstick of a code matrix, rows by features."""
        counts = setting.schema.category_counts
        return cls(setting, column_major(original, counts, what="original"))

    def measure(self, synthetic: Codes) -> Figures:
        """Measure a synthetic table, rows by features."""
        columns = column_major(synthetic, self._sizes, what="synthetic table")
        return {
            **self._marginals(columns),
            **self._conditionals(columns),
            **self._fitted(columns),
            **self._attacks(columns),
            **self._uniqueness(columns),
            **self._copies(columns),
        }

    def histograms(self, synthetic: Codes) -> Figures:
        """Return the share of every category of the features whose histograms are drawn."""
        schema = self.setting.schema
        shares: Figures = {}
        for name in self.setting.histograms:
            place = schema.index(name)
            counts = one_way(synthetic[:, place], self._sizes[place])
            for label, count in zip(schema.features[place].labels, counts, strict=True):
                shares[figure("share", f"{name} :: {label}")] = float(count) / len(synthetic)
        return shares

    def floors(self, rows: int) -> Figures:
        """Return what chance alone would give a table of so many rows.

        Distances: the expectation of a bootstrap. Uniqueness: the original's own share,
        expected among as many of its rows. Histograms and slopes of lone terms: the
        original's.
        """
        names = self.setting.schema.names
        ones = {n: marginal_floor(c, rows) for n, c in zip(names, self._one_way, strict=True)}
        floors = _with_mean("marginal_distance", ones)
        for given in self.setting.given:
            at = {
                name: conditional_floor(codes, counts, rows)
                for name, (codes, counts) in self._two_way[given].items()
            }
            floors |= _given("conditional_distance", at, given)
        if self.setting.unique:
            sizes = group_sizes(*self._part(self.original))
            floors[uniqueness_name(self.setting)] = expected_uniqueness(sizes, rows=rows)
        return {**floors, **self.histograms(self.original.T), **self.slopes_alone()}

    def coefficients(self) -> Figures:
        """Return the original's coefficients, named as those of synthetic tables."""
        return {
            figure("coefficient", f"{regression.formula.kind} :: {term}"): value
            for regression, original in self._regressions
            for term, value in original.items()
        }

    def slopes_alone(self) -> Figures:
        """Return the slope of every term when it stands alone, without the other terms."""
        alone: Figures = {}
        for formula in (regression.formula for regression, _ in self._regressions):
            for label in dict.fromkeys(part.label for part in formula.parts):
                text = f"{formula.response.text} ~ {label}"
                one = Regression.of(text, self.original, self.setting.schema)
                for name, value in one.coefficients(self.original).items():
                    if name != INTERCEPT:
                        alone[figure("alone", f"{formula.kind} :: {name}")] = value
        return alone

    @cached_property
    def _regressions(self) -> list[tuple[Regression, Figures]]:
        """The regressions, with the coefficients of the original."""
        found = [
            Regression.of(text, self.original, self.setting.schema)
            for text in self.setting.formulas
        ]
        return [(each, each.coefficients(self.original)) for each in found]

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.setting.schema.category_counts

    @cached_property
    def _one_way(self) -> tuple[Int64, ...]:
        return tuple(map(one_way, self.original, self._sizes))

    @cached_property
    def _two_way(self) -> dict[str, dict[str, tuple[Int64, Int64]]]:
        """For every given feature and every other: code of the given one and count of each cell."""
        return {
            given: {
                name: self._pair(self.original, given, name)
                for name in self.setting.schema.names
                if name != given
            }
            for given in self.setting.given
        }

    def _pair(self, columns: Codes, given: str, name: str) -> tuple[Int64, Int64]:
        first, second = map(self.setting.schema.index, (given, name))
        size = self._sizes[second]
        cells = columns[first].astype(np.int64) * size + columns[second]
        counts = np.bincount(cells, minlength=self._sizes[first] * size).astype(np.int64)
        return np.arange(len(counts)) // size, counts

    def _marginals(self, columns: Codes) -> Figures:
        names = self.setting.schema.names
        counts = list(map(one_way, columns, self._sizes))
        pairs = list(zip(self._one_way, counts, strict=True))
        squares = {n: marginal_distance(*p) for n, p in zip(names, pairs, strict=True)}
        moved = {n: total_variation(*p) for n, p in zip(names, pairs, strict=True)}
        uneven = {
            n: total_variation(np.ones_like(counts[i]), counts[i])
            for i, n in enumerate(names)
            if n in self.setting.histograms
        }
        return {
            **_with_mean("marginal_distance", squares),
            "tvd1": _mean(moved),
            **{figure("tvd1", n): moved[n] for n in uneven},
            **{figure("unevenness", n): value for n, value in uneven.items()},
        }

    def _conditionals(self, columns: Codes) -> Figures:
        figures: Figures = {}
        for given, tables in self._two_way.items():
            at = {
                name: conditional_distance(codes, counts, self._pair(columns, given, name)[1])
                for name, (codes, counts) in tables.items()
            }
            figures |= _given("conditional_distance", at, given)
        return figures

    def _fitted(self, columns: Codes) -> Figures:
        figures: Figures = {}
        for regression, original in self._regressions:
            kind, found = regression.formula.kind, regression.coefficients(columns)
            for term, value in found.items():
                figures[figure("coefficient", f"{kind} :: {term}")] = value
            figures[figure("regression_distance", kind)] = regression_distance(original, found)
        return figures

    def _attacks(self, columns: Codes) -> Figures:
        figures: Figures = {}
        for targets in self._targets:
            found = targets.reach(columns)
            figures[figure("intruder_error", targets.attack.subject)] = found.error.value
            figures[figure("intruder_matched", targets.attack.subject)] = found.matched
        return figures

    @cached_property
    def _targets(self) -> list[Targets]:
        """The original's rows as targets of every attack."""
        schema = self.setting.schema
        return [Targets.of(attack, self.original, schema) for attack in self.setting.attacks]

    def _uniqueness(self, columns: Codes) -> Figures:
        if not self.setting.unique:
            return {}
        sizes = group_sizes(*self._part(columns))
        return {uniqueness_name(self.setting): expected_uniqueness(sizes, rows=columns.shape[1])}

    def _copies(self, columns: Codes) -> Figures:
        """Share of the synthetic rows that equal an original one in every feature."""
        keys = row_keys(columns, self._sizes)
        return {"copied_rows": float(np.isin(keys, self._originals).mean())}

    @cached_property
    def _originals(self) -> Int64:
        return np.unique(row_keys(self.original, self._sizes))

    def _part(self, columns: Codes) -> tuple[Codes, list[int]]:
        places = [self.setting.schema.index(name) for name in self.setting.unique]
        return columns[places], [self._sizes[place] for place in places]


def _with_mean(name: str, values: dict[str, float]) -> Figures:
    return {name: _mean(values), **{figure(name, key): value for key, value in values.items()}}


def _given(name: str, values: dict[str, float], given: str) -> Figures:
    every = {EVERY: _mean(values), **values}
    return {figure(name, conditional_subject(k, given)): value for k, value in every.items()}


def _mean(values: dict[str, float]) -> float:
    return float(np.mean(list(values.values()))) if values else math.nan
