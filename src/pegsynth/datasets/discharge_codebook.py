"""Codebook of the discharge data: thirteen features, their bins, and what cannot occur.

Names, order and numbers of categories are those of the paper's table of variables
(6, 18, 3, 4, 7, 16, 16, 13, 9, 25, 25, 3, 2). The last bins are finite because a decoded
value is drawn uniformly inside its bin: their highest edges are set so that such a draw
has about the mean of what lies there, and larger values still fall in the bin.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pegsynth.datasets import discharge_tables as tables
from pegsynth.schema.declared import Analysis, WantedTable
from pegsynth.schema.feature import Feature
from pegsynth.schema.rules import Rule
from pegsynth.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pegsynth.schema.feature import Role

AGE_EDGES = (*range(0, 85, 5), 95)
STAY_EDGES = (*range(10), 10, 30, 50, 70, 90, 220)
CHARGE_EDGES = (*range(0, 10_000, 2_000), *range(10_000, 105_000, 5_000), 320_000)

FERTILE_AGES = (10, 55)
NEWBORN_AGES = (0, 5)

SINGLE_SEX_DIAGNOSES = (
    ("12", "male reproductive system", "Female", "women"),
    ("13", "female reproductive system", "Male", "men"),
    ("14", "pregnancy", "Male", "men"),
)

EXPERT_HEADS = {
    "typ": ("MDC", "age.yrs", "los"),
    "age.yrs": ("pay", "MDC", "sex"),
    "sex": ("MDC", "age.yrs"),
    "ethncty": ("race", "patzip"),
    "race": ("ethncty", "patzip"),
    "patzip": ("race", "ethncty", "pay"),
    "los": ("typ", "sev", "charge"),
    "disp": ("typ", "age.yrs", "sev"),
    "pay": ("age.yrs", "patzip"),
    "charge": ("los", "cat", "MDC"),
    "MDC": ("age.yrs", "cat", "sex"),
    "sev": ("age.yrs", "los", "MDC"),
    "cat": ("MDC", "charge"),
}


def discharge_schema(*, heads: bool = False) -> Schema:
    """Return the reviewed schema of the invented discharge data.

    Parameters
    ----------
    heads
        Whether each feature lists the head features that an expert would choose. Without
        them a release under a privacy budget finds the order privately.

    Returns
    -------
    Schema
        Thirteen features, none drafted from data, and the rules on MDC 14 and 15.
    """
    features = _features()
    if heads:
        features = tuple(replace(f, heads=EXPERT_HEADS[f.name]) for f in features)
    return Schema(features, rules=_rules(features), reviewed=True)


def reviewed_discharge_draft(draft: Schema, reviewer: str) -> Schema:
    """Return a schema drafted from the discharge data with what a reviewer adds to it.

    Labels and roles of features, the diagnoses of one sex, and one regression that analysts
    will run. Edges stay as drafted: a release measures them.
    """
    for known in _features():
        draft = draft.with_feature(known.name, label=known.label, role=known.role)
    names = draft.names
    sex, diagnosis = names.index("sex"), names.index("MDC")
    rules = tuple(
        Rule.of(
            {
                diagnosis: [draft["MDC"].categories.index(code)],
                sex: [draft["sex"].categories.index(other)],
            },
            f"MDC {code} ({meaning}) is not of {others}",
        )
        for code, meaning, other, others in SINGLE_SEX_DIAGNOSES
    )
    regression = Analysis("charge ~ age.yrs + los + C(sev) + C(cat)", share=0.1)
    table = WantedTable(("typ", "MDC"), share=0.05)
    declared = replace(draft, rules=rules, analyses=(regression,), tables_wanted=(table,))
    return declared.reviewed_by(reviewer)


def _features() -> tuple[Feature, ...]:
    areas = [area.name for area in tables.AREAS]
    diagnoses = [str(code) for code in range(1, len(tables.DIAGNOSES) + 1)]
    known_by_others: Role = "quasi-identifier"
    return (
        _text("typ", "Type of care", tables.CARE),
        _number("age.yrs", "Age in years", AGE_EDGES, known_by_others),
        _text("sex", "Sex", tables.SEX, known_by_others, missing=True),
        _text("ethncty", "Ethnicity", tables.ETHNICITY, known_by_others, missing=True),
        _text("race", "Race", tables.RACE, known_by_others, missing=True),
        _text("patzip", "ZIP area of the patient", areas, known_by_others),
        _number("los", "Length of stay in days", STAY_EDGES),
        _text("disp", "Where the patient went on discharge", tables.DISPOSITION),
        _text("pay", "Expected source of payment", tables.PAYER),
        _number("charge", "Total charge in dollars", CHARGE_EDGES, "sensitive"),
        _text("MDC", "Major diagnostic category, 14 pregnancy, 15 newborn", diagnoses, "sensitive"),
        _severity(),
        _text("cat", "Medical or surgical stay", tables.CATEGORY),
    )


def _text(
    name: str,
    label: str,
    categories: Iterable[str],
    role: Role = "other",
    *,
    missing: bool = False,
) -> Feature:
    return Feature(
        name,
        categories=tuple(categories),
        missing=("",) if missing else (),
        role=role,
        dtype="string",
        label=_invented(label),
    )


def _number(name: str, label: str, edges: tuple[int, ...], role: Role = "other") -> Feature:
    return Feature(
        name,
        kind="numeric",
        edges=tuple(float(edge) for edge in edges),
        missing=("",),
        role=role,
        dtype="int64",
        label=_invented(label),
    )


def _severity() -> Feature:
    label = _invented("Severity: 0 no complication, 1 complication, 2 major complication")
    return Feature("sev", kind="ordinal", categories=("0", "1", "2"), dtype="int64", label=label)


def _invented(label: str) -> str:
    return f"{label} (invented data)"


def _rules(features: tuple[Feature, ...]) -> tuple[Rule, ...]:
    """Pregnancy and birth have their ages; a masked age or sex may go with either."""
    index = {feature.name: position for position, feature in enumerate(features)}
    age, sex, diagnosis = index["age.yrs"], index["sex"], index["MDC"]
    pregnancy, newborn = [tables.PREGNANCY], [tables.NEWBORN]
    return (
        Rule.of({diagnosis: pregnancy, sex: [tables.MALE]}, "MDC 14 (pregnancy) is not of men"),
        Rule.of(
            {diagnosis: pregnancy, age: _bins_outside(features[age], *FERTILE_AGES)},
            "MDC 14 (pregnancy) is of ages 10 to 54",
        ),
        Rule.of(
            {diagnosis: newborn, age: _bins_outside(features[age], *NEWBORN_AGES)},
            "MDC 15 (newborn) is of ages below 5",
        ),
    )


def _bins_outside(feature: Feature, low: int, high: int) -> list[int]:
    starts = feature.edges[:-1]
    return [code for code, start in enumerate(starts) if not low <= start < high]
