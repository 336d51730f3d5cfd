"""A lock on an open file that ends with the process: `flock`, or what Windows has for it.

Every lock of ours is taken here, so that one place says how two runs keep out of each other's
way. A lock belongs to the open file: it is given back when that is closed, by a kill too.
"""

from __future__ import annotations

import errno
import importlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SECONDS_BETWEEN = 0.05
# Windows locks bytes and forbids others to read them; nothing of ours is at this place.
_PLACE = (1 << 31) - 2
_TAKEN = (errno.EACCES, errno.EDEADLK)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_FCNTL = _module("fcntl")
_MSVCRT = _module("msvcrt")


def lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file for this process alone; False if another has it and `wait` is false.

    Parameters
    ----------
    handle
        The descriptor of the file.

    Raises
    ------
    OSError
        The file or the system has no locks.
    """
    if _FCNTL is not None:
        try:
            _FCNTL.flock(handle, _FCNTL.LOCK_EX | (0 if wait else _FCNTL.LOCK_NB))
        except BlockingIOError:
            return False
        return True
    if _MSVCRT is None:
        raise OSError(errno.ENOTSUP, "this system has no file locks")
    while not (taken := _byte_locked(handle)) and wait:
        time.sleep(_SECONDS_BETWEEN)
    return taken


@contextmanager
def holding(path: str | Path) -> Iterator[None]:
    """Hold the file under a name for this process alone; wait for others.

    Raises
    ------
    OSError
        The file cannot be opened.
    """
    while True:
        handle = os.open(path, os.O_RDONLY)
        try:
            lock(handle, wait=True)
            # Whoever waited may hold a file that was replaced meanwhile: not the one in use.
            if _stands_under(handle, path):
                yield
                return
        finally:
            os.close(handle)


def _stands_under(handle: int, path: str | Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _byte_locked(handle: int) -> bool:
    before = os.lseek(handle, 0, os.SEEK_CUR)
    os.lseek(handle, _PLACE, os.SEEK_SET)
    try:
        _MSVCRT.locking(handle, _MSVCRT.LK_NBLCK, 1)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        return False
    finally:
        os.lseek(handle, before, os.SEEK_SET)
    return True
