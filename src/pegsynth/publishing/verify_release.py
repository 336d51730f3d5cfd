"""The answer to a question about the original: noisy counts, and what they mean.

`verify`: does an analysis of the original agree with a release? Paid for by itself (R32).

What is asked is settled from the release alone, and everything that needs no row is checked.
Then the original is read, and the question is charged to a ledger of its own before the first
part is asked: from there on nothing can fail because of what the rows hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from pegsynth.codec.code_table import least_words
from pegsynth.codec.paying import wants_codec
from pegsynth.errors import BudgetError, DataError, ParameterError
from pegsynth.inference.choice import rows_in_of
from pegsynth.inference.formula import read_formula
from pegsynth.methods.ledgers import schema_ledger, seeded_ledger, selection_ledger
from pegsynth.methods.pricing import unit_bound
from pegsynth.options._kinds import python_names
from pegsynth.pipeline.running import booked_table
from pegsynth.privacy import AgreementCounts, Budget, Ledger
from pegsynth.publishing.agreement import (
    LEVEL,
    Agreement,
    Asked,
    Rows,
    agreement_event,
    measured,
    read_rows,
    regions_of,
)
from pegsynth.publishing.result import Release
from pegsynth.random import RandomStream, Streams
from pegsynth.runtime import in_silence
from pegsynth.schema import Schema
from pegsynth.schema.declared_types import check_header
from pegsynth.storage.book.booking import Booking, booked_events
from pegsynth.storage.spending import locked
from pegsynth.tables.atomic import atomic_text, check_target
from pegsynth.tables.table_input import named_source, open_table

Verdict = Literal["agrees", "does not agree", "cannot be told"]

_LOUD = 0.25
"""Noise of more than this share of the parts hides the answer."""
_DEVIATIONS = 2.0
_MEANINGS: Final = {
    "agrees": "as many parts of the original agree as would if the release were right",
    "does not agree": "fewer parts of the original agree than would if the release were right",
    "cannot be told": "the noise is too large for so few parts; state a larger epsilon",
}


@dataclass(frozen=True)
class VerifiedTerm:
    """What was found out about one coefficient.

    Parameters
    ----------
    estimate, low, high
        The release's estimate, and the region that parts must lie in to agree.
    agreeing
        Parts that agree, with noise; it may lie below 0 or above their number.
    parts
        All parts.
    deviation
        Standard deviation of the noise.
    """

    term: str
    estimate: float
    low: float
    high: float
    agreeing: int
    parts: int
    deviation: float

    @property
    def expected(self) -> float:
        """Parts that would agree if the release were right."""
        return LEVEL * self.parts

    @property
    def verdict(self) -> Verdict:
        """What the count says; two deviations of noise and chance are allowed for."""
        if self.deviation > _LOUD * self.parts:
            return "cannot be told"
        chance = math.hypot(self.deviation, math.sqrt(self.expected * (1 - LEVEL)))
        enough = self.agreeing >= self.expected - _DEVIATIONS * chance
        return "agrees" if enough else "does not agree"

    def __str__(self) -> str:
        return (
            f"{self.term}: {self.verdict}; {self.agreeing} of {self.parts} parts (noise "
            f"{self.deviation:.3g}, about {self.expected:.3g} expected); the release says "
            f"{self.estimate:.6g}, a part agrees from {self.low:.6g} to {self.high:.6g}"
        )


@dataclass(frozen=True)
class Verification:
    """The answer, and what it cost.

    Parameters
    ----------
    formula
        The analysis that was asked for.
    terms
        One for each coefficient.
    ledger
        What all questions so far cost together.
    """

    formula: str
    terms: tuple[VerifiedTerm, ...]
    ledger: Ledger

    @classmethod
    def of(cls, asked: Asked, found: Agreement, ledger: Ledger) -> Verification:
        """Put a question and its paid answer together."""
        terms = tuple(
            VerifiedTerm(
                region.term,
                region.estimate,
                region.estimate - region.half_width,
                region.estimate + region.half_width,
                int(count),
                asked.parts,
                found.deviation,
            )
            for region, count in zip(asked.regions, found.counts, strict=True)
        )
        return cls(asked.formula.text, terms, ledger)

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each coefficient (Polars)."""
        names = ("term", "estimate", "low", "high", "agreeing", "parts", "deviation", "verdict")
        return pl.DataFrame({name: [getattr(each, name) for each in self.terms] for name in names})

    def __str__(self) -> str:
        verdicts = dict.fromkeys(each.verdict for each in self.terms)
        return "\n".join(
            (
                f"{self.formula}: parts of the original that agree with the release",
                *(f"  {each}" for each in self.terms),
                *(f"{verdict}: {_MEANINGS[verdict]}" for verdict in verdicts),
                "differences that are small against these regions are not noticed",
            )
        )


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, and what it may cost; see `verify`."""

    data: Any
    release: Release | str | Path
    formula: str
    epsilon: float | None = None
    delta: float | None = None
    schema: Schema | str | Path | None = None
    terms: Sequence[str] = ()
    parts: int | None = None
    tolerance: float = 0.0
    rows_in: int | None = None
    ledger: Ledger | str | Path | None = None
    seed: int | None = None
    book: str | Path | None = None
    streams: Streams = RandomStream


@python_names()
def verify(
    data: Any,
    release: Release | str | Path,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    schema: Schema | str | Path | None = None,
    terms: Sequence[str] = (),
    parts: int | None = None,
    tolerance: float = 0.0,
    rows_in: int | None = None,
    ledger: Ledger | str | Path | None = None,
    seed: int | None = None,
    book: str | Path | None = None,
    table: str | None = None,
    query: str | None = None,
    query_is_rowwise: bool = False,
) -> Verification:
    """Ask the original whether an analysis of it agrees with that of a release.

    The rows are dealt to parts, all rows of a unit to the same one. The formula is fitted to
    each part, and the parts whose coefficient lies near the release's are counted, with
    noise. This looks at the original once more and costs what is stated.

    Parameters
    ----------
    data
        The original, as for `synthesize`.
    release
        A `Release`, or the folder of one.
    formula
        Such as ``charge ~ age + C(sev)``; docs/evaluate.md has the grammar.
    epsilon, delta
        What this question may cost, beside the release.
    schema
        The codebook of the original; by default that of the release.
    terms
        Coefficients to ask for; by default all but the intercept. Each makes the noise larger.
    parts
        How many parts; by default from 10 to 50, by the number of rows.
    tolerance
        How much further off a part may be and still agree.
    rows_in
        Public number of original rows; by default as the ledger of the release states it.
    ledger
        What earlier questions cost, as a `Ledger`; or the file that this one is charged to, made
        or added to before the answer is returned.
    seed
        For tests: reproducible, and without any guarantee.
    book
        The budget book of the table: what the question costs is reserved there before anything is
        read, or refused.
    table, query, query_is_rowwise
        For a database, as for `synthesize`.

    Returns
    -------
    Verification
        A verdict for every coefficient, and the ledger of all questions so far.

    Raises
    ------
    BudgetError
        If no budget is stated, or the book does not cover it.
    """
    found, _ = answer(
        Question(
            data=named_source(data, table=table, query=query, rowwise=query_is_rowwise),
            release=release,
            formula=formula,
            epsilon=epsilon,
            delta=delta,
            schema=schema,
            terms=terms,
            parts=parts,
            tolerance=tolerance,
            rows_in=rows_in,
            ledger=ledger,
            seed=seed,
            book=book,
        )
    )
    return found


def answer(question: Question) -> tuple[Verification, Booking]:
    """Settle a question from the release alone, read the original, charge, and ask."""
    if question.epsilon is None:
        raise BudgetError(
            "verify looks at the original again, which has to be paid for: state --epsilon, beside "
            "what the release cost"
        )
    delta, release = question.delta, question.release
    budget = Budget(epsilon=question.epsilon, delta=delta)
    found = release if isinstance(release, Release) else Release.load(release)
    book = _codebook(found, question.schema)
    asked = regions_of(
        read_formula(question.formula, book),
        [_read_released(frame, book) for frame in found.weighted],
        book,
        rows_in=question.rows_in or rows_in_of(found.ledger),
        parts=question.parts,
        terms=question.terms,
        tolerance=question.tolerance,
    )
    event = agreement_event(asked, budget.whole("pure" if delta is None else "zcdp"))
    ledger = question.ledger
    file = Path(ledger) if isinstance(ledger, str | Path) else None
    if file is not None:
        check_target(file)
        # What stands there is looked at before the original is.
        _earlier(file)
    stream = question.streams(question.seed)
    charged = (*unit_bound(book), event)
    with booked_events(
        None if question.book is None else Path(question.book),
        book,
        charged,
        delta=delta or 0.0,
        run="verify",
        seeded=stream.seeded,
    ) as booking:
        with booked_table(question.data, book, booking) as reader, in_silence():
            check_header(book, reader)
            own = selection_ledger(schema_ledger(book), reader)
            rows = _bounded(read_rows(reader, book, need_unit=True), book, stream)
        own = replace(own, delta=delta or 0.0).add(*charged)
        if stream.seeded:
            own = seeded_ledger(own)
        with _alone(file, found):
            whole = own if ledger is None else Ledger.combine([*_earlier(ledger), own])
            if file is not None:
                atomic_text(file, whole.to_json())
        agreement = measured(asked, rows, book, event, stream)
        booking.settle(own)
    return Verification.of(asked, agreement, whole), booking


def _codebook(release: Release, schema: Schema | str | Path | None) -> Schema:
    if schema is None:
        if release.schema is None:
            raise ParameterError("this release has no codebook; state a schema")
        return release.schema
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    if wants_codec(book):
        raise ParameterError(
            "this schema leaves edges or categories to a release; leave --schema out, and those "
            "that the release has paid for are taken"
        )
    return book


def _read_released(frame: object, schema: Schema) -> Rows:
    with open_table(frame) as reader:
        return read_rows(reader, schema, need_unit=False)


def _bounded(rows: Rows, schema: Schema, stream: RandomStream) -> Rows:
    """Keep at most k rows of every unit, chosen at random, as a release does (R12)."""
    if rows.units is None:
        return rows
    words = stream.substream().take(len(rows))
    frame = pl.DataFrame({"unit": rows.units, "word": words, "row": np.arange(len(rows))})
    kept = np.sort(least_words(frame, schema.rows_per_unit).get_column("row").to_numpy())
    return replace(rows.some(kept), units=rows.units[kept])


def _earlier(ledger: Ledger | str | Path) -> list[Ledger]:
    """Return what earlier questions cost; none if the file is not there yet."""
    if isinstance(ledger, Ledger):
        return [ledger]
    path = Path(ledger)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{path}: the ledger cannot be read ({error.strerror})") from None
    found = Ledger.from_json(text, source=str(path))
    if not any(isinstance(event, AgreementCounts) for event in found.events):
        raise ParameterError(
            f"{path} is the ledger of something else; questions have a ledger of their own, so "
            "choose another file with --ledger"
        )
    return [found]


def _alone(file: Path | None, release: Release) -> Any:
    """Keep two questions from being charged to one file at the same time."""
    if file is None or release.folder is None:
        return nullcontext()
    public = release.folder / "public" / "privacy.json"
    return locked(public if public.is_file() else release.folder / "privacy.json")
