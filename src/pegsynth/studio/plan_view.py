"""What the page of the plan shows: predictions, and what a budget means in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegsynth.api.functions import plan
from pegsynth.errors import ParameterError, PegsynthError
from pegsynth.methods.forecast import Forecast
from pegsynth.storage.book.book_file import Book, left_for, read_book, spent_line
from pegsynth.studio.project import PLANNED, Project
from pegsynth.studio.spelled_commands import OPTIONS

Chosen = Mapping[str, float | int | str]
_CHANCES = (0.01, 0.5)
_MODES = {int: "numeric", float: "decimal"}


def fields_of(project: Project) -> dict[str, dict[str, Any]]:
    """Return what the form of the plan asks for, by name; each option as it is declared."""
    found = {}
    for name in PLANNED:
        option = OPTIONS[name]
        choices = option.known if option.kind == "choice" else ()
        found[name] = {
            "name": name,
            "place": name.replace("_", "-"),
            "label": name.capitalize() if choices else option.text.removesuffix("."),
            "mode": _MODES.get(option.typed, "text"),
            "choices": choices,
            "value": project.choices.get(name, ""),
        }
    return found


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
    chosen: dict[str, Any] = {**options_of(project)}
    for name in ("method", "seed", "book", "resume"):
        chosen.pop(name, None)
    return plan(project.schema_file, **chosen)


def view(project: Project) -> dict[str, Any]:
    """Return predictions by method and odds; a budget that cannot be is told, not raised."""
    try:
        found = forecast_of(project)
    except PegsynthError as error:
        return {"lines": [], "odds": [], "problem": str(error)}
    lines = [
        (each.method, f"{each.error:.3f}", _promised(each.stated.epsilon, each.stated.delta), "")
        for each in found.predictions
    ]
    lines += [(method, "", "", why) for method, why in found.refused]
    said = f"{found.reason}. {found.warning}" if found.warning else found.reason
    return {"lines": lines, "reason": said, "odds": odds(options_of(project)), "problem": ""}


def odds(chosen: Chosen) -> list[str]:
    """Say what epsilon means for somebody who suspects that a person is in the table."""
    epsilon = chosen.get("epsilon")
    if not isinstance(epsilon, int | float) or not 0 < epsilon < 700:
        return []
    said, factor = [], math.exp(epsilon)
    for before in _CHANCES:
        chance = factor * before / (factor * before + 1 - before)
        after = f"{chance:.1%}" if chance < 0.9995 else "more than 99.9%"
        said.append(
            f"Whoever thinks before the release that a person is in the table with a chance of "
            f"{before:.0%} can think so afterwards with at most {after}."
        )
    return said


def _promised(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return "none"
    return f"epsilon {epsilon:.4g}" + (f" at delta {delta:g}" if delta else "")


def book_view(folder: Path, file: str, chosen: Chosen) -> dict[str, Any] | None:
    """Return what a book says of a choice; None where no book was named.

    `covered` says in words whether a run with the chosen epsilon fits, and `fits` the same.
    """
    if not file:
        return None
    try:
        book = read_book(folder / file)
    except PegsynthError as error:
        return {"file": file, "spent": "", "problem": str(error)}
    covered, fits = _covered(book, chosen)
    entries = [
        (str(each.number), each.time.replace("T", " "), each.by, each.run, each.method, each.state)
        for each in book.entries
    ]
    told = {"file": file, "spent": spent_line(book), "problem": ""}
    return told | {"covered": covered, "fits": fits, "entries": entries}


def _covered(book: Book, chosen: Chosen) -> tuple[str, bool]:
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
