"""The manifest of a model file: what it says about itself beside its counts.

A plan goes in and comes out again; nothing of a stored plan is believed that its method and
its events do not bear out. The manifest holds public or paid-for parameters only.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from pegsynth.errors import ModelError, PegsynthError
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.stored_model import StoredModel
from pegsynth.methods.stored_model import StoredPlan as PlanParts
from pegsynth.options import Order, PriorKind
from pegsynth.privacy import Budget, Ledger
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.privacy.privacy_json import event_from_builtins, event_to_builtins
from pegsynth.schema import Schema
from pegsynth.tables.caller_frames import FrameKind

NOTICE = "CONFIDENTIAL: exact counts, and perhaps rows, of a confidential table; not for release"
SHAREABLE = (
    "SHAREABLE: noisy counts of released blocks, paid for by the events in this file; rows may be "
    "drawn from it without limit"
)
UNCOVERED = (
    "CONFIDENTIAL: noisy counts of released blocks that no guarantee covers; not for release"
)


class StoredPlan(msgspec.Struct, frozen=True):
    """A settled plan; its events are enough to recompute the guarantee."""

    draw: dict[str, Any]
    budget: dict[str, Any]
    events: str
    order: Order = "public"
    prior: PriorKind = "uniform"
    seed_pool: str = "uniform"
    numerator: int = 0
    scale: int = DEFAULT_SCALE


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model file says about itself; its format is told by the container."""

    format: int = 0

    identity: str
    schema: str
    columns: list[str]
    dtypes: dict[str, str]
    heads: list[list[int]]
    tail_bits: int
    ledger: msgspec.Raw
    shares: list[list[float]] = []
    total: float = 1.0
    recipe: StoredPlan | None = None
    frame: FrameKind | None = None


def notice_of(model: Model) -> str:
    """Say what may be done with the file of a model."""
    if not get(model.method).released or model.plan is None:
        return NOTICE
    events = (*model.ledger.events, *model.plan.events)
    covered = Ledger(events, delta=model.plan.budget.delta or 0.0).guarantee.epsilon is not None
    return SHAREABLE if covered else UNCOVERED


def stored_plan(plan: Plan) -> StoredPlan:
    """Return a plan as the manifest holds it."""
    budget = {
        name: getattr(plan.budget, name)
        for name in ("epsilon", "delta", "epsilon_per_row", "l", "alpha")
    }
    options = {each.name: getattr(plan.options, each.name) for each in fields(plan.options)}
    plain = {name: str(v) if isinstance(v, Path) else v for name, v in options.items()}
    parts = get(plan.method).store_plan(plan)
    return StoredPlan(
        draw={"method": plan.method, **plain},
        budget=budget,
        events=json.dumps([event_to_builtins(event) for event in parts.events]),
        order=parts.order,
        prior=parts.prior,
        seed_pool=parts.seed_pool,
        numerator=parts.numerator,
        scale=parts.scale,
    )


def restored_plan(stored: StoredPlan, schema: Schema, model: StoredModel) -> Plan:
    """Rebuild a plan."""
    try:
        method = get(stored.draw["method"])
        options = method.options(**{n: v for n, v in stored.draw.items() if n != "method"})
        parts = PlanParts(
            options,
            Budget(**stored.budget),
            tuple(event_from_builtins(event) for event in json.loads(stored.events)),
            stored.order,
            stored.prior,
            stored.seed_pool,
            stored.numerator,
            stored.scale,
        )
    except (PegsynthError, KeyError, TypeError, ValueError, RecursionError):
        raise ModelError("its recipe is damaged") from None
    try:
        plan: Plan = method.load_plan(parts, schema, model)
    except ModelError:
        raise
    except (PegsynthError, TypeError, ValueError):
        raise ModelError("its recipe does not fit its events") from None
    return plan
