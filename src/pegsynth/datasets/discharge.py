"""Invented hospital discharges, shaped like the paper's California table.

No row describes a person, and no figure was estimated from patients: the tables in
`pegsynth.datasets.discharge_tables` were made up. The dependence is what a hospital
analyst would look for. In causal order: where a patient lives decides ethnicity, race
and, with sex, age; age and sex decide the diagnosis; these decide the type of care,
surgery and severity; these the length of stay; age, ZIP area and injury the payer; all
of them the disposition and the charge, which has a log-normal tail. Newborns (MDC 15)
are of age 0, pregnancies (MDC 14) of women aged 10 to 54.

Values are then lost, never at random: charges under prepaid plans, stays in skilled
nursing that are still in progress, race where hospitals or payers do not ask, age and
sex of people in small groups.

In: a number of rows and a seed. Out: a Polars frame that fits `discharge_schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pegsynth.datasets import discharge_tables as tables
from pegsynth.datasets import discharge_variables as variables
from pegsynth.datasets.discharge_codebook import discharge_schema
from pegsynth.datasets.seekable_draws import CHUNK_ROWS, Codes, SeekableDraws
from pegsynth.errors import ParameterError
from pegsynth.random import RandomStream
from pegsynth.runtime import check_threads

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature

DRAWN = (
    *("area", "hispanic", "race", "sex", "age bin", "age in bin", "diagnosis", "care"),
    *("surgery", "severity", "stay", "payer", "disposition", "charge"),
    *("prepaid", "charge lost", "stay in progress", "race lost", "ethnicity lost"),
    *("ethnicity unknown", "age masked", "sex masked"),
)

_LOST = -1


def discharge(rows: int, seed: int | None = None) -> pl.DataFrame:
    """Invent a table of hospital discharges.

    Parameters
    ----------
    rows
        Number of rows, at least 1.
    seed
        Fixes the table: the same seed gives the same rows, and the first rows of a longer
        table are the shorter one. None: a new table every time.

    Returns
    -------
    polars.DataFrame
        The thirteen columns of `discharge_schema`, text as String and numbers as Int64,
        null where a value is missing.
    """
    return pl.concat(list(discharge_batches(rows, seed)), rechunk=True)


def discharge_batches(
    rows: int, seed: int | None = None, *, batch: int = CHUNK_ROWS
) -> Iterator[pl.DataFrame]:
    """Invent the table of `discharge` piece by piece, in bounded memory.

    Parameters
    ----------
    rows, seed
        As for `discharge`; the pieces together are that table.
    batch
        Rows of every piece but the last.
    """
    if not (_whole(rows) and rows >= 1):
        raise ParameterError("rows must be a whole number of at least 1")
    if not (_whole(batch) and batch >= 1):
        raise ParameterError("batch must be a whole number of at least 1")
    if not (seed is None or _whole(seed)):
        raise ParameterError("seed must be a whole number, or None for a new table every time")
    # Named after the table, so that a synthesizer with the same seed draws other words.
    stream = RandomStream(None if seed is None else f"discharge {seed}")
    check_threads()
    chunks = SeekableDraws.chunks(stream, rows, DRAWN)
    return _regroup((_chunk(draws) for _, draws in chunks), batch)


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _regroup(frames: Iterator[pl.DataFrame], batch: int) -> Iterator[pl.DataFrame]:
    pending: list[pl.DataFrame] = []
    for frame in frames:
        start, waiting = 0, sum(map(len, pending))
        while waiting + len(frame) - start >= batch:
            end = start + batch - waiting
            yield pl.concat([*pending, frame[start:end]])
            pending, start, waiting = [], end, 0
        if start < len(frame):
            pending.append(frame[start:])
    if pending:
        yield pl.concat(pending)


def _chunk(draws: SeekableDraws) -> pl.DataFrame:
    area = variables.area(draws)
    wealth = variables.wealth(area)
    ethnicity = variables.ethnicity(draws, area)
    race = variables.race(draws, area, ethnicity)
    sex = variables.sex(draws)
    age = variables.age(draws, sex, wealth)
    stage = variables.stage(age)
    diagnosis = variables.diagnosis(draws, age, sex)
    care = variables.care(draws, diagnosis, stage)
    surgery = variables.surgery(draws, diagnosis, care, stage)
    severity = variables.severity(draws, diagnosis, care, stage)
    stay = variables.stay(draws, diagnosis, care, surgery, severity, stage)
    payer = variables.payer(draws, age, wealth, diagnosis)
    disposition = variables.disposition(draws, diagnosis, care, stage, severity, payer)
    charge = variables.charge(draws, diagnosis, care, surgery, severity, stay, payer)

    race_lost = variables.race_lost(draws, area, payer)
    age_masked = variables.age_masked(draws, race, care, diagnosis)
    sex_masked = variables.sex_masked(draws, race, care)
    in_progress = variables.stay_in_progress(draws, care)
    charge_lost = variables.charge_lost(draws, care, payer)
    return _frame(
        {
            "typ": care,
            "age.yrs": np.where(age_masked, _LOST, age),
            "sex": np.where(sex_masked, len(tables.SEX), sex),
            "ethncty": variables.recorded_ethnicity(draws, ethnicity, race_lost, payer),
            "race": np.where(race_lost, len(tables.RACE), race),
            "patzip": area,
            "los": np.where(in_progress, _LOST, stay),
            "disp": disposition,
            "pay": payer,
            "charge": np.where(charge_lost, _LOST, charge),
            "MDC": diagnosis,
            "sev": severity,
            "cat": surgery,
        }
    )


def _frame(codes: Mapping[str, Codes]) -> pl.DataFrame:
    features = discharge_schema().features
    return pl.DataFrame([_column(feature, codes[feature.name]) for feature in features])


def _column(feature: Feature, codes: Codes) -> pl.Series:
    """Text by its code, the code after the last for null; numbers as they are."""
    if not feature.integer:
        texts = pl.Series(feature.name, [*feature.categories, None], dtype=pl.String)
        return texts.gather(codes.astype(np.uint32))
    values = pl.Series(feature.name, codes)
    return values.set(values == _LOST, None) if feature.missing else values
