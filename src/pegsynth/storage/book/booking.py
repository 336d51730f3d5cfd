"""Reserve before the table is read, settle after: how a run is written into a book.

    reserved -> reading -> settled        or        reserved -> withdrawn

The border is the first request for a row, or for counts of rows that were saved before
(`Booking.watch`, `Booking.begin`). The step to ``reading`` is on disk before that request is
answered. Whatever fails on this side of it depends on what is declared of the table alone, its
names and types (H of R30), and the reservation is returned. Whatever fails beyond it may depend
on rows, and nothing is ever returned but what the ledger of a finished run leaves of its
reservation: a refusal that cost nothing could be asked for again and again.

A run that is killed before the border can be withdrawn, by anybody and at any time: should it
still be alive, it finds its entry withdrawn and stops.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from pegsynth.errors import (
    BookNote,
    BudgetError,
    ModelError,
    ParameterError,
    PegsynthError,
    escaped,
)
from pegsynth.methods.ledgers import schema_ledger, seeded_ledger, selection_ledger
from pegsynth.methods.pricing import rows_of_a_unit
from pegsynth.privacy import Event, Ledger, UnitBound, this_program
from pegsynth.privacy.noise_events import PublishedCounts
from pegsynth.storage.book.book_file import Changes, Entry, changing, read_book, spent_line
from pegsynth.storage.book.book_policy import Cost, added, cost_of, whole_cost

if TYPE_CHECKING:
    from pegsynth.methods.base import Plan
    from pegsynth.schema import Schema
    from pegsynth.tables.reader import TableReader


class Booking:
    """A reservation of this process."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        self.begun = False
        self._lock = Lock()

    def watch(self, reader: TableReader) -> TableReader:
        """Return an open table, of which no row was read, whose first row begins the entry.

        A query that does not select rows one by one leaves no guarantee, and is refused.
        """
        lines = selection_ledger(Ledger(), reader).not_covered
        if lines:
            raise _no_guarantee(self.path, lines)
        return reader.calling(self.begin)

    def begin(self) -> None:
        """Say that rows are read from now on; it is on disk when this returns."""
        with self._lock:
            if self.begun:
                return
            with changing(self.path) as changes:
                entry = changes.entry(self.number)
                if entry.state != "reserved":
                    raise BudgetError(
                        f"{self.path}: entry {self.number} of the budget book was withdrawn while "
                        "this run was starting; run it again"
                    )
                changes.write(msgspec.structs.replace(entry, state="reading"))
            self.begun = True

    def settle(self, ledger: Ledger) -> None:
        """Write down what the run came to, which is at most what was reserved."""
        cost = cost_of(ledger.events, delta=ledger.delta)
        with changing(self.path) as changes:
            entry = changes.entry(self.number)
            changes.write(
                msgspec.structs.replace(
                    entry, state="settled", settled=cost, ledger=digest(ledger.to_json().encode())
                )
            )
        if cost is None or not cost.within(entry.reserved):
            raise BudgetError(
                f"{self.path}: entry {self.number} of the budget book came out with a larger price "
                "than was reserved, and is written down as it came out; please report this"
            )

    def failed(self, error: BaseException) -> None:
        """Return a reservation under which nothing was read; note what the book then holds."""
        if not self.begun:
            # A reservation that cannot be returned counts: that errs on the safe side.
            with suppress(PegsynthError):
                withdraw(self.path, self.number)
        error.add_note(BookNote(self._outcome()))

    def told(self) -> str:
        """Say for the sign-off which entry it is, and what the book holds with it."""
        entry = f"{self.path.name}, entry {self.number} (settled when the folder is in its place)"
        whole = spent_line(read_book(self.path))
        return f"{entry}; with it {whole}" if whole else entry

    def _outcome(self) -> str:
        try:
            book = read_book(self.path)
        except PegsynthError as error:
            return f"The budget book cannot be read ({error}); what was reserved counts."
        entry = book.entries[self.number - 1]
        why = {
            "withdrawn": "nothing is charged, because no row was read",
            "settled": "it is charged, because the run was done",
        }.get(entry.state, "it is charged in full, because rows were or may have been read")
        return f"Budget book {self.path}: entry {self.number}: {why}; {spent_line(book)}."


class _NoBooking(Booking):
    """Stands for a book where none was named."""

    def __init__(self) -> None:
        super().__init__(Path(), 0)

    def watch(self, reader: TableReader) -> TableReader:
        """Return the table as it is."""
        return reader

    def begin(self) -> None:
        """Nothing is written down."""

    def settle(self, ledger: Ledger) -> None:
        """Nothing is written down."""

    def told(self) -> str:
        """There is nothing to say."""
        return ""

    def failed(self, error: BaseException) -> None:
        """Nothing is noted."""


NO_BOOKING = _NoBooking()


@contextmanager
def booked(
    path: Path | None,
    schema: Schema,
    plan: Plan | None,
    *,
    run: str,
    seeded: bool,
    saved: bool = False,
) -> Iterator[Booking]:
    """Reserve what a run can cost at most; refuse it if the book does not cover that.

    The caller reads the table that `Booking.watch` returns, and calls `Booking.settle` when
    what was made is in its place. A run that fails before the first row returns everything.
    Whatever error ends it carries a `BookNote`, which says what the book then holds.

    Parameters
    ----------
    path
        The book; None: nothing is written down.
    plan
        The settled release.
    run
        What the entry is called.
    seeded
        Whether a seed takes the guarantee away.
    saved
        Whether the model is sampled later, so that only a total can be reserved.
    """
    if path is None:
        yield NO_BOOKING
        return
    if plan is None or (saved and plan.budget.epsilon is None):
        raise BudgetError(
            f"{path}: a model is booked for the total that may ever be drawn from it; state "
            "--epsilon, or leave out --book here and give it to pegs sample"
        )
    cost = _cost(path, schema, plan.events, delta=plan.budget.delta or 0.0, seeded=seeded)
    if plan.budget.paid is not None:
        # Edges or categories are measured first, by amounts that depend on what was seen.
        cost = whole_cost(plan.budget, plan.budget.paid)
    with _reserved(path, schema, cost, run=run, method=plan.method) as booking:
        yield booking


@contextmanager
def booked_events(
    path: Path | None,
    schema: Schema,
    events: Sequence[Event],
    *,
    delta: float,
    run: str,
    seeded: bool,
) -> Iterator[Booking]:
    """Reserve what fixed events cost, as `booked` does for a settled release.

    Parameters
    ----------
    events
        All that the run charges, beside what follows from the schema.
    delta
        What the run stated; 0 for a pure one.
    """
    if path is None:
        yield NO_BOOKING
        return
    cost = _cost(path, schema, events, delta=delta, seeded=seeded)
    with _reserved(path, schema, cost, run=run, method="") as booking:
        yield booking


def _cost(
    path: Path, schema: Schema, planned: Sequence[Event], *, delta: float, seeded: bool
) -> Cost:
    """Price a run by its events; refuse one without a guarantee."""
    known = schema_ledger(schema, accept_unreviewed=True)
    known = seeded_ledger(known) if seeded else known
    events = (*known.events, *planned)
    cost = cost_of(events, delta=delta)
    if cost is None and any(isinstance(event, PublishedCounts) for event in events):
        raise BudgetError(
            f"{path}: rows from published tables read no confidential table, so there is nothing "
            "to book; remove --book"
        )
    if cost is None:
        raise _no_guarantee(path, Ledger(events, (), delta).not_covered)
    return cost


@contextmanager
def _reserved(
    path: Path, schema: Schema, cost: Cost, *, run: str, method: str
) -> Iterator[Booking]:
    """Write a reservation; return it if the run fails before anything was read."""
    # A symbolic link may lead elsewhere before the run has ended.
    path = Path(os.path.realpath(path))
    with changing(path) as changes:
        entry = _entry(changes, cost, run, method, rows_of_a_unit(schema))
        _check(changes, entry, escaped(schema.unit) if schema.unit else "")
        changes.write(entry)
    booking = Booking(path, entry.number)
    try:
        yield booking
    except BaseException as error:
        booking.failed(error)
        raise


def add_earlier(path: Path, sources: Sequence[Path]) -> list[Entry]:
    """Put releases in that were made before there was a book; all of them, or none.

    They count whether the policy covers them or not: they are out.
    """
    entries = []
    with changing(path) as changes:
        seen = {entry.ledger for entry in changes.book.entries}
        for source in sources:
            text = _read(source)
            ledger = Ledger.from_json(text, source=str(source))
            cost = cost_of(ledger.events, delta=ledger.delta)
            if cost is None:
                raise _no_guarantee(source, ledger.not_covered)
            if digest(text) in seen:
                raise ParameterError(f"{source}: this ledger is in the book already")
            units = (event.label for event in ledger.events if isinstance(event, UnitBound))
            _check_unit(changes, next(units, ""))
            rows = ledger.guarantee.rows_per_unit
            entry = _entry(changes, cost, "earlier release", "", rows)
            entry = msgspec.structs.replace(
                entry, state="settled", settled=cost, ledger=digest(text)
            )
            entries.append(entry)
            seen.add(entry.ledger)
            changes.book = changes.book.with_entry(entry)
        if entries:
            changes.write(entries[-1])
    return entries


def add_spending(path: Path, cost: Cost, *, by: str) -> Entry:
    """Put in what another tool spent, which counts whether the policy covers it or not."""
    with changing(path) as changes:
        policy = changes.book.policy
        if cost.epsilon is None and not policy.delta:
            raise BudgetError(
                f"{path}: the budget book has no delta and adds pure epsilons only; state "
                "--epsilon without --delta, or make a book with --delta"
            )
        if cost.delta_taken and not policy.private_categories:
            raise BudgetError(
                f"{path}: the budget book sets nothing of its delta aside, so another tool's delta "
                "would leave nothing to promise; state --rho if the tool tells it, or make a book "
                "with --private-categories, which sets a tenth aside"
            )
        entry = msgspec.structs.replace(
            _entry(changes, cost, "elsewhere", by, 1), state="settled", settled=cost
        )
        changes.write(entry)
    return entry


def withdraw(path: Path, number: int) -> None:
    """Give a reservation back under which no row was read, whoever made it."""
    with changing(path) as changes:
        entry = changes.entry(number)
        if entry.state != "reserved":
            raise BudgetError(
                f"{path}: entry {number} is {entry.state}; only a run that has read nothing can be "
                "withdrawn"
            )
        changes.write(msgspec.structs.replace(entry, state="withdrawn"))


def digest(text: bytes) -> str:
    """Return the SHA-256 of a ledger as its file has it."""
    return hashlib.sha256(text).hexdigest()


def _read(source: Path) -> bytes:
    try:
        return source.read_bytes()
    except OSError as error:
        raise ModelError(
            f"{source}: the ledger cannot be opened ({error.strerror}); check the name"
        ) from None


def account() -> str:
    """Return the account that runs this process, as the system knows it."""
    try:
        import pwd
    except ImportError:
        # Windows has no such list.
        import getpass

        return escaped(getpass.getuser())
    number = os.getuid()
    try:
        return escaped(pwd.getpwuid(number).pw_name)
    except KeyError:
        return f"user {number}"


def _entry(changes: Changes, cost: Cost, run: str, method: str, rows_per_unit: int) -> Entry:
    return Entry(
        number=len(changes.book.entries) + 1,
        time=changes.moment(),
        by=account(),
        run=run,
        method=method,
        program=str(this_program()),
        state="reserved",
        reserved=cost,
        rows_per_unit=rows_per_unit,
    )


def _check(changes: Changes, entry: Entry, unit: str) -> None:
    """Refuse an entry that the policy does not cover."""
    path, book = changes.path, changes.book
    policy = book.policy
    if policy.spenders and entry.by not in policy.spenders:
        raise BudgetError(f"{path}: {entry.by} may not spend from this budget book")
    _check_unit(changes, unit)
    whole, year = book.spent(), book.spent(entry.year)
    if whole is None or year is None:
        raise BudgetError(
            f"{path}: a run in this budget book came out without a guarantee, so nothing more can "
            "be promised for the table"
        )
    reason = policy.why_not(added((whole, entry.reserved)), added((year, entry.reserved)))
    if reason:
        raise BudgetError(f"{path}: the budget book does not cover this run: {reason}")


def _check_unit(changes: Changes, unit: str) -> None:
    wanted = changes.book.policy.unit
    if unit != wanted:
        named = [f"units of {name!r}" if name else "single rows" for name in (wanted, unit)]
        raise BudgetError(
            f"{changes.path}: the budget book protects {named[0]}, and this run protects "
            f"{named[1]}; what they promise does not add up"
        )


def _no_guarantee(path: Path, lines: Sequence[str]) -> BudgetError:
    reason = lines[0] if lines else "it states no epsilon"
    return BudgetError(
        f"{path}: a run without differential privacy cannot be booked: {reason}. Run it without "
        "--book only if nothing of it leaves the house"
    )
