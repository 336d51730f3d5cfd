"""Recognition of records in what is released (Franconi and Stander 2002).

The intruder holds the original but for the sensitive features and takes, for each of its
rows t, a released row that differs in the fewest of these features, ties with equal
probability. *Recognition* is the mean share of right ones among the nearest rows. As the
intruder knows so much, it is a cautious measure, made to compare releases.

What is *right* depends on the kind of release, as in `matching`: where rows correspond,
released row t alone, the definition of the paper; where they do not, every released row
that agrees with t on all sensitive features together.

Notes
-----
Franconi and Stander (2002), A model-based method for disclosure limitation of business
microdata, Journal of the Royal Statistical Society: Series D 51(1), 51-61.
"""

from __future__ import annotations

import numpy as np

from pegsynth.arrays import Codes, Int64
from pegsynth.evaluation.matching import bootstrap_rates
from pegsynth.evaluation.nearest_rows import Nearest, nearest, searchable
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk_tables import NO_SENSITIVE, RiskTables, drawn, power_reason
from pegsynth.evaluation.statistics import Estimate, hull, share
from pegsynth.evaluation.tabulation import Groups, group_rows

_NAME = "recognition"
_TARGETS, _CONTROLS = 2, 3


def recognition_records(tables: RiskTables) -> list[Record]:
    """Recognise the rows of the original, or a stated part of them, in what is released."""
    features = [i for i in range(len(tables.names)) if i not in tables.sensitive]
    reason = ""
    if not features:
        reason = "every feature is sensitive, so that the intruder knows none"
    elif not tables.sensitive and not tables.corresponding:
        reason = f"{NO_SENSITIVE}: in a fully synthetic table no row belongs to anybody"
    if reason:
        return [not_computed(_NAME, "", reason)]
    if tables.corresponding:
        return [_own_rows(tables, features)]
    return _same_values(tables, features)


def recognised(found: Nearest, *, level: float) -> Estimate:
    """Mean share of right ones among the nearest rows of each target."""
    return share(float((found.hits / found.ties).mean()), len(found.ties), level=level)


def _own_rows(tables: RiskTables, features: list[int]) -> Record:
    rows = drawn(tables.rows, searchable(tables.tables[0][features]), stream=_TARGETS)
    order = np.arange(tables.rows, dtype=np.int64)
    estimates = []
    for table in tables.tables:
        targets = tables.original[features][:, rows]
        found = nearest(table[features], order, targets, rows, threads=tables.threads)
        estimates.append(recognised(found, level=tables.level))
    note = (
        f"{_what(tables, features, len(rows))}; rows correspond (partially synthetic), so that "
        "only released row t, made from row t, is right; baseline: a row taken at random; "
        f"{tables.limits}"
    )
    return measured(
        _NAME, tables.listed(features), hull(estimates), baseline=1 / tables.rows, note=note
    )


def _same_values(tables: RiskTables, features: list[int]) -> list[Record]:
    every = tables.with_holdout(tables.original, tables.released)
    values = group_rows(every, tables.sensitive, tables.sizes)
    released = tables.released[features]
    most = searchable(released)

    def search(table: Codes, tags: Int64, stream: int) -> Estimate:
        rows = drawn(table.shape[1], most, stream=stream)
        found = nearest(
            released,
            values.ids[1],
            table[features][:, rows],
            tags[rows],
            threads=tables.threads,
        )
        return recognised(found, level=tables.level)

    subject = f"{tables.listed(tables.sensitive)} | all other features"
    value = search(tables.original, values.ids[0], _TARGETS)
    what = (
        f"{_what(tables, features, value.n)}; rows do not correspond (fully synthetic), so that a "
        f"row is right when it agrees on {tables.listed(tables.sensitive)} together{tables.stacked}"
    )
    if tables.holdout is None:
        note = f"{what}; baseline: a released row taken at random, as {tables.no_holdout}"
        return [measured(_NAME, subject, value, baseline=_at_random(values), note=note)]
    control = search(tables.holdout, values.ids[2], _CONTROLS)
    note = f"{what}; baseline: {control.n} rows of the hold-out as targets; {tables.limits}"
    other = f"the same for {control.n} rows of the hold-out as targets, who were never given"
    no_power = power_reason(_real_rows(tables, features, value), control)
    return [
        measured(_NAME, subject, value, baseline=control.value, note=note, no_power=no_power),
        measured(f"{_NAME}_control", subject, control, baseline=value.value, note=other),
    ]


def _real_rows(tables: RiskTables, features: list[int], value: Estimate) -> Estimate:
    """At least so many are recognised in as many real rows: by rows that agree in all features."""
    group, profile = (
        groups.sizes(0)[groups.ids[0]]
        for groups in (
            group_rows([tables.original], of, tables.sizes)
            for of in (features, range(len(tables.names)))
        )
    )
    risk = bootstrap_rates(group, profile, tables.released_rows)[0]
    return share(risk, value.n, level=tables.level)


def _at_random(values: Groups) -> float:
    """Chance that a row of the original and a released row agree, both taken at random."""
    shares = [values.sizes(table) / len(values.ids[table]) for table in (0, 1)]
    return float(np.dot(*shares))


def _what(tables: RiskTables, features: list[int], count: int) -> str:
    which = "every row" if count == tables.rows else f"{count} rows, drawn at random (seeded),"
    return (
        f"mean share of right ones among the released rows that differ in the fewest of "
        f"{len(features)} known features; {which} of the original as targets"
    )
