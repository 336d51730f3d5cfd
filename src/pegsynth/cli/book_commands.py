"""`book`: make a budget book, show it to an auditor, put earlier releases in, withdraw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pegsynth.cli.notes import say
from pegsynth.errors import ParameterError, escaped
from pegsynth.options.command_options import LimitOptions
from pegsynth.privacy.conversion import check_delta
from pegsynth.storage.book.book_file import create_book, page, plain, read_book, spent_line
from pegsynth.storage.book.book_policy import BookPolicy, spent_elsewhere
from pegsynth.storage.book.booking import add_earlier, add_spending, withdraw


def stated_policy(stated: LimitOptions) -> BookPolicy | None:
    """Return the policy that flags state; None if they state nothing."""
    if replace(stated, table=None, json=False) == LimitOptions():
        return None
    return BookPolicy(
        epsilon=stated.epsilon,
        epsilon_per_year=stated.epsilon_per_year,
        delta=0.0 if stated.delta is None else check_delta(stated.delta),
        unit=escaped(stated.unit or ""),
        private_categories=stated.private_categories,
        spenders=tuple(map(escaped, stated.spender or ())),
    )


def run(words: Sequence[str], stated: LimitOptions) -> None:
    """Find out what was asked for, and do it.

    Parameters
    ----------
    words
        An action, the book, and what the action takes.
    """
    action, path, rest = _parsed(words)
    if action == "add" and not rest:
        _add_spending(path, stated)
        return
    if stated.rho is not None or stated.by is not None:
        raise ParameterError(
            "--rho and --by say what another tool spent: pegs book add BOOK --rho R --by TEXT, "
            "without ledgers"
        )
    policy = stated_policy(stated)
    if action == "create":
        if policy is None:
            raise ParameterError(
                "pegs book create needs a limit: state --epsilon, --epsilon-per-year or both"
            )
        create_book(path, policy, table=escaped(stated.table or ""))
        say(f"{path}: a new budget book. Name it with --book in every run on the table.")
        return
    if policy is not None or stated.table:
        raise ParameterError(f"limits are stated when a book is made, not with pegs book {action}")
    if stated.json and action != "show":
        raise ParameterError("--json is an option of pegs book show")
    if action == "show":
        book = read_book(path)
        shown = json.dumps(plain(book), indent=1) if stated.json else page(book)
        print(escaped(shown))
        return
    if action == "withdraw":
        withdraw(path, _number(rest[0]))
    else:
        add_earlier(path, [Path(each) for each in rest])
    say(f"{path}: {spent_line(read_book(path))}.")


def _add_spending(path: Path, stated: LimitOptions) -> None:
    """Put in what another tool spent on the table."""
    allowed = LimitOptions(epsilon=stated.epsilon, delta=stated.delta, rho=stated.rho, by=stated.by)
    if stated != allowed or not (stated.by or "").strip():
        raise ParameterError(
            "pegs book add takes a book and one or more ledgers (privacy.json), or what another "
            "tool spent: --epsilon E, with or without --delta D, or --rho R; and --by TEXT"
        )
    cost = spent_elsewhere(epsilon=stated.epsilon, delta=stated.delta, rho=stated.rho)
    add_spending(path, cost, by=escaped(stated.by or ""))
    say(f"{path}: {spent_line(read_book(path))}.")


_TAKES = {
    "create": (0, 0, "a book to make"),
    "show": (0, 0, "a book"),
    "add": (0, 10**6, "a book and one or more ledgers (privacy.json)"),
    "withdraw": (1, 1, "a book and the number of an entry"),
}


def _parsed(words: Sequence[str]) -> tuple[str, Path, Sequence[str]]:
    action = words[0] if words else ""
    if action not in _TAKES:
        raise ParameterError(f"pegs book takes one of {', '.join(_TAKES)}, and the name of a book")
    least, most, what = _TAKES[action]
    if not least + 2 <= len(words) <= most + 2:
        raise ParameterError(f"pegs book {action} takes {what}")
    return action, Path(words[1]), words[2:]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ParameterError(f"an entry is named by its number; it was {text!r}")
    return int(text)
