"""Invented households and their members: two tables.

No row describes anybody, and every figure was made up. A household has a region, a tenure, rooms
and an income band; it has one to eight members: a head, perhaps a partner, children and others.
Partners are of about the head's age and mostly of the other sex, children are younger, and
education follows that of the head.

In: a number of households and a seed. Out: two Polars frames that fit `households_schema`.
"""

from __future__ import annotations

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
_NAMES = (
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
    chunks = SeekableDraws.chunks(stream, count, _NAMES)
    parts = [_tables(draws, start) for start, draws in chunks]
    first, second = zip(*parts, strict=True)
    return pl.concat(first, rechunk=True), pl.concat(second, rechunk=True)


def households_schema() -> Schema:
    """Return the reviewed codebook of both tables."""
    return codebook("households")


def _tables(draws: SeekableDraws, start: int) -> tuple[pl.DataFrame, pl.DataFrame]:
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
