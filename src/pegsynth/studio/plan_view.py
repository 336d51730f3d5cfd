"""What the page of the plan shows: predictions, and what a budget means in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from pegsynth.api.functions import plan
from pegsynth.errors import ParameterError, PegsynthError
from pegsynth.methods.forecast import Forecast
from pegsynth.storage.book.book_file import Book, left_for, read_book, spent_line
from pegsynth.studio.project import PLANNED, Project
from pegsynth.studio.spelled_commands import OPTIONS

_CHANCES = (0.01, 0.5)


@dataclass(frozen=True)
class Field:
    """An option that the form asks for, as it is declared."""

    name: str
    label: str
    mode: str
    choices: tuple[str, ...]
    value: str

    @property
    def place(self) -> str:
        """What the page calls it."""
        return self.name.replace("_", "-")


def fields_of(project: Project) -> dict[str, Field]:
    """Return what the form of the plan asks for, by name."""
    modes = {int: "numeric", float: "decimal"}
    found = {}
    for name in PLANNED:
        option = OPTIONS[name]
        choices = option.known if option.kind == "choice" else ()
        label = name.capitalize() if choices else option.text.removesuffix(".")
        value = project.choices.get(name, "")
        found[name] = Field(name, label, modes.get(option.typed, "text"), choices, value)
    return found


@dataclass(frozen=True)
class PlanView:
    """Predicted errors by method, and what the budget means."""

    lines: tuple[tuple[str, str, str, str], ...]
    reason: str
    odds: tuple[str, ...]
    problem: str


def options_of(project: Project) -> dict[str, float | int | str]:
    """Return the choices as the values of options."""
    found: dict[str, float | int | str] = {}
    for name, text in project.choices.items():
        typed = OPTIONS[name].typed
        try:
            found[name] = typed(text) if typed in (int, float) else text
        except ValueError:
            kind = "a whole number" if typed is int else "a number"
            raise ParameterError(f"{name.replace('_', ' ')} must be {kind}") from None
    return found


def forecast_of(project: Project) -> Forecast:
    """Settle what was chosen, without reading a row."""
    chosen = options_of(project)
    for name in ("method", "seed", "book", "resume"):
        chosen.pop(name, None)
    return plan(project.schema_file, **chosen)


def view(project: Project) -> PlanView:
    """Return what the page of the plan shows; a budget that cannot be is told, not raised."""
    try:
        found = forecast_of(project)
    except PegsynthError as error:
        return PlanView((), "", (), str(error))
    lines = [
        (each.method, f"{each.error:.3f}", _promised(each.stated.epsilon, each.stated.delta), "")
        for each in found.predictions
    ]
    lines += [(method, "", "", why) for method, why in found.refused]
    said = f"{found.reason}. {found.warning}" if found.warning else found.reason
    return PlanView(tuple(lines), said, odds(options_of(project)), "")


def odds(chosen: dict[str, float | int | str]) -> tuple[str, ...]:
    """Say what epsilon means for somebody who suspects that a person is in the table."""
    epsilon = chosen.get("epsilon")
    if not isinstance(epsilon, int | float) or not 0 < epsilon < 700:
        return ()
    factor = math.exp(epsilon)
    return tuple(
        f"Whoever thinks before the release that a person is in the table with a chance of "
        f"{before:.0%} can think so afterwards with at most {_after(before, factor)}."
        for before in _CHANCES
    )


def _after(before: float, factor: float) -> str:
    chance = factor * before / (factor * before + 1 - before)
    return f"{chance:.1%}" if chance < 0.9995 else "more than 99.9%"


def _promised(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return "none"
    return f"epsilon {epsilon:.4g}" + (f" at delta {delta:g}" if delta else "")


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


def book_view(folder: Path, file: str, chosen: dict[str, float | int | str]) -> BookView | None:
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
