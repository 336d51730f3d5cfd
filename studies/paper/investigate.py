"""Why a finding does or does not appear here: figures that say more than the verdict.

Each function looks at the results from one more side (other seed pools, other N, more
sweeps, the hold-out) and writes what it sees, with the numbers. What it cannot compute it
does not mention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pegsynth.inference.statistics import Estimate
from studies.paper.findings import HIGH, LABELS, SHOWN, SMALL, View
from studies.paper.repeats import difference, mean, ratio
from studies.paper.study_design import FORGETTING, NO_RESET, RESET
from studies.paper.workshop import FRESH
from studies.paper.yardstick import coefficient_words, figure, headlines, uniqueness_name

Views = Sequence[View]

_STILL = 0.05
_MUCH = 1.5
_HARDLY = 0.1


def text(estimate: Estimate, *, percent: bool = False) -> str:
    """Write a figure with its interval."""
    if not estimate.known:
        return "not known"
    write = _percent if percent else _number
    if math.isnan(estimate.low):
        return write(estimate.value)
    return f"{write(estimate.value)} [{write(estimate.low)}, {write(estimate.high)}]"


def _falls(views: Views) -> list[str]:
    """Say where PeGS.rs stops getting closer, and what remains there."""
    view = views[0]
    levels = view.epsilons()
    name = "marginal_distance"
    means = [mean(view.values("pegs-rs", level, name)).value for level in levels]
    last = means[-1]
    still = [e for e, m in zip(levels, means, strict=True) if abs(m - last) <= _STILL * means[0]]
    floor = view.floors.get(name, math.nan)
    alpha = mean(view.values("pegs-rs", still[0], "alpha"))
    reset = (
        ": virtual rows hardly count there, so what keeps it away from the original is the reset"
        if alpha.value < _HARDLY and last > _MUCH * floor
        else ""
    )
    return [
        f"The marginal distance of PeGS.rs is within {_STILL:.0%} of its whole range from its last "
        f"value ({_number(last)}; sampling floor {_number(floor)}) from eps {still[0]:g} on, where "
        f"alpha is {_number(alpha.value)}{reset}."
    ]


def _small(views: Views) -> list[str]:
    """Show the advantage of blocks at small epsilon under every choice."""
    lines = []
    for view in views:
        ratios = [
            ratio(
                view.values("pegs", e, "marginal_distance"),
                view.values("pegs-rs", e, "marginal_distance"),
            )
            for e in view.epsilons(most=SMALL)
        ]
        shown = ", ".join(
            f"{text(r)} at eps {e:g}"
            for r, e in zip(ratios, view.epsilons(most=SMALL), strict=True)
        )
        lines.append(f"PeGS over PeGS.rs, marginal distance, {view.variant.words}: {shown}.")
    return lines


def _high(views: Views) -> list[str]:
    """Show how much is sampling error, and how much of the seed row is left after one sweep."""
    view = views[0]
    lines = []
    last = view.epsilons()[-1]
    for words, name in headlines(view.setting).items():
        share = view.floors.get(name, math.nan) / mean(view.values("pegs", last, name)).value
        lines.append(
            f"At eps {last:g} sampling error alone makes up {_percent(share)} of the {words} of "
            "PeGS: that much is left to any method that draws its rows independently."
        )
    for each in views:
        if each.variant.pool == view.variant.pool:
            continue
        level = each.epsilons(least=HIGH)[-1] if each.epsilons(least=HIGH) else None
        if level is None:
            continue
        single, block = (each.values(m, level, "marginal_distance") for m in ("pegs", "pegs-rs"))
        lines.append(
            f"With {each.variant.words}, at eps {level:g}: PeGS {text(mean(single))}, PeGS.rs "
            f"{text(mean(block))}; sampling floor "
            f"{_number(each.floors.get('marginal_distance', math.nan))}."
        )
    for pool, arm in FORGETTING.items():
        steps = view.results.levels(arm)
        found = [view.results.mean(arm, step, "marginal_distance") for step in steps]
        if not steps or not found[0].known:
            continue
        shown = ", ".join(f"{text(f)} after {s:g}" for f, s in zip(found, steps, strict=True))
        forgets = found[0].value <= _MUCH * found[-1].value
        lines.append(
            f"Unperturbed PeGS from {pool} seed rows, marginal distance by sweeps: {shown}. "
            + (
                "One sweep leaves it as close as many do."
                if forgets
                else "One sweep does not forget its seed row, and further sweeps would each cost "
                "as much again."
            )
        )
    return lines


def _flat(views: Views) -> list[str]:
    """List how uneven histograms are, length by length."""
    view = views[0]
    lines = []
    for name in view.setting.histograms:
        uneven = figure("unevenness", name)
        for words, arm in (("with reset", RESET), ("without reset", NO_RESET)):
            shown = ", ".join(
                f"{_number(view.results.mean(arm, b, uneven).value)} at {b:g}"
                for b in view.results.levels(arm)
            )
            if shown:
                lines.append(
                    f"Distance of {name} from uniform by length of block, {words}: {shown}."
                )
    return lines


def _regressions(views: Views) -> list[str]:
    """Say where another method is closer than PeGS.rs."""
    view = views[0]
    lines = []
    for words, name in view.regression_distances().items():
        for method in (m for m in view.methods if m != "pegs-rs"):
            levels = view.epsilons()
            gaps = {
                e: difference(view.values(method, e, name), view.values("pegs-rs", e, name))
                for e in levels
            }
            closer = [e for e, gap in gaps.items() if gap.below(0)]
            further = [e for e, gap in gaps.items() if gap.above(0)]
            lines.append(
                f"{words.capitalize()}: {LABELS[method]} is clearly further than PeGS.rs at "
                f"{_levels(further)}, clearly closer at {_levels(closer)}."
            )
        floor = view.bootstrap(name)
        lines.append(f"{words.capitalize()} of a bootstrap of as many rows: {text(mean(floor))}.")
        overall = {
            LABELS[m]: sum(mean(view.values(m, e, name)).value for e in view.epsilons())
            / len(view.epsilons())
            for m in view.methods
        }
        shown = ", ".join(f"{label} {_number(value)}" for label, value in overall.items())
        least = min(overall, key=lambda label: overall[label])
        lines.append(f"Averaged over all eps: {shown}; {least} has the smallest.")
    return [*lines, *_slopes(view)]


def _slopes(view: View) -> list[str]:
    """Explain slopes that do not shrink: alone, without the others, they are steeper."""
    lines = []
    for name, original in view.coefficients.items():
        subject = coefficient_words(name)
        alone = view.floors.get(figure("alone", subject))
        if alone is None:
            continue
        kept = [
            f"{LABELS[m]} at eps {e:g} {text(mean(view.values(m, e, name)))}"
            for m in view.methods
            for e in SHOWN
            if e in view.epsilons() and not mean(view.values(m, e, name) / original).below(1)
        ]
        if kept:
            steeper = (
                f" Alone, without the other terms, it is {_number(alone)}: where links to the "
                "other terms are lost it takes over part of what they explained."
            )
            lines.append(
                f"The slope {subject} ({_number(original)}) does not clearly shrink: "
                f"{', '.join(kept)}.{steeper if alone / original > 1 else ''}"
            )
    return lines


def _attack(views: Views, *, amounts: bool) -> list[str]:
    """Compare with what the population alone betrays."""
    view = views[0]
    attack = view.setting.attack(amounts=amounts)
    if attack is None:
        return []
    name = figure("intruder_error", attack.subject)
    fresh = view.results.values(FRESH, None, name)
    real = mean(view.bootstrap(name))
    held = mean(fresh)
    lines = [
        f"Error of guessing {attack.infer} from a bootstrap {text(real)}, from hold-out rows "
        f"{text(held)}."
        + (
            " Rows of other people betray nearly as much as the rows themselves: the intruder "
            "learns from the population."
            if _near(real, held)
            else ""
        )
    ]
    for method in view.methods:
        safe = [
            e for e in view.epsilons() if difference(view.values(method, e, name), fresh).above(0)
        ]
        lines.append(
            f"{LABELS[method]} gives a clearly larger error than hold-out rows at {_levels(safe)}."
        )
    matched = figure("intruder_matched", attack.subject)
    level = view.epsilons()[0]
    shares = ", ".join(
        f"{LABELS[m]} {text(mean(view.values(m, level, matched)), percent=True)}"
        for m in view.methods
    )
    boot = text(mean(view.bootstrap(matched)), percent=True)
    lines.append(f"Targets with a matching row at eps {level:g}: {shares}; bootstrap {boot}.")
    return lines


def _unique(views: Views) -> list[str]:
    """Say at which epsilons synthetic rows are more unique than original ones."""
    view = views[0]
    if not view.setting.unique:
        return []
    name = uniqueness_name(view.setting)
    original = view.floors.get(name, math.nan)
    lines = [f"Share of unique rows expected of the original: {_percent(original)}."]
    spread = []
    for method in view.methods:
        levels = view.epsilons()
        ends = [mean(view.values(method, e, name)) for e in (levels[0], levels[-1])]
        spread.append((ends[0].value, ends[1].value))
        more = [e for e in levels if mean(view.values(method, e, name) - original).above(0)]
        first, last = (text(each, percent=True) for each in ends)
        lines.append(
            f"{LABELS[method]}: {first} at eps {levels[0]:g}, {last} at eps {levels[-1]:g}; "
            f"clearly more than the original at {_levels(more)}."
        )
    if all(first > last for first, last in spread):
        lines.append(
            "For every method the share falls as epsilon grows: virtual rows spread the synthetic "
            "rows over combinations that are rare or absent in the original, and where there are "
            "hardly any virtual rows the combinations are the original's."
        )
    return lines


INVESTIGATIONS: tuple[Callable[[Views], list[str]], ...] = (
    _falls,
    _small,
    _high,
    _flat,
    _regressions,
    lambda views: _attack(views, amounts=False),
    lambda views: _attack(views, amounts=True),
    _unique,
)
"""One for each finding, in order."""


def _near(first: Estimate, second: Estimate) -> bool:
    return abs(first.value - second.value) <= 0.05 * abs(second.value)


def _levels(levels: Sequence[float]) -> str:
    if not levels:
        return "no eps"
    return "eps " + ", ".join(f"{level:g}" for level in levels)


def _number(value: float) -> str:
    if math.isnan(value):
        return "not known"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _percent(value: float) -> str:
    return "not known" if math.isnan(value) else f"{100 * value:.1f} %"
