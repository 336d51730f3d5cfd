"""How long work tells others how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Takes the stage, how many rows are done, and about how many there are, if known."""


def quiet(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""
