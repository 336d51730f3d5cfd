"""Ways of making synthetic rows that the study compares.

An `Arm` is a method with everything settled but one quantity, its *level*: epsilon per row,
epsilon of the whole release, l, the number of sweeps or the size of a block. `request_of` turns
an arm and a level into a request of the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pegsynth.errors import ParameterError
from pegsynth.methods import get
from pegsynth.pipeline.request import Request

Axis = Literal["row", "rows", "total", "l", "none", "sweeps", "block", "chain"]
Pool = Literal["public", "uniform", "original", "default"]
HeadOrder = Literal["data", "pool", "default"]

MAIN = "main"
PAPER_TAIL_BITS = 1


@dataclass(frozen=True)
class Arm:
    """One way of making rows.

    Parameters
    ----------
    name
        Names its cells and its line in a figure; no two arms share one.
    method
        A method of `pegsynth.synthesize`, or ``fresh`` for rows of the population that no
        synthesizer ever saw.
    axis
        What the level is. ``row``: epsilon per synthetic row. ``rows``: the same, stated as a
        total of level times rows for methods that have no price per row. ``total``: epsilon
        of the whole release. ``l``: of l-diversity. ``none``: there is none. ``sweeps``: sweeps
        of an unperturbed sampler. ``block``: rows of a block at a fixed epsilon per row.
        ``chain``: rows of a chain at a fixed epsilon per chain.
    pool
        Where seed rows come from; ``default`` leaves it to the method.
    order
        Where heads come from: mutual information in the data (the paper's), mutual
        information in the public pool, or the method's default.
    population
        Name of the table that is synthesized.
    epsilon
        The fixed epsilon of the axes ``block`` and ``chain``.
    delta
        Beside a total epsilon.
    reset
        Whether a chain resets what it visited (PeGS.rs) or not (PeGS, iterated).
    heads
        Head features per target, m; None leaves the default.
    """

    name: str
    method: str
    axis: Axis = "row"
    pool: Pool = "public"
    order: HeadOrder = "data"
    population: str = MAIN
    epsilon: float = 1.0
    delta: float | None = None
    reset: bool = True
    heads: int | None = None


def request_of(arm: Arm, level: float | None, rows: int, *, seed_pool: str | None) -> Request:
    """Return what an arm asks for at a level, in the library's own terms.

    Parameters
    ----------
    seed_pool
        The pool as the library knows it; None for the method's default.
    """
    if (level is None) != (arm.axis == "none"):
        raise ParameterError(f"arm {arm.name!r}: a level goes with every axis but none")
    whole = int(level or 1)
    stated: dict[str, Any] = {"seed_pool": seed_pool}
    match arm.axis:
        case "row":
            stated["epsilon_per_row"] = level
        case "rows":
            stated |= {"epsilon": (level or 0.0) * rows, "delta": arm.delta}
        case "total":
            stated |= {"epsilon": level, "delta": arm.delta}
        case "l":
            stated["l"] = level
        case "sweeps":
            stated["alpha"], stated["sweeps"] = 0.0, whole
        case "block":
            stated["epsilon_per_row"], stated["block_size"] = arm.epsilon, whole
        case "chain":
            # One chain is one block: the same alpha whatever its length (R4).
            stated["epsilon_per_row"], stated["block_size"] = arm.epsilon / whole, whole
    if "order" in get(arm.method).options.__dataclass_fields__:
        stated["order"] = {"data": "data", "pool": "public", "default": None}[arm.order]
        stated["heads"] = arm.heads
        # The paper's keys end in one bit that hashes all other features.
        stated["tail_bits"] = 0 if arm.order == "default" else PAPER_TAIL_BITS
    return Request(method=arm.method, rows=rows, accept_unreviewed_schema=True, **stated)
