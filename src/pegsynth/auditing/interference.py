"""Paid answers that look at no data, a trace of what was asked, and what the ledger says of it.

A `GivenStream` takes the place of the random stream of a run. Its words are fixed although no seed
was stated, which would be written down. `unpaid` compares the trace with the ledgers of the run,
and `worst_ratio` compares what went into the steps of two neighbours with what the events price.

Non-interference: once the paid answers are given, nothing of a release depends on the table.

A `Configuration` is a few commands and three tables of the same header: one, one that has nothing
in common with it, and the first with one unit more. The shipped command line releases each of them
with the same given answers (`given_answers`). Everything public is then compared byte for byte,
the steps with the ledger, and what the additional unit changes in each step with its price.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import polars as pl

from pegsynth.codec.finding_categories import Part
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.answers import AnsweringStream, NoiseEvent
from pegsynth.methods.baselines.contingency import ContingencyTable
from pegsynth.methods.baselines.marginal import MarginalTable
from pegsynth.methods.gibbs.chains import Machine
from pegsynth.privacy import (
    AgreementCounts,
    CategoriesFound,
    Event,
    Ledger,
    NoisyCounts,
    PooledRows,
    Selection,
    UnitBound,
)
from pegsynth.privacy.draw_events import DRAWS
from pegsynth.privacy.noise_events import Noisy

FOUND = ("alpha", "beta", "gamma")
"""What every search for categories finds."""

_Lines: TypeAlias = tuple[Counter[Any], ...]


@dataclass(frozen=True)
class Step:
    """One paid step: what is public of it, and what went in.

    Parameters
    ----------
    event
        What pays for it; None for draws, whose events stand in the plan.
    size
        Cells, candidates or rows.
    lines
        The confidential numbers that went in, by cell. A step on one table has one line; draws
        have one for every entry that a row can change.
    """

    event: Event | None
    size: int
    lines: _Lines = field(compare=False, repr=False)


@dataclass
class Answers:
    """Gives the answers of one run, and keeps its steps.

    Parameters
    ----------
    turn
        Which numbers are given: others on every turn, of a large table and of a small one.
    """

    turn: int = 0
    steps: list[Step] = field(default_factory=list)
    streams: int = 0

    def stream(self, seed: int | None = None) -> GivenStream:
        """Make the next stream of the run."""
        self.streams += 1
        return GivenStream(self, f"given {self.streams}", seeded=seed is not None)

    def next(self, event: Event | None, size: int, *lines: Counter[Any]) -> np.random.Generator:
        """Record a step; return numbers for its answer that depend on its place and size."""
        self.steps.append(Step(_settled(event), size, lines))
        return np.random.default_rng([self.turn, len(self.steps), size])

    @property
    def rows(self) -> int:
        """How large the given numbers make the table look."""
        return (4000, 60)[self.turn % 2]


class GivenStream(AnsweringStream):
    """A random stream whose words and paid answers are given."""

    def __init__(self, answers: Answers, name: str, *, seeded: bool = False) -> None:
        super().__init__(name)
        # Fixed words are no seed: nothing of a release may say so.
        self._seeded = seeded
        self._answers, self._name = answers, name

    def child(self) -> GivenStream:
        """Return a stream of its own with the same answers."""
        return GivenStream(self._answers, self.substream().take(4).tobytes().hex())

    def aside(self, purpose: str) -> GivenStream:
        """Return a stream for a purpose of its own."""
        return GivenStream(self._answers, f"{self._name} {purpose}")

    def noisy(self, counts: Int64, event: NoiseEvent) -> Int64:
        """Return numbers of the size that such counts have."""
        if isinstance(event, CategoriesFound):
            # Recorded when the candidates were asked for.
            return event.threshold + 10 * np.arange(1, len(counts) + 1)
        line = Counter(dict(enumerate(map(int, counts.ravel()))))
        numbers, rows = self._answers.next(event, counts.size, line), self._answers.rows
        if isinstance(event, AgreementCounts):
            found = numbers.integers(0, event.parts + 1, counts.size).astype(np.float64)
        elif not isinstance(event, NoisyCounts):
            found = numbers.normal(0, rows / 12, counts.size)
        elif counts.size == 1:
            found = np.full(1, float(rows))
        else:
            weights = numbers.gamma(0.6, size=counts.size) + 1e-9
            found = weights / weights.sum() * rows + numbers.normal(0, 3, counts.size)
        return np.rint(found).astype(np.int64).reshape(counts.shape)

    def chosen(self, scores: Sequence[int], event: Selection) -> int:
        """Return any candidate."""
        line = Counter(dict(enumerate(map(int, scores))))
        return int(self._answers.next(event, len(scores), line).integers(len(scores)))

    def candidates(self, parts: Iterable[Any], events: Sequence[CategoriesFound]) -> list[Part]:
        """Read all values of the table, and let the searches find others."""
        read: dict[str, Counter[Any]] = {}
        for part in parts:
            counted = dict(zip(part.texts.to_list(), map(int, part.counts), strict=True))
            read.setdefault(part.name, Counter()).update(counted)
        names = [name for event in events for name in event.features]
        for name, event in zip(names, events, strict=True):
            self._answers.next(event, 0, read.get(name, Counter()))
        return [Part(name, pl.Series(FOUND), np.ones(len(FOUND), dtype=np.int64)) for name in names]

    def drawn_from(self, held: object, nothing: object, rows: int) -> Any:
        """Let draws read what they would of an empty table."""
        self._answers.next(None, rows, *_lines_of(held))
        return nothing


def _settled(event: Event | None) -> Event | None:
    """Return an event as it is before its output is written into it."""
    return msgspec.structs.replace(event, chosen=()) if isinstance(event, Selection) else event


def _lines_of(held: object) -> _Lines:
    """Return what draws read, one line for every entry or urn that a row can change.

    A fitted model has none: whatever a row does to it is priced (R8).
    """
    if isinstance(held, MarginalTable):
        return tuple(Counter(dict(enumerate(map(int, each)))) for each in held.counts)
    if isinstance(held, ContingencyTable):
        return (Counter(map(tuple, held.codes.tolist())),)
    if isinstance(held, Machine):
        return tuple(_block(held, target) for target in range(held.features))
    return ()


def _block(machine: Machine, target: int) -> Counter[Any]:
    """Return the counts of one target by key and category."""
    entries, keys = machine.entries, machine.keys
    size = int(keys.category_start[target + 1] - keys.category_start[target])
    if entries.dense[target]:
        first = int(entries.cell_base[target])
        last = first + size * int(entries.entry_base[target + 1] - entries.entry_base[target])
        sums = entries.dense_cumulative[first:last].astype(np.int64).reshape(-1, size)
        flat = np.diff(sums, axis=1, prepend=0).ravel()
        return Counter(dict(enumerate(map(int, flat))))
    found: Counter[Any] = Counter()
    for place in range(int(entries.key_base[target]), int(entries.key_base[target + 1])):
        cells = slice(int(entries.cell_start[place]), int(entries.cell_start[place + 1]))
        counts = np.diff(entries.cell_cumulative[cells].astype(np.int64), prepend=0)
        for category, count in zip(entries.cell_category[cells], counts, strict=True):
            found[int(entries.keys[place]), int(category)] += int(count)
    return found


# What the ledger says


def _paid(ledgers: Iterable[Ledger]) -> Iterable[tuple[Event, int]]:
    """Yield the paid events of some ledgers, and for how many rows of a unit they hold."""
    for ledger in ledgers:
        unit = max((e.rows_per_unit for e in ledger.events if isinstance(e, UnitBound)), default=1)
        for event in ledger.events:
            if isinstance(event, PooledRows):
                yield event.step, unit * event.rows_per_unit
            else:
                yield event, unit


def unpaid(steps: Sequence[Step], ledgers: Sequence[Ledger]) -> list[str]:
    """Say which steps no event of the ledgers pays for, and which events have no step.

    Every event of noise has one step, a choice as many as it counts. Draws have steps of as many
    rows as were charged, or fewer where a model may be drawn from again.
    """
    asked = Counter(step.event for step in steps if step.event is not None)
    charged: Counter[Any] = Counter()
    rows: list[int | None] = []
    for event, _ in _paid(ledgers):
        if isinstance(event, (Noisy, CategoriesFound, Selection)):
            charged[_settled(event)] += event.count if isinstance(event, Selection) else 1
        elif isinstance(event, DRAWS):
            each = getattr(event, "rows", None)
            rows.append(None if each is None else each * getattr(event, "datasets", 1))
    found = [
        f"{n} steps without an event: {_named(event)}" for event, n in (asked - charged).items()
    ]
    found += [
        f"{n} events without a step: {_named(event)}" for event, n in (charged - asked).items()
    ]
    drawn = sum(step.size for step in steps if step.event is None)
    if bool(drawn) != bool(rows):
        found.append("rows were drawn that no event pays for" if drawn else "no draw has its event")
    if any(each is not None and drawn > each for each in rows):
        found.append("more rows were drawn than an event pays for")
    return found


def _named(event: object) -> str:
    purpose = getattr(event, "purpose", "")
    return f"{type(event).__name__} {purpose} {', '.join(getattr(event, 'features', ()))}".rstrip()


def worst_ratio(
    plain: Sequence[Step], more: Sequence[Step], ledgers: Sequence[Ledger]
) -> dict[str, float]:
    """Return for every kind of step the largest change that a unit makes, as a part of its price.

    The steps are those of two neighbours, which got the same answers; above 1 a price is too low.
    """
    unit_of = {_settled(event): unit for event, unit in _paid(ledgers)}
    unit = max((each for _, each in _paid(ledgers)), default=1)
    found: dict[str, float] = {}
    for one, other in zip(plain, more, strict=True):
        ratio = _ratio(one, other, unit_of.get(one.event, unit) if one.event else unit)
        name = "draws" if one.event is None else type(one.event).__name__
        found[name] = max(found.get(name, 0.0), ratio)
    return found


def _ratio(one: Step, other: Step, unit: int) -> float:
    changes = [
        [abs(b[cell] - a[cell]) for cell in {*a, *b}]
        for a, b in zip(one.lines, other.lines, strict=True)
    ]
    event = one.event
    if event is None:
        return max((sum(line) / unit for line in changes), default=0.0)
    (line,) = changes
    if isinstance(event, Selection):
        return max(line, default=0) / unit
    total, square = event.moves if isinstance(event, Noisy) else (1, 1)
    if isinstance(event, AgreementCounts):
        unit = 1
    lengths = (
        Fraction(sum(line), unit * total),
        Fraction(sum(x * x for x in line), unit**2 * square),
    )
    return float(max(lengths))


Tables: TypeAlias = Mapping[str, pl.DataFrame]
Command: TypeAlias = Callable[..., None]
"""`pegsynth.cli.main.main`: it takes arguments and `streams`, and leaves by `SystemExit`."""

_LEDGERS = ("privacy.json", ".verification.json")
_SIGNALLED = 128


@dataclass(frozen=True)
class Configuration:
    """Commands, and tables that they are run on.

    Parameters
    ----------
    commands
        Arguments of ``pegs``, one command after the other, ``@`` standing for the folder of the
        run. They find the tables in ``data`` and may write confidential files into ``kept``. What
        they write into ``out`` is public, ``internal`` folders of releases aside.
    files
        Public files by name, such as the schema.
    tables
        Three sets of files by name: a table, another one, and the first with one unit more.
    turn
        Which answers are given.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    files: Mapping[str, str]
    tables: tuple[Tables, Tables, Tables]
    turn: int = 0


@dataclass(frozen=True)
class Released:
    """All that a run made public, and what it asked for.

    Parameters
    ----------
    published
        Exit status and messages of every command, and every file, by name.
    """

    published: dict[str, bytes]
    steps: list[Step] = field(repr=False)
    ledgers: list[Ledger] = field(repr=False)

    @property
    def status(self) -> Literal["claims", "promises nothing", "refused"]:
        """Whether there is a guarantee: of all that was released, or not, or nothing was."""
        if not self.ledgers:
            return "refused"
        covered = all(each.guarantee.kind != "none" for each in self.ledgers)
        return "claims" if covered else "promises nothing"


@dataclass(frozen=True)
class Compared:
    """What was found out about one configuration.

    Parameters
    ----------
    broken
        Differences, unpaid steps and prices that are too low, in words.
    ratios
        The largest change that one unit makes in each kind of step, as a part of its price.
    """

    name: str
    status: str
    broken: tuple[str, ...]
    steps: int
    ratios: Mapping[str, float]


def compare_all(
    configurations: Sequence[Configuration], command: Command, *, threads: int = 1
) -> Iterator[Compared]:
    """Compare configurations one by one, or in processes of their own: a command prints."""
    if threads == 1:
        yield from (compare(each, command) for each in configurations)
        return
    with ProcessPoolExecutor(threads, mp_context=get_context("spawn")) as workers:
        yield from workers.map(compare, configurations, repeat(command))


def compare(each: Configuration, command: Command) -> Compared:
    """Release the three tables of a configuration with the same answers, and compare.

    What promises nothing may depend on the table. What is refused may not: the message is public.
    """
    with tempfile.TemporaryDirectory() as folder:
        one, other, more = (_released(each, Path(folder), some, command) for some in each.tables)
    status = one.status
    if status == "promises nothing":
        return Compared(each.name, status, (), len(one.steps), {})
    broken = [f"another table: {text}" for text in _differences(one, other)]
    broken += [f"a unit more: {text}" for text in _differences(one, more)]
    ratios: dict[str, float] = {}
    if status == "claims":
        broken += unpaid(one.steps, one.ledgers)
    if status == "claims" and one.steps == more.steps:
        ratios = worst_ratio(one.steps, more.steps, one.ledgers)
        broken += [
            f"{name}: a unit changes {n:.3f} of its price" for name, n in ratios.items() if n > 1
        ]
    return Compared(each.name, status, tuple(broken), len(one.steps), ratios)


def _released(each: Configuration, folder: Path, tables: Tables, command: Command) -> Released:
    """Run the commands on a table; its place has the same name every time."""
    root = folder / "run"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("data", "out", "kept"):
        (root / name).mkdir(parents=True)
    for name, table in tables.items():
        target = root / "data" / name
        (table.write_parquet if target.suffix == ".parquet" else table.write_csv)(target)
    for name, text in each.files.items():
        (root / name).write_text(text)
    answers = Answers(each.turn)
    published = {
        f"command {number}": _printed(command, root, arguments, answers)
        for number, arguments in enumerate(each.commands, start=1)
    }
    out = root / "out"
    files = [path for path in sorted(out.rglob("*")) if path.is_file()]
    for path in files:
        if "internal" not in path.relative_to(out).parts:
            published[str(path.relative_to(out))] = path.read_bytes()
    ledgers = [Ledger.from_json(p.read_bytes()) for p in files if p.name.endswith(_LEDGERS)]
    return Released(published, answers.steps, ledgers)


def _printed(command: Command, root: Path, arguments: Sequence[str], answers: Answers) -> bytes:
    """Run a command; return how it ended and what it printed."""
    out, error = io.StringIO(), io.StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(error), warnings.catch_warnings():
        # A warning is shown once by default: the second table would look silent.
        warnings.simplefilter("always")
        try:
            command([each.replace("@", f"{root}/") for each in arguments], streams=answers.stream)
        except SystemExit as leaving:
            code = leaving.code
            if isinstance(code, int) and code >= _SIGNALLED:
                raise
    return f"exit {code}\n{out.getvalue()}\n{error.getvalue()}".encode()


def _differences(one: Released, other: Released) -> list[str]:
    """Say which public things differ, and at which line or byte; and whether steps do."""
    found = [
        f"{name} differs: {_first(one.published.get(name), other.published.get(name))}"
        for name in sorted({*one.published, *other.published})
        if one.published.get(name) != other.published.get(name)
    ]
    if one.steps != other.steps:
        place = next(
            (i for i, (a, b) in enumerate(zip(one.steps, other.steps, strict=False)) if a != b),
            min(len(one.steps), len(other.steps)),
        )
        found.append(f"the steps differ from step {place + 1} on")
    return found


def _first(one: bytes | None, other: bytes | None) -> str:
    """Show the first line that differs; the tables of an audit are invented."""
    if one is None or other is None:
        return "only one of the two has it"
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    line = next(((a, b) for a, b in pairs if a != b), (b"(end)", b"(end)"))
    return " | ".join(text[:120].decode(errors="replace") for text in line)
