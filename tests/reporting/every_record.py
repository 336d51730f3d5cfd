"""Hand-made metrics with every kind of record, for tests of the page."""

from __future__ import annotations

from itertools import combinations, permutations

from pegsynth.evaluation import Marginal, Metrics, Record
from pegsynth.evaluation.records import Cumulative

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
FEATURES = (
    "hosp.zip",
    "age.yrs",
    "sex",
    "race",
    "patzip",
    "los",
    "admission type",
    SCRIPT,
    "charge",
    "MDC",
    "sev",
    "payer",
    IMAGE,
)
FORMULAS = {
    "I(charge > 25000) ~ age.yrs + sev + cat + los": ("Intercept", "age.yrs", "sev", "cat", "los"),
    "charge ~ age.yrs + sev + cat + los": ("Intercept", "age.yrs", "sev", "cat", "los"),
}
UNSUMMED = (
    "coefficient",
    "intruder_error_",
    "intruder_matched",
    "auc_real",
    "reiter_",
    "value_",
    "pearson_correlation",
    "spearman_correlation",
)
NUMERIC = ("age.yrs", "charge", SCRIPT)
ATTACKS = {"MDC | age.yrs, sex, patzip": 1.0, "charge | age.yrs, los, patzip": 21_000.0}


def record(name, subject, value, baseline=None, *, spread=None, better="lower", n=1000, note="how"):
    low, high = (None, None) if spread is None else (value - spread, value + spread)
    return Record(
        name=name,
        subject=subject,
        value=value,
        low=low,
        high=high,
        baseline=baseline,
        better=better,
        n=n,
        note=note,
    )


def missing(name, subject, reason):
    return Record(name=name, subject=subject, value=None, note=f"not computed: {reason}")


def shares(weights):
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def marginal(feature, size, label=""):
    weights = [1 / (1 + abs(i - size // 3)) for i in range(size)]
    others = [1 / (1 + abs(i - size // 2)) for i in range(size)]
    return Marginal(
        feature=feature,
        label=label,
        categories=(SCRIPT, IMAGE, *(f"category {i}" for i in range(2, size))),
        original=shares(weights),
        synthetic=shares(others),
    )


def table_records(features):
    ones = [record("tvd1", f, 0.01 + 0.004 * i, 0.008) for i, f in enumerate(features)]
    pairs = [
        record("tvd2", f"{a}, {b}", 0.02 + 0.3 * ((7 * i) % 17 / 17) ** 2, 0.02)
        for i, (a, b) in enumerate(combinations(features, 2))
    ]
    conditionals = [
        record("conditional_distance", f"{a} | {b}", 0.5 + i % 7, 0.4)
        for i, (a, b) in enumerate(permutations(features, 2))
    ]
    return [*ones, *pairs, *conditionals]


def regression_records():
    records = []
    for place, (formula, terms) in enumerate(FORMULAS.items()):
        for i, term in enumerate(terms):
            subject, scale = f"{formula} :: {term}", (1 + i) * (1, 3000)[place]
            if term == "cat" and place == 1:
                records.append(missing("coefficient", subject, "the fit is separated"))
                records.append(record("coefficient_original", subject, scale, spread=0.2 * scale))
                continue
            records += [
                record("coefficient", subject, 1.1 * scale, scale, spread=0.3 * scale),
                record("coefficient_original", subject, scale, spread=0.2 * scale),
                record("interval_overlap", subject, 0.8 - 0.1 * i, 1, better="higher"),
            ]
        records.append(record("regression_distance", formula, 0.4 + place, 0))
    return records


def number_records():
    records = [
        record("kolmogorov_distance", "", 0.04, 0.01),
        record("wasserstein_distance", "", 0.1, 0.02),
        record("pearson_distance", "", 0.03, 0.01),
        record("spearman_distance", "", 0.02, 0.01),
        record("utility_faults", "", 1, 0, note="Numbers are off where the rule says so."),
        record("utility_faults", "charge :: mean", 4, 1, note=f"the mean of {IMAGE} is off (2, 1)"),
    ]
    for place, feature in enumerate(NUMERIC, start=1):
        records += [
            record("value_mean", feature, 110.0 * place, 100.0 * place, spread=5.0),
            record("value_sd", feature, 20.0, 25.0, spread=1.0),
            record("value_quantile", f"{feature} :: 0.5", 95.0, 90.0, spread=2.0),
            record("value_heap", f"{feature} :: 30000", 0.01, 0.04, spread=0.01),
            record("value_tail", f"{feature} :: above the 0.99 quantile", 0.0, 0.01, spread=0.01),
            record("kolmogorov_distance", feature, 0.02 * place, 0.01),
        ]
    records.append(record("value_zeros", "charge", 0.1, 0.2, spread=0.01))
    for first, second in combinations(NUMERIC, 2):
        for name in ("pearson_correlation", "spearman_correlation"):
            records.append(record(name, f"{first}, {second}", 0.4, 0.5, spread=0.02))
    return records


def cumulative(feature, largest):
    values = tuple(largest * (i / 40) ** 5 for i in range(41))
    shares = tuple(min(1.0, 0.1 + i / 44) for i in range(41))
    return Cumulative(
        feature=feature,
        label=f"what it means {SCRIPT}",
        values=values,
        original=shares,
        synthetic=tuple(min(1.0, share**1.2) for share in shares),
    )


def risk_records():
    records = [record("intruder_error", "", 0.62, 0.6, spread=0.02, better="higher")]
    for subject, scale in ATTACKS.items():
        note = "share of wrong guesses" if scale == 1 else "mean absolute error of the mean"
        for name, value in (
            ("intruder_error", 0.62),
            ("intruder_error_bootstrap", 0.45),
            ("intruder_error_holdout", 0.6),
            ("intruder_error_control", 0.63),
        ):
            baseline = 0.6 * scale if name == "intruder_error" else None
            records.append(
                record(
                    name,
                    subject,
                    value * scale,
                    baseline,
                    spread=0.03 * scale,
                    better="higher",
                    note=note,
                )
            )
        records.append(record("intruder_matched", subject, 0.9, spread=0.01))
    known = "age.yrs, sex, patzip"
    for name, value in (
        ("reappearing_uniques", 0.12),
        ("reappearing_as_unique", 0.04),
        ("reiter_risk", 0.012),
    ):
        records.append(record(name, known, value, 0.95 * value, spread=0.1 * value))
        records.append(record(f"{name}_control", known, 0.95 * value, value, spread=0.2 * value))
    return [
        *records,
        record("uniqueness", "", 0.23, 0.22, spread=0.02),
        record("reiter_true_match_rate", known, 0.01, 0.012, spread=0.004),
        record("reiter_false_match_rate", known, 0.9, 0.91, spread=0.02, better="higher"),
        record("membership_auc", "nearest released row", 0.52, 0.5, spread=0.03),
        record("membership_advantage", "nearest released row", 0.03, 0.0, spread=0.04),
        record("membership_auc", "density ratio", 0.49, 0.5, spread=0.03),
        missing("membership_auc", "another attack", "it has no number"),
    ]


def every_record(sizes=None):
    """Return metrics of 13 features with every kind of record; two names are hostile."""
    sizes = sizes or (6, 18, 3, 4, 45, 16, 16, 13, 9, 25, 300, 3, 2)
    headlines = [
        record("tvd1", "", 0.034, 0.008, spread=0.002),
        record("tvd2", "", 0.11, 0.02, spread=0.004),
        record("tvd3", "", 0.19, 0.05, spread=0.006),
        record("marginal_distance", "", 0.00041, 0.00012),
        record("conditional_distance", "", 3.4, 0.4),
        record("regression_distance", "", 0.9, 0),
        record("interval_overlap", "", 0.61, 1, better="higher"),
        record("pmse", "", 0.031, 0.012),
        record("pmse_ratio", "", 2.6, 1),
        record("auc_synthetic", "MDC", 0.71, 0.78, spread=0.01, better="higher"),
        record("auc_real", "MDC", 0.78, spread=0.01, better="higher"),
    ]
    records = [
        *headlines,
        *table_records(FEATURES),
        *number_records(),
        *regression_records(),
        *risk_records(),
    ]
    names = dict.fromkeys(r.name for r in records)
    kept = [name for name in names if not name.startswith(UNSUMMED) and "_control" not in name]
    first = {r.name: r for r in reversed(records)}
    whole = {r.name: r for r in records if not r.subject}
    return Metrics(
        summary={name: (whole.get(name) or first[name]).value for name in kept},
        records=tuple(records),
        marginals=tuple(
            marginal(feature, size, "what it means, in a few words")
            for feature, size in zip(FEATURES, sizes, strict=True)
        ),
        distributions=(cumulative("age.yrs", 100.0), cumulative("charge", 1e6)),
    )
