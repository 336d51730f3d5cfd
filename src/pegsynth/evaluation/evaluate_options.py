"""What the user wants evaluated, checked against the schema before any table is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegsynth.errors import ParameterError
from pegsynth.evaluation.risk.intruder import attacks_of
from pegsynth.inference.combining_rules import Rule
from pegsynth.inference.formula import Formula, read_formula, read_response
from pegsynth.privacy import Ledger
from pegsynth.runtime import usable_processors
from pegsynth.schema import Schema

PAPER_FORMULAS = (
    "I(charge > 25000) ~ age.yrs + sev + cat + los",
    "charge ~ age.yrs + sev + cat + los",
)
AttackNames = tuple[tuple[str, ...] | None, tuple[str, ...] | None]


@dataclass(frozen=True)
class EvaluateOptions:
    """What to measure beside the tables.

    Parameters
    ----------
    formulas
        Regressions to compare.
    attacks
        What the intruder knows and infers, names of features; None: by the roles of the schema.
    target
        What a model trained on synthetic rows predicts; None: no such model.
    per_record
        Whether figures for every row of the original are wanted.
    threads
        Parts of the work done at a time.
    rule
        How several synthetic tables were made, which decides their intervals; None: not known.
    noise
        Features to the standard deviation of the best count published of them, as
        `published_noise` reads it off a ledger; empty: not known.
    ledger
        That of the release, which tells what published tables hold; None: not known.
    """

    formulas: tuple[Formula, ...] = ()
    attacks: tuple[AttackNames, ...] = ((None, None),)
    target: str | None = None
    per_record: bool = False
    threads: int = 1
    rule: Rule | None = None
    noise: Mapping[frozenset[str], float] = field(default_factory=dict)
    ledger: Ledger | None = None


def options_of(
    schema: Schema,
    *,
    target: str | None = None,
    known: Any = None,
    infer: Any = None,
    formulas: Any = None,
    per_record: bool = False,
    threads: int | None = None,
    rule: Rule | None = None,
    noise: Mapping[frozenset[str], float] | None = None,
    ledger: Ledger | None = None,
) -> EvaluateOptions:
    """Read what the user asked for.

    Parameters
    ----------
    schema
        The codebook that all names refer to.
    target
        A feature, or a comparison such as ``I(charge > 25000)``.
    known
        What an intruder knows: names, or one text of names with commas; or, for several
        attacks, a list of such lists, as many as `infer` has names.
    infer
        The feature or features to be inferred.
    formulas
        One or more regressions; None: the paper's two where the schema has their features,
        else none.
    per_record, threads, rule, noise, ledger
        As in `EvaluateOptions`; by default as many threads as there are processors.

    Raises
    ------
    ParameterError
        Something cannot be read, or names a feature that the schema lacks.
    """
    if threads is not None and threads < 1:
        raise ParameterError("threads must be at least 1")
    if target is not None:
        read_response(target, schema)
    attacks = _attacks(known, infer)
    for names in attacks:
        attacks_of(schema, *names)
    return EvaluateOptions(
        _formulas(formulas, schema),
        attacks,
        None if target is None else " ".join(target.split()),
        per_record,
        threads or usable_processors(),
        rule=rule,
        noise=noise or {},
        ledger=ledger,
    )


def _formulas(given: Any, schema: Schema) -> tuple[Formula, ...]:
    if given is None:
        return _paper_formulas(schema)
    texts = [given] if isinstance(given, str) else list(given)
    read = [read_formula(text, schema) for text in texts]
    return tuple(dict.fromkeys(read))


def _paper_formulas(schema: Schema) -> tuple[Formula, ...]:
    try:
        return tuple(read_formula(text, schema) for text in PAPER_FORMULAS)
    except ParameterError:
        return ()


def _attacks(known: Any, infer: Any) -> tuple[AttackNames, ...]:
    sets = _name_sets(known)
    targets = None if infer is None else _names(infer)
    if sets is None or len(sets) == 1:
        return ((None if sets is None else sets[0], targets),)
    if targets is None or len(targets) != len(sets):
        raise ParameterError(
            f"there are {len(sets)} lists of known features and {len(targets or ())} features to "
            "infer; give one list for all (--known F,F), or one before each --infer"
        )
    pairs = zip(sets, targets, strict=True)
    return tuple((features, (target,)) for features, target in pairs)


def _name_sets(known: Any) -> list[tuple[str, ...]] | None:
    """Return the lists of known features; a plain list of names is one list."""
    if known is None:
        return None
    if isinstance(known, str):
        return [_names(known)]
    given = list(known)
    if all(isinstance(each, str) for each in given) and not any("," in each for each in given):
        return [tuple(given)]
    return [_names(each) for each in given]


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names from a text with commas, or from a list of texts."""
    if isinstance(given, str):
        return tuple(filter(None, map(str.strip, given.split(","))))
    return tuple(name for each in given for name in _names(each))
