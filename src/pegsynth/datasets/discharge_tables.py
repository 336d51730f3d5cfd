"""Public, invented tables behind the discharge data: who is admitted, where, with what.

Nothing here was estimated from a hospital, a survey or a person. The figures were made up
so that the generated table behaves the way a hospital analyst would expect: weights need
not add up to anything, since every row of a table is scaled to one before it is drawn from.
"""

from __future__ import annotations

from typing import NamedTuple

CARE = (
    "Acute Care",
    "Skilled Nursing",
    "Psychiatric",
    "Chemical Dependency",
    "Physical Rehabilitation",
    "Other Care",
)
ACUTE, SKILLED_NURSING, PSYCHIATRIC, CHEMICAL, REHABILITATION, OTHER_CARE = range(6)

SEX = ("Male", "Female")
MALE, FEMALE = range(2)

ETHNICITY = ("Hispanic", "Non-Hispanic", "Unknown")
HISPANIC, NON_HISPANIC, UNKNOWN_ETHNICITY = range(3)

RACE = ("White", "Black", "Native American", "Asian", "Pacific Islander", "Other")
WHITE, BLACK, NATIVE_AMERICAN, ASIAN, PACIFIC_ISLANDER, OTHER_RACE = range(6)

DISPOSITION = (
    "Routine",
    "Acute Care, Same Hospital",
    "Other Care, Same Hospital",
    "Skilled Nursing, Same Hospital",
    "Acute Care Elsewhere",
    "Other Care Elsewhere",
    "Skilled Nursing Elsewhere",
    "Residential Care",
    "Prison or Jail",
    "Against Medical Advice",
    "Died",
    "Home Health Service",
    "Other",
)

PAYER = (
    "Medicare",
    "Medi-Cal",
    "Private",
    "Workers' Compensation",
    "County Indigent",
    "Other Government",
    "Other Indigent",
    "Self Pay",
    "Other Payer",
)
MEDICARE, MEDI_CAL, PRIVATE, WORKERS, COUNTY, GOVERNMENT, INDIGENT, SELF_PAY, OTHER_PAYER = range(9)

CATEGORY = ("Medical", "Surgical")
MEDICAL, SURGICAL = range(2)

POOR, MIDDLE, RICH = range(3)


class Area(NamedTuple):
    """Residents of a three-digit ZIP area."""

    name: str
    weight: float  # share of stays
    wealth: int
    hispanic: float  # probability
    race: tuple[float, ...]  # weights among residents who are not Hispanic, in order of RACE
    unrecorded: float  # probability that the hospitals there do not write the race down


AREAS = (
    Area("900xx", 24.0, POOR, 0.50, (38, 36, 0.6, 21, 0.5, 4), 0.050),
    Area("902xx", 12.0, MIDDLE, 0.44, (45, 30, 0.5, 18, 1.5, 5), 0.030),
    Area("903xx", 3.0, POOR, 0.42, (14, 76, 0.5, 4, 0.8, 5), 0.045),
    Area("904xx", 2.2, RICH, 0.15, (78, 6, 0.4, 11, 0.3, 4), 0.015),
    Area("905xx", 3.2, RICH, 0.17, (51, 6, 0.5, 38, 1.5, 3), 0.012),
    Area("906xx", 8.0, MIDDLE, 0.58, (62, 6, 0.9, 27, 0.8, 4), 0.025),
    Area("907xx", 7.0, MIDDLE, 0.40, (50, 18, 0.7, 24, 3.0, 4), 0.025),
    Area("908xx", 6.0, POOR, 0.38, (45, 26, 0.8, 22, 2.5, 4), 0.040),
    Area("910xx", 4.8, RICH, 0.18, (70, 6, 0.5, 20, 0.3, 3), 0.010),
    Area("911xx", 3.2, RICH, 0.28, (58, 19, 0.5, 18, 0.3, 4), 0.015),
    Area("912xx", 3.0, MIDDLE, 0.17, (80, 2, 0.3, 15, 0.2, 2), 0.020),
    Area("913xx", 10.0, RICH, 0.30, (74, 6, 0.6, 15, 0.3, 4), 0.015),
    Area("914xx", 6.0, POOR, 0.45, (74, 9, 0.5, 12, 0.3, 4), 0.045),
    Area("915xx", 2.1, MIDDLE, 0.23, (80, 4, 0.5, 12, 0.3, 3), 0.020),
    Area("917xx", 12.5, MIDDLE, 0.52, (40, 8, 0.6, 48, 0.5, 3), 0.030),
    Area("935xx", 5.0, POOR, 0.40, (56, 34, 1.2, 4, 0.6, 4), 0.100),
)

HISPANIC_RACE = (54, 2, 1.5, 0.6, 0.3, 42)

WOMEN = 0.55

# Stays by five years of age, from 0-4 to 75-79 and 80 or more.
AGE_WOMEN = (10.3, 0.9, 1, 3.6, 6.2, 7.2, 7, 4.8, 3.6, 3.7, 4.2, 4.6, 4.8, 5, 5.2, 5.8, 11.5)
AGE_MEN = (13.3, 1.2, 1.3, 2.2, 2.8, 2.8, 2.9, 3.2, 4, 5.2, 6.5, 7, 7, 6.8, 6.6, 6.6, 10.5)

# Poor areas are young and rich ones old: weight of ages 0-4, and of 65 or more.
AGE_TILT = {POOR: (1.15, 0.80), MIDDLE: (1.0, 1.0), RICH: (0.85, 1.35)}

AGE_UNDER_FIVE = (86, 5, 4, 3, 2)
OLDEST_AGE = 106
OLD_AGE_DECAY = 0.88  # from one year to the next above 80

# Ages that fall ill alike; a group begins at each of these.
AGE_GROUPS = (0, 1, 10, 15, 20, 35, 45, 55, 65, 80)
# Stages of life, coarser: infant, child, adult, old, very old.
STAGES = (0, 1, 18, 65, 80)
INFANT, CHILD, ADULT, OLD, VERY_OLD = range(5)

MILD, USUAL, GRAVE = range(3)


class Diagnosis(NamedTuple):
    """A major diagnostic category."""

    name: str
    by_age: tuple[float, ...]  # weights in order of AGE_GROUPS
    women: float  # weight of women relative to men
    surgical: float  # probability of an operation
    gravity: int
    stay: float  # factor on the length of stay
    charge: float  # factor on the charge


DIAGNOSES = (
    Diagnosis("Nervous system", (6, 12, 14, 8, 7, 8, 8, 8, 8, 9), 1.0, 0.12, GRAVE, 1.2, 1.2),
    Diagnosis("Eye", (0.6, 1, 0.7, 0.4, 0.3, 0.3, 0.3, 0.3, 0.3, 0.2), 1.0, 0.3, MILD, 0.8, 0.8),
    Diagnosis("Ear, nose, mouth", (5, 8, 4, 3, 2, 1.5, 1, 1, 0.8, 0.6), 0.9, 0.35, MILD, 0.7, 0.9),
    Diagnosis("Respiratory", (30, 28, 12, 6, 5, 6, 8, 11, 14, 17), 1.0, 0.07, GRAVE, 1.3, 1.1),
    Diagnosis("Circulatory", (2, 1, 2, 2, 5, 10, 17, 22, 25, 26), 0.8, 0.30, GRAVE, 1.1, 1.5),
    Diagnosis("Digestive", (9, 12, 14, 11, 12, 13, 12, 11, 10, 11), 1.1, 0.30, USUAL, 1.1, 1.1),
    Diagnosis("Liver, pancreas", (1, 0.7, 2, 4, 7, 8, 7, 6, 3.5, 2.5), 1.0, 0.5, USUAL, 1.3, 1.2),
    Diagnosis("Musculoskeletal", (1, 6, 12, 9, 7, 9, 11, 13, 13, 9), 1.1, 0.62, USUAL, 1.1, 1.7),
    Diagnosis("Skin, breast", (2, 4, 3, 4, 5, 5, 5, 4, 3, 3), 1.1, 0.25, MILD, 1.0, 0.8),
    Diagnosis("Endocrine, metabolic", (5, 7, 7, 5, 5, 6, 6, 5, 4, 4), 1.2, 0.22, USUAL, 0.9, 0.9),
    Diagnosis("Kidney, urinary", (4, 4, 4, 4, 4, 5, 5, 5, 6, 8), 1.0, 0.18, USUAL, 1.1, 0.9),
    Diagnosis(
        "Male reproductive", (0.4, 0.4, 0.5, 0.6, 0.5, 0.6, 1, 2, 1.6, 0.7), 0, 0.8, MILD, 0.6, 1
    ),
    Diagnosis(
        "Female reproductive", (0, 0.1, 0.5, 2, 6, 14, 9, 4, 2, 0.8), 1, 0.85, MILD, 0.7, 1.1
    ),
    Diagnosis("Pregnancy", (0, 0, 3, 130, 280, 70, 0.7, 0, 0, 0), 1.0, 0.33, MILD, 0.7, 0.75),
    Diagnosis("Newborn", (900, 0, 0, 0, 0, 0, 0, 0, 0, 0), 1.0, 0.01, MILD, 0.65, 0.28),
    Diagnosis("Blood", (1, 4, 3, 2.5, 2, 2, 1.5, 1.5, 1.6, 1.6), 1.1, 0.05, USUAL, 1.0, 0.9),
    Diagnosis(
        "Tumours of blood", (0.5, 3, 3, 2, 1, 1, 1.5, 2, 1.8, 0.8), 0.9, 0.15, GRAVE, 1.7, 1.7
    ),
    Diagnosis("Infection", (6, 3, 2, 2, 3, 4, 5, 6, 8, 11), 1.0, 0.17, GRAVE, 1.6, 1.4),
    Diagnosis("Mental", (0, 0.6, 14, 22, 19, 17, 12, 6, 2.5, 1.4), 0.9, 0.01, MILD, 1.0, 0.9),
    Diagnosis("Alcohol, drugs", (0, 0, 0.6, 2.5, 5, 6, 6, 3, 0.6, 0.1), 0.5, 0.01, MILD, 0.9, 0.8),
    Diagnosis("Injury, poisoning", (1, 3, 4, 5, 4, 3, 3, 2, 1.5, 1.5), 0.9, 0.2, USUAL, 0.8, 1.1),
    Diagnosis("Burns", (0.2, 0.6, 0.3, 0.3, 0.3, 0.3, 0.3, 0.2, 0.1, 0.1), 0.6, 0.5, USUAL, 2, 1.8),
    Diagnosis(
        "Other reasons", (1.5, 0.7, 0.7, 0.8, 1, 1.5, 2, 2.5, 3.5, 4), 1, 0.1, USUAL, 1.4, 0.8
    ),
    Diagnosis(
        "Multiple trauma", (0.1, 0.4, 0.6, 1.3, 1, 0.6, 0.5, 0.4, 0.3, 0.3), 0.4, 0.6, GRAVE, 2, 2
    ),
    Diagnosis("HIV", (0, 0, 0.1, 0.2, 0.9, 1.6, 1.5, 0.6, 0.15, 0.02), 0.2, 0.1, GRAVE, 1.7, 1.1),
)
NERVOUS, MUSCULOSKELETAL = 0, 7
FEMALE_REPRODUCTIVE, PREGNANCY, NEWBORN = 12, 13, 14
MENTAL, ALCOHOL, INJURY, BURNS, TRAUMA = 18, 19, 20, 21, 23

# Weights in order of CARE: by stage of life, then for the diagnoses that have their own.
CARE_BY_STAGE = (
    (99.9, 0, 0, 0, 0, 0.1),
    (99.0, 0.3, 0, 0, 0.3, 0.4),
    (97.0, 1.6, 0, 0, 0.8, 0.6),
    (88.0, 9.5, 0, 0, 1.5, 1.0),
    (84.0, 13.0, 0, 0, 1.5, 1.5),
)
CARE_BY_DIAGNOSIS = {
    PREGNANCY: (99.9, 0, 0, 0, 0, 0.1),
    NEWBORN: (100, 0, 0, 0, 0, 0),
    MENTAL: (17, 2, 80, 0.5, 0, 0.5),
    ALCOHOL: (52, 0, 12, 35, 0, 1),
}
# Factors on the weight of rehabilitation.
REHABILITATED = {NERVOUS: 5.0, MUSCULOSKELETAL: 6.0, TRAUMA: 8.0}

SURGERY_OUTSIDE_ACUTE = 0.01
SURGERY_BY_STAGE = (0.6, 1.0, 1.05, 1.0, 0.7)

# Weights of severity 0, 1, 2 by stage of life, then factors by gravity and by care.
SEVERITY_BY_STAGE = ((86, 10, 4), (72, 20, 8), (58, 29, 13), (38, 36, 26), (30, 37, 33))
SEVERITY_BY_GRAVITY = ((1.6, 0.9, 0.5), (1, 1, 1), (0.55, 1, 1.9))
SEVERITY_BY_CARE = ((1, 1, 1), (1, 1.2, 1), (4, 1, 0.25), (3, 1, 0.3), (1.5, 1, 0.5), (1, 1, 1))

# Median days, and the spread of their logarithm, in order of CARE.
STAY_DAYS = (3.3, 14.0, 7.5, 6.5, 11.0, 18.0)
STAY_SPREAD = (0.72, 0.85, 0.80, 0.75, 0.55, 0.95)
STAY_SPREAD_NEWBORN = 0.32
STAY_BY_SEVERITY = (1.0, 1.5, 2.3)
STAY_BY_STAGE = (1.0, 0.85, 1.0, 1.15, 1.2)
STAY_SURGICAL = 1.1
LONGEST_STAY = 730

# Dollars of the first day in order of CARE; a day more adds less than the one before.
CHARGE_DAY = (4_450.0, 900.0, 1_800.0, 1_400.0, 2_300.0, 1_200.0)
CHARGE_POWER = 0.85
CHARGE_SPREAD = 0.55
CHARGE_BY_SEVERITY = (1.0, 1.2, 1.6)
CHARGE_SURGICAL = 2.1
CHARGE_BY_PAYER = (1.0, 0.92, 1.05, 1.2, 0.9, 1.0, 0.9, 0.8, 1.0)
LEAST_CHARGE = 60

# Weights in order of PAYER by age (below 18, below 65, 65 or more) and wealth of the area.
PAYER_AGES = (0, 18, 65)
PAYER_WEIGHTS = (
    ((0.1, 73, 21, 0, 0.2, 3, 0.5, 1.8, 0.4), (0.1, 48, 46, 0, 0.1, 3, 0.4, 2, 0.4),
     (0.1, 21, 74, 0, 0.1, 2, 0.2, 2.2, 0.4)),
    ((13, 40, 26, 0.7, 8, 2, 2, 7.5, 0.8), (10, 24, 49, 0.9, 4, 2.2, 1.2, 7.5, 0.8),
     (8, 11, 71, 1, 1.4, 1.6, 0.5, 5, 0.7)),
    ((77, 16, 5, 0.1, 0.4, 0.4, 0.2, 0.6, 0.3), (84, 6.5, 8, 0.1, 0.2, 0.4, 0.1, 0.5, 0.2),
     (85, 2, 12, 0.1, 0.1, 0.3, 0.1, 0.4, 0.2)),
)  # fmt: skip
# Factors for adults who were hurt, often at work.
PAYER_HURT = {WORKERS: 9.0, SELF_PAY: 1.6}
HURT = (MUSCULOSKELETAL, INJURY, BURNS, TRAUMA)

# Weights in order of DISPOSITION for an adult of severity 0, in order of CARE.
DISPOSITION_BY_CARE = (
    (880, 4, 8, 8, 16, 9, 22, 4, 1.5, 14, 3, 30, 3),
    (420, 60, 10, 15, 60, 15, 110, 60, 0.5, 12, 10, 200, 10),
    (740, 8, 5, 4, 18, 25, 25, 120, 8, 14, 0.3, 6, 25),
    (760, 4, 5, 1, 10, 20, 5, 60, 4, 110, 0.3, 3, 20),
    (500, 25, 6, 20, 45, 10, 80, 25, 0.3, 4, 0.8, 280, 6),
    (500, 30, 20, 30, 60, 40, 90, 60, 2, 20, 12, 90, 30),
)
# Factors by stage of life, severity, gravity of the diagnosis, and where no insurer pays.
DISPOSITION_BY_STAGE: tuple[dict[str, float], ...] = (
    {"Routine": 3, "Skilled Nursing Elsewhere": 0.02, "Skilled Nursing, Same Hospital": 0.02,
     "Residential Care": 0.05, "Prison or Jail": 0, "Against Medical Advice": 0.05, "Died": 0.5},
    {"Routine": 2, "Skilled Nursing Elsewhere": 0.1, "Prison or Jail": 0.2,
     "Against Medical Advice": 0.1, "Died": 0.4},
    {},
    {"Skilled Nursing Elsewhere": 5, "Home Health Service": 3.5, "Residential Care": 2,
     "Prison or Jail": 0.2, "Against Medical Advice": 0.4, "Died": 3.5},
    {"Skilled Nursing Elsewhere": 12, "Home Health Service": 4, "Residential Care": 5,
     "Prison or Jail": 0.05, "Against Medical Advice": 0.2, "Died": 8},
)  # fmt: skip
DISPOSITION_BY_SEVERITY: tuple[dict[str, float], ...] = (
    {},
    {"Skilled Nursing Elsewhere": 1.8, "Home Health Service": 1.6, "Died": 3},
    {"Skilled Nursing Elsewhere": 2.8, "Home Health Service": 1.8, "Acute Care Elsewhere": 1.8,
     "Died": 14},
)  # fmt: skip
DISPOSITION_BY_GRAVITY: tuple[dict[str, float], ...] = (
    {"Skilled Nursing Elsewhere": 0.5, "Died": 0.05},
    {},
    {"Skilled Nursing Elsewhere": 1.2, "Died": 1.4},
)
DISPOSITION_UNINSURED = {"Against Medical Advice": 3.0, "Prison or Jail": 5.0}
UNINSURED = (MEDI_CAL, COUNTY, INDIGENT, SELF_PAY)

# What is not written down. None of it is missing at random.
PREPAID = (0.14, 0.02, 0.20, 0.02, 0, 0.02, 0, 0, 0.05)  # no bill is drawn up; by PAYER
CHARGE_LOST = (0.002, 0.08, 0.01, 0.01, 0.01, 0.05)  # by CARE
STAY_IN_PROGRESS = (0.002, 0.12, 0.015, 0.01, 0.02, 0.10)  # by CARE
RACE_LOST_BY_PAYER = (0.8, 0.6, 1.0, 1.5, 2.0, 1.0, 2.0, 2.8, 1.5)  # factor on Area.unrecorded
ETHNICITY_LOST = (0.012, 0.55)  # where the race is recorded, where it is not
ETHNICITY_UNKNOWN = (0.015, 0.03, 0.03, 0.03, 0.05, 0.02, 0.05, 0.08, 0.03)  # by PAYER
# Probability that age, and sex, are masked: members of small groups stand out.
MASKED_AGE = (0.004, 0.06, 0.22)  # large group, unusual care, small race
MASKED_SEX = (0.001, 0.025, 0.10)
