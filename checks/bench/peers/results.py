"""What came out of every run: one JSON line each, so that a benchmark can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

Status = Literal["done", "over", "failed"]


@dataclass(frozen=True)
class Key:
    """What was run: a tool with its settings on a table, at a total budget, for the n-th time.

    `build` tells versions of a tool apart: its pinned requirements, or a fingerprint of our
    own source. `purpose` is "quality", or "timing" for runs on a machine kept idle.
    """

    table: str
    tool: str
    epsilon: float | None
    repeat: int
    build: str
    purpose: str = "quality"


@dataclass(frozen=True)
class Result:
    """One run.

    Parameters
    ----------
    status
        "over" for a run that the cap ended.
    cap
        The cap in seconds.
    date, load
        When it ended, and the load of the machine then.
    fit, sample, fit_cpu, sample_cpu
        Seconds, on the wall and of the processor.
    wall, cpu
        Seconds of the whole program, start of Python and imports included.
    peak_bytes
        The most memory one process of it held.
    scores
        Fields of `scores.Scores`.
    """

    key: Key
    status: Status
    cap: float
    date: str
    rows: int
    load: float = 0.0
    fit: float | None = None
    sample: float | None = None
    fit_cpu: float | None = None
    sample_cpu: float | None = None
    wall: float = 0.0
    cpu: float = 0.0
    peak_bytes: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, line: str) -> Result:
        """Read what `line` wrote; fields of another version of this file are passed over."""
        told: dict[str, Any] = json.loads(line)
        known = {item.name for item in fields(cls)}
        key = Key(**told.pop("key"))
        return cls(key, **{name: value for name, value in told.items() if name in known})


@dataclass(frozen=True)
class Store:
    """A file of results that only ever grows; of two results of one key the later counts."""

    path: Path

    def load(self) -> dict[Key, Result]:
        """Return all results by key, the latest last."""
        found: dict[Key, Result] = {}
        for result in self._lines():
            found.pop(result.key, None)
            found[result.key] = result
        return found

    def add(self, result: Result) -> None:
        """Append a result; it is on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            # A line cut short by a crash must not swallow the next one.
            if file.tell() and not _ends_a_line(self.path):
                file.write(b"\n")
            file.write(result.line().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> Iterator[Result]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                yield Result.parse(line)
            except (ValueError, TypeError, KeyError):
                continue


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
