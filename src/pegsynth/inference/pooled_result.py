"""Coefficients with their covariance matrix, asked as those of statsmodels are (R28).

Goes in: what `combine` found. Comes out: `params`, `bse`, `conf_int()`, `cov_params()`, contrasts
and joint tests. A covariance matrix of K replicates has K degrees of freedom, so joint tests of q
contrasts compare W (K - q + 1)/(K q) with F of q and K - q + 1.

Combined estimates as columns, as text, as a picture and as a card for a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.inference.combine import Combined
from pegsynth.inference.combining_rules import Numbers
from pegsynth.inference.ledger_support import SUPPORTED, worst
from pegsynth.tables.caller_frames import FrameKind, to_kind
from pegsynth.views import Picture, card, table

_SMALLEST_PIVOT = 1e-10


@dataclass(frozen=True)
class WaldTest:
    """A joint test of contrasts.

    Parameters
    ----------
    statistic
        F.
    df_num, df_denom
        Its degrees of freedom.
    pvalue
        The chance of an F at least as large where the contrasts are what they are compared with.
    """

    statistic: float
    df_num: float
    df_denom: float
    pvalue: float

    @classmethod
    def of(cls, statistic: float, df_num: float, df_denom: float) -> WaldTest:
        """Return a test by its F and the degrees of freedom."""
        from scipy import stats

        chance = float(stats.f.sf(statistic, df_num, df_denom))
        return cls(statistic, df_num, df_denom, chance)

    def __str__(self) -> str:
        return (
            f"F({self.df_num:.4g}, {self.df_denom:.4g}) = {self.statistic:.6g}, "
            f"p = {self.pvalue:.4g}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Pooled:
    """Pooled coefficients; printing shows 95 % intervals and the notes.

    Parameters
    ----------
    combined
        The figures.
    kind
        Whose dataframes and series are returned; None means Polars, and dictionaries.
    terms
        The coefficients of every term of a formula; empty where there is none.
    response
        What a formula explains.
    """

    combined: Combined
    kind: FrameKind | None = None
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    response: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.combined.names

    @property
    def statuses(self) -> dict[str, str]:
        """For every coefficient whether published tables support it; empty where there are none."""
        return dict(zip(self.names, self.combined.statuses, strict=False))

    @property
    def params(self) -> Any:
        """The estimates, by name: a pandas Series where the table was one of pandas."""
        return self._named(self.combined.estimate)

    @property
    def bse(self) -> Any:
        """The standard errors, by name."""
        return self._named(self.combined.std_error)

    @property
    def df(self) -> Any:
        """The degrees of freedom, by name."""
        return self._named(self.combined.degrees_of_freedom)

    @property
    def tvalues(self) -> Any:
        """Estimates over their standard errors, by name."""
        return self._named(self._ratios())

    @property
    def pvalues(self) -> Any:
        """The chance of a t at least as large where the coefficient is 0, by name."""
        return self._named(self._chances())

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Return the ends of the 1 - alpha intervals.

        They are the columns 0 and 1 of a pandas DataFrame, as in statsmodels; or the columns
        term, low and high of a Polars one.
        """
        low, high = map(np.atleast_1d, self.combined.interval(1 - alpha))
        if self.kind == "pandas":
            import pandas as pd

            return pd.DataFrame({0: low, 1: high}, index=list(self.names))
        return to_kind(pl.DataFrame({"term": self.names, "low": low, "high": high}), self.kind)

    def cov_params(self) -> Any:
        """Return the covariance matrix: an array, or a pandas DataFrame with names.

        Raises
        ------
        ParameterError
            The rule combines every quantity by itself.
        """
        matrix = self._covariance()
        if self.kind == "pandas":
            import pandas as pd

            return pd.DataFrame(matrix, index=list(self.names), columns=list(self.names))
        return matrix.copy()

    def t_test(self, contrasts: Any, value: Any = 0.0) -> Pooled:
        """Return contrasts of the coefficients, each with its own interval and test.

        Parameters
        ----------
        contrasts
            A name; a mapping of names to factors, as ``{"sev[2]": 1, "sev[1]": -1}``; several of
            these; or a matrix with a column for every coefficient.
        value
            What each is compared with: it is taken off the estimate.
        """
        matrix, labels = self._contrasts(contrasts)
        covariance = matrix @ self._covariance() @ matrix.T
        found = replace(
            self.combined,
            estimate=matrix @ np.atleast_1d(self.combined.estimate) - value,
            variance=np.maximum(np.diag(covariance), 0.0),
            degrees_of_freedom=np.full(len(labels), self._least_degrees()),
            names=labels,
            covariance=covariance,
            link="identity",
            ends=None,
            statuses=self._worst(matrix),
        )
        return Pooled(found, self.kind)

    def wald_test(self, contrasts: Any, value: Any = 0.0) -> WaldTest:
        """Test jointly that contrasts, written as for `t_test`, have a value.

        Notes
        -----
        The adjusted Wald test: Korn and Graubard (1990), Simultaneous testing of regression
        coefficients with complex survey data, The American Statistician 44(4), 270-276,
        doi:10.1080/00031305.1990.10475737.
        """
        matrix, labels = self._contrasts(contrasts)
        count, degrees = len(labels), self._least_degrees()
        if count > degrees:
            raise ParameterError(
                f"a joint test of {count} contrasts needs at least {count} replicates; there are "
                f"{degrees:g}: test fewer, or ask for a release with more replicates"
            )
        off = matrix @ np.atleast_1d(self.combined.estimate) - value
        covariance = matrix @ self._covariance() @ matrix.T
        size = np.sqrt(np.diag(covariance))
        if not (size > 0).all():
            raise ParameterError(
                f"{labels[int(np.argmin(size))]} does not vary over the replicates; it cannot be "
                "tested"
            )
        scaled = covariance / np.outer(size, size)
        if np.linalg.eigvalsh(scaled)[0] < _SMALLEST_PIVOT:
            raise ParameterError("the contrasts depend on each other; state fewer")
        statistic = float(off / size @ np.linalg.solve(scaled, off / size))
        below = degrees - count + 1
        return WaldTest.of(statistic * below / (degrees * count), count, below)

    f_test = wald_test

    def summary(self, level: float = 0.95) -> str:
        """Return estimates, standard errors, t, p and intervals as an aligned table."""
        more = {"t": self._ratios().tolist(), "p": self._chances().tolist()}
        return text(self.combined, level, more)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe of the kind the datasets had, with intervals of a level."""
        return to_kind(pl.DataFrame(columns(self.combined, level)), self.kind)

    def plot(self, level: float = 0.95) -> Picture:
        """Draw the coefficients with their intervals."""
        return picture(self.combined, level)

    def __repr__(self) -> str:
        return text(self.combined)

    def _repr_html_(self) -> str:
        return combined_card(self.combined)

    def _named(self, values: Any) -> Any:
        found = np.atleast_1d(values).tolist()
        if self.kind == "pandas":
            import pandas as pd

            return pd.Series(found, index=list(self.names), dtype=np.float64)
        return dict(zip(self.names, found, strict=True))

    def _ratios(self) -> Numbers:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.atleast_1d(self.combined.estimate) / np.atleast_1d(self.combined.std_error)
        return np.asarray(found)

    def _chances(self) -> Numbers:
        from scipy import stats

        return np.asarray(2 * stats.t.sf(np.abs(self._ratios()), self.combined.degrees_of_freedom))

    def _covariance(self) -> Numbers:
        if self.combined.covariance is None:
            raise ParameterError(
                f"the {self.combined.rule} rule combines every quantity by itself and gives no "
                "covariances; replicates give them: a release by pegs-once with --replicates"
            )
        return self.combined.covariance

    def _worst(self, matrix: Numbers) -> tuple[str, ...]:
        """Return the status of every contrast: the worst of its coefficients'."""
        told = self.combined.statuses
        lines = [[told[place] for place in np.flatnonzero(line)] for line in matrix] if told else []
        return tuple(worst(line or [SUPPORTED]) for line in lines)

    def _least_degrees(self) -> float:
        return float(np.min(self.combined.degrees_of_freedom))

    def _contrasts(self, contrasts: Any) -> tuple[Numbers, tuple[str, ...]]:
        """Return a line of factors for every contrast, and what each is called."""
        one = isinstance(contrasts, str | Mapping)
        lines = [contrasts] if one else list(contrasts)
        if not lines:
            raise ParameterError("state at least one contrast")
        if all(isinstance(each, str | Mapping) for each in lines):
            pairs = [self._line(each) for each in lines]
            return np.array([line for line, _ in pairs]), tuple(label for _, label in pairs)
        try:
            matrix = np.atleast_2d(np.asarray(contrasts, dtype=np.float64))
        except (TypeError, ValueError):
            matrix = np.empty((0, 0))
        if matrix.ndim != 2 or matrix.shape[1] != len(self.names):
            raise ParameterError(
                "contrasts are names, mappings of names to factors, or a matrix with a column for "
                f"each of the {len(self.names)} coefficients"
            )
        return matrix, tuple(f"contrast {place}" for place in range(1, len(matrix) + 1))

    def _line(self, contrast: str | Mapping[str, float]) -> tuple[Numbers, str]:
        wanted = {contrast: 1.0} if isinstance(contrast, str) else contrast
        line = np.zeros(len(self.names))
        for name, factor in wanted.items():
            if name not in self.names:
                raise ParameterError(
                    f"there is no coefficient {name!r}; there are {', '.join(self.names)}"
                )
            line[self.names.index(name)] = factor
        if isinstance(contrast, str):
            return line, contrast
        return line, " ".join(f"{factor:+g} {name}" for name, factor in wanted.items())


def anova(*models: Pooled) -> Any:
    """Test the terms of one model, or what each of several nested models adds to the one before.

    Parameters
    ----------
    models
        Regressions by formula; of several, each with all the terms of the one before.

    Returns
    -------
    DataFrame
        The columns term, F, df_num, df_denom and p: adjusted Wald tests, as of `wald_test`.
    """
    tests: dict[str, Sequence[str]] = {}
    if len(models) == 1 and models[0].terms:
        tests = dict(models[0].terms)
        last = [models[0]] * len(tests)
    else:
        last = list(models[1:])
        for smaller, larger in pairwise(models):
            added = [name for name in larger.names if name not in smaller.names]
            inside = set(smaller.names) <= set(larger.names)
            if not (added and inside and smaller.response == larger.response):
                raise ParameterError(
                    "anova compares nested models of one response: state the smaller one first"
                )
            terms = [term for term, names in larger.terms.items() if set(names) & set(added)]
            tests[" + ".join(terms or added)] = added
    if not tests:
        raise ParameterError("anova takes one regression by formula, or nested models")
    found = [model.wald_test(names) for model, names in zip(last, tests.values(), strict=True)]
    lines = {
        "term": list(tests),
        "F": [each.statistic for each in found],
        "df_num": [float(each.df_num) for each in found],
        "df_denom": [float(each.df_denom) for each in found],
        "p": [each.pvalue for each in found],
    }
    return to_kind(pl.DataFrame(lines), models[0].kind)


HEADER: Final = ("term", "estimate", "std_error", "dof", "low", "high", "rule")
_MOST_PANELS = 60


def columns(combined: Combined, level: float = 0.95) -> dict[str, list[Any]]:
    """Return the figures as lists, one entry per quantity."""
    low, high = combined.interval(level)
    figures = (combined.estimate, combined.std_error, combined.degrees_of_freedom, low, high)
    lists = [[float(x) for x in np.atleast_1d(figure)] for figure in figures]
    count = len(lists[0])
    names = combined.names or [f"quantity {place}" for place in range(1, count + 1)]
    every: list[list[Any]] = [list(names), *lists, [combined.rule] * count]
    found: dict[str, list[Any]] = dict(zip(HEADER, every, strict=True))
    if combined.statuses:
        found["status"] = list(combined.statuses)
    return found


def text(
    combined: Combined, level: float = 0.95, more: Mapping[str, list[Any]] | None = None
) -> str:
    """Return an aligned table, with more columns if wanted, the level of intervals, and notes."""
    found = columns(combined, level)
    rule = found.pop("rule")
    status = {"status": found.pop("status")} if "status" in found else {}
    found |= {**(more or {}), **status, "rule": rule}
    lines = [tuple(found), *(_line(row) for row in zip(*found.values(), strict=True))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [_aligned(line, widths) for line in lines]
    notes = [f"- {note}" for note in combined.notes]
    return "\n".join([*aligned, "", f"low to high: {level:.4g} interval", *notes])


def picture(combined: Combined, level: float = 0.95) -> Picture:
    """Draw the estimates with their intervals, each on a scale of its own."""
    found = columns(combined, level)
    names = ("label", "value", "low", "high")
    rows = [
        {**dict(zip(names, row, strict=True)), "series": ""}
        for row in zip(*(found[name] for name in ("term", "estimate", "low", "high")), strict=True)
    ]
    title = f"estimates and {level:.4g} intervals by the rule {combined.rule}"
    return Picture("forest_plot", rows[:_MOST_PANELS], title)


def combined_card(combined: Combined) -> str:
    """Return the figures with 0.95 intervals; what is drawn from released tables is public."""
    found = columns(combined)
    title = f"Estimates combined by the rule {combined.rule}, with 0.95 intervals"
    rows = zip(*found.values(), strict=True)
    return card(title, [" ".join(combined.notes)], table=table(tuple(found), rows))


def _line(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(_number(x) if isinstance(x, float) else " ".join(str(x).split()) for x in row)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    """Put text to the left and figures to the right of their columns."""
    first, *middle, last = zip(line, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in middle), last[0]]
    return "  ".join(cells).rstrip()
