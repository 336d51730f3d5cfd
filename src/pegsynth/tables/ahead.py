"""Read a stream ahead of its consumer, on a separate thread.

Items come out as they would without it, in the same order and with the same errors.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")

_SECONDS = 0.2


def run_ahead(
    items: Iterable[Item],
    *,
    size: Callable[[Item], int],
    most: int,
    interrupt: Callable[[], None] | None = None,
) -> Generator[Item]:
    """Yield `items`, made ahead of time.

    Parameters
    ----------
    items
        The stream; it is used by one thread only.
    size, most
        Making pauses while the items that wait have together at least this size.
    interrupt
        Called when the reader leaves early, to wake a stream that waits for others.
    """
    shelf = _Shelf(size, most)
    with ThreadPoolExecutor(1) as maker:
        making = maker.submit(shelf.fill, items)
        early = True
        try:
            yield from shelf.items()
            early = False
        finally:
            shelf.stop()
            if early and interrupt is not None:
                interrupt()
        try:
            making.result()
        finally:
            # An error and the frame that holds its future would keep each other alive.
            del making


class _Shelf(Generic[Item]):
    """Items between the thread that makes them and the one that takes them."""

    def __init__(self, size: Callable[[Item], int], most: int) -> None:
        self._size, self._most = size, most
        self._changed = threading.Condition()
        self._waiting: deque[Item] = deque()
        self._held = 0
        self._complete = False
        self._stopped = False

    def fill(self, items: Iterable[Item]) -> None:
        try:
            for item in items:
                if not self._put(item):
                    return
        finally:
            with self._changed:
                self._complete = True
                self._changed.notify_all()

    def _put(self, item: Item) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._held < self._most)
            self._waiting.append(item)
            self._held += self._size(item)
            self._changed.notify_all()
            return not self._stopped

    def items(self) -> Iterator[Item]:
        while True:
            with self._changed:
                while not self._waiting and not self._complete:
                    # A library may have set signals up so that none ends a wait.
                    self._changed.wait(_SECONDS)
                if not self._waiting:
                    return
                item = self._waiting.popleft()
                self._held -= self._size(item)
                self._changed.notify_all()
            yield item

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
