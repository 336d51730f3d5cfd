"""Which attacks the intruder makes: the user's choice, the paper's, or those of the roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.evaluation.numeric import is_numeric, numeric_values
from pegsynth.schema.schema import Schema

Floats = NDArray[np.float64]

PAPER_ATTACKS = (
    ("MDC", ("age.yrs", "sex", "patzip")),
    ("charge", ("age.yrs", "los", "patzip")),
)


@dataclass(frozen=True)
class Scenario:
    """One attack: positions of what is known and inferred, numbers where it has some."""

    known: tuple[int, ...]
    sensitive: int
    values: Floats | None
    subject: str


def scenarios(
    schema: Schema, known: Sequence[str] | None = None, infer: Sequence[str] | None = None
) -> tuple[Scenario, ...]:
    """Choose the attacks.

    Without a choice: the paper's two where the schema has their features (the built-in
    discharge data), else every sensitive feature from all quasi-identifiers. With `known`
    or `infer`: those features, the other side from the roles.

    Raises
    ------
    ParameterError
        A name is not in the schema, or a feature is both known and inferred.
    """
    papers = {name for target, given in PAPER_ATTACKS for name in (target, *given)}
    if known is None and infer is None and papers <= set(schema.names):
        return tuple(_scenario(schema, given, target) for target, given in PAPER_ATTACKS)
    for name in (*(known or ()), *(infer or ())):
        if name not in schema.names:
            raise ParameterError(f"attack: {name!r} is not a feature of the schema")
    both = set(known or ()) & set(infer or ())
    if both:
        raise ParameterError(f"attack: feature {min(both)!r} is both known and to be inferred")
    given = _of_role(schema, "quasi-identifier") if known is None else known
    targets = _of_role(schema, "sensitive") if infer is None else infer
    targets = [name for name in dict.fromkeys(targets) if name not in (known or ())]
    given = [name for name in dict.fromkeys(given) if name not in targets]
    return tuple(_scenario(schema, given, target) for target in targets)


def _scenario(schema: Schema, known: Sequence[str], target: str) -> Scenario:
    feature = schema.features[schema.names.index(target)]
    return Scenario(
        tuple(schema.names.index(name) for name in known),
        schema.names.index(target),
        numeric_values(feature) if is_numeric(feature) else None,
        f"{target} | {', '.join(known)}",
    )


def _of_role(schema: Schema, role: str) -> list[str]:
    return [feature.name for feature in schema.features if feature.role == role]
