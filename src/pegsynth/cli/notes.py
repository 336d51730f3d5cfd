"""What the commands say when they are done: the promise, the choice, what was replaced."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pegsynth.codec.measured_numbers import constant_numbers
from pegsynth.errors import PegsynthError, escaped
from pegsynth.methods import get
from pegsynth.methods.session import Session
from pegsynth.privacy import Ledger
from pegsynth.privacy.rounding import display_up
from pegsynth.progress import shown as progress_bar
from pegsynth.schema import Schema
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
    for line in (*ledger.not_covered, *ledger.warnings):
        say(f"  {line}")


def say_constant(schema: Schema) -> None:
    """Say which measured numbers the budget could not carry."""
    for line in constant_numbers(schema):
        say(line)


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
    for line in ledger.warnings:
        say(f"  {line}")


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


def say_method(lines: Sequence[str]) -> None:
    """Say what ``--method auto`` has taken and why, if it was asked."""
    for line in lines:
        say(line)


def holds_ledger(path: Path) -> bool:
    """Whether a file that is about to be replaced is the ledger of an earlier table."""
    try:
        Ledger.from_json(path.read_bytes(), source=str(path))
    except (OSError, PegsynthError):
        return False
    return True


def say_ledger_replaced(path: Path, *, remembered: bool = False) -> None:
    """Remind that an earlier table, if it is out, counts too.

    Parameters
    ----------
    remembered
        Whether the ledger covers everything that was drawn from its model, this table or not.
    """
    other = " and drawn from another model" if remembered else ""
    say(
        f"Note: {path} replaces the ledger of an earlier table; if that was published{other}, "
        "both add up."
    )


def say_model_replaced(path: Path) -> None:
    """Remind that rows of an earlier model, if they are out, count too."""
    say(
        f"Note: {path} replaces a model from which rows were drawn; if they were published, both "
        "budgets add up (pegs inspect LEDGER LEDGER)."
    )


def say_release_replaced(path: Path) -> None:
    """Remind that an earlier release, if it is out, counts too."""
    say(f"Note: {path} replaces an earlier release; if that was published, both add up.")


__all__ = ["progress_bar", "say"]


def say(text: str) -> None:
    """Print one line for people on standard error."""
    print(escaped(text), file=sys.stderr)
