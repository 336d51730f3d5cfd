"""The paper's figures of utility and risk, and figures beyond the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pegsynth.publishing.report.figure import Figure
from studies.paper.album import (
    ORIGINAL,
    REAL_ROWS,
    Album,
    Drawing,
    Lines,
    Rows,
    file_word,
    label_of,
)
from studies.paper.arms import MAIN
from studies.paper.findings import LABELS, SHOWN
from studies.paper.ru_map import DRAWN_AS
from studies.paper.study_design import NO_RESET, PAPER, RESET, Variant, total_name
from studies.paper.workshop import FRESH
from studies.paper.yardstick import (
    EVERY,
    coefficient_words,
    conditional_subject,
    figure,
    headlines,
    kinds_of,
    uniqueness_name,
)

MOST_PANELS = 24
SAMPLING = "Sampling demonstration"
REGRESSION = "Risk (epsilon) against utility: regression"
RISK = "Re-identification risk"
BEYOND = "Beyond the paper"
INTERVALS = "Bars are 95 % intervals over repeats."
PER_ROW, IN_ALL = "epsilon per row", "epsilon of the whole release"
_CAPTION = (
    "Lower is closer to the original, {}. Dashed: the sampling floor, what a bootstrap of as many "
    f"rows has on average. {INTERVALS}"
)
_LARGE: dict[str, Any] = {"columns": 2, "width": 330, "height": 230}
_SHARES: dict[str, Any] = {"as_percent": True, "log_y": False}
_BELOW = (
    "Rows that are not drawn independently of each other (PeGS once) can lie below the sampling "
    "floor."
)
_REPRICED, _STATED = "the paper's axis, re-priced", "stated as a total"


def paper_figures(album: Album) -> list[Drawing]:
    """List the figures of the paper that the results allow, in its order."""
    return [
        *_histograms(album),
        *_distances(album),
        *_regression(album),
        *_coefficients(album),
        *_attacks(album),
        *_uniqueness(album),
    ]


def more_figures(album: Album) -> list[Drawing]:
    """List the figures that the paper does not have."""
    return [
        *_all_methods(album),
        _totals(album),
        _total_risks(album),
        _repriced(album),
        *_diversity(album),
        _one_axis(album, "blocks", "block-size", "PeGS.rs by size of its block", "rows of a block"),
        _one_axis(album, "sweeps", "seed-memory", "Unperturbed PeGS by sweeps", "sweeps"),
        *_maps(album),
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
            chart = Figure(
                f"histograms-{file_word(name)}",
                f"Histograms of {name} as blocks grow",
                "Mean shares over repeats; ticks mark the original. Finding 4 says by how "
                "much each nears the uniform shares.",
                "histograms",
                rows,
                {"categories": labels, "x_title": name, "width": 330, "height": 90},
            )
            drawn.append(Drawing(SAMPLING, chart, rows))
    return drawn


def _distances(album: Album) -> list[Drawing]:
    kinds = [("marginals", "Marginal distance", "marginal_distance", "")]
    for given in album.setting.given:
        stem = f"given-{file_word(given)}"
        kinds.append((stem, f"Conditional distance given {given}", "conditional_distance", given))
    drawn: list[Drawing] = []
    for stem, words, name, given in kinds:
        section = f"Risk (epsilon) against utility: {words.lower()}"
        overall = figure(name, conditional_subject(EVERY, given)) if given else name
        drawn.append(
            album.by_pool(overall).drawing(
                section,
                f"ru-{stem}",
                f"{words}, mean over features, by seed pool",
                _CAPTION.format("the mean over features"),
                x_title=PER_ROW,
                y_title=words.lower(),
                shared=True,
            )
        )
        drawn += [_by_feature(album, v, section, stem, words, name, given) for v in album.pools]
    return drawn


def _by_feature(
    album: Album, variant: Variant, section: str, stem: str, words: str, name: str, given: str
) -> Drawing:
    lines = Lines()
    features = [each for each in album.setting.schema.names if each != given]
    for feature in features:
        each = figure(name, conditional_subject(feature, given) if given else feature)
        lines += album.lines(album.paper(variant), each, facet=feature)
    more = f" The first {MOST_PANELS} features are drawn; the table has all." * (
        len(features) > MOST_PANELS
    )
    shown = lines.of_panels(set(features[:MOST_PANELS]))
    chart = shown.drawing(
        # The page shows the main comparison; the others are files beside it.
        section if variant == album.design.main else "",
        f"ru-{stem}-by-feature-{variant.name}",
        f"{words}, feature by feature, {variant.words}",
        _CAPTION.format("every feature") + more,
        x_title=PER_ROW,
        y_title=words.lower(),
        columns=4,
        width=170,
        height=120,
    )
    return replace(chart, rows=lines.rows)


def _regression(album: Album) -> list[Drawing]:
    return [
        album.by_pool(figure("regression_distance", kind), REAL_ROWS).drawing(
            REGRESSION,
            f"ru-regression-{kind}",
            f"Regression distance, {kind} model, by seed pool",
            "Sum of relative deviations of the coefficients; dashed: what as many real rows would "
            f"have. {INTERVALS}",
            x_title=PER_ROW,
            y_title="regression distance",
            shared=True,
        )
        for kind in kinds_of(album.setting)
    ]


def _coefficients(album: Album) -> list[Drawing]:
    drawn = []
    for level in (each for each in SHOWN if each in album.epsilons):
        rows = _deviations(album, level)
        if not rows:
            continue
        order = list(LABELS.values())
        chart = Figure(
            f"coefficients-eps-{level:g}",
            f"Deviation of the coefficients at eps {level:g} per row",
            "Estimate minus original, over the size of the original's coefficient; dashed: "
            f"none. Each coefficient has a scale of its own. {INTERVALS}",
            "forest_plot",
            [row | {"label": row["term"], "value": row["deviation"]} for row in rows],
            {"reference": 0.0, "order": order},
        )
        drawn.append(Drawing(REGRESSION, chart, rows))
    return drawn


def _deviations(album: Album, level: float) -> Rows:
    rows: Rows = []
    for name, original in album.results.coefficients.get(MAIN, {}).items():
        for label, arm in album.paper(album.design.main).items():
            found = album.results.mean(arm, level, name)
            rows.append(
                {
                    "term": coefficient_words(name).replace(" :: ", ": "),
                    "series": label,
                    "deviation": (found.value - original) / abs(original),
                    "low": (found.low - original) / abs(original),
                    "high": (found.high - original) / abs(original),
                    "estimate": found.value,
                    "original": original,
                }
            )
    return rows


def _attacks(album: Album) -> list[Drawing]:
    return [
        album.by_pool(figure("intruder_error", attack.subject), REAL_ROWS).drawing(
            RISK,
            f"attack-{file_word(attack.infer)}",
            f"Attack on {attack.infer} from {', '.join(attack.known)}",
            "The higher, the less an intruder learns. Dashed: the same attack with real rows "
            f"(bootstrap) and with rows that were never given (hold-out). {INTERVALS}",
            x_title=PER_ROW,
            y_title="mean absolute error" if attack.amounts else "share of wrong guesses",
            as_percent=not attack.amounts,
            log_y=False,
            shared=True,
        )
        for attack in album.setting.attacks
    ]


def _uniqueness(album: Album) -> list[Drawing]:
    if not album.setting.unique:
        return []
    return [
        album.by_pool(uniqueness_name(album.setting), ORIGINAL).drawing(
            RISK,
            "uniqueness",
            f"Rows that are alone with {', '.join(album.setting.unique)}",
            f"Dashed: the share expected among as many original rows. {INTERVALS}",
            x_title=PER_ROW,
            y_title="share of unique rows",
            shared=True,
            **_SHARES,
        )
    ]


def _all_methods(album: Album) -> list[Drawing]:
    arms = {**album.paper(album.design.main), **album.family("others")}
    level = {label: arm for label, arm in album.family("references").items() if arm != FRESH}
    if len(arms) == len(PAPER) and not level:
        return []
    lines = album.by_distance(arms)
    for words, name in headlines(album.setting).items():
        for label, arm in level.items():
            place = {"facet": words, "series": label}
            value = album.results.mean(arm, None, name).value
            lines.points += [{**place, "x": e, "y": value} for e in album.epsilons]
    return [
        lines.drawing(
            BEYOND,
            "all-methods",
            "Every method on the paper's axis",
            "Methods without a price per row get the same total at once; level lines have no "
            f"epsilon at all. {_BELOW} {INTERVALS}",
            x_title=PER_ROW,
            y_title="distance",
            **_LARGE,
        )
    ]


def _totals(album: Album) -> Drawing:
    """Draw distances against the price of the whole release."""
    arms = album.design.families["totals"].arms
    lines = Lines()
    for words, name in headlines(album.setting).items():
        for delta in dict.fromkeys(arm.delta for arm in arms):
            panel = words if delta is None else f"{words}, delta = {delta:g}"
            named = {label_of(arm.method): total_name(arm.method, delta) for arm in arms}
            lines += album.lines(named, name, facet=panel, x="epsilon")
    return lines.drawing(
        BEYOND,
        "total-epsilon",
        "The axis that the paper lacks: epsilon of the whole release",
        "Every method as a user would call it, all that it looks at paid out of epsilon. "
        f"{_BELOW} {INTERVALS}",
        x_title=IN_ALL,
        y_title="distance",
        **_LARGE,
    )


def _total_arms(album: Album) -> dict[str, str]:
    """Return the methods under totals without a delta, by label."""
    methods = dict.fromkeys(arm.method for arm in album.design.families["totals"].arms)
    return {label_of(method): total_name(method, None) for method in methods}


def _total_risks(album: Album) -> Drawing:
    """Draw what is betrayed against the price of the whole release."""
    panels = [
        (figure("intruder_error", each.subject), f"error of guessing {each.infer}", REAL_ROWS)
        for each in album.setting.attacks
        if not each.amounts
    ]
    if album.setting.unique:
        panels.append((uniqueness_name(album.setting), "unique rows", ORIGINAL))
    panels.append(("copied_rows", "copies of original rows", REAL_ROWS))
    lines = Lines()
    for name, facet, held in panels:
        lines += album.lines(_total_arms(album), name, held=held, facet=facet, x="epsilon")
    return lines.drawing(
        BEYOND,
        "total-epsilon-risk",
        "What is betrayed, by epsilon of the whole release",
        "Shares of rows. Dashed: the same with real rows (bootstrap), with rows that were "
        f"never given (hold-out), and in the original. {INTERVALS}",
        x_title=IN_ALL,
        y_title="share",
        **_SHARES,
        **_LARGE,
    )


def _repriced(album: Album) -> Drawing:
    """Draw the paper's own runs at what all their rows cost together."""
    name = "marginal_distance"
    arms = {**album.paper(album.design.main), **album.family("others")}
    lines = album.lines(arms, name, facet=_REPRICED, x="epsilon")
    lines += album.lines(_total_arms(album), name, facet=_STATED, x="epsilon")
    return lines.drawing(
        BEYOND,
        "total-epsilon-repriced",
        "What the paper's settings cost in all",
        "Left: the runs of the paper's axis at the total of all their rows. Right: the same "
        f"methods under totals that a release could state. {INTERVALS}",
        x_title=IN_ALL,
        y_title="marginal distance",
        shared=True,
        **_LARGE,
    )


def _diversity(album: Album) -> list[Drawing]:
    """Draw distances and attacks against l."""
    arms = album.family("l")
    look: dict[str, Any] = {"x_title": "l", "log_x": False, **_LARGE}
    title, caption = (
        "l-diversity instead of differential privacy",
        f"Dashed: the sampling floor. {INTERVALS}",
    )
    distances = album.by_distance(arms)
    return [
        distances.drawing(BEYOND, "l-diversity", title, caption, y_title="distance", **look),
        *(
            album.lines(arms, figure("intruder_error", attack.subject), held=REAL_ROWS).drawing(
                BEYOND,
                f"l-diversity-attack-{file_word(attack.infer)}",
                f"Attack on {attack.infer} under l-diversity",
                f"The higher, the less an intruder learns. {INTERVALS}",
                y_title=f"error of guessing {attack.infer}",
                as_percent=not attack.amounts,
                log_y=False,
                **look,
            )
            for attack in album.setting.attacks
        ),
    ]


def _one_axis(album: Album, family: str, stem: str, title: str, x_title: str) -> Drawing:
    """Draw the distances of a family along its own axis."""
    arms = {arm.name: arm.name for arm in album.design.families[family].arms}
    caption = f"Dashed: the sampling floor. {INTERVALS}"
    look = {"x_title": x_title, "y_title": "distance", **_LARGE}
    return album.by_distance(arms).drawing(BEYOND, stem, title, caption, **look)


def _maps(album: Album) -> list[Drawing]:
    """Draw a measured risk against a measured utility."""
    words, utility = list(headlines(album.setting).items())[1 if album.setting.given else 0]
    drawn = []
    for attack in album.setting.attacks:
        rows = _map_rows(album, figure("intruder_error", attack.subject), utility)
        look = {
            "x_title": f"error of guessing {attack.infer}",
            "y_title": words,
            "x_percent": not attack.amounts,
            "log_y": True,
            "width": 620,
            "height": 380,
        }
        drawn.append(
            Drawing(
                BEYOND,
                Figure(
                    f"map-{file_word(attack.infer)}",
                    f"A measured risk against a measured utility: {attack.infer}",
                    "Numbers are the smallest and the largest epsilon per row. To the right the "
                    "intruder errs more; further down the table is closer to the original. Points "
                    "of a method are joined.",
                    "risk_utility_map",
                    [{DRAWN_AS.get(key, key): value for key, value in r.items()} for r in rows],
                    look,
                ),
                rows,
            )
        )
    return drawn


def _map_rows(album: Album, risk: str, utility: str) -> Rows:
    rows: Rows = []
    paper = album.paper(album.design.main)
    for label, arm in {**paper, **album.family("others"), **album.family("references")}.items():
        levels: Sequence[float | None] = album.results.levels(arm) or [None]
        # Numbers at the ends tell the direction; more of them would hide the points.
        ends = {levels[0], levels[-1]} if label in paper else set()
        for level in levels:
            row = {"series": label, "label": f"{level:g}" if level in ends else "", "level": level}
            for side, name in (("risk", risk), ("utility", utility)):
                found = album.results.mean(arm, level, name)
                row |= {side: found.value, f"{side}_low": found.low, f"{side}_high": found.high}
            rows.append(row)
    return rows
