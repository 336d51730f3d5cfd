"""The eight findings of the paper, each as parts and checks on the study's results.

Every function takes the results and the choices under which the paper's methods were drawn
(a `Variant`), so that a finding can be asked again under other choices. Thresholds for words
such as "far" and "slightly" are constants here and are printed with the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pegsynth.inference.statistics import Estimate
from studies.paper.checks import Check, FindingPart, part
from studies.paper.repeats import difference, mean, ratio
from studies.paper.results import Results
from studies.paper.setting import Setting
from studies.paper.study_design import NO_RESET, RESET, Variant
from studies.paper.yardstick import coefficient_words, figure, headlines, kinds_of, uniqueness_name

SMALL, HIGH = 1.0, 50.0
"""Epsilons per row up to which they are small, and from which they are high."""

FAR = 1.5
SLIGHT = 0.1
STEADY = 0.2
COMPARABLE = 1.5
SHOWN = (0.1, 10.0)
"""Epsilons of the paper's figure of coefficients."""

LABELS = {"pegs": "PeGS", "pegs-rs": "PeGS.rs", "pmi": "PMI"}
INTERCEPT = "Intercept"


@dataclass(frozen=True)
class View:
    """Results of the paper's methods under one set of choices."""

    results: Results
    variant: Variant
    setting: Setting

    @property
    def methods(self) -> tuple[str, ...]:
        """The paper's methods that were drawn."""
        return self.variant.methods

    def epsilons(self, *, least: float = 0.0, most: float = math.inf) -> list[float]:
        """Return the epsilons per row that were drawn, within bounds."""
        levels = self.results.levels(self.variant.arm(self.methods[0]))
        return [level for level in levels if least <= level <= most]

    def values(self, method: str, epsilon: float, name: str) -> NDArray[np.float64]:
        """Return a figure of a method over repeats."""
        return self.results.values(self.variant.arm(method), epsilon, name)

    def bootstrap(self, name: str) -> NDArray[np.float64]:
        """Return a figure of the bootstrap of the same table over repeats."""
        return self.results.values(self.variant.bootstrap, None, name)

    @property
    def floors(self) -> Mapping[str, float]:
        """What chance alone would give against this table."""
        return self.results.floors.get(self.variant.population, {})

    @property
    def coefficients(self) -> Mapping[str, float]:
        """The coefficients of this table."""
        return self.results.coefficients.get(self.variant.population, {})

    def regression_distances(self) -> dict[str, str]:
        """Return the regression distances: words and figure."""
        return {
            f"{kind} regression distance": figure("regression_distance", kind)
            for kind in kinds_of(self.setting)
        }


def falls(view: View) -> list[FindingPart]:
    """1. Every distance falls as epsilon grows."""
    distances = {**headlines(view.setting), **view.regression_distances()}
    levels = view.epsilons()
    overall, steps = [], []
    for method in view.methods:
        for words, name in distances.items():
            series = [view.values(method, level, name) for level in levels]
            label = f"{LABELS[method]}, {words}"
            drop = difference(series[0], series[-1])
            text = f"{label}: eps {levels[0]:g} minus eps {levels[-1]:g}"
            overall.append(Check(text, drop, drop.above(0)))
            for at, (before, after) in enumerate(pairwise(series)):
                rise = difference(after, before)
                text = f"{label}: eps {levels[at + 1]:g} minus eps {levels[at]:g}"
                steps.append(Check(text, rise, not rise.above(0)))
    return [
        part(
            "from the smallest to the largest epsilon the distance falls (interval above 0)",
            overall,
        ),
        part("no single step up in epsilon raises it (interval not above 0)", steps),
    ]


def closer_at_small(view: View) -> list[FindingPart]:
    """2. At small epsilon PeGS.rs is far closer to the original than PeGS and PMI."""
    closer, far = [], []
    for method in (m for m in view.methods if m != "pegs-rs"):
        for words, name in headlines(view.setting).items():
            ratios = []
            for level in view.epsilons(most=SMALL):
                found = ratio(view.values(method, level, name), view.values("pegs-rs", level, name))
                ratios.append(found)
                text = f"{words} of {LABELS[method]} over that of PeGS.rs, eps {level:g}"
                closer.append(Check(text, found, found.above(1)))
            together = _geometric(ratios)
            text = f"{words} of {LABELS[method]} over that of PeGS.rs, mean over small eps"
            far.append(Check(text, together, together.value >= FAR))
    return [
        part(f"at every eps up to {SMALL:g} PeGS.rs is closer (ratio above 1)", closer),
        part(f"and far closer: the ratio is at least {FAR:g} on average over these eps", far),
    ]


def closer_at_high(view: View) -> list[FindingPart]:
    """3. At high epsilon PeGS is slightly closer than PeGS.rs."""
    closer, slight = [], []
    levels = view.epsilons()
    for words, name in headlines(view.setting).items():
        for level in (each for each in levels if each >= HIGH):
            block, single = (view.values(m, level, name) for m in ("pegs-rs", "pegs"))
            found = ratio(block, single)
            text = f"{words} of PeGS.rs over that of PeGS, eps {level:g}"
            closer.append(Check(text, found, found.above(1)))
            gap = difference(block, single)
            span = mean(view.values("pegs", levels[0], name)).value
            scaled = Estimate(gap.value / span, gap.low / span, gap.high / span, gap.n)
            text = f"{words}: gap over PeGS's distance at eps {levels[0]:g}, eps {level:g}"
            slight.append(Check(text, scaled, not scaled.below(0) and scaled.value <= SLIGHT))
    return [
        part(f"at every eps from {HIGH:g} on PeGS is closer (ratio above 1)", closer),
        part(
            "and slightly so: the gap is not negative, and at most "
            f"{SLIGHT:.0%} of PeGS's distance at the smallest eps",
            slight,
        ),
    ]


def flattens(view: View) -> list[FindingPart]:
    """4. Block samples of PeGS.rs flatten as the block grows; PeGS without reset does not."""
    flat, steady, closer = [], [], []
    lengths = view.results.levels(RESET)
    for name in view.setting.histograms if len(lengths) > 1 else ():
        uneven, moved = figure("unevenness", name), figure("tvd1", name)
        first, last = lengths[0], lengths[-1]
        fall, other = (
            difference(
                view.results.values(arm, first, uneven), view.results.values(arm, last, uneven)
            )
            for arm in (RESET, NO_RESET)
        )
        words = f"distance of {name} from uniform, blocks of {first:g} minus blocks of {last:g}"
        flat.append(Check(f"{words}, with reset", fall, fall.above(0)))
        steady.append(Check(f"{words}, without reset", other, other.value <= STEADY * fall.value))
        gap = difference(*(view.results.values(arm, last, moved) for arm in (RESET, NO_RESET)))
        text = (
            f"distance of {name} from the original at blocks of {last:g}, with minus without reset"
        )
        closer.append(Check(text, gap, gap.above(0)))
    return [
        part("with reset the histogram nears the uniform one as blocks grow", flat),
        part(f"without reset it does not: at most {STEADY:.0%} of that fall", steady),
        part("at the largest block PeGS without reset is closer to the original", closer),
    ]


def regressions(view: View) -> list[FindingPart]:
    """5. PeGS.rs gives the closest coefficients; intercepts overshoot, slopes shrink."""
    closest, intercepts, slopes = [], [], []
    for words, name in view.regression_distances().items():
        for level in view.epsilons():
            block = view.values("pegs-rs", level, name)
            for method in (m for m in view.methods if m != "pegs-rs"):
                found = ratio(view.values(method, level, name), block)
                text = f"{words} of {LABELS[method]} over that of PeGS.rs, eps {level:g}"
                closest.append(Check(text, found, not found.below(1)))
    for name, original in view.coefficients.items():
        for method in view.methods:
            for level in (each for each in SHOWN if each in view.epsilons()):
                values = view.values(method, level, name)
                subject = coefficient_words(name)
                text = f"{subject}, {LABELS[method]}, eps {level:g}"
                if subject.endswith(f":: {INTERCEPT}"):
                    over = mean(values - original)
                    intercepts.append(
                        Check(f"{text}: estimate minus original", over, over.above(0))
                    )
                else:
                    kept = mean(values / original)
                    slopes.append(Check(f"{text}: estimate over original", kept, kept.below(1)))
    return [
        part("PeGS.rs has the smallest regression distance, or none is clearly smaller", closest),
        part("intercepts lie above the original's", intercepts),
        part("slopes are smaller than the original's (ratio below 1)", slopes),
    ]


def category_attack(view: View) -> list[FindingPart]:
    """6. Recovery of a category: error clearly above the bootstrap's, no method clearly best."""
    attack = view.setting.attack(amounts=False)
    if attack is None:
        return []
    name = figure("intruder_error", attack.subject)
    reference = view.bootstrap(name)
    above = [
        Check(f"{LABELS[m]}, eps {level:g}: error minus the bootstrap's", found, found.above(0))
        for m, level in _both(view)
        for found in [difference(view.values(m, level, name), reference)]
    ]
    best = []
    for method in view.methods:
        leads = [
            difference(view.values(method, level, name), view.values(other, level, name))
            for level in view.epsilons()
            for other in view.methods
            if other != method
        ]
        least = min(leads, key=lambda each: each.low, default=Estimate(math.nan))
        always = all(lead.above(0) for lead in leads)
        text = f"{LABELS[method]}: smallest lead over another method at any eps"
        best.append(Check(text, least, not always))
    return [
        part(f"the error of guessing {attack.infer} is above the bootstrap's", above),
        part("no method has the largest error at every eps", best),
    ]


def amount_attack(view: View) -> list[FindingPart]:
    """7. Recovery of an amount: error comparable with the bootstrap's, larger at small epsilon."""
    attack = view.setting.attack(amounts=True)
    if attack is None:
        return []
    name = figure("intruder_error", attack.subject)
    reference = view.bootstrap(name)
    comparable = [
        Check(
            f"{LABELS[m]}, eps {level:g}: error over the bootstrap's",
            found,
            1 / COMPARABLE <= found.value <= COMPARABLE,
        )
        for m, level in _both(view)
        for found in [ratio(view.values(m, level, name), reference)]
    ]
    levels = view.epsilons()
    larger = [
        Check(
            f"{LABELS[m]}: error at eps {levels[0]:g} minus at eps {levels[-1]:g}",
            found,
            found.above(0),
        )
        for m in view.methods
        for found in [difference(*(view.values(m, e, name) for e in (levels[0], levels[-1])))]
    ]
    return [
        part(
            f"the error of guessing {attack.infer} is within a factor of {COMPARABLE:g} of the "
            "bootstrap's",
            comparable,
        ),
        part("it is larger at the smallest than at the largest eps", larger),
    ]


def uniqueness(view: View) -> list[FindingPart]:
    """8. More population-unique records in synthetic data than in the original."""
    if not view.setting.unique:
        return []
    name = uniqueness_name(view.setting)
    original = view.floors.get(name, math.nan)
    more = [
        Check(f"{LABELS[m]}, eps {level:g}: share minus the original's", found, found.above(0))
        for m, level in _both(view)
        for found in [mean(view.values(m, level, name) - original)]
    ]
    return [part("the share of unique rows is above the original's at equal size", more)]


FINDINGS: tuple[tuple[str, Callable[[View], list[FindingPart]]], ...] = (
    ("Every distance falls as epsilon grows", falls),
    ("At small epsilon PeGS.rs is far closer than PeGS and PMI", closer_at_small),
    ("At high epsilon PeGS is slightly closer than PeGS.rs", closer_at_high),
    ("PeGS.rs flattens as blocks grow, PeGS without reset does not", flattens),
    ("Regression: PeGS.rs closest, intercepts overshoot, slopes shrink", regressions),
    ("MDC recovery: error above the bootstrap's, no method clearly best", category_attack),
    ("Charge recovery: comparable with the bootstrap, worse at small epsilon", amount_attack),
    ("More population-unique records than in the original", uniqueness),
)
"""Title and checks of every finding, in the paper's order."""


def _both(view: View) -> Iterator[tuple[str, float]]:
    return ((method, level) for method in view.methods for level in view.epsilons())


def _geometric(ratios: Sequence[Estimate]) -> Estimate:
    """Return the geometric mean of ratios, their intervals' ends taken alike."""
    known = [each for each in ratios if each.known]
    if not known:
        return Estimate(math.nan)
    value, low, high = (
        math.exp(sum(math.log(getattr(each, end)) for each in known) / len(known))
        for end in ("value", "low", "high")
    )
    return Estimate(value, low, high, min(each.n for each in known))
