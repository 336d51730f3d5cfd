"""Invented hospital discharges, shaped like the paper's California table.

No row describes a person, and no figure was estimated from patients: those in ``discharge.toml``
were made up. The dependence is what a hospital analyst would look for. In causal order: where a
patient lives decides ethnicity, race and, with sex, age; age and sex decide the diagnosis; these
decide the type of care, surgery and severity; these the length of stay; age, ZIP area and injury
the payer; all of them the disposition and the charge, which has a log-normal tail. Newborns
(MDC 15) are of age 0, pregnancies (MDC 14) of women aged 10 to 54.

Values are then lost, never at random: charges under prepaid plans, stays in skilled nursing that
are still in progress, race where hospitals or payers do not ask, age and sex of people in small
groups.

In ``discharge.schema.toml`` names, order and numbers of categories are those of the paper's table
of variables (6, 18, 3, 4, 7, 16, 16, 13, 9, 25, 25, 3, 2). The last bins are finite because a
decoded value is drawn uniformly inside its bin: their highest edges are set so that such a draw has
about the mean of what lies there, and larger values still fall in the bin. Its heads are those
that an expert would choose.

In: a number of rows and a seed. Out: a Polars frame that fits `discharge_schema`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.datasets.invented import (
    CHUNK_ROWS,
    LOST,
    Codes,
    SeekableDraws,
    at_least_one,
    codebook,
    cumulate,
    file_of,
    values,
)
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64
from pegsynth.random import RandomStream
from pegsynth.runtime import check_threads
from pegsynth.schema import Rule, Schema
from pegsynth.schema.declared import Analysis, WantedTable

DRAWN = (
    *("area", "hispanic", "race", "sex", "age bin", "age in bin", "diagnosis", "care"),
    *("surgery", "severity", "stay", "payer", "disposition", "charge"),
    *("prepaid", "charge lost", "stay in progress", "race lost", "ethnicity lost"),
    *("ethnicity unknown", "age masked", "sex masked"),
)
SINGLE_SEX_DIAGNOSES = (
    ("12", "male reproductive system", "Female", "women"),
    ("13", "female reproductive system", "Male", "men"),
    ("14", "pregnancy", "Male", "men"),
)
_SMALL_RACES = ("Native American", "Pacific Islander")

Flags = NDArray[np.bool_]


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
    at_least_one(rows=rows, batch=batch)
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer))):
        raise ParameterError("seed must be a whole number, or None for a new table every time")
    # Named after the table, so that a synthesizer with the same seed draws other words.
    stream = RandomStream(None if seed is None else f"discharge {seed}")
    check_threads()
    chunks = SeekableDraws.chunks(stream, rows, DRAWN)
    return _regroup((_chunk(draws) for _, draws in chunks), batch)


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
    schema = codebook("discharge")
    if heads:
        return schema
    return replace(schema, columns=tuple(replace(each, heads=()) for each in schema.columns))


def reviewed_discharge_draft(draft: Schema, reviewer: str) -> Schema:
    """Return a schema drafted from the discharge data with what a reviewer adds to it.

    Labels and roles of features, the diagnoses of one sex, and one regression that analysts
    will run. Edges stay as drafted: a release measures them.
    """
    for known in codebook("discharge").features:
        if known.name in draft.names:
            draft = draft.with_feature(known.name, label=known.label, role=known.role)
    rules: Any = tuple(
        Rule.forbid(MDC=code, sex=other, label=f"MDC {code} ({meaning}) is not of {others}")
        for code, meaning, other, others in SINGLE_SEX_DIAGNOSES
    )
    regression = Analysis("charge ~ age.yrs + los + C(sev) + C(cat)", share=0.1)
    table = WantedTable(("disp", "MDC"), share=0.05)
    declared = replace(draft, rules=rules, analyses=(regression,), tables_wanted=(table,))
    return declared.reviewed_by(reviewer)


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


# Figures, and what is drawn from them.


@cache
def figures() -> dict[str, Any]:
    """Return what ``discharge.toml`` says."""
    return tomllib.loads(file_of("discharge.toml"))


def _figure(name: str) -> Float64:
    return np.array(figures()[name], dtype=np.float64)


def _column(table: str, key: str) -> Float64:
    return np.array([line[key] for line in figures()[table]], dtype=np.float64)


def _categories(feature: str) -> tuple[str, ...]:
    return codebook("discharge")[feature].categories


def _diagnosis_code(name: str) -> int:
    return next(k for k, each in enumerate(figures()["diagnoses"]) if each["name"] == name)


def _listed(feature: str, texts: Sequence[str], codes: Codes) -> Codes:
    """1 where a code is one of the listed categories, 0 elsewhere."""
    codes_of = {text: code for code, text in enumerate(_categories(feature))}
    return np.isin(codes, [codes_of[text] for text in texts]).astype(np.int64)


def _group(age: Codes, starts: str) -> Codes:
    """Which of the age groups that begin at the listed years."""
    return np.asarray(np.searchsorted(_figure(starts), age, side="right") - 1)


@cache
def _weights() -> dict[str, Float64]:
    """Return the weights of every variable by those that come before it, summed up."""
    diagnoses, care = figures()["diagnoses"], _categories("typ")
    ages = [
        np.array([young] + [1.0] * 12 + [old] * 4) * _figure(of_sex)
        for young, old in figures()["age_tilt"]
        for of_sex in ("age_men", "age_women")
    ]
    men = _column("diagnoses", "by_age").T
    women = men * _column("diagnoses", "women")
    men[:, [_diagnosis_code("Pregnancy"), _diagnosis_code("Female reproductive")]] = 0
    cares = np.array([_figure("care_by_stage")] * len(diagnoses))
    for own in figures()["care_by_diagnosis"]:
        cares[_diagnosis_code(own["name"])] = own["weights"]
    for name, factor in figures()["rehabilitated"].items():
        cares[_diagnosis_code(name), :, care.index("Physical Rehabilitation")] *= factor
    severities = (
        _figure("severity_by_stage")[:, None, None]
        * _figure("severity_by_gravity")[:, None]
        * _figure("severity_by_care")
    )
    payers = _figure("payer")
    hurt = payers.copy()
    for name, factor in figures()["payer_hurt"].items():
        hurt[1, :, _categories("pay").index(name)] *= factor
    dispositions = (
        _figure("disposition_by_care")[:, None, None, None, None]
        * _factors(*figures()["disposition_by_stage"])[:, None, None, None]
        * _factors(*figures()["disposition_by_severity"])[:, None, None]
        * _factors(*figures()["disposition_by_gravity"])[:, None]
        * _factors({}, figures()["disposition_uninsured"])
    )
    tables = {
        "race": [*_column("areas", "race"), figures()["hispanic_race"]],
        "age bin": ages,
        "age in bin": figures()["age_under_five"],
        "oldest": figures()["old_age_decay"] ** np.arange(figures()["oldest_age"] - 80),
        "diagnosis": np.stack([men, women], axis=1).reshape(-1, len(diagnoses)),
        "care": cares.reshape(-1, len(care)),
        "severity": severities.reshape(-1, 3),
        "payer": np.stack([payers, hurt], axis=2).reshape(-1, payers.shape[-1]),
        "disposition": dispositions.reshape(-1, dispositions.shape[-1]),
    }
    return {name: cumulate(weights) for name, weights in tables.items()}


def _factors(*groups: Mapping[str, float]) -> Float64:
    return np.array([[group.get(name, 1.0) for name in _categories("disp")] for group in groups])


def _chunk(draws: SeekableDraws) -> pl.DataFrame:
    area = draws.category("area", cumulate(_column("areas", "weight")))
    hispanic = draws.chance("hispanic", _column("areas", "hispanic")[area])
    race = draws.category(
        "race", _weights()["race"], np.where(hispanic, len(figures()["areas"]), area)
    )
    wealth = _column("areas", "wealth").astype(np.int64)[area]
    sex: Codes = draws.chance("sex", figures()["women"]).astype(np.int64)
    age = _age(draws, 2 * wealth + sex)
    stage = _group(age, "stages")
    diagnosis = draws.category(
        "diagnosis", _weights()["diagnosis"], 2 * _group(age, "age_groups") + sex
    )
    care = draws.category("care", _weights()["care"], len(figures()["stages"]) * diagnosis + stage)
    acute = care == 0
    # There are operations by diagnosis; hardly any outside acute care.
    operated = _column("diagnoses", "surgical")[diagnosis] * _figure("surgery_by_stage")[stage]
    operated[~acute] = figures()["surgery_outside_acute"]
    surgical = draws.chance("surgery", operated)
    gravity = _column("diagnoses", "gravity").astype(np.int64)[diagnosis]
    severity = draws.category(
        "severity", _weights()["severity"], (stage * 3 + gravity) * len(_categories("typ")) + care
    )
    known = {
        "diagnosis": diagnosis,
        "care": care,
        "surgical": surgical.astype(np.int64),
        "severity": severity,
        "stage": stage,
    }
    known["stay"] = stay = _stay(draws, known)
    hurt = np.isin(diagnosis, list(map(_diagnosis_code, figures()["hurt"])))
    payer = draws.category(
        "payer", _weights()["payer"], (3 * _group(age, "payer_ages") + wealth) * 2 + hurt
    )
    uninsured = _listed("pay", figures()["uninsured"], payer)
    group = ((care * len(figures()["stages"]) + stage) * 3 + severity) * 3 + gravity
    disposition = draws.category("disposition", _weights()["disposition"], 2 * group + uninsured)
    charge = _charge(draws, known | {"payer": payer})

    race_lost = draws.chance(
        "race lost", _column("areas", "unrecorded")[area] * _figure("race_lost_by_payer")[payer]
    )
    # Members of small groups stand out; newborns keep their age, which the diagnosis gives away.
    small = np.where(_listed("race", _SMALL_RACES, race) == 1, 2, ~acute)
    age_masked = draws.chance("age masked", _figure("masked_age")[small])
    age_masked &= diagnosis != _diagnosis_code("Newborn")
    sex_masked = draws.chance("sex masked", _figure("masked_sex")[small])
    in_progress = draws.chance("stay in progress", _figure("stay_in_progress")[care])
    prepaid = draws.chance("prepaid", _figure("prepaid")[payer])
    charge_lost = prepaid | draws.chance("charge lost", _figure("charge_lost")[care])
    codes = {
        "typ": care,
        "age.yrs": np.where(age_masked, LOST, age),
        "sex": np.where(sex_masked, len(_categories("sex")), sex),
        "ethncty": _recorded_ethnicity(draws, hispanic, race_lost, payer),
        "race": np.where(race_lost, len(_categories("race")), race),
        "patzip": area,
        "los": np.where(in_progress, LOST, stay),
        "disp": disposition,
        "pay": payer,
        "charge": np.where(charge_lost, LOST, charge),
        "MDC": diagnosis,
        "sev": severity,
        "cat": known["surgical"],
    }
    features = codebook("discharge").features
    return pl.DataFrame([values(feature, codes[feature.name]) for feature in features])


def _age(draws: SeekableDraws, group: Codes) -> Codes:
    """Years, by way of five-year bins."""
    bins = draws.category("age bin", _weights()["age bin"], group)
    within = draws.uniform("age in bin")
    youngest = np.searchsorted(_weights()["age in bin"], within, side="right")
    years = 5 * bins + (5 * within).astype(np.int64)
    oldest = 80 + np.searchsorted(_weights()["oldest"], within, side="right")
    return np.where(bins == 0, youngest, np.where(bins == 16, oldest, years))


def _stay(draws: SeekableDraws, known: Mapping[str, Codes]) -> Codes:
    """Days: log-normal, whole days completed."""
    spread = _figure("stay_spread")[known["care"]]
    spread[known["diagnosis"] == _diagnosis_code("Newborn")] = figures()["stay_spread_newborn"]
    days = np.exp(spread * draws.normal("stay"))
    days *= _figure("stay_days")[known["care"]]
    days *= _column("diagnoses", "stay")[known["diagnosis"]]
    days *= _figure("stay_by_severity")[known["severity"]]
    days *= _figure("stay_by_stage")[known["stage"]]
    days[known["surgical"] == 1] *= figures()["stay_surgical"]
    return np.asarray(np.minimum(days, figures()["longest_stay"]), dtype=np.int64)


def _charge(draws: SeekableDraws, known: Mapping[str, Codes]) -> Codes:
    """Dollars: a power of the days, factors of the stay, a log-normal tail."""
    noise = figures()["charge_spread"] * draws.normal("charge")
    dollars = np.exp(figures()["charge_power"] * np.log(known["stay"] + 0.5) + noise)
    dollars *= _figure("charge_day")[known["care"]]
    dollars *= _column("diagnoses", "charge")[known["diagnosis"]]
    dollars *= _figure("charge_by_severity")[known["severity"]]
    dollars *= _figure("charge_by_payer")[known["payer"]]
    dollars[known["surgical"] == 1] *= figures()["charge_surgical"]
    return np.asarray(np.maximum(dollars, figures()["least_charge"]), dtype=np.int64)


def _recorded_ethnicity(
    draws: SeekableDraws, hispanic: Flags, race_lost: Flags, payer: Codes
) -> Codes:
    """Ethnicity as written down: unknown by payer, lost mostly with the race."""
    unknown = draws.chance("ethnicity unknown", _figure("ethnicity_unknown")[payer])
    lost = draws.chance("ethnicity lost", _figure("ethnicity_lost")[race_lost.astype(int)])
    recorded = np.where(unknown, 2, np.where(hispanic, 0, 1))
    return np.where(lost, len(_categories("ethncty")), recorded)
