"""The paper's figures of utility and risk, from the study's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegsynth.report import charts
from pegsynth.report.figure import Figure
from pegsynth.study.album import (
    EPSILON,
    INTERVALS,
    Album,
    Drawing,
    Rows,
    curve_drawing,
    file_word,
    panel_of,
)
from pegsynth.study.arms import MAIN
from pegsynth.study.design import NO_RESET, RESET, Variant
from pegsynth.study.findings import LABELS, SHOWN
from pegsynth.study.yardstick import EVERY, conditional_subject, figure

MOST_PANELS = 24
SAMPLING = "Sampling demonstration"
REGRESSION = "Risk (epsilon) against utility: regression"
RISK = "Re-identification risk"
_CAPTION = (
    "Lower is closer to the original, {}. Dashed: the sampling floor, what a bootstrap of as many "
    f"rows has on average. {INTERVALS}"
)


def paper_figures(album: Album) -> list[Drawing]:
    """List the figures that the results allow, in the order of the paper."""
    return [
        *_histograms(album),
        *_distances(album),
        *_regression(album),
        *_coefficients(album),
        *_attacks(album),
        *_uniqueness(album),
    ]


def _histograms(album: Album) -> list[Drawing]:
    schema, drawn = album.setting.schema, []
    for name in album.setting.histograms:
        labels = schema.features[schema.index(name)].labels
        rows: Rows = []
        for length in album.results.levels(RESET):
            for words, arm in (("PeGS, no reset", NO_RESET), ("PeGS.rs", RESET)):
                for label in labels:
                    key = figure("share", f"{name} :: {label}")
                    rows.append(
                        {
                            "facet": f"{words}, blocks of {length:g}",
                            "series": words,
                            "category": label,
                            "value": album.results.mean(arm, length, key).value,
                            "original": album.results.floors[MAIN].get(key),
                        }
                    )
        if rows:
            drawn.append(
                Drawing(
                    SAMPLING,
                    Figure(
                        f"histograms-{file_word(name)}",
                        f"Histograms of {name} as blocks grow",
                        "Mean shares over repeats; ticks mark the original. Finding 4 says by how "
                        "much each nears the uniform shares.",
                        _histogram_chart(rows, labels, name),
                    ),
                    rows,
                )
            )
    return drawn


def _histogram_chart(rows: Rows, labels: Sequence[str], name: str) -> Any:
    return lambda: charts.histograms(rows, categories=labels, x_title=name, width=330, height=90)


def _distances(album: Album) -> list[Drawing]:
    kinds = [("marginals", "Marginal distance", "marginal_distance", "")]
    for given in album.setting.given:
        stem = f"given-{file_word(given)}"
        kinds.append((stem, f"Conditional distance given {given}", "conditional_distance", given))
    drawn: list[Drawing] = []
    for stem, words, name, given in kinds:
        section = f"Risk (epsilon) against utility: {words.lower()}"
        overall = figure(name, conditional_subject(EVERY, given)) if given else name
        references = [
            line for each in album.pools for line in album.floor(overall, facet=panel_of(each))
        ]
        drawn.append(
            curve_drawing(
                section,
                f"ru-{stem}",
                f"{words}, mean over features, by seed pool",
                _CAPTION.format("the mean over features"),
                album.by_pool(overall),
                references,
                x_title=EPSILON,
                y_title=words.lower(),
                shared=True,
            )
        )
        drawn += [_by_feature(album, v, section, stem, words, name, given) for v in album.pools]
    return drawn


def _by_feature(
    album: Album, variant: Variant, section: str, stem: str, words: str, name: str, given: str
) -> Drawing:
    rows, references = [], []
    features = [each for each in album.setting.schema.names if each != given]
    for feature in features:
        each = figure(name, conditional_subject(feature, given) if given else feature)
        rows += album.points(album.paper(variant), each, facet=feature)
        references += album.floor(each, facet=feature)
    shown = set(features[:MOST_PANELS])
    more = f" The first {MOST_PANELS} features are drawn; the table has all." * (
        len(features) > MOST_PANELS
    )
    panels = [row for row in rows if row["facet"] in shown]
    lines = [row for row in references if row["facet"] in shown]
    chart = Figure(
        f"ru-{stem}-by-feature-{variant.name}",
        f"{words}, feature by feature, {variant.words}",
        _CAPTION.format("every feature") + more,
        lambda: charts.curves(
            panels,
            references=lines,
            x_title=EPSILON,
            y_title=words.lower(),
            columns=4,
            width=170,
            height=120,
        ),
    )
    # The page shows the main comparison; the others are files beside it.
    return Drawing(section if variant == album.design.main else "", chart, [*rows, *references])


def _regression(album: Album) -> list[Drawing]:
    return [
        curve_drawing(
            REGRESSION,
            f"ru-regression-{kind}",
            f"Regression distance, {kind} model, by seed pool",
            "Sum of relative deviations of the coefficients; dashed: what as many real rows would "
            f"have. {INTERVALS}",
            album.by_pool(name),
            _references_by_pool(album, name),
            x_title=EPSILON,
            y_title="regression distance",
            shared=True,
        )
        for kind in (("logistic", "linear") if album.setting.formulas else ())
        for name in [figure("regression_distance", kind)]
    ]


def _references_by_pool(album: Album, name: str) -> Rows:
    return [line for each in album.pools for line in album.references(name, facet=panel_of(each))]


def _coefficients(album: Album) -> list[Drawing]:
    drawn = []
    for level in (each for each in SHOWN if each in album.epsilons):
        rows = _deviations(album, level)
        if not rows:
            continue
        drawn.append(
            Drawing(
                REGRESSION,
                Figure(
                    f"coefficients-eps-{level:g}",
                    f"Deviation of the coefficients at eps {level:g} per row",
                    "Estimate minus original, over the size of the original's coefficient; dashed: "
                    f"none. Each coefficient has a scale of its own. {INTERVALS}",
                    _forest(rows),
                ),
                rows,
            )
        )
    return drawn


def _deviations(album: Album, level: float) -> Rows:
    rows: Rows = []
    for name, original in album.results.coefficients.get(MAIN, {}).items():
        subject = name.removeprefix("coefficient[").removesuffix("]").replace(" :: ", ": ")
        for label, arm in album.paper(album.design.main).items():
            found = album.results.mean(arm, level, name)
            rows.append(
                {
                    "term": subject,
                    "series": label,
                    "deviation": (found.value - original) / abs(original),
                    "low": (found.low - original) / abs(original),
                    "high": (found.high - original) / abs(original),
                    "estimate": found.value,
                    "original": original,
                }
            )
    return rows


def _forest(rows: Rows) -> Any:
    return lambda: charts.forest_plot(
        rows, label="term", value="deviation", reference=0.0, order=list(LABELS.values())
    )


def _attacks(album: Album) -> list[Drawing]:
    drawn = []
    for attack in album.setting.attacks:
        name = figure("intruder_error", attack.subject)
        drawn.append(
            curve_drawing(
                RISK,
                f"attack-{file_word(attack.infer)}",
                f"Attack on {attack.infer} from {', '.join(attack.known)}",
                "The higher, the less an intruder learns. Dashed: the same attack with real rows "
                f"(bootstrap) and with rows that were never given (hold-out). {INTERVALS}",
                album.by_pool(name),
                _references_by_pool(album, name),
                x_title=EPSILON,
                y_title="mean absolute error" if attack.amounts else "share of wrong guesses",
                as_percent=not attack.amounts,
                log_y=False,
                shared=True,
            )
        )
    return drawn


def _uniqueness(album: Album) -> list[Drawing]:
    if not album.setting.unique:
        return []
    subject = ", ".join(album.setting.unique)
    name = figure("uniqueness", subject)
    references = [
        line
        for each in album.pools
        for line in album.floor(name, facet=panel_of(each), words="original, at equal size")
    ]
    return [
        curve_drawing(
            RISK,
            "uniqueness",
            f"Rows that are alone with {subject}",
            f"Dashed: the share expected among as many original rows. {INTERVALS}",
            album.by_pool(name),
            references,
            x_title=EPSILON,
            y_title="share of unique rows",
            as_percent=True,
            log_y=False,
            shared=True,
        )
    ]
