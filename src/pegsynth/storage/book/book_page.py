"""What a book looks like to an auditor: its policy, a line for every run, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from pegsynth.privacy.conversion import rho_at
from pegsynth.privacy.rounding import display_up, float_up
from pegsynth.storage.book.book_file import Book, Entry, now, open_entries
from pegsynth.storage.book.book_policy import Cost, added, shown

_SHOWN = 12
_HEADER: tuple[str, ...] = (
    *("entry", "time (UTC)", "by", "run", "method", "state", "rho", "epsilon", "ledger"),
)
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
        lines += ["", *_table(book)]
    for entry in open_entries(book.entries):
        lines.append(_unended(entry))
    return "\n".join(lines)


def _unended(entry: Entry) -> str:
    if entry.state == "reserved":
        return (
            f"Entry {entry.number} has read nothing yet; if its run is gone: pegs book withdraw "
            f"BOOK {entry.number}."
        )
    return (
        f"Entry {entry.number} is reading, or was stopped while it was; it counts in full as long "
        "as it is not settled."
    )


def _table(book: Book) -> list[str]:
    rows = [_HEADER, *map(_row, book.entries)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


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
