"""Invented tables of units with several rows: households with their members, stays of people.

No row describes anybody, and every figure was made up.

A household has a region, a tenure, rooms and an income band; it has one to eight members: a head,
perhaps a partner, children and others. Partners are of about the head's age and mostly of the
other sex, children are younger, and education follows that of the head.

Hospital stays of people over some years are a panel. A person has one to four stays, or up to as
many as asked for, which then come closer together. Sex and decade of birth stay the same; ward,
severity, payer and outcome change from stay to stay, each depending on what it was before: severe
cases come back sooner, to the same ward, and more often.

In: a number of units and a seed. Out: Polars frames that fit `households_schema`, `panel_schema`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from pegsynth.datasets.invented import (
    SeekableDraws,
    at_least_one,
    codebook,
    cumulate,
    values,
)
from pegsynth.kernels.arrays import Int64
from pegsynth.random import RandomStream
from pegsynth.schema import Schema

MOST_MEMBERS = 8
_PER_MEMBER = ("there", "sex", "age", "education", "education kept")
_DRAWN = (
    *("region", "tenure", "rooms", "income", "partner"),
    *(f"{name} {member}" for member in range(MOST_MEMBERS) for name in _PER_MEMBER),
)
_TENURE_BY_REGION = cumulate([[6, 3, 1], [4, 4, 2], [5, 3, 2], [3, 5, 2]])
_INCOME_BY_TENURE = cumulate([[1, 4, 3], [3, 4, 1], [6, 2, 0.2]])
_ROOMS_BY_TENURE = cumulate([[0.5, 1, 3, 4, 3, 2], [2, 4, 4, 2, 1, 0.3], [2, 4, 3, 1, 0.4, 0.1]])
_AGE_OF_HEAD = cumulate([0, 0.1, 3, 5, 5, 4, 2])
_AGE_OF_CHILD = cumulate([5, 4, 1.5, 0.3, 0, 0, 0])
_AGE_OF_OTHER = cumulate([0.5, 1, 2, 1, 1, 2, 2])
_EDUCATION_BY_INCOME = cumulate([[4, 5, 1], [1, 6, 3], [0.3, 3, 7]])
_PARTNER_BY_TENURE = np.array([0.65, 0.45, 0.3])
_CHILD_BY_AGE = np.array([0.1, 0.1, 0.5, 0.65, 0.3, 0.08, 0.05])
_OTHER, _SAME_EDUCATION, _SAME_SEX = 0.06, 0.5, 0.04


def households(count: int, seed: int | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Invent a table of households and one of their members.

    Parameters
    ----------
    count
        Number of households, at least 1.
    seed
        Fixes the tables; None: new ones every time.

    Returns
    -------
    tuple of polars.DataFrame
        Households, and persons; ``household`` says to which a person belongs.
    """
    at_least_one(count=count)
    stream = RandomStream(None if seed is None else f"households {seed}")
    chunks = SeekableDraws.chunks(stream, count, _DRAWN)
    parts = [_household(draws, start) for start, draws in chunks]
    first, second = zip(*parts, strict=True)
    return pl.concat(first, rechunk=True), pl.concat(second, rechunk=True)


def households_schema() -> Schema:
    """Return the reviewed codebook of both tables."""
    return codebook("households")


def _household(draws: SeekableDraws, start: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    count = draws.rows
    region = draws.category("region", cumulate([3, 4, 2, 3]))
    tenure = draws.category("tenure", _TENURE_BY_REGION, region)
    rooms = draws.category("rooms", _ROOMS_BY_TENURE, tenure)
    income = draws.category("income", _INCOME_BY_TENURE, tenure)
    number = pl.Series(np.arange(start, start + count))
    units = pl.DataFrame(
        {
            "household": number,
            **_columns(region=region, tenure=tenure, rooms=rooms, income=income),
        }
    )
    head_age = draws.category("age 0", _AGE_OF_HEAD)
    head_sex = draws.chance("sex 0", 0.55).astype(np.int64)
    head_education = draws.category("education 0", _EDUCATION_BY_INCOME, income)
    parts = [_members(number, np.ones(count, bool), 0, head_sex, head_age, head_education)]
    partner = draws.chance("partner", _PARTNER_BY_TENURE[tenure])
    more_children = np.ones(count, dtype=bool)
    for member in range(1, MOST_MEMBERS):
        same_sex = draws.chance(f"sex {member}", 0.5 if member > 1 else _SAME_SEX)
        sex = np.where(same_sex, head_sex, 1 - head_sex)
        education = np.where(
            draws.uniform(f"education kept {member}") < _SAME_EDUCATION,
            head_education,
            draws.category(f"education {member}", _EDUCATION_BY_INCOME, income),
        )
        chance = draws.uniform(f"there {member}")
        if member == 1:
            there, relation = partner, 1
            shift = (draws.uniform("age 1") * 4).astype(np.int64)
            age = np.clip(head_age + np.where(shift == 0, -1, np.where(shift == 1, 1, 0)), 2, 6)
        elif member < MOST_MEMBERS - 1:
            there = more_children & (chance < _CHILD_BY_AGE[head_age] * (0.6 + 0.4 * partner))
            more_children, relation = there, 2
            age = np.minimum(
                draws.category(f"age {member}", _AGE_OF_CHILD), np.maximum(head_age - 1, 0)
            )
            education = np.where(age < 2, 0, education)
        else:
            there, relation = chance < _OTHER, 3
            age = draws.category(f"age {member}", _AGE_OF_OTHER)
        parts.append(_members(number, there, relation, sex, age, education))
    return units, pl.concat(parts)


def _members(
    number: pl.Series,
    there: np.ndarray[tuple[int], np.dtype[np.bool_]],
    relation: int,
    sex: Int64,
    age: Int64,
    education: Int64,
) -> pl.DataFrame:
    relations = np.full(len(sex), relation)
    told = _columns(relation=relations, sex=sex, age=age, education=education)
    return pl.DataFrame({"household": number, **told}).filter(pl.Series(there))


def _columns(**codes: Int64) -> dict[str, pl.Series]:
    return {name: values(codebook("households")[name], each) for name, each in codes.items()}


MOST_STAYS = 4
_FIRST_STAY_WITHIN = 1000
_ORIGIN = dt.date(1970, 1, 1).toordinal()
_FIRST, _LAST = dt.date(2019, 1, 1), dt.date(2024, 1, 1)
_PER_STAY = (
    *("ward", "ward kept", "severity", "severity kept", "payer", "payer kept", "outcome"),
    *("again", "wait"),
)
_ONCE = ("sex", "born", "first")

_WARD_BY_SEX_AND_AGE = cumulate(
    [
        *([4, 2, 3, 0, 1], [4, 3, 3, 0, 1], [3, 3, 2, 0, 2]),
        *([3, 3, 1, 1, 2], [2, 2, 1, 5, 2], [1, 2, 0, 7, 2]),
        *([4, 2, 4, 0, 1], [4, 3, 4, 0, 1], [3, 4, 3, 0, 2]),
        *([3, 4, 2, 0, 2], [2, 5, 1, 0, 3], [2, 5, 1, 0, 3]),
    ]
)
_SEVERITY_BY_WARD = cumulate(
    [[3, 4, 2, 1], [4, 3, 2, 1], [1, 3, 4, 2], [7, 2, 1, 0.2], [2, 3, 3, 1]]
)
_PAYER_BY_AGE = cumulate(
    [[8, 1, 0.5, 0.2], [8, 1, 0.5, 0.2], [6, 3, 0.5, 0.5], [3, 5, 1, 1], [3, 5, 1, 1], [4, 4, 1, 2]]
)
_OUTCOME_BY_SEVERITY = cumulate([[9, 0.5, 0.5], [7, 2, 1], [4, 4, 2], [2, 4, 4]])
_AGAIN_BY_SEVERITY = np.array([0.35, 0.5, 0.65, 0.75])
_STAYS_IN_WARD, _STAYS_AS_SEVERE, _STAYS_WITH_PAYER = 0.6, 0.45, 0.9
_MEAN_GAP_BY_SEVERITY = np.array([420.0, 300.0, 160.0, 70.0])


def panel(people: int, seed: int | None = None, *, most: int = MOST_STAYS) -> pl.DataFrame:
    """Invent a table of hospital stays, several for most people.

    Parameters
    ----------
    people
        Number of people, at least 1.
    seed
        Fixes the table; None: a new one every time.
    most
        The most stays of a person, at least 1. The more, the sooner and the more often people
        come back.

    Returns
    -------
    polars.DataFrame
        The columns of `panel_schema`; rows of a person do not stand together.
    """
    at_least_one(people=people, most=most)
    names = (*_ONCE, *(f"{name} {stay}" for stay in range(most) for name in _PER_STAY))
    stream = RandomStream(None if seed is None else f"panel {seed}")
    chunks = SeekableDraws.chunks(stream, people, names)
    return pl.concat([_stays(draws, start, most) for start, draws in chunks], rechunk=True)


def panel_schema(most: int = MOST_STAYS) -> Schema:
    """Return the reviewed codebook of `panel` with so many stays at most."""
    schema = codebook("stays")
    return replace(schema, panel=replace(schema.panel, most=most))  # type: ignore[type-var]


def _stays(draws: SeekableDraws, start: int, most: int) -> pl.DataFrame:
    people = draws.rows
    # As many more stays as there may be find room in the same years.
    slower = MOST_STAYS / max(most, MOST_STAYS)
    again_by_severity = 1 - (1 - _AGAIN_BY_SEVERITY) * slower
    gap_by_severity = _MEAN_GAP_BY_SEVERITY * slower
    sex: Int64 = draws.chance("sex", 0.48).astype(np.int64)
    born = draws.category("born", cumulate([2, 3, 4, 4, 3, 3]))
    there = np.ones(people, dtype=bool)
    days = np.floor(draws.uniform("first") * _FIRST_STAY_WITHIN).astype(np.int64)
    ward = severity = payer = np.zeros(people, dtype=np.int64)
    parts = []
    for stay in range(most):
        kept = partial(_kept, draws, stay)
        drawn = draws.category(
            f"ward {stay}", _WARD_BY_SEX_AND_AGE, sex * len(_PAYER_BY_AGE) + born
        )
        ward = kept("ward", _STAYS_IN_WARD, ward, drawn)
        drawn = draws.category(f"severity {stay}", _SEVERITY_BY_WARD, ward)
        severity = kept("severity", _STAYS_AS_SEVERE, severity, drawn)
        drawn = draws.category(f"payer {stay}", _PAYER_BY_AGE, born)
        payer = kept("payer", _STAYS_WITH_PAYER, payer, drawn)
        outcome = draws.category(f"outcome {stay}", _OUTCOME_BY_SEVERITY, severity)
        codes = {"sex": sex, "born": born, "ward": ward, "severity": severity}
        codes |= {"payer": payer, "outcome": outcome}
        told = {name: values(codebook("stays")[name], each) for name, each in codes.items()}
        told["admitted"] = pl.Series(days + _FIRST.toordinal() - _ORIGIN).cast(pl.Date)
        told["patient"] = pl.Series(np.arange(start, start + people))
        stays = {column.name: told[column.name] for column in codebook("stays").columns}
        parts.append(pl.DataFrame(stays).filter(pl.Series(there)))
        there = there & draws.chance(f"again {stay}", again_by_severity[severity])
        wait = -np.log1p(-draws.uniform(f"wait {stay}")) * gap_by_severity[severity]
        days = days + 1 + np.floor(wait).astype(np.int64)
        there = there & (days < (_LAST - _FIRST).days)
    return pl.concat(parts)


def _kept(
    draws: SeekableDraws, stay: int, name: str, share: float, before: Int64, fresh: Int64
) -> Int64:
    """Return what was before with this chance, from the second stay on."""
    same = draws.uniform(f"{name} kept {stay}") < (share if stay else 0.0)
    return np.where(same, before, fresh)
