"""Budget books that are kept in a broken way, to see that a campaign of kills catches it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pegsynth.storage.book import book_file
from pegsynth.storage.book.book_file import Changes, Entry


def late() -> None:
    """Keep the reservation in memory, and write it when all is done: settled before synced."""
    waiting: list[Entry] = []
    write, entry_of = Changes.write, Changes.entry

    def keep(changes: Changes, entry: Entry) -> None:
        if entry.state == "settled":
            write(changes, entry)
        else:
            waiting[:] = [entry]

    def find(changes: Changes, number: int) -> Entry:
        return waiting[0] if waiting else entry_of(changes, number)

    Changes.write = keep  # type: ignore[method-assign]
    Changes.entry = find  # type: ignore[method-assign]


def removed() -> None:
    """Take the old book away before the new one has its name."""

    def replace(path: Path, text: str, mode: int | None = None) -> None:
        draft = path.with_suffix(".draft")
        draft.write_text(text)
        os.remove(path)
        os.rename(draft, path)

    book_file.atomic_text = replace  # type: ignore[assignment]


BROKEN: dict[str, Callable[[], None]] = {"late": late, "removed": removed}
