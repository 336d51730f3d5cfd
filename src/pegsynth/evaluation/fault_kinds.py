"""What is wrong with a release: kinds of faults, the rule of each, and their records.

Goes in: faults that others found. Comes out: a record with their number and all rules, and one
for each fault, kind by kind and the worst of a kind first. Terminal, page and ``metrics.json``
take the verdict on utility from these. The subject of a fault opens with its kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pegsynth.evaluation.chance import FALSE_ALARMS
from pegsynth.evaluation.records import FAULTS, Record, measured
from pegsynth.evaluation.statistics import Estimate

Kind = Literal[
    "subgroups", "impossible rows", "regressions", "predictions", "numbers", "feature pairs"
]
KINDS: Final[tuple[Kind, ...]] = (
    "subgroups",
    "impossible rows",
    "regressions",
    "predictions",
    "numbers",
    "feature pairs",
)
"""The worst first: who is lost, what cannot be, what analysts would conclude wrongly."""

SEPARATOR: Final = " :: "
_SMALLEST, _LARGEST = 1e-3, 1e12
KIND_ALARMS: Final = FALSE_ALARMS / len(KINDS)
"""Chance that a bootstrap of the original is blamed for anything of one kind."""

CHANCE: Final = (
    "Chance is what a fresh sample of as many rows could do: a plain resample of the original is "
    f"blamed for anything in at most {FALSE_ALARMS:.1%} of all reports. The noise of a release is "
    "no excuse: what it moved is named."
)


@dataclass(frozen=True)
class Fault:
    """Something that is off.

    Parameters
    ----------
    kind
        Which kind of fault.
    about
        Which feature, pair or formula, and which figure of it.
    words
        What is wrong, in half a sentence.
    times
        By how many tolerances.
    weight
        How bad it is among faults of its kind; None: as many tolerances.
    """

    kind: Kind
    about: str
    words: str
    times: float
    weight: float | None = None

    @property
    def order(self) -> tuple[int, float]:
        """Sorts the worst first."""
        return KINDS.index(self.kind), -(self.times if self.weight is None else self.weight)


def fault_records(found: Iterable[Fault], rules: Iterable[str], *, n: int) -> list[Record]:
    """Write the number of faults with the rules, one a line, then every fault."""
    ordered = sorted(found, key=lambda each: each.order)
    note = "\n".join((*rules, CHANCE))
    return [
        measured(FAULTS, "", Estimate(float(len(ordered)), n=n), baseline=0.0, note=note),
        *(
            measured(
                FAULTS,
                f"{each.kind}{SEPARATOR}{each.about}",
                Estimate(each.times, n=n),
                baseline=1.0,
                note=each.words,
            )
            for each in ordered
        ),
    ]


def written(value: float) -> str:
    """Write a figure with four digits, as people do."""
    size = abs(value)
    if size != 0 and not _SMALLEST <= size < _LARGEST:
        return f"{value:.3e}"
    digits = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return f"{value:,.{digits}f}"


def beside(value: float, original: float) -> str:
    """Write a figure of the release beside the original's."""
    return f"{written(value)}, originally {written(original)}"


def relative(value: float, original: float) -> str:
    """Say how far a figure is off, relative to a figure that is not 0."""
    if original == 0 or value * original < 0:
        return "far off"
    percent = 100 * (abs(value) / abs(original) - 1)
    return f"{abs(percent):.3g} % too {'large' if percent > 0 else 'small'}"
