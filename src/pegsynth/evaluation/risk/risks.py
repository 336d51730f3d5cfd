"""All risks of a release, as records.

Goes in: code matrices of the original, of everything that is released and, if there is
one, of a hold-out, with the schema that made them. Comes out: the records of every
measure, and figures for each row of the original, which are confidential. Who made the
tables does not matter here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from pegsynth.evaluation.records import Record
from pegsynth.evaluation.risk.intruder import attacks_of
from pegsynth.evaluation.risk.intruder_records import intruder_records
from pegsynth.evaluation.risk.matching import matching_records
from pegsynth.evaluation.risk.membership import membership_records
from pegsynth.evaluation.risk.reappearance import reappearance_records
from pegsynth.evaluation.risk.risk_tables import risk_tables
from pegsynth.kernels.arrays import Codes
from pegsynth.schema.schema import Schema


@dataclass(frozen=True)
class RiskResult:
    """What was measured.

    Parameters
    ----------
    records
        Every figure; those that could not be computed say why.
    per_record
        Figures for every row of the original, in its order, by name: the error of each
        attack, `group_size`, `released_matches`, `released_copies`, `match_probability`,
        `membership_score`. Confidential.
    """

    records: tuple[Record, ...]
    per_record: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)


def risk_records(
    original: Codes,
    synthetic: Sequence[Codes],
    schema: Schema,
    *,
    holdout: Codes | None = None,
    attacks: Sequence[tuple[Sequence[str] | None, Sequence[str] | None]] = ((None, None),),
    threads: int = 2,
    level: float = 0.95,
) -> RiskResult:
    """Measure every risk.

    Parameters
    ----------
    original, synthetic, holdout
        Code matrices, rows by features, all encoded with `schema`; `holdout` are rows of the
        same population that the synthesizer never saw.
    schema
        The public codebook. Its quasi-identifiers identify a person, its sensitive features
        are to be protected; on the built-in discharge data the intruder's attacks are the
        paper's.
    attacks
        Names of the features that an intruder knows and infers; None: by their roles. The
        first pair takes the place of the roles in all measures, further ones are for attacks
        of the intruder only.
    threads
        Searches at a time; no figure depends on it.
    level
        Of all intervals.

    Raises
    ------
    DataError
        A table does not fit the schema, or the original or a synthetic table is empty.
    ParameterError
        There is no synthetic table, a name is not in the schema, or a feature is both known
        and to be inferred.
    """
    chosen = [attack for names in attacks for attack in attacks_of(schema, *names)]
    known, infer = attacks[0]
    tables = risk_tables(
        original,
        synthetic,
        schema,
        holdout=holdout,
        known=known,
        infer=infer,
        threads=threads,
        level=level,
    )
    intruder, intruder_rows = intruder_records(tables, chosen)
    again, again_rows = reappearance_records(tables)
    matched, matched_rows = matching_records(tables)
    members, member_rows = membership_records(tables)
    return RiskResult(
        (
            *intruder,
            *again,
            *matched,
            *members,
        ),
        {**intruder_rows, **again_rows, **matched_rows, **member_rows},
    )
