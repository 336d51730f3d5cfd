"""Finished cells of a long run, kept in a file so that a killed run can go on.

The file is JSON lines. The first line holds the configuration of the run, every other one
the values of one cell; each carries a checksum of itself. A line is appended by one write,
so a run that is killed leaves at most its last line torn, which is dropped on reading. A
file of another configuration is refused, and so is one that is damaged elsewhere.
"""

from __future__ import annotations

import json
import math
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pegsynth.errors import ModelError, OutputError
from pegsynth.tables.atomic import lock, output_error

FORMAT = 1
_LARGEST = sys.float_info.max
CellValues = dict[str, float | str | None]


class CellFile:
    """An open checkpoint file: what is finished, and a way to add to it."""

    def __init__(self, handle: int, path: Path, finished: dict[str, CellValues]) -> None:
        self._handle = handle
        self._path = path
        self.finished = finished

    def add(self, cell: str, values: CellValues) -> None:
        """Append a finished cell, by one write."""
        clean = plain_values(values)
        _append(self._handle, self._path, {"cell": cell, "values": clean})
        self.finished[cell] = clean


@contextmanager
def open_checkpoint(
    path: str | Path, configuration: Mapping[str, Any], *, mode: int = 0o644
) -> Iterator[CellFile]:
    """Open a checkpoint for this process alone, or start one.

    Parameters
    ----------
    configuration
        All that the values depend on; anything that JSON can hold.
    mode
        Permissions of a new file.

    Raises
    ------
    ModelError
        The file belongs to another configuration or another run in progress, or is damaged.
    OutputError
        It cannot be written.
    """
    path = Path(path)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
    except OSError as error:
        raise output_error(path, error) from None
    try:
        _lock(handle, path)
        finished = _read(handle, path, dict(configuration))
        yield CellFile(handle, path, finished)
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(handle: int, path: Path) -> None:
    try:
        ours = lock(handle, wait=False)
    except OSError:
        ours = False
    if not ours:
        raise ModelError(
            f"{path}: another run is writing to this checkpoint; wait for it, or choose another "
            "folder"
        )


def _read(handle: int, path: Path, configuration: dict[str, Any]) -> dict[str, CellValues]:
    """Return the finished cells and cut off a torn last line."""
    whole = path.read_bytes()
    lines = whole.split(b"\n")
    torn = lines.pop()
    parsed = [_line(line) for line in lines]
    if parsed and parsed[-1] is None and len(parsed) > 1:
        torn = lines[-1] + b"\n" + torn
        parsed.pop()
    if None in parsed or (not parsed and not _could_be_ours(torn)):
        raise _damaged(path, parsed.index(None) + 1 if parsed else 1)
    os.ftruncate(handle, len(whole) - len(torn))
    if not parsed:
        _append(handle, path, {"format": FORMAT, "configuration": configuration})
        return {}
    header, *cells = parsed
    _check_header(header or {}, configuration, path)
    for number, line in enumerate(cells, start=2):
        if not _is_cell(line):
            raise _damaged(path, number)
    return {line["cell"]: line["values"] for line in cells if line}


def _is_cell(line: dict[str, Any] | None) -> bool:
    """Say whether a line holds what a cell can hold; anybody can work out a checksum."""
    if line is None or set(line) != {"cell", "values"}:
        return False
    values = line["values"]
    return (
        isinstance(line["cell"], str)
        and isinstance(values, dict)
        and all(map(_is_value, values.values()))
    )


def _is_value(value: Any) -> bool:
    if isinstance(value, int | float):
        return abs(value) <= _LARGEST
    return value is None or isinstance(value, str)


def _damaged(path: Path, number: int) -> ModelError:
    return ModelError(
        f"{path}: line {number} is not one of a checkpoint, or is damaged; remove the file to "
        "start from the beginning"
    )


def _could_be_ours(torn: bytes) -> bool:
    """Say whether an unfinished first line is one that a killed run of ours could leave."""
    start = b'{"check": '
    return start.startswith(torn[: len(start)])


def _check_header(header: dict[str, Any], configuration: dict[str, Any], path: Path) -> None:
    if not isinstance(header.get("configuration"), dict):
        raise ModelError(f"{path}: this is not a checkpoint; choose another folder")
    if header.get("format") != FORMAT:
        raise ModelError(f"{path}: the checkpoint is of another format; remove it to start anew")
    theirs, ours = header["configuration"], json.loads(json.dumps(configuration))
    different = sorted(k for k in {*theirs, *ours} if theirs.get(k) != ours.get(k))
    if different:
        raise ModelError(
            f"{path}: the checkpoint belongs to another run, which differs in "
            f"{', '.join(different)}; choose another folder, or remove the file to start anew"
        )


def _line(line: bytes) -> dict[str, Any] | None:
    """Return the content of a line, or None when its checksum is wrong."""
    try:
        content = json.loads(line)
        if not isinstance(content, dict):
            return None
        check = content.pop("check", None)
        return content if check == _checksum(content) else None
    except (ValueError, RecursionError):
        return None


def _append(handle: int, path: Path, content: dict[str, Any]) -> None:
    line = json.dumps({"check": _checksum(content), **content}).encode() + b"\n"
    try:
        written = os.write(handle, line)
    except OSError as error:
        raise output_error(path, error) from None
    if written != len(line):
        raise OutputError(f"cannot write {str(path)!r}: the disk is full; free some space")


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def plain_values(values: CellValues) -> CellValues:
    """Return values that JSON can hold: what could not be computed is None."""
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: float | str | None) -> float | str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
