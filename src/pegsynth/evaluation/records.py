"""What was measured: records, the summary, and ``metrics.json``.

A `Record` is one figure with all that is needed to read it: what it is about, the figure a
perfect method would get by chance (`baseline`), which direction is better, and how it was
computed. `Metrics` is a list of them with a summary; `to_json` and `from_json` are inverse
to each other. A figure that could not be computed is None (null in the file), never 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from pegsynth.errors import ModelError, ParameterError, legible
from pegsynth.inference.statistics import Estimate
from pegsynth.views import CONFIDENTIAL, Picture, card, table

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
FAULTS = "utility_faults"
SEPARATOR = " :: "
"""Stands between the parts of a subject."""

SUMMARY_KEYS = (
    "tvd1",
    "tvd2",
    "tvd3",
    "marginal_distance",
    "conditional_distance",
    "regression_distance",
    "uniqueness",
)

RISK_KEYS = (
    "intruder_error",
    "reappearing_uniques",
    "reappearing_as_unique",
    "reiter_risk",
    "membership_auc",
)
Better = Literal["lower", "higher"]

FOUND, BASELINE = "synthetic tables", "baseline"
_FIGURES = ("value", "low", "high", "baseline")
_SHOWN = ("figure", "subject", "value", "low", "high", "baseline", "better")
_MOST_PANELS = 40
_SERIES = ("original", "synthetic")

# Of these, and of their variants such as intruder_error_control, more is better.
_HIGHER = (
    "interval_overlap",
    "auc_",
    "intruder_error",
    "reiter_false_match_rate",
    "empty_table",
    "effective_rows",
)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One measured figure.

    Parameters
    ----------
    name
        What is measured; several records share it, one for each subject.
    subject
        The feature or features it is about; empty for the table as a whole.
    value
        The figure; None (also given as NaN) when nothing could be computed.
    low, high
        Of a distance: the smallest and largest value over several synthetic tables, None for
        a single one. Of anything else: the interval that `note` names.
    baseline
        The value expected of a bootstrap of equal size, or another yardstick that `note`
        names.
    better
        Whether lower or higher values are better.
    n
        Rows of the (smallest) synthetic table; of a risk, the people it is an average of.
    note
        How the value was computed, and what was decided where the definition is silent.
    no_power
        Of a risk: why the figure tells nothing, as even real rows would not stand out by it;
        empty where it does tell something.
    """

    name: str
    subject: str
    value: float | None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    better: Better = "lower"
    n: int = 0
    note: str = ""
    no_power: str = ""

    def __post_init__(self) -> None:
        for field in _FIGURES:
            msgspec.structs.force_setattr(self, field, _finite(getattr(self, field), field))


def measured(
    name: str,
    subject: str,
    estimate: Estimate,
    *,
    baseline: float | None = None,
    note: str = "",
    n: int | None = None,
    no_power: str = "",
) -> Record:
    """Write an estimate as a record; `n` takes the place of its own number."""
    return Record(
        name=name,
        subject=subject,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        baseline=baseline,
        better=_better(name),
        n=estimate.n if n is None else n,
        note=note,
        no_power=no_power,
    )


def not_computed(name: str, subject: str, reason: str, *, n: int = 0) -> Record:
    """Write the record of a figure that cannot be computed, with the reason."""
    note = f"not computed: {reason}"
    return Record(name=name, subject=subject, value=None, better=_better(name), n=n, note=note)


def mean_record(
    name: str, records: Sequence[Record], *, note: str, reason: str, limits: bool = False
) -> Record:
    """Write the mean over the records that have a value; where none has, the reason.

    Parameters
    ----------
    limits
        Whether to average the limits too.
    """
    known = [record for record in records if record.value is not None]
    if not known:
        return not_computed(name, "", reason)
    columns = [
        [getattr(record, field) for record in known]
        for field in ("value", *(("low", "high") if limits else ()), "baseline")
    ]
    *found, baseline = (
        math.nan if None in column else float(np.mean(column)) for column in columns
    )
    value, low, high = (*found, math.nan, math.nan)[:3]
    estimate = Estimate(value, low, high, min(record.n for record in known))
    return measured(name, "", estimate, baseline=baseline, note=note)


def headline(records: Sequence[Record], name: str) -> Record | None:
    """Return the record that stands for a measure, the same wherever one figure is shown.

    Of a risk it is the strongest form: the attack that is worst relative to its reference. Of
    anything else it is the table as a whole, or else the first subject.
    """
    ours = [record for record in records if record.name == name]
    whole = [record for record in ours if not record.subject]
    if name in RISK_KEYS:
        forms = [record for record in ours if record.subject and record.value is not None]
        if forms:
            return max(forms, key=_strength)
    return next(iter([*whole, *ours]), None)


def _strength(record: Record) -> tuple[bool, float]:
    """Return how bad a risk is, relative to its reference; one without comes last."""
    value, reference = record.value or 0.0, record.baseline
    first, second = (value, reference) if record.better == "lower" else (reference, value)
    if reference is None:
        return False, value if record.better == "lower" else -value
    # A reference of 0 was measured on people too; one of them is the least that could be seen.
    return True, (first or 0.0) / max(second or 0.0, 1 / max(record.n, 1))


class Marginal(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of one feature's categories, side by side.

    Parameters
    ----------
    feature, label
        Name and description of the feature.
    categories
        Labels of all categories, in the order of the schema.
    original, synthetic
        Share of the rows in each category; the mean share over several synthetic tables.
    """

    feature: str
    label: str
    categories: tuple[str, ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_shares("marginal", self.categories, self.original, self.synthetic)

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each category, with both shares."""
        return _frame("category", self.categories, self)

    def plot(self) -> Picture:
        """Draw both shares of every category."""
        rows = _points("category", "value", self.categories, self)
        title = f"shares of the categories of {self.feature}"
        options = {"x_title": self.label or self.feature, "order": _SERIES}
        return Picture("histograms", rows, title, options, confidential=True)


class Cumulative(msgspec.Struct, frozen=True, kw_only=True):
    """Distribution functions of one numeric feature, side by side.

    Parameters
    ----------
    feature, label
        Name and description of the feature.
    values
        Numbers in increasing order.
    original, synthetic
        Share of the rows up to each of them; the mean share over several synthetic tables.
    """

    feature: str
    label: str
    values: tuple[float, ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_shares("distribution function", self.values, self.original, self.synthetic)

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each number, with both shares of the rows up to it."""
        return _frame("value", self.values, self)

    def plot(self) -> Picture:
        """Draw both distribution functions."""
        rows = _points("x", "y", self.values, self)
        title = f"share of rows up to each value of {self.feature}"
        options = {
            "x_title": self.label or self.feature,
            "y_title": "share of rows",
            "as_percent": True,
            "steps": True,
        }
        return Picture("curves", rows, title, options, confidential=True)


def _check_shares(what: str, places: Sequence[object], *sides: Sequence[float]) -> None:
    if any(len(side) != len(places) for side in sides):
        raise ParameterError(f"a {what} needs one original and one synthetic share a place")
    if not all(0 <= share <= 1 for side in sides for share in side):
        raise ParameterError(f"the shares of a {what} lie between 0 and 1")


def _frame(name: str, places: Sequence[object], of: Marginal | Cumulative) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame({name: places, "original": of.original, "synthetic": of.synthetic})


def _points(
    place: str, share: str, places: Sequence[object], of: Marginal | Cumulative
) -> list[dict[str, object]]:
    """Return both shares at every place as rows of a chart, the original's first."""
    return [
        {place: each, share: value, "series": name}
        for name in _SERIES
        for each, value in zip(places, getattr(of, name), strict=True)
    ]


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of one comparison, as ``metrics.json`` holds them.

    Parameters
    ----------
    summary
        The headline figures by name.
    records
        Every figure with its subject, baseline and note.
    marginals
        One-way tables for the report.
    distributions
        Distribution functions of numeric features for the report.
    verdict
        What the figures mean, in the words of page and terminal; empty where nobody judged.
    format
        Version of the file's layout.
    """

    summary: dict[str, float | None]
    records: tuple[Record, ...]
    marginals: tuple[Marginal, ...] = ()
    distributions: tuple[Cumulative, ...] = ()
    verdict: dict[str, str | bool | list[str]] = {}
    format: int = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ParameterError(
                f"the metrics have format {self.format}, and this program reads format {FORMAT} "
                "only; use the version of pegsynth that wrote them"
            )
        clean = {name: _finite(value, name) for name, value in self.summary.items()}
        msgspec.structs.force_setattr(self, "summary", clean)

    def record(self, name: str, subject: str = "") -> Record | None:
        """Return the record of that name and subject, if there is one."""
        found = (r for r in self.records if r.name == name and r.subject == subject)
        return next(found, None)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is off about the release, in words, the worst first."""
        return tuple(r.note for r in self.records if r.name == FAULTS and r.subject)

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each record (Polars)."""
        import polars as pl

        kinds: dict[str, type[pl.DataType]] = dict.fromkeys(Record.__struct_fields__, pl.String)
        kinds |= dict.fromkeys(_FIGURES, pl.Float64) | {"n": pl.Int64}
        return pl.DataFrame(list(map(msgspec.structs.asdict, self.records)), schema=kinds)

    def plot(self, name: str | None = None) -> Picture:
        """Draw figures beside their baselines, each on a scale of its own.

        Parameters
        ----------
        name
            A measure, which is then drawn for all its subjects, the worst first; by default the
            figures of the table as a whole.
        """
        chosen = [r for r in self.records if (r.name == name if name else not r.subject)]
        if name and not chosen:
            known = ", ".join(dict.fromkeys(record.name for record in self.records))
            raise ParameterError(f"there is no figure {name!r}; there are {known}")
        drawn = [record for record in chosen if record.value is not None]
        if name:
            drawn.sort(key=_badness, reverse=True)
        rows = [row for record in drawn[:_MOST_PANELS] for row in _rows(record, by=name)]
        title = f"{name} by subject" if name else "the figures of the table as a whole"
        options = {"order": (FOUND, BASELINE), "zero": True}
        return Picture("forest_plot", rows, title, options, confidential=True)

    def __repr__(self) -> str:
        figures = (
            f"{name}={value:.4g}" for name, value in self.summary.items() if value is not None
        )
        return f"{type(self).__name__}({len(self.records)} records: {', '.join(figures)})"

    def _repr_html_(self) -> str:
        order = {name: place for place, name in enumerate(self.summary)}
        known = [record for record in self.records if record.value is not None]
        known.sort(key=lambda record: (bool(record.subject), order.get(record.name, len(order))))
        rows = [
            (r.name, r.subject or "the whole table", r.value, r.low, r.high, r.baseline, r.better)
            for r in known
        ]
        missing = len(self.records) - len(known)
        said = f"{len(known):,} figures; {missing:,} could not be computed (see their notes)."
        shown = table(_SHOWN, rows)
        return card(type(self).__name__, [said], table=shown, warning=CONFIDENTIAL)

    def to_json(self) -> str:
        """Write ``metrics.json``; the same metrics give the same text."""
        names = ("format", "summary", "verdict", "records", "marginals", "distributions")
        ordered = {name: msgspec.to_builtins(getattr(self, name)) for name in names}
        return msgspec.json.format(msgspec.json.encode(ordered), indent=2).decode() + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "the metrics") -> Metrics:
        """Read ``metrics.json``.

        Raises
        ------
        ModelError
            The text is truncated, foreign, of another format, or malformed.
        """
        try:
            msgspec.json.decode(text, type=_Header)
            return msgspec.json.decode(text, type=cls)
        except RecursionError:
            reason = "it is nested too deeply"
        except (msgspec.DecodeError, UnicodeError) as error:
            reason = legible(str(error))
        raise ModelError(f"{source}: not metrics that can be read: {reason}")


class _Header(msgspec.Struct):
    """What a file must state for itself, where `Metrics` has a default."""

    format: int


def _better(name: str) -> Better:
    return "higher" if name.startswith(_HIGHER) else "lower"


def _finite(value: float | None, name: str) -> float | None:
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        raise ParameterError(f"{name} is infinite; a record holds finite numbers only")
    return float(value)


def _badness(record: Record) -> float:
    value = record.value or 0.0
    return value if record.better == "lower" else -value


def _rows(record: Record, *, by: str | None) -> list[dict[str, float | str | None]]:
    """Return a record as rows of a forest plot: the figure, and what it is held against."""
    label = (record.subject or "the whole table") if by else record.name
    found = {"label": label, "value": record.value, "series": FOUND}
    if record.low is not None and record.high is not None:
        found |= {"low": record.low, "high": record.high}
    if record.baseline is None:
        return [found]
    return [found, {"label": label, "value": record.baseline, "series": BASELINE}]
