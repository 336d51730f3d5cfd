"""The file of a budget book: one JSON object, replaced whole under a lock on the file.

Every change is on disk before it counts, so that a kill at any moment leaves the book as it was
or as it was to become, and whoever waited for the lock sees what the others have written. A
symbolic link stands for the book that it leads to; a second name of the file itself (a hard
link) would become a second book when the first is replaced, and is refused. Nothing in a book
depends on the table.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegsynth.errors import BudgetError, ModelError, OutputError, ParameterError, PegsynthError
from pegsynth.privacy.conversion import rho_at
from pegsynth.privacy.rounding import display_up, float_up
from pegsynth.storage.book.book_policy import FREE, BookPolicy, Cost, added, shown
from pegsynth.tables.atomic import atomic_text, check_target, holding
from pegsynth.views import aligned

FORMAT = 1
NOTICE = "Budget book of one confidential table; keep it with the table, and never an older copy"
State = Literal["reserved", "reading", "settled", "withdrawn"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run.

    Parameters
    ----------
    number
        Counts from 1, without gaps.
    time
        When it was reserved, UTC.
    by
        The account that did it.
    run
        What was run: release, synthesize, fit, sample, or an earlier release.
    state
        ``reserved``: nothing was read yet. ``reading``: the table may have been read, and
        everything reserved counts. ``settled``: the ledger is known. ``withdrawn``: never read.
    reserved
        The most it could cost, worked out before the table was read.
    settled
        What its ledger says; None before, and for a run that came out without a guarantee.
    rows_per_unit
        The most rows of a unit in that run.
    ledger
        SHA-256 of its ``privacy.json``.
    """

    number: int
    time: str
    by: str
    run: str
    method: str
    program: str
    state: State
    reserved: Cost
    settled: Cost | None = None
    rows_per_unit: int = 1
    ledger: str = ""

    @property
    def cost(self) -> Cost | None:
        """What counts; None for a run that nothing can pay for."""
        if self.state == "withdrawn":
            return FREE
        return self.settled if self.state == "settled" else self.reserved

    @property
    def year(self) -> str:
        """The calendar year it counts for."""
        return self.time[:4]


class Book(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy and all runs under it."""

    format: int
    notice: str
    table: str
    created: str
    policy: BookPolicy
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        if [entry.number for entry in self.entries] != list(range(1, len(self.entries) + 1)):
            raise ValueError("the numbers of its entries have gaps")
        times = [self.created, *(entry.time for entry in self.entries)]
        if times != sorted(times):
            raise ValueError("its entries are not in the order of time")

    def spent(self, year: str | None = None) -> Cost | None:
        """Return what counts, in all or in a year; None if a run had no guarantee."""
        costs = [e.cost for e in self.entries if year is None or e.year == year]
        known = [cost for cost in costs if cost is not None]
        return added(known) if len(known) == len(costs) else None

    def with_entry(self, entry: Entry) -> Book:
        """Return the book with an entry more, or with one changed."""
        kept = [entry if each.number == entry.number else each for each in self.entries]
        if entry.number > len(kept):
            kept.append(entry)
        return msgspec.structs.replace(self, entries=tuple(kept))


def now() -> datetime:
    """Return the time of entries."""
    return datetime.now(UTC)


def written(moment: datetime) -> str:
    """Write a moment as entries have it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def create_book(path: str | Path, policy: BookPolicy, *, table: str = "") -> Book:
    """Make a new book; one that is there is never replaced."""
    target = Path(path)
    check_target(target)
    if target.exists():
        raise OutputError(f"cannot write {str(path)!r}: it exists, and a book is never replaced")
    book = Book(format=FORMAT, notice=NOTICE, table=table, created=written(now()), policy=policy)
    _write(target, book, None)
    return book


def read_book(path: str | Path) -> Book:
    """Read a book; everything in it is checked."""
    try:
        with Path(path).open("rb") as file:
            content, names = file.read(), os.fstat(file.fileno()).st_nlink
    except OSError as error:
        raise _not_there(path, error) from None
    if names > 1:
        raise ModelError(
            f"{path}: the budget book has {names} names (hard links), and would become as many "
            "books; keep one name and remove the others, or let a symbolic link lead to it"
        )
    try:
        found = msgspec.json.decode(content)
        version = found.get("format") if isinstance(found, dict) else None
        if isinstance(version, int) and version != FORMAT:
            raise ModelError(
                f"{path}: the budget book has format {version}, and this program reads format "
                f"{FORMAT} only; use the version of pegsynth that wrote it"
            )
        return msgspec.convert(found, Book)
    except ModelError:
        raise
    except (msgspec.MsgspecError, PegsynthError, ValueError, ArithmeticError, RecursionError):
        raise ModelError(
            f"{path}: this is no budget book, or it is damaged; restore it from a copy that has "
            "all its entries, or count everything that was spent as unknown"
        ) from None


@contextmanager
def changing(path: str | Path) -> Iterator[Changes]:
    """Hold a book for this process alone, to look at it and to write."""
    with ExitStack() as stack:
        try:
            stack.enter_context(holding(path))
        except OSError as error:
            raise _not_there(path, error) from None
        yield Changes(Path(path), read_book(path))


def _not_there(path: str | Path, error: OSError) -> ModelError:
    return ModelError(
        f"{path}: the budget book cannot be opened ({error.strerror}); check the name, or make one "
        "with pegs book create"
    )


class Changes:
    """A book that is held by this process."""

    def __init__(self, path: Path, book: Book) -> None:
        self.path, self.book = path, book

    def entry(self, number: int) -> Entry:
        """Return an entry by its number."""
        if not 1 <= number <= len(self.book.entries):
            raise ParameterError(f"{self.path}: the book has no entry {number}")
        return self.book.entries[number - 1]

    def write(self, entry: Entry) -> None:
        """Put an entry in; when this returns it is on disk."""
        self.book = self.book.with_entry(entry)
        _write(self.path, self.book, self.path)

    def moment(self) -> str:
        """Return the time, refusing a clock that runs before the last entry."""
        at = written(now())
        last = self.book.entries[-1].time if self.book.entries else self.book.created
        if at < last:
            raise BudgetError(
                f"{self.path}: the clock of this machine is before the last entry ({last}); set it "
                "right, because limits of a year depend on it"
            )
        return at


def _write(path: Path, book: Book, like: Path | None) -> None:
    mode = 0o600 if like is None else stat.S_IMODE(like.stat().st_mode)
    text = msgspec.json.format(msgspec.json.encode(book), indent=1).decode()
    atomic_text(path, text + "\n", mode=mode)


_SHOWN = 12
_HEADER: tuple[str, ...] = (
    *("entry", "time (UTC)", "by", "run", "method", "state", "rho", "epsilon", "ledger"),
)
_UNENDED: Mapping[State, str] = {
    "reserved": "has read nothing yet; if its run is gone: pegs book withdraw BOOK {}.",
    "reading": "is reading, or was stopped while it was; it counts in full as long as it is not "
    "settled.",
}
_LEAST = 1e-3
_BISECTIONS = 60


def spent_line(book: Book) -> str:
    """Say in a line what was spent of every limit."""
    return "; ".join(_limits(book))


def _limits(book: Book) -> Iterator[str]:
    policy, year = book.policy, str(now().year)
    for limit, cost, when in (
        (policy.epsilon, book.spent(), "in all"),
        (policy.epsilon_per_year, book.spent(year), f"in {year}"),
    ):
        if limit is not None:
            yield f"epsilon = {_epsilon(book, cost)} of {limit:g} is spent {when}"


def _epsilon(book: Book, cost: Cost | None) -> str:
    found = None if cost is None else book.policy.epsilon_of(cost)
    return "without a limit" if found is None else shown(found)


def left_for(book: Book, *, delta: float) -> float | None:
    """Return about the largest epsilon that one further run may state, rounded down.

    Parameters
    ----------
    delta
        What that run states; 0 for a pure one. None comes back if nothing is left.
    """
    whole, year = book.spent(), book.spent(str(now().year))
    if whole is None or year is None:
        return None
    low, high = 0.0, max(filter(None, (book.policy.epsilon, book.policy.epsilon_per_year)))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _fits(book, whole, year, middle, delta) else (low, middle)
    return low if low >= _LEAST else None


def _fits(book: Book, whole: Cost, year: Cost, epsilon: float, delta: float) -> bool:
    try:
        rho = Decimal(rho_at(epsilon, delta=delta)) if delta else Decimal(epsilon) ** 2 / 2
    except ValueError:
        # Too small an epsilon to be one.
        return True
    further = Cost(rho=rho, epsilon=None if delta else Decimal(epsilon))
    return not book.policy.why_not(added((whole, further)), added((year, further)))


def page(book: Book) -> str:
    """Return the book as text."""
    policy = book.policy
    lines = [
        f"Budget book of {book.table or 'a table without a name'}, made {book.created}",
        f"  protects: {f'units of {policy.unit}' if policy.unit else 'single rows'}",
        f"  delta:    {display_up(policy.delta) if policy.delta else '0 (pure runs only)'}"
        + (", a tenth of it for private categories" if policy.private_categories else ""),
        f"  spenders: {', '.join(policy.spenders) or 'whoever may write the file'}",
        *(f"  {line}" for line in _limits(book)),
    ]
    for delta in dict.fromkeys((policy.delta, 0.0)):
        left = left_for(book, delta=delta)
        kind = f"at delta = {display_up(delta)}" if delta else "without a delta"
        most = "nothing" if left is None else f"about epsilon = {left:.4g}"
        lines.append(f"  left for one further run {kind}: {most}")
    if book.entries:
        lines += ["", *aligned([_HEADER, *map(_row, book.entries)])]
    # Runs that have not ended, or were killed.
    lines += [
        f"Entry {each.number} {_UNENDED[each.state].format(each.number)}"
        for each in book.entries
        if each.state in _UNENDED
    ]
    return "\n".join(lines)


def _row(entry: Entry) -> tuple[str, ...]:
    cost = entry.cost
    rho = "no limit" if cost is None else display_up(float_up(cost.rho))
    pure = "" if cost is None or cost.epsilon is None else shown(float_up(cost.epsilon))
    moment = entry.time.replace("T", " ").removesuffix("Z")
    number, short = str(entry.number), entry.ledger[:_SHOWN]
    return number, moment, entry.by, entry.run, entry.method, entry.state, rho, pure, short


def plain(book: Book) -> dict[str, Any]:
    """Return the book and its sums as plain objects, for ``pegs book show --json``."""
    content: dict[str, Any] = msgspec.to_builtins(book)
    whole = book.spent()
    content["spent"] = {
        "rho": None if whole is None else str(whole.rho),
        "delta_taken": None if whole is None else str(whole.delta_taken),
        "epsilon": None if whole is None else book.policy.epsilon_of(whole),
    }
    return content
