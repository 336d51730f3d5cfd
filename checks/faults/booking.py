"""Kill a command with ``--book`` again and again: the book only ever grows, and knows of all.

The book is never put back. After each kill it must be whole, hold every earlier entry as it was,
and have at most one entry more; a table that became visible must be covered by that entry, at
no less than its ledger says.
"""

from __future__ import annotations

from pathlib import Path

from checks.faults.kill import Case, End
from checks.faults.places import Place
from checks.faults.spending import SpendingCampaign
from checks.faults.works import BOOKED, BrokenError
from pegsynth.errors import PegsynthError
from pegsynth.privacy import Ledger
from pegsynth.storage.book.book_file import Book, Entry, create_book, read_book
from pegsynth.storage.book.book_policy import BookPolicy, added, cost_of
from pegsynth.storage.book.booking import digest

ENOUGH = 1e6
LEDGER = "t.csv.privacy.json"


class BookCampaign(SpendingCampaign):
    """A campaign on a budget book that is kept from kill to kill."""

    def __init__(self, place: Place) -> None:
        self._book = place.out / "t.book"
        create_book(self._book, BookPolicy(epsilon=ENOUGH))
        self._before = read_book(self._book)
        self._start(place, BOOKED)

    def _judge(self, moment: str, end: End) -> Case:
        faults = list(end.faults)
        state = "broken"
        try:
            state = self._state()
            faults += self._entries(self._whole_book(), state, finished=end.status == 0)
            if end.status == 0:
                state = "finished"
            faults += self._strangers()
            faults += self._after_stop(end, state)
        except (BrokenError, PegsynthError, OSError, ValueError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        self._restore()
        return Case(self.work.name, moment, state, tuple(faults))

    def _whole_book(self) -> Book:
        try:
            return read_book(self._book)
        except PegsynthError as error:
            raise BrokenError(str(error)) from None

    def _entries(self, book: Book, state: str, *, finished: bool) -> list[str]:
        """Compare the book with what it was, and with what became visible."""
        before = self._before.entries
        if book.entries[: len(before)] != before:
            return ["earlier entries of the book were changed or lost"]
        further = book.entries[len(before) :]
        faults = [f"{len(further)} entries for one run"] if len(further) > 1 else []
        visible = state == "new" or finished
        if visible and not further:
            faults.append("a table was published that the book does not know")
        if visible and further:
            faults += self._covered(further[-1], self.place.out / LEDGER)
        if finished and further and further[-1].state != "settled":
            faults.append(f"a run has ended, and its entry is {further[-1].state}")
        return faults

    def _covered(self, entry: Entry, ledger: Path) -> list[str]:
        text = ledger.read_bytes()
        cost = cost_of(Ledger.from_json(text).events, delta=0.0)
        if entry.cost is None or cost is None:
            return ["a table without a price"]
        # While a table is replaced, the ledger beside it is that of both, and both are booked.
        earlier = cost_of(Ledger.from_json((self._kept / LEDGER).read_bytes()).events, delta=0.0)
        both = added(each for each in (entry.cost, earlier) if each is not None)
        # Both runs are pure, and epsilons add up whatever the ledger of both would be as one run.
        if (cost.epsilon or 0) > (both.epsilon or 0):
            return ["the book counts less than the ledger says"]
        if entry.state == "settled" and not cost.within(entry.cost):
            return ["the entry counts less than its own ledger says"]
        if entry.state == "settled" and entry.ledger != digest(text):
            return ["the entry is settled by another ledger"]
        return []

    def _restore(self) -> None:
        """Put the tables back, and leave the book alone."""
        self._put_back()
        if self._book.exists():
            self._before = read_book(self._book)
