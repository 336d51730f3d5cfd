"""Figures beyond the paper: every method, total epsilon, l-diversity, blocks, sweeps, maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegsynth.report.charts import risk_utility_map as map_chart
from pegsynth.report.figure import Figure
from pegsynth.study.album import (
    EPSILON,
    INTERVALS,
    Album,
    Drawing,
    Rows,
    curve_drawing,
    file_word,
    label_of,
)
from pegsynth.study.design import PAPER, total_name
from pegsynth.study.workshop import FRESH
from pegsynth.study.yardstick import figure

BEYOND = "Beyond the paper"
_LARGE: dict[str, Any] = {"columns": 2, "width": 330, "height": 230}
_BELOW = (
    "Rows that are not drawn independently of each other (PeGS once) can lie below the sampling "
    "floor."
)
_REPRICED, _STATED = "the paper's axis, re-priced", "stated as a total"


def more_figures(album: Album) -> list[Drawing]:
    """List the figures that the paper does not have."""
    return [
        *_all_methods(album),
        _totals(album),
        *_total_risks(album),
        _repriced(album),
        *_diversity(album),
        _one_axis(album, "blocks", "block-size", "PeGS.rs by size of its block", "rows of a block"),
        _one_axis(album, "sweeps", "seed-memory", "Unperturbed PeGS by sweeps", "sweeps"),
        *_maps(album),
    ]


def _all_methods(album: Album) -> list[Drawing]:
    arms = {**album.paper(album.design.main), **album.family("others")}
    level = {label: arm for label, arm in album.family("references").items() if arm != FRESH}
    rows, references = _panels(album, arms)
    for words, name in album.headlines().items():
        for label, arm in level.items():
            value = album.results.mean(arm, None, name).value
            rows += [{"facet": words, "series": label, "x": e, "y": value} for e in album.epsilons]
    if len(arms) == len(PAPER) and not level:
        return []
    return [
        curve_drawing(
            BEYOND,
            "all-methods",
            "Every method on the paper's axis",
            "Methods without a price per row get the same total at once; level lines have no "
            f"epsilon at all. {_BELOW} {INTERVALS}",
            rows,
            references,
            x_title=EPSILON,
            y_title="distance",
            **_LARGE,
        )
    ]


def _totals(album: Album) -> Drawing:
    """Draw distances against the price of the whole release."""
    arms = album.design.families["totals"].arms
    rows: Rows = []
    references: Rows = []
    for words, name in album.headlines().items():
        for delta in dict.fromkeys(arm.delta for arm in arms):
            panel = words if delta is None else f"{words}, delta = {delta:g}"
            named = {label_of(arm.method): total_name(arm.method, delta) for arm in arms}
            rows += album.points(named, name, facet=panel, x="epsilon")
            references += album.floor(name, facet=panel)
    return curve_drawing(
        BEYOND,
        "total-epsilon",
        "The axis that the paper lacks: epsilon of the whole release",
        "Every method as a user would call it, all that it looks at paid out of epsilon. "
        f"{_BELOW} {INTERVALS}",
        rows,
        references,
        x_title="epsilon of the whole release",
        y_title="distance",
        **_LARGE,
    )


def _total_risks(album: Album) -> list[Drawing]:
    """Draw what is betrayed against the price of the whole release."""
    methods = dict.fromkeys(arm.method for arm in album.design.families["totals"].arms)
    arms = {label_of(method): total_name(method, None) for method in methods}
    rows: Rows = []
    references: Rows = []
    for attack in (each for each in album.setting.attacks if not each.amounts):
        name, panel = figure("intruder_error", attack.subject), f"error of guessing {attack.infer}"
        rows += album.points(arms, name, facet=panel, x="epsilon")
        references += album.references(name, facet=panel)
    if album.setting.unique:
        name, panel = figure("uniqueness", ", ".join(album.setting.unique)), "unique rows"
        rows += album.points(arms, name, facet=panel, x="epsilon")
        references += album.floor(name, facet=panel, words="original, at equal size")
    rows += album.points(arms, "copied_rows", facet="copies of original rows", x="epsilon")
    references += album.references("copied_rows", facet="copies of original rows")
    return [
        curve_drawing(
            BEYOND,
            "total-epsilon-risk",
            "What is betrayed, by epsilon of the whole release",
            "Shares of rows. Dashed: the same with real rows (bootstrap), with rows that were "
            f"never given (hold-out), and in the original. {INTERVALS}",
            rows,
            references,
            x_title="epsilon of the whole release",
            y_title="share",
            as_percent=True,
            log_y=False,
            **_LARGE,
        )
    ]


def _repriced(album: Album) -> Drawing:
    """Draw the paper's own runs at what all their rows cost together."""
    name = "marginal_distance"
    arms = {**album.paper(album.design.main), **album.family("others")}
    rows = album.points(arms, name, facet=_REPRICED, x="epsilon")
    methods = dict.fromkeys(arm.method for arm in album.design.families["totals"].arms)
    whole = {label_of(method): total_name(method, None) for method in methods}
    rows += album.points(whole, name, facet=_STATED, x="epsilon")
    references = [line for each in (_REPRICED, _STATED) for line in album.floor(name, facet=each)]
    return curve_drawing(
        BEYOND,
        "total-epsilon-repriced",
        "What the paper's settings cost in all",
        "Left: the runs of the paper's axis at the total of all their rows. Right: the same "
        f"methods under totals that a release could state. {INTERVALS}",
        rows,
        references,
        x_title="epsilon of the whole release",
        y_title="marginal distance",
        shared=True,
        **_LARGE,
    )


def _diversity(album: Album) -> list[Drawing]:
    """Draw distances and attacks against l."""
    arms = album.family("l")
    rows, references = _panels(album, arms)
    title = "l-diversity instead of differential privacy"
    caption = f"Dashed: the sampling floor. {INTERVALS}"
    look: dict[str, Any] = {"x_title": "l", "log_x": False, **_LARGE}
    drawn = [
        curve_drawing(
            BEYOND, "l-diversity", title, caption, rows, references, y_title="distance", **look
        )
    ]
    for attack in album.setting.attacks:
        name = figure("intruder_error", attack.subject)
        drawn.append(
            curve_drawing(
                BEYOND,
                f"l-diversity-attack-{file_word(attack.infer)}",
                f"Attack on {attack.infer} under l-diversity",
                f"The higher, the less an intruder learns. {INTERVALS}",
                album.points(arms, name),
                album.references(name),
                y_title=f"error of guessing {attack.infer}",
                as_percent=not attack.amounts,
                log_y=False,
                **look,
            )
        )
    return drawn


def _one_axis(album: Album, family: str, stem: str, title: str, x_title: str) -> Drawing:
    """Draw the distances of a family along its own axis."""
    arms = {arm.name: arm.name for arm in album.design.families[family].arms}
    rows, references = _panels(album, arms)
    return curve_drawing(
        BEYOND,
        stem,
        title,
        f"Dashed: the sampling floor. {INTERVALS}",
        rows,
        references,
        x_title=x_title,
        y_title="distance",
        **_LARGE,
    )


def _panels(album: Album, arms: Mapping[str, str]) -> tuple[Rows, Rows]:
    """Return points and floors of all headline distances, a panel for each."""
    rows: Rows = []
    references: Rows = []
    for words, name in album.headlines().items():
        rows += album.points(arms, name, facet=words)
        references += album.floor(name, facet=words)
    return rows, references


def _maps(album: Album) -> list[Drawing]:
    """Draw a measured risk against a measured utility."""
    words, utility = list(album.headlines().items())[1 if album.setting.given else 0]
    drawn = []
    for attack in album.setting.attacks:
        rows = _map_rows(album, figure("intruder_error", attack.subject), utility)
        drawn.append(
            Drawing(
                BEYOND,
                Figure(
                    f"map-{file_word(attack.infer)}",
                    f"A measured risk against a measured utility: {attack.infer}",
                    "Numbers are the smallest and the largest epsilon per row. To the right the "
                    "intruder errs more; further down the table is closer to the original. Points "
                    "of a method are joined.",
                    _map_chart(rows, attack.infer, words, percent=not attack.amounts),
                    targets=True,
                ),
                rows,
            )
        )
    return drawn


def _map_rows(album: Album, risk: str, utility: str) -> Rows:
    rows: Rows = []
    arms = {**album.paper(album.design.main), **album.family("others")}
    for label, arm in (arms | album.family("references")).items():
        levels: Sequence[float | None] = album.results.levels(arm) or [None]
        # Numbers at the ends tell the direction; more of them would hide the points.
        ends = {levels[0], levels[-1]} if label in album.paper(album.design.main) else set()
        for level in levels:
            across, down = (album.results.mean(arm, level, name) for name in (risk, utility))
            rows.append(
                {
                    "series": label,
                    "label": f"{level:g}" if level in ends else "",
                    "level": level,
                    "risk": across.value,
                    "risk_low": across.low,
                    "risk_high": across.high,
                    "utility": down.value,
                    "utility_low": down.low,
                    "utility_high": down.high,
                }
            )
    return rows


def _map_chart(rows: Rows, infer: str, words: str, *, percent: bool) -> Any:
    return lambda: map_chart(
        rows,
        x="risk",
        y="utility",
        path="level",
        x_title=f"error of guessing {infer}",
        y_title=words,
        x_percent=percent,
        log_y=True,
        width=620,
        height=380,
    )
