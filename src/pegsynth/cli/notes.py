"""What the commands say when they are done: the promise, the choice, what was replaced."""

from __future__ import annotations

import sys
from pathlib import Path

from pegsynth.codec.measured_numbers import constant_numbers
from pegsynth.errors import PegsynthError, escaped
from pegsynth.methods import get
from pegsynth.methods.session import Session
from pegsynth.privacy import Ledger
from pegsynth.privacy.rounding import display_up
from pegsynth.progress import shown as progress_bar
from pegsynth.storage.book.book_file import read_book, spent_line
from pegsynth.storage.book.booking import NO_BOOKING, Booking


def say_guarantee(ledger: Ledger) -> None:
    """Say in a line what was promised, and every reason why it is not."""
    guarantee = ledger.guarantee
    if guarantee.kind == "none":
        say("Guarantee: none.")
    elif guarantee.kind == "l-diversity":
        say(f"Guarantee: entropy l-diversity, l = {guarantee.l:g}; no differential privacy.")
    else:
        epsilon = display_up(guarantee.epsilon or 0.0)
        say(f"Guarantee: epsilon = {epsilon}, delta = {guarantee.delta:g} in total.")
    say(*(f"  {line}" for line in (*ledger.not_covered, *ledger.warnings)))


def say_budget(session: Session) -> None:
    """Say what a saved model gives for its total budget; released blocks are the release."""
    ledger = session.ledger
    guarantee = ledger.guarantee
    if get(session.plan.method).released or guarantee.epsilon is None:
        say_guarantee(ledger)
        return
    left = session.left()
    rows = "any number of rows" if left is None else f"at most {left} rows"
    say(
        f"Budget: epsilon = {display_up(guarantee.epsilon)}, delta = {guarantee.delta:g} in total "
        f"for {rows} drawn from it."
    )
    say(*(f"  {line}" for line in ledger.warnings))


def say_booking(booking: Booking, ledger: Ledger) -> None:
    """Say what the book holds now, or that no book adds this run to others."""
    if booking is NO_BOOKING:
        if ledger.guarantee.kind in ("pure", "approximate"):
            say(
                "No budget book was named (--book): nothing adds this run to others on the same "
                "table."
            )
        return
    book = read_book(booking.path)
    say(f"Budget book {booking.path}: entry {booking.number}; {spent_line(book)}.")


def holds_ledger(path: Path) -> bool:
    """Whether a file that is about to be replaced is the ledger of an earlier table."""
    try:
        Ledger.from_json(path.read_bytes(), source=str(path))
    except (OSError, PegsynthError):
        return False
    return True


def say_published(session: Session, ledger_path: Path, *, earlier: bool, remembered: bool) -> None:
    """Say what a table promises, and that an earlier one, if it is out, counts too.

    Parameters
    ----------
    earlier
        Whether the ledger of an earlier table was replaced.
    remembered
        Whether the ledger covers everything that was drawn from its model, this table or not.
    """
    say_guarantee(session.ledger)
    say(*constant_numbers(session.model.schema))
    other = " and drawn from another model" if remembered else ""
    if earlier:
        say(
            f"Note: {ledger_path} replaces the ledger of an earlier table; if that was published"
            f"{other}, both add up."
        )


__all__ = ["progress_bar", "say"]


def say(*lines: str) -> None:
    """Print lines for people on standard error."""
    for line in lines:
        print(escaped(line), file=sys.stderr)
