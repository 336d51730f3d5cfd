"""From K estimates and their variances to one estimate with a valid interval (R16, R23, R28)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference import combining_rules
from pegsynth.inference.choice import check_rule, design_of, rows_in_of, rows_of, rule_for
from pegsynth.inference.combining_rules import (
    PART,
    REPLICATED,
    ROWS_NEEDED,
    RULES,
    Floor,
    Moments,
    Numbers,
    Rule,
    Spread,
)
from pegsynth.inference.estimates import Table, alone, check_enough, matched, one_each
from pegsynth.inference.ledger_support import (
    LEDGER_NEEDED,
    NO_ANALYSIS,
    NO_LEDGER,
    NOT_ASKED,
    status_of,
    support_note,
)
from pegsynth.options import WEIGHT
from pegsynth.privacy import Ledger

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.views import Picture

Value: TypeAlias = float | Numbers
Link: TypeAlias = Literal["identity", "log", "cloglog"]

NOT_COVERED: Final = (
    "no rule covers the bias of the virtual rows (alpha), or noise that all datasets share: "
    "the interval is about sampling and synthesis only"
)
# A ledger with virtual rows is refused before.
NOT_COVERED_BY_A_MODEL: Final = (
    "no rule covers what the method gets wrong about the original, or noise that all datasets "
    "share: the interval is about sampling and synthesis only"
)
FEW_DATASETS: Final = 5
_MOST_NAMED = 5


@dataclass(frozen=True, eq=False)
class Combined:
    """What K synthetic datasets say about one or more quantities.

    Parameters
    ----------
    estimate, variance, degrees_of_freedom
        Numbers, or arrays with one entry per quantity.
    rule
        The rule that gave the variance.
    notes
        What a reader must know to use the figures; never empty.
    names
        Names of the quantities in their order; empty when they have none.
    covariance
        The covariance matrix of the estimates, which the rules for replicates give.
    link
        The scale on which intervals are symmetrical: "log" for what is above 0, "cloglog", that
        of log(-log), for what lies between 0 and 1.
    ends
        Where intervals are symmetrical on no such scale: their ends, from the quantiles of t.
    statuses
        For each quantity whether published tables support it, or that this is not known; empty
        where no tables are published.
    """

    estimate: Value
    variance: Value
    degrees_of_freedom: Value
    rule: Rule
    notes: tuple[str, ...]
    names: tuple[str, ...] = ()
    covariance: Numbers | None = None
    link: Link = "identity"
    ends: Callable[[Any], tuple[Numbers, Numbers]] | None = None
    statuses: tuple[str, ...] = ()

    @property
    def std_error(self) -> Value:
        """Square root of the variance."""
        return _like(self.variance, np.sqrt(self.variance))

    def interval(self, level: float = 0.95) -> tuple[Value, Value]:
        """Return the lower and upper ends of the intervals of a given level."""
        from scipy import stats

        level = _checked_level(level)
        factor = stats.t.ppf((1 + level) / 2, self.degrees_of_freedom)
        if self.ends is None:
            half = np.asarray(factor * self.std_error)
            low, high = _ends(np.asarray(self.estimate), half, self.link)
        else:
            low, high = self.ends(factor)
        return _like(self.estimate, low), _like(self.estimate, high)

    def __getitem__(self, name: str) -> Combined:
        """Return what is known about the quantity of that name."""
        if name not in self.names:
            raise KeyError(name)
        place = self.names.index(name)
        values = (self.estimate, self.variance, self.degrees_of_freedom)
        estimate, variance, degrees = (float(np.atleast_1d(value)[place]) for value in values)
        found = Combined(
            estimate,
            variance,
            degrees,
            self.rule,
            self.notes,
            link=self.link,
            statuses=self.statuses[place : place + 1],
        )
        if self.ends is None:
            return found
        # The degrees of freedom of all are needed for the ends of one.
        whole = self.ends
        return replace(found, ends=lambda t: tuple(each[place] for each in whole(t)))

    def with_status(self, status: str) -> Combined:
        """Return the same with one status for all quantities."""
        return replace(self, statuses=(status,) * np.size(self.estimate))

    def to_frame(self, level: float = 0.95) -> pl.DataFrame:
        """Return one line for each quantity, with intervals of a level (Polars)."""
        import polars as pl

        from pegsynth.inference.pooled_result import columns

        return pl.DataFrame(columns(self, level))

    def plot(self, level: float = 0.95) -> Picture:
        """Draw the estimates with their intervals."""
        from pegsynth.inference.pooled_result import picture

        return picture(self, level)

    def _repr_html_(self) -> str:
        from pegsynth.inference.pooled_result import combined_card

        return combined_card(self)


def combine(
    estimates: Any,
    variances: Any = None,
    *,
    rule: Rule | None = None,
    rows: int | None = None,
    rows_in: int | None = None,
    ledger: Ledger | None = None,
    main: Any = None,
    floor: Floor | None = None,
    imputations: int | None = None,
    analysis: str | None = None,
    part: float | None = None,
) -> Combined:
    """Combine the estimates from K >= 2 synthetic datasets.

    Parameters
    ----------
    estimates, variances
        K numbers; or K rows of p numbers; or a mapping or dataframe of columns, or K
        mappings, keyed by the name of the quantity. A variance is a squared standard
        error as the analysis of that one dataset gives it; the rules for replicates
        need none.
    rule
        "plug-in", "fully" (the paper's T_s), "partial" or "shared-urn"; for released
        blocks "own-noise", and "replicate-weights" for estimates with K replicate
        weights; "nested" for completed datasets. By default the rule that fits the `ledger`,
        and without one "plug-in", "nested" if `imputations` is given, or "replicate-weights"
        if `main` is.
    rows
        Rows of one synthetic dataset (n); by default as the ledger records them.
    rows_in
        Public number of original rows (N); by default as the ledger states it.
    ledger
        How the datasets were made.
    main
        For replicate weights: the estimates of the rows as they are.
    floor
        For the rules for replicates: the published noise on quantities that are shares.
    imputations
        r, where missing values of every dataset were imputed r times (R23): there are then
        K r estimates, those of a dataset one after the other.
    analysis
        With the ledger of released blocks: the formula or features that the estimates are of,
        such as ``los ~ age + sev``. Statuses and a note then say whether published tables
        support it.
    part
        For replicate weights: the part f of sampling error and noise that they have; by default
        as the ledger records it, and 0.2 without one.

    Returns
    -------
    Combined
        Estimate, variance, degrees of freedom, intervals, rule and notes.

    Raises
    ------
    ParameterError
        If the numbers cannot be combined, the rule needs row counts that are not known, or
        it is wrong for what the ledger records.
    """
    notes: list[str] = []
    if rule is None:
        rule = _default_rule(ledger, estimates, main, imputations, notes)
    elif rule not in RULES:
        raise ParameterError(f"rule is one of {', '.join(RULES)}, not {rule!r}")
    if ledger is not None:
        check_rule(rule, ledger)
    note = _support(ledger, analysis)
    _check_arguments(rule, variances, main, floor)
    combining_rules.check_imputations(rule, imputations)
    if imputations is not None:
        notes.append(combining_rules.NOT_AT_RANDOM)
    if rule in REPLICATED:
        notes.append(note or NOT_ASKED)
        design = design_of(ledger) if ledger is not None and part is None else None
        part = part or (PART if design is None else design.part)
        table = _averaged(alone(estimates), imputations)
        found = _replicated(rule, table, main, part, floor, notes)
        unknown = NO_LEDGER if ledger is None else NO_ANALYSIS
        return found.with_status(status_of(note or unknown))
    table, checked = matched(estimates, variances)
    datasets = combining_rules.datasets_of(len(table.values), imputations)
    share = _share(ledger, datasets, rows, rows_in)
    if imputations is not None:
        check_enough(datasets)
        spread = combining_rules.nested(table.values, checked, imputations, _known(rule, share))
    else:
        spread = _spread(rule, Moments.of(table.values, checked), share)
    notes += _remarks(rule, datasets, table, spread, share)
    notes += [note] if note else []
    notes.append(NOT_COVERED if ledger is None else NOT_COVERED_BY_A_MODEL)
    found = _combined(rule, table, table.values.mean(axis=0), spread, tuple(notes))
    return found.with_status(status_of(note)) if note else found


def _support(ledger: Ledger | None, analysis: str | None) -> str:
    """Return a note on what published tables hold of an analysis, if both are known."""
    if analysis is None:
        return ""
    if ledger is None:
        raise ParameterError(LEDGER_NEEDED)
    return support_note(ledger, analysis)


def _default_rule(
    ledger: Ledger | None,
    estimates: object,
    main: object,
    imputations: int | None,
    notes: list[str],
) -> Rule:
    if ledger is None:
        unstated: Rule = "plug-in" if imputations is None else "nested"
        return unstated if main is None else "replicate-weights"
    datasets = combining_rules.datasets_of(len(alone(estimates).values), imputations)
    choice = rule_for(ledger, datasets)
    if imputations is not None and choice.rule == "plug-in":
        notes.append("rule nested by the ledger: missing values were imputed after synthesis")
        return "nested"
    notes.append(f"rule {choice.rule} by the ledger: {choice.reason}")
    return choice.rule


def _check_arguments(rule: Rule, variances: object, main: object, floor: Floor | None) -> None:
    """Refuse what a rule lacks, and what it would not use."""
    if rule == "replicate-weights" and main is None:
        raise ParameterError(
            f"the replicate-weights rule needs main, the estimate with the column {WEIGHT}, beside "
            f"those with {WEIGHT}_1, {WEIGHT}_2, .."
        )
    if rule != "replicate-weights" and main is not None:
        raise ParameterError(f"main is for the replicate-weights rule, not for {rule}")
    if rule not in REPLICATED and variances is None:
        raise ParameterError(
            f"the {rule} rule needs the variance of every estimate, a squared standard error"
        )
    if rule not in REPLICATED and floor is not None:
        raise ParameterError(f"a floor is for the rules {' and '.join(REPLICATED)}, not for {rule}")


def _averaged(table: Table, imputations: int | None) -> Table:
    """Return the mean of every dataset: it holds the spread of imputing, too (R23)."""
    if imputations is None:
        return table
    check_enough(combining_rules.datasets_of(len(table.values), imputations))
    return replace(table, values=combining_rules.dataset_means(table.values, imputations))


def _replicated(
    rule: Rule,
    table: Table,
    main: object,
    part: float,
    floor: Floor | None,
    notes: list[str],
) -> Combined:
    """Combine replicates, whose spread holds sampling error and noise (R28)."""
    if rule == "replicate-weights":
        centre = one_each(main, table, "main")
        spread = combining_rules.replicate_weights(table.values, centre, part=part)
    else:
        centre, spread = table.values.mean(axis=0), combining_rules.own_noise(table.values)
    if floor is not None:
        deviations = one_each(floor.deviation, table, "the floor's deviation")
        spread, below = combining_rules.with_floor(spread, centre, deviations, floor.total)
        if below.any():
            notes.append(
                f"below the noise{_where(below, table)}: the variance is that of the published "
                "noise and of sampling"
            )
    matrix = combining_rules.covariance(table.values - centre, spread.variance)
    return replace(_combined(rule, table, centre, spread, tuple(notes)), covariance=matrix)


def _share(
    ledger: Ledger | None, datasets: int, rows: int | None, rows_in: int | None
) -> float | None:
    """Return n/N if both are known."""
    rows, rows_in = _checked_rows("rows", rows), _checked_rows("rows_in", rows_in)
    if ledger is not None:
        rows = rows_of(ledger, datasets) if rows is None else rows
        rows_in = rows_in_of(ledger) if rows_in is None else rows_in
    return None if rows is None or rows_in is None else rows / rows_in


def _spread(rule: Rule, moments: Moments, share: float | None) -> Spread:
    if rule == "partial":
        return combining_rules.partial(moments)
    if rule == "fully":
        return combining_rules.fully(moments, share)
    spread = combining_rules.plug_in if rule == "plug-in" else combining_rules.shared_urn
    return spread(moments, _known(rule, share))


def _known(rule: Rule, share: float | None) -> float:
    if share is None:
        raise ParameterError(f"the {rule} rule needs {ROWS_NEEDED}")
    return share


def _remarks(
    rule: Rule, datasets: int, table: Table, spread: Spread, share: float | None
) -> list[str]:
    remarks = []
    if rule != "fully" and datasets < FEW_DATASETS:
        remarks.append(
            f"with fewer than {FEW_DATASETS} datasets the intervals hold the truth less often than "
            "they say, with 2 clearly so"
        )
    if rule == "partial" and share not in (None, 1.0):
        remarks.append("the partial rule is for as many synthetic as original rows (n = N)")
    if spread.adjusted.any():
        remarks.append(
            f"the paper's variance was not positive{_where(spread.adjusted, table)}; (n/N) v with "
            "K - 1 degrees of freedom took its place"
        )
    if (few := spread.degrees_of_freedom < 1).any():
        remarks.append(
            f"fewer than 1 degree of freedom{_where(few, table)}: the interval is too wide to be "
            "of use; combine more datasets or use the plug-in rule"
        )
    return remarks


def _where(hit: Any, table: Table) -> str:
    """Say which quantities a remark is about; nothing for a single one."""
    if table.scalar:
        return ""
    places = np.flatnonzero(hit)
    if len(places) > _MOST_NAMED:
        return f" for {len(places)} of {len(hit)} quantities"
    return " for " + ", ".join(
        table.names[place] if table.names else f"quantity {place + 1}" for place in places
    )


def _combined(
    rule: Rule, table: Table, centre: Numbers, spread: Spread, notes: tuple[str, ...]
) -> Combined:
    values = (centre, spread.variance, spread.degrees_of_freedom)
    if table.scalar:
        estimate, variance, degrees = (float(value[0]) for value in values)
        return Combined(estimate, variance, degrees, rule, notes)
    for value in values:
        value.flags.writeable = False
    return Combined(*values, rule, notes, table.names)


def _checked_rows(name: str, value: int | None) -> int | None:
    if value is None:
        return None
    try:
        whole = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = 0
    if whole < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1")
    return whole


def _checked_level(level: float) -> float:
    try:
        inside = 0 < level < 1
    except TypeError:
        inside = False
    if not inside:
        raise ParameterError("level must lie between 0 and 1, such as 0.95")
    return level


def _ends(estimate: Numbers, half: Numbers, link: Link) -> tuple[Numbers, Numbers]:
    """Return the ends of intervals that are symmetrical on a scale, by its derivative."""
    if link == "identity":
        return estimate - half, estimate + half
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if link == "log":
            factor = np.exp(half / estimate)
            low, high = estimate / factor, estimate * factor
        else:
            factor = np.exp(np.abs(half / (estimate * np.log(estimate))))
            low, high = estimate**factor, estimate ** (1 / factor)
    # At an end of the scale there is no derivative, and replicates do not vary either.
    inside = (estimate > 0) & ((link == "log") | (estimate < 1))
    return np.where(inside, low, estimate - half), np.where(inside, high, estimate + half)


def _like(model: Value, value: Any) -> Value:
    return float(value) if isinstance(model, float) else cast("Numbers", value)
