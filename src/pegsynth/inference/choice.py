"""Which rule fits, with which row counts and which weights, read off a ledger.

The ledger records how the datasets were made; that decides the rule (R16, R28). Where it is
not clear whether datasets share a parameter draw, the wider rule is taken.

A release of blocks records two more options of its run, in the assumption "public-options":
`noise`, which is "own" where every table has sampling and noise of its own and "shared" where
all were drawn from the published counts themselves; and `replicates`, the number K of replicate
weights beside the weight of every row, with `weight_name`, what that weight is called, and
`replicate_part`, the part f of sampling error and noise that they have. Ledgers that say neither
are of shared noise; where name or part are not said, as in ledgers of 0.1.0, they are `weight`
and 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.combining_rules import REPLICATED, Numbers, ReplicateDesign, Rule
from pegsynth.options import WEIGHT, named_weights
from pegsynth.privacy import Ledger
from pegsynth.privacy.assumptions import Parameters
from pegsynth.privacy.draw_events import DRAWS, Draws, UrnDraws
from pegsynth.privacy.events import NotPrivate, UnknownEvent, Unspent
from pegsynth.privacy.noise_events import PublishedCounts

NOISE_OPTION: Final = "noise"
OWN_NOISE: Final = "own"
SHARED_NOISE: Final = "shared"
REPLICATES_OPTION: Final = "replicates"
WEIGHT_OPTION: Final = "weight_name"
PART_OPTION: Final = "replicate_part"
_EARLIER_WEIGHT: Final = "weight"


@dataclass(frozen=True)
class Choice:
    """A rule and the reason for it, in half a sentence."""

    rule: Rule
    reason: str


def rule_for(ledger: Ledger, datasets: int) -> Choice:
    """Choose the rule for K datasets of a release."""
    events = ledger.events
    if any(isinstance(event, NotPrivate) and event.code == "kept-columns" for event in events):
        return Choice("partial", "some columns hold original values")
    if any(isinstance(event, UrnDraws) and not _apart(event, datasets) for event in events):
        return Choice("shared-urn", "the datasets were dealt from shared urns")
    if any(isinstance(event, UrnDraws) for event in events):
        return Choice("plug-in", "every dataset has urns of its own")
    if from_released_blocks(ledger):
        return _released_choice(ledger)
    if any(isinstance(event, UnknownEvent) for event in events):
        return Choice("plug-in", "the ledger names no other, but holds events of a newer version")
    return Choice("plug-in", "the datasets do not share a drawn parameter")


def _released_choice(ledger: Ledger) -> Choice:
    if replicates_of(ledger):
        return Choice("replicate-weights", "the rows have replicate weights")
    if has_own_noise(ledger):
        return Choice("own-noise", "every dataset has sampling and noise of its own")
    return Choice(
        "plug-in",
        "all datasets were drawn from the same released counts, and the noise on these is in no "
        "interval",
    )


NO_INTERVALS: Final = (
    "virtual rows that protect people pull all of these datasets towards a prior in the same "
    "direction, and nothing in the datasets tells how far: measured, 95 % intervals hold shares in "
    "0 to 93 of 100 cases, and coefficients of linear regressions in at most 1"
)
"""Why tables of methods with virtual rows get no interval: docs/inference.md has the figures."""

REMEDY: Final = (
    "report the mean of the estimates without an interval, or ask for a release by pegs-once with "
    "--replicates, whose intervals hold sampling error and noise"
)


def without_intervals(ledger: Ledger) -> bool:
    """Whether the ledger records draws under virtual rows, whose pull no rule covers (R16)."""
    return any(isinstance(event, DRAWS) for event in ledger.events)


def check_rule(rule: Rule, ledger: Ledger) -> None:
    """Refuse a rule that is wrong for what the ledger records, with the reason (R28)."""
    if without_intervals(ledger):
        raise ParameterError(f"there is no interval for these datasets: {NO_INTERVALS}; {REMEDY}")
    reason = _refusal(rule, ledger)
    if reason:
        raise ParameterError(
            f"the {rule} rule is wrong for these datasets: {reason}; the ledger implies the "
            f"{rule_for(ledger, 2).rule} rule"
        )


def _refusal(rule: Rule, ledger: Ledger) -> str:
    """Return why a rule is wrong; nothing where it is not."""
    reason = ""
    own, weighted = has_own_noise(ledger), replicates_of(ledger) is not None
    if rule == "nested" and (other := rule_for(ledger, 2)).rule != "plug-in":
        reason = f"it is for datasets that a plug-in rule would fit, and {other.reason}"
    elif not from_released_blocks(ledger):
        if rule in REPLICATED:
            reason = "they are not replicates of released blocks, and b does not hold their error"
    elif rule == "fully":
        reason = (
            "rows of pegs-once are drawn with little variance, so that taking v off b takes off "
            "more than drawing added"
        )
    elif (own or weighted) and rule not in REPLICATED:
        reason = "their spread holds sampling error and noise already, and v leaves the noise out"
    elif rule == "own-noise" and not own:
        reason = "they share the noise of the published counts, so that b is about drawing alone"
    elif rule == "replicate-weights" and not weighted:
        reason = "the release has no replicate weights"
    return reason


def has_own_noise(ledger: Ledger) -> bool:
    """Whether every dataset has sampling and noise of its own."""
    return any(each.get(NOISE_OPTION) == OWN_NOISE for each in _options(ledger))


def replicates_of(ledger: Ledger) -> int | None:
    """Return the number of replicate weights; None where there are none."""
    told = [each[REPLICATES_OPTION] for each in _options(ledger) if REPLICATES_OPTION in each]
    return _only_number(told)


def design_of(ledger: Ledger) -> ReplicateDesign | None:
    """Return the design of replicate weights as a ledger records it; None where it has none."""
    told = {
        (str(each.get(WEIGHT_OPTION, _EARLIER_WEIGHT)), each.get(PART_OPTION, 1.0))
        for each in _options(ledger)
        if REPLICATES_OPTION in each
    }
    replicates = replicates_of(ledger)
    if replicates is None or len(told) != 1:
        return None
    weight, part = told.pop()
    return ReplicateDesign(replicates, _checked_part(part), weight)


def _checked_part(part: object) -> float:
    if not isinstance(part, float | int) or not 0 < part <= 1:
        raise ParameterError(f"the ledger's {PART_OPTION} must lie above 0 and be at most 1")
    return float(part)


def weights_of(ledger: Ledger) -> tuple[str, ...]:
    """Return the names of the weight of a row and of its replicates; none where there are none."""
    design = design_of(ledger)
    return () if design is None else design.names


def _options(ledger: Ledger) -> list[Parameters]:
    return [a.parameters for a in ledger.assumptions if a.code == "public-options"]


def from_released_blocks(ledger: Ledger) -> bool:
    """Whether rows come from counts that were released once (R11) or published before (R36).

    Their tables vary little, so that b is smaller than v, and the noise is in all of them.
    """
    # A release that draws may leave something unspent, too, where it has measured its codec.
    return not without_intervals(ledger) and any(
        isinstance(event, Unspent | PublishedCounts) for event in ledger.events
    )


def _apart(event: UrnDraws, datasets: int) -> bool:
    """Whether every dataset has an urn of its own; more urns may be chains that all share."""
    return event.urns == event.datasets >= datasets


def rows_of(ledger: Ledger, datasets: int) -> int | None:
    """Return n as the draws record it, or the options of the run; None where they do not tell.

    A ledger of fewer than K datasets may count the rows of all of them as one. Rows of
    released blocks cost nothing, so that no event of theirs counts them.
    """
    draws = [event for event in ledger.events if isinstance(event, DRAWS)]
    if draws:
        return _only_number(_rows(event, datasets) for event in draws)
    told = [each.get("rows") for each in _options(ledger) if each.get("datasets") == datasets]
    return _only_number(told)


def _rows(event: Draws, datasets: int) -> int | None:
    return event.rows if event.datasets >= datasets else None


def rows_in_of(ledger: Ledger) -> int | None:
    """Return N as it was stated to be public; None where it was not."""
    stated = [a.parameters.get("rows_in") for a in ledger.assumptions if a.code == "rows-in"]
    return _only_number(stated)


def _only_number(values: Iterable[object]) -> int | None:
    """Return the whole number that all agree on; None where they do not, or it is none."""
    found = {value if type(value) is int and value > 0 else None for value in values}
    return found.pop() if len(found) == 1 else None


def weight_columns(columns: Sequence[str], features: Collection[str] = ()) -> tuple[str, ...]:
    """Find the weights of a table by their names: NAME, NAME_1, NAME_2, .., none of them a feature.

    NAME is `pegs_weight`; without that, the only one that a table has of such names.
    A lone column of that name is no weight.
    """
    free = [name for name in columns if name not in features]
    found = [each for name in free if (each := _replicated_columns(name, free))]
    named = [each for each in found if each[0] == WEIGHT] or found
    return named[0] if len(named) == 1 else ()


def _replicated_columns(name: str, columns: Collection[str]) -> tuple[str, ...]:
    """Return NAME, NAME_1, NAME_2, .. as far as they go; none where there are fewer than three."""
    more = next(n for n in count() if f"{name}_{n + 1}" not in columns)
    return named_weights(name, more) if name in columns and more > 1 else ()


def weights_in(frame: Any, weight: str | None) -> list[Numbers]:
    """Return the weights of a table: those of the published counts, and the replicates."""
    columns = [str(name) for name in getattr(frame, "column_names", None) or frame.columns]
    found = weight_columns(columns) if weight is None else _replicated_columns(weight, columns)
    if not found:
        name = weight or WEIGHT
        raise ParameterError(
            f"replicate weights are the columns {name}, {name}_1, {name}_2, ..; this table lacks "
            "them; if they are called otherwise, state weight"
        )
    return [np.asarray(frame[name], dtype=np.float64) for name in found]
