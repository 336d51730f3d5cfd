"""The variables of a hospital stay in causal order, one function each.

In: the random numbers of a chunk of rows and the codes of the variables that come
before. Out: codes in the order of the category names in
`pegsynth.datasets.discharge_tables`, or whole years, days and dollars; and, for what is
not written down, flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pegsynth.datasets import discharge_tables as tables
from pegsynth.datasets.seekable_draws import Codes, SeekableDraws, cumulate
from pegsynth.kernels.arrays import Float64

Flags = NDArray[np.bool_]

# Who is admitted.


def area(draws: SeekableDraws) -> Codes:
    """Three-digit ZIP area."""
    return draws.category("area", cumulate([area.weight for area in tables.AREAS]))


def wealth(area: Codes) -> Codes:
    """How well off an area is."""
    return np.asarray(np.array([a.wealth for a in tables.AREAS])[area])


def ethnicity(draws: SeekableDraws, area: Codes) -> Codes:
    """Hispanic or not, by area."""
    share = np.array([a.hispanic for a in tables.AREAS])
    hispanic = draws.chance("hispanic", share[area])
    return np.where(hispanic, tables.HISPANIC, tables.NON_HISPANIC)


def race(draws: SeekableDraws, area: Codes, ethnicity: Codes) -> Codes:
    """Race, by area; Hispanics alike everywhere."""
    weights = [a.race for a in tables.AREAS]
    everywhere = len(weights)
    group = np.where(ethnicity == tables.HISPANIC, everywhere, area)
    return draws.category("race", cumulate([*weights, tables.HISPANIC_RACE]), group)


def sex(draws: SeekableDraws) -> Codes:
    """Sex; deliveries make women the majority."""
    return np.where(draws.chance("sex", tables.WOMEN), tables.FEMALE, tables.MALE)


def age(draws: SeekableDraws, sex: Codes, wealth: Codes) -> Codes:
    """Years, by way of five-year bins."""
    bins = draws.category("age bin", _age_bins(), 2 * wealth + sex)
    within = draws.uniform("age in bin")
    youngest = np.searchsorted(cumulate(tables.AGE_UNDER_FIVE), within, side="right")
    years = 5 * bins + (5 * within).astype(np.int64)
    oldest = 80 + np.searchsorted(_old_age(), within, side="right")
    return np.where(bins == 0, youngest, np.where(bins == 16, oldest, years))


@cache
def _age_bins() -> Float64:
    rows = []
    for wealth in (tables.POOR, tables.MIDDLE, tables.RICH):
        young, old = tables.AGE_TILT[wealth]
        tilt = np.array([young] + [1.0] * 12 + [old] * 4)
        rows += [tilt * tables.AGE_MEN, tilt * tables.AGE_WOMEN]
    return cumulate(rows)


@cache
def _old_age() -> Float64:
    return cumulate(tables.OLD_AGE_DECAY ** np.arange(tables.OLDEST_AGE - 80))


def stage(age: Codes) -> Codes:
    """Stage of life."""
    return _group(age, tables.STAGES)


def _group(age: Codes, starts: tuple[int, ...]) -> Codes:
    """Which of the age groups that begin at `starts`."""
    groups = np.searchsorted(starts, np.arange(tables.OLDEST_AGE + 1), side="right") - 1
    return np.asarray(groups[age])


# What the hospital does.


def diagnosis(draws: SeekableDraws, age: Codes, sex: Codes) -> Codes:
    """Major diagnostic category, by age and sex."""
    return draws.category("diagnosis", _diagnoses(), 2 * _group(age, tables.AGE_GROUPS) + sex)


@cache
def _diagnoses() -> Float64:
    women = np.array([d.by_age for d in tables.DIAGNOSES]).T * [d.women for d in tables.DIAGNOSES]
    men = np.array([d.by_age for d in tables.DIAGNOSES]).T
    men[:, [tables.PREGNANCY, tables.FEMALE_REPRODUCTIVE]] = 0
    return cumulate(np.stack([men, women], axis=1).reshape(-1, len(tables.DIAGNOSES)))


def care(draws: SeekableDraws, diagnosis: Codes, stage: Codes) -> Codes:
    """Type of care, by diagnosis and age."""
    return draws.category("care", _cares(), len(tables.STAGES) * diagnosis + stage)


@cache
def _cares() -> Float64:
    weights = np.array([tables.CARE_BY_STAGE] * len(tables.DIAGNOSES))
    for diagnosis, own in tables.CARE_BY_DIAGNOSIS.items():
        weights[diagnosis] = own
    for diagnosis, factor in tables.REHABILITATED.items():
        weights[diagnosis, :, tables.REHABILITATION] *= factor
    return cumulate(weights.reshape(-1, len(tables.CARE)))


def surgery(draws: SeekableDraws, diagnosis: Codes, care: Codes, stage: Codes) -> Codes:
    """Medical or surgical, by diagnosis; hardly any surgery outside acute care."""
    operated = np.array([d.surgical for d in tables.DIAGNOSES])[diagnosis]
    operated *= np.array(tables.SURGERY_BY_STAGE)[stage]
    operated[care != tables.ACUTE] = tables.SURGERY_OUTSIDE_ACUTE
    return np.where(draws.chance("surgery", operated), tables.SURGICAL, tables.MEDICAL)


def severity(draws: SeekableDraws, diagnosis: Codes, care: Codes, stage: Codes) -> Codes:
    """Severity, by age, gravity of the diagnosis and care."""
    weights = (
        np.array(tables.SEVERITY_BY_STAGE)[:, None, None]
        * np.array(tables.SEVERITY_BY_GRAVITY)[:, None]
        * np.array(tables.SEVERITY_BY_CARE)
    )
    group = (stage * weights.shape[1] + _gravity(diagnosis)) * weights.shape[2] + care
    return draws.category("severity", cumulate(weights.reshape(-1, 3)), group)


def _gravity(diagnosis: Codes) -> Codes:
    return np.asarray(np.array([d.gravity for d in tables.DIAGNOSES])[diagnosis])


def stay(
    draws: SeekableDraws,
    diagnosis: Codes,
    care: Codes,
    surgery: Codes,
    severity: Codes,
    stage: Codes,
) -> Codes:
    """Days: log-normal, whole days completed."""
    spread = np.array(tables.STAY_SPREAD)[care]
    spread[diagnosis == tables.NEWBORN] = tables.STAY_SPREAD_NEWBORN
    days = np.exp(spread * draws.normal("stay"))
    days *= np.array(tables.STAY_DAYS)[care]
    days *= np.array([d.stay for d in tables.DIAGNOSES])[diagnosis]
    days *= np.array(tables.STAY_BY_SEVERITY)[severity]
    days *= np.array(tables.STAY_BY_STAGE)[stage]
    days[surgery == tables.SURGICAL] *= tables.STAY_SURGICAL
    return np.asarray(np.minimum(days, tables.LONGEST_STAY), dtype=np.int64)


def payer(draws: SeekableDraws, age: Codes, wealth: Codes, diagnosis: Codes) -> Codes:
    """Who pays: Medicare from 65, Medi-Cal in poor areas, employers for injuries."""
    hurt = _member(diagnosis, tables.HURT, len(tables.DIAGNOSES))
    group = (3 * _group(age, tables.PAYER_AGES) + wealth) * 2 + hurt
    return draws.category("payer", _payers(), group)


@cache
def _payers() -> Float64:
    usual = np.array(tables.PAYER_WEIGHTS)
    hurt = usual.copy()
    for payer, factor in tables.PAYER_HURT.items():
        hurt[1, :, payer] *= factor
    return cumulate(np.stack([usual, hurt], axis=2).reshape(-1, len(tables.PAYER)))


def disposition(
    draws: SeekableDraws, diagnosis: Codes, care: Codes, stage: Codes, severity: Codes, payer: Codes
) -> Codes:
    """Where the patient goes; death rises with age, severity and gravity."""
    uninsured = _member(payer, tables.UNINSURED, len(tables.PAYER))
    group = ((care * len(tables.STAGES) + stage) * 3 + severity) * 3 + _gravity(diagnosis)
    group = 2 * group + uninsured
    return draws.category("disposition", _dispositions(), group)


@cache
def _dispositions() -> Float64:
    weights = (
        np.array(tables.DISPOSITION_BY_CARE)[:, None, None, None, None]
        * _factors(*tables.DISPOSITION_BY_STAGE)[:, None, None, None]
        * _factors(*tables.DISPOSITION_BY_SEVERITY)[:, None, None]
        * _factors(*tables.DISPOSITION_BY_GRAVITY)[:, None]
        * _factors({}, tables.DISPOSITION_UNINSURED)
    )
    return cumulate(weights.reshape(-1, len(tables.DISPOSITION)))


def _factors(*groups: Mapping[str, float]) -> Float64:
    return np.array([[group.get(name, 1.0) for name in tables.DISPOSITION] for group in groups])


def charge(
    draws: SeekableDraws,
    diagnosis: Codes,
    care: Codes,
    surgery: Codes,
    severity: Codes,
    stay: Codes,
    payer: Codes,
) -> Codes:
    """Dollars: a power of the days, factors of the stay, a log-normal tail."""
    noise = tables.CHARGE_SPREAD * draws.normal("charge")
    dollars = np.exp(tables.CHARGE_POWER * np.log(stay + 0.5) + noise)
    dollars *= np.array(tables.CHARGE_DAY)[care]
    dollars *= np.array([d.charge for d in tables.DIAGNOSES])[diagnosis]
    dollars *= np.array(tables.CHARGE_BY_SEVERITY)[severity]
    dollars *= np.array(tables.CHARGE_BY_PAYER)[payer]
    dollars[surgery == tables.SURGICAL] *= tables.CHARGE_SURGICAL
    return np.asarray(np.maximum(dollars, tables.LEAST_CHARGE), dtype=np.int64)


# What is not written down.


def stay_in_progress(draws: SeekableDraws, care: Codes) -> Flags:
    """Patients of skilled nursing who have not left yet."""
    return draws.chance("stay in progress", np.array(tables.STAY_IN_PROGRESS)[care])


def charge_lost(draws: SeekableDraws, care: Codes, payer: Codes) -> Flags:
    """No bill under a prepaid plan; a few bills never found."""
    prepaid = draws.chance("prepaid", np.array(tables.PREPAID)[payer])
    return prepaid | draws.chance("charge lost", np.array(tables.CHARGE_LOST)[care])


def race_lost(draws: SeekableDraws, area: Codes, payer: Codes) -> Flags:
    """Race that was not asked, by area and payer."""
    probability = np.array([a.unrecorded for a in tables.AREAS])[area]
    return draws.chance("race lost", probability * np.array(tables.RACE_LOST_BY_PAYER)[payer])


def recorded_ethnicity(
    draws: SeekableDraws, ethnicity: Codes, race_lost: Flags, payer: Codes
) -> Codes:
    """Ethnicity as written down: unknown by payer, lost mostly with the race."""
    unknown = draws.chance("ethnicity unknown", np.array(tables.ETHNICITY_UNKNOWN)[payer])
    lost = draws.chance("ethnicity lost", np.array(tables.ETHNICITY_LOST)[race_lost.astype(int)])
    recorded = np.where(unknown, tables.UNKNOWN_ETHNICITY, ethnicity)
    return np.where(lost, len(tables.ETHNICITY), recorded)


def _masked(
    draws: SeekableDraws, name: str, probability: tuple[float, ...], race: Codes, care: Codes
) -> Flags:
    small_race = _member(race, (tables.NATIVE_AMERICAN, tables.PACIFIC_ISLANDER), len(tables.RACE))
    group = np.where(small_race == 1, 2, care != tables.ACUTE)
    return draws.chance(name, np.array(probability)[group])


def age_masked(draws: SeekableDraws, race: Codes, care: Codes, diagnosis: Codes) -> Flags:
    """Newborns keep their age: the diagnosis gives it away."""
    masked = _masked(draws, "age masked", tables.MASKED_AGE, race, care)
    return np.asarray(masked & (diagnosis != tables.NEWBORN))


def sex_masked(draws: SeekableDraws, race: Codes, care: Codes) -> Flags:
    """Sex hidden in small groups."""
    return _masked(draws, "sex masked", tables.MASKED_SEX, race, care)


def _member(codes: Codes, listed: tuple[int, ...], count: int) -> Codes:
    """1 where a code is listed, 0 elsewhere."""
    return np.asarray(np.isin(np.arange(count), listed).astype(np.int64)[codes])
