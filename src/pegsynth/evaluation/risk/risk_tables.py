"""What a risk is computed from: the original, what is released, rows that were never given.

Goes in: code matrices and the schema. Comes out: checked columns, the stack of all
released tables (an intruder holds them all), which features identify a person, which are
sensitive, and whether released rows correspond to rows of the original.

Rows are taken to correspond, as in partially synthetic tables, when every released table
has as many rows as the original and agrees with it, row by row, in a feature that a
shuffled table would match with a probability below `CHANCE`. Every draw of this part is
seeded with a fixed number, so that the same tables give the same figures.

A hold-out must not be a part of the original: there is a record if nearly all of its rows lie
among the original rows and chance does not explain it. Equal rows are common where categories
are few. The original itself shows how common: by the share of its rows that have a twin in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.codec.tabulation import column_major, group_rows
from pegsynth.errors import ParameterError
from pegsynth.evaluation.records import Record, measured
from pegsynth.inference.statistics import Estimate, quantile
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.schema.schema import Schema

SEED = 20130
CHANCE = 1e-6
NO_IDENTIFIER = "no feature identifies; mark quasi-identifiers or name some (--known F)"
NO_SENSITIVE = "no feature is sensitive; mark one in the schema or name it (--infer F)"
NO_POWER = "no power: real rows in the place of the release would not stand out either"
NO_HOLDOUT = (
    "there is no hold-out; give rows of the same population that the synthesizer never saw "
    "(--holdout FILE)"
)


@dataclass(frozen=True)
class RiskTables:
    """All tables, one feature a row, and the roles of their features.

    Parameters
    ----------
    names, sizes
        Name and number of categories of every feature.
    original
        The confidential table.
    released
        All released tables, stacked.
    tables
        The released tables one by one.
    holdout
        Rows never given to the synthesizer, or None.
    no_holdout
        Why there is none.
    identifiers, sensitive
        Features that identify a person, and those that are to be protected.
    corresponding
        Whether released row t was made from row t of the original, in every table.
    level
        Of all intervals.
    threads
        Searches at a time; no figure depends on it.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    original: Codes
    released: Codes
    tables: tuple[Codes, ...]
    holdout: Codes | None
    no_holdout: str
    identifiers: tuple[int, ...]
    sensitive: tuple[int, ...]
    corresponding: bool
    level: float
    threads: int

    @property
    def rows(self) -> int:
        """Rows of the original, N."""
        return int(self.original.shape[1])

    @property
    def released_rows(self) -> int:
        """Rows of all released tables together, n."""
        return int(self.released.shape[1])

    @property
    def stacked(self) -> str:
        """How several released tables are taken together, for a note."""
        count = len(self.tables)
        return f"; the {count} released tables are taken together, as one" if count > 1 else ""

    @property
    def limits(self) -> str:
        """What the interval of a share is, for a note."""
        return f"interval: Wilson {100 * self.level:g} % over the targets, given what is released"

    def with_holdout(self, *tables: Codes) -> list[Codes]:
        """Return the tables and, last, the hold-out if there is one."""
        return [*tables] if self.holdout is None else [*tables, self.holdout]

    def listed(self, features: Sequence[int]) -> str:
        """Names of features for a subject or a note."""
        return ", ".join(self.names[i] for i in features)


def risk_tables(
    original: Codes,
    synthetic: Sequence[Codes],
    schema: Schema,
    *,
    holdout: Codes | None = None,
    known: Sequence[str] | None = None,
    infer: Sequence[str] | None = None,
    threads: int = 2,
    level: float = 0.95,
) -> RiskTables:
    """Check the tables and settle the roles.

    Parameters
    ----------
    original, synthetic, holdout
        Code matrices, rows by features, all encoded with `schema`.
    schema
        Its quasi-identifiers identify, unless `known` is given; its sensitive features are
        to be protected, unless `infer` is given.

    Raises
    ------
    DataError
        A table does not fit the schema, or the original or a synthetic table is empty.
    ParameterError
        There is no synthetic table, or a name is not in the schema.
    """
    if not synthetic:
        raise ParameterError("there is no synthetic table to compare with the original")
    if threads < 1:
        raise ParameterError("threads must be at least 1")
    quantile(level)
    sizes = schema.category_counts
    ours = column_major(original, sizes, what="original")
    tables = tuple(
        column_major(codes, sizes, what=f"synthetic table {number}")
        for number, codes in enumerate(synthetic, start=1)
    )
    kept, reason = None, NO_HOLDOUT
    if holdout is not None and holdout.ndim == 2 and len(holdout) == 0:
        reason = "the hold-out has no rows; give rows that the synthesizer never saw"
    elif holdout is not None:
        kept, reason = column_major(holdout, sizes, what="hold-out"), ""
        if np.array_equal(holdout, original):
            kept = None
            reason = "the hold-out is the original itself; give rows the synthesizer never saw"
    identifiers = _positions(schema, known, "known", "quasi-identifier")
    sensitive = _positions(schema, infer, "infer", "sensitive")
    if infer is None:
        # What the user says is known cannot be protected as well.
        sensitive = tuple(i for i in sensitive if i not in identifiers)
    return RiskTables(
        schema.names,
        sizes,
        ours,
        tables[0] if len(tables) == 1 else np.concatenate(tables, axis=1),
        tables,
        kept,
        reason,
        tuple(i for i in identifiers if i not in sensitive),
        sensitive,
        all(_correspond(ours, table) for table in tables),
        level,
        threads,
    )


def power_reason(real: Estimate, reference: Estimate) -> str:
    """Say that an attack has no power; empty where real rows stand out against the reference.

    Parameters
    ----------
    real
        What the attack finds with real rows of the original in the place of the release; the
        higher, the worse.
    reference
        What it finds where nobody's own row is given.
    """
    return "" if real.low > reference.high else NO_POWER


def with_references(
    record: Record, references: Mapping[str, tuple[Estimate, str]]
) -> Iterator[Record]:
    """Yield a risk and, under its name and theirs, the figures that it is held against."""
    yield record
    for name, (found, note) in references.items():
        yield measured(
            f"{record.name}_{name}", record.subject, found, baseline=record.value, note=note
        )


def drawn(rows: int, count: int, *, stream: int) -> Int64:
    """Draw `count` of so many rows without replacement, all of them where there are fewer."""
    if count >= rows:
        return np.arange(rows, dtype=np.int64)
    generator = np.random.default_rng([SEED, stream])
    return np.sort(generator.choice(rows, count, replace=False, shuffle=False))


def _correspond(original: Codes, table: Codes) -> bool:
    from scipy.special import gammaln

    if original.shape != table.shape:
        return False
    for ours, theirs in zip(original, table, strict=True):
        orders = gammaln(len(ours) + 1) - gammaln(np.bincount(ours) + 1).sum()
        if orders > -np.log(CHANCE) and np.array_equal(ours, theirs):
            return True
    return False


def _positions(
    schema: Schema, names: Sequence[str] | None, what: str, role: str
) -> tuple[int, ...]:
    if names is None:
        return tuple(i for i, feature in enumerate(schema.features) if feature.role == role)
    for name in names:
        if name not in schema.names:
            raise ParameterError(f"{what}: {name!r} is not a feature of the schema")
    return tuple(dict.fromkeys(schema.names.index(name) for name in names))


NAME = "holdout_in_original"
NEARLY_ALL = 0.9


def holdout_records(
    original: Codes, holdout: Codes | None, sizes: tuple[int, ...]
) -> tuple[Record, ...]:
    """Return a record if the hold-out must be a part of the original, else nothing.

    Parameters
    ----------
    original, holdout
        Codes, one feature a row.
    sizes
        Number of categories of every feature.

    Notes
    -----
    Were the hold-out drawn from the same population, a row of it would lie among the
    original rows about as often as an original row lies among the others. Both the share of
    rows with a twin (McDiarmid) and the chance of meeting a row that was seen (McAllester and
    Ortiz 2003) stay within sqrt(2 log(1/CHANCE) / rows) of their means but for a probability
    of CHANCE each. The record is made where even twice that margin above the share found
    leaves so many rows of the hold-out a binomial probability below CHANCE.
    """
    if holdout is None:
        return ()
    from scipy.special import bdtrc

    groups = group_rows([original, holdout], range(len(sizes)), sizes)
    counts = groups.sizes(0)
    rows, held = len(groups.ids[0]), len(groups.ids[1])
    inside = int(np.count_nonzero(counts[groups.ids[1]]))
    twins = float(counts[counts > 1].sum() / rows)
    likely = twins + 2 * math.sqrt(-2 * math.log(CHANCE) / rows)
    if likely >= 1 or inside < NEARLY_ALL * held or bdtrc(inside - 1, held, likely) > CHANCE:
        return ()
    note = (
        f"{inside} of the {held} rows of the hold-out are rows of the original, where "
        f"{100 * twins:.3g} % of the rows have a twin, so that this is no chance; give rows "
        "that the synthesizer never saw, or all that is held against the hold-out misleads"
    )
    found = Estimate(inside / held, n=held)
    return (measured(NAME, "hold-out", found, baseline=twins, note=note),)
