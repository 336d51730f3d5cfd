"""What the budget book of a project says: spent, left, and whether the plan is covered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pegsynth.errors import PegsynthError
from pegsynth.storage.book.book_file import Book, read_book
from pegsynth.storage.book.book_page import left_for, spent_line


@dataclass(frozen=True)
class BookView:
    """A budget book for the page of the plan.

    Parameters
    ----------
    spent
        What was spent of every limit, in words.
    covered
        Whether a run with the chosen epsilon fits, in words; `fits` says the same.
    entries
        One line for every run: number, time, who, what, state.
    problem
        Why the book cannot be read.
    """

    file: str
    spent: str = ""
    covered: str = ""
    fits: bool = True
    entries: tuple[tuple[str, ...], ...] = ()
    problem: str = ""


def view(folder: Path, file: str, chosen: dict[str, float | int | str]) -> BookView | None:
    """Return what a book says of a choice; None where no book was named."""
    if not file:
        return None
    try:
        book = read_book(folder / file)
    except PegsynthError as error:
        return BookView(file, problem=str(error))
    covered, fits = _covered(book, chosen)
    entries = tuple(
        (str(each.number), each.time.replace("T", " "), each.by, each.run, each.method, each.state)
        for each in book.entries
    )
    return BookView(file, spent_line(book), covered, fits, entries)


def _covered(book: Book, chosen: dict[str, float | int | str]) -> tuple[str, bool]:
    epsilon, delta = chosen.get("epsilon"), chosen.get("delta") or 0.0
    if "seed" in chosen:
        return "A run with a seed has no guarantee; the book will refuse it.", False
    if isinstance(epsilon, str) or epsilon is None or isinstance(delta, str):
        return "State an epsilon to see whether it is covered.", False
    if delta and not book.policy.delta:
        return "This book takes runs without a delta only; leave delta empty.", False
    left = left_for(book, delta=float(delta))
    kind = f"at delta {delta:g}" if delta else "without a delta"
    if left is None:
        return f"Nothing is left for a run {kind}.", False
    if epsilon <= left:
        return f"Epsilon {epsilon:g} is covered; up to about {left:.4g} is left {kind}.", True
    return (
        f"Epsilon {epsilon:g} is not covered: about {left:.4g} is left for one run {kind}. The "
        "release would be refused before it reads anything.",
        False,
    )
