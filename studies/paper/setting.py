"""What the study looks at in a table: the paper's features where they exist.

Goes in: a schema. Comes out: which features are conditioned on, what the intruder knows and
infers, which regressions are fitted, and for every panel of the paper that needs a feature
this schema lacks, the reason why it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegsynth.evaluation.risk.intruder import PAPER_ATTACKS, Attack
from pegsynth.inference.value_columns import is_numeric
from pegsynth.schema import Feature, Schema

AGE, SEX, RACE, ZIP = "age.yrs", "sex", "race", "patzip"
STAY, CHARGE, SEVERITY, CATEGORY = "los", "charge", "sev", "cat"

LINEAR = f"{CHARGE} ~ {AGE} + {SEVERITY} + {CATEGORY} + {STAY}"
LOGISTIC = f"I({CHARGE} > 25000) ~ {AGE} + {SEVERITY} + {CATEGORY} + {STAY}"

_TRIO = 3


@dataclass(frozen=True)
class Setting:
    """The features behind every panel.

    Parameters
    ----------
    schema
        The public codebook.
    given
        Features that the conditional distances condition on.
    attacks
        What an intruder knows and infers, the paper's first.
    formulas
        Regressions.
    unique
        Features on which uniqueness is judged.
    histograms
        Features whose histograms are drawn as blocks grow.
    trio
        Three features of the small run behind the first figures.
    left_out
        Panels that this schema cannot have, and why.
    """

    schema: Schema
    given: tuple[str, ...]
    attacks: tuple[Attack, ...]
    formulas: tuple[str, ...]
    unique: tuple[str, ...]
    histograms: tuple[str, ...]
    trio: tuple[str, ...]
    left_out: tuple[str, ...]

    def attack(self, *, amounts: bool) -> Attack | None:
        """Return the first attack on a category, or on an amount; None if there is none."""
        return next((each for each in self.attacks if each.amounts == amounts), None)


def setting_of(schema: Schema) -> Setting:
    """Settle what is looked at; the paper's own choice where its features exist."""
    quasi = [f.name for f in schema.features if f.role == "quasi-identifier"]
    sensitive = [f.name for f in schema.features if f.role == "sensitive"]
    left_out: list[str] = []
    given = _present(schema, (AGE, ZIP)) or tuple(_varied(schema, quasi or schema.names)[:2])
    attacks = _attacks(schema, quasi, sensitive)
    if not any(not attack.amounts for attack in attacks):
        left_out.append(_NO_GUESS.format("most frequent category", "nominal or ordinal"))
    if not any(attack.amounts for attack in attacks):
        left_out.append(_NO_GUESS.format("mean", "numeric"))
    formulas: tuple[str, ...] = (LOGISTIC, LINEAR)
    if not _present(schema, (CHARGE, AGE, SEVERITY, CATEGORY, STAY)) or not all(
        is_numeric(_feature(schema, name)) for name in (CHARGE, AGE, STAY)
    ):
        formulas = ()
        left_out.append(
            "regressions: the paper's models need charge, age.yrs, sev, cat and los, charge, "
            "age.yrs and los numeric"
        )
    unique = _present(schema, (AGE, SEX, ZIP)) or tuple(quasi)
    if not unique:
        left_out.append("uniqueness: the schema marks no feature as a quasi-identifier")
    histograms = _present(schema, (CHARGE, AGE)) or _firsts(schema, sensitive, quasi)
    trio = _present(schema, (SEX, AGE, RACE)) or _small_trio(schema, quasi)
    if not trio:
        left_out.append("figures 1 to 3: a run on three features needs a table of at least three")
    return Setting(schema, given, attacks, formulas, unique, histograms, trio, tuple(left_out))


_NO_GUESS = (
    "attack by the {}: it needs quasi-identifiers to know and a sensitive feature to infer that "
    "is {}"
)


def _attacks(schema: Schema, quasi: Sequence[str], sensitive: Sequence[str]) -> tuple[Attack, ...]:
    paper = [
        Attack.on(schema, infer, known)
        for infer, known in PAPER_ATTACKS
        if _present(schema, (infer, *known))
        and is_numeric(_feature(schema, infer)) == (infer == CHARGE)
    ]
    others = ((infer, tuple(name for name in quasi if name != infer)) for infer in sensitive)
    return tuple(paper) or tuple(Attack.on(schema, *each) for each in others if each[1])


def _firsts(schema: Schema, sensitive: Sequence[str], quasi: Sequence[str]) -> tuple[str, ...]:
    """Return the first sensitive feature and the first quasi-identifier, or the first two."""
    chosen = (*_varied(schema, sensitive)[:1], *_varied(schema, quasi)[:1])
    return chosen if len(set(chosen)) == 2 else tuple(_varied(schema, schema.names)[:2])


def _small_trio(schema: Schema, quasi: Sequence[str]) -> tuple[str, ...]:
    """Return three features of few categories, quasi-identifiers first; none if there are fewer."""
    ranked = sorted(
        _varied(schema, schema.names),
        key=lambda name: (name not in quasi, _feature(schema, name).category_count),
    )
    return tuple(ranked[:_TRIO]) if len(ranked) >= _TRIO else ()


def _varied(schema: Schema, names: Sequence[str]) -> list[str]:
    """Return the features with two categories or more; all if no feature has as many."""
    varied = [name for name in names if _feature(schema, name).category_count > 1]
    return varied or list(names)


def _present(schema: Schema, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names if the schema has all of them, else none."""
    return names if set(names) <= set(schema.names) else ()


def _feature(schema: Schema, name: str) -> Feature:
    return schema.features[schema.index(name)]
