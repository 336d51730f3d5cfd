"""Files that appear whole or not at all, and locks on files.

A path goes in; a temporary file on the same file system comes out, to be filled by the
caller. When the block ends well it is synced and renamed over the path; when it does not,
it is gone and whatever stood under the name before is untouched.

Where the system can, the temporary file has no name: a process that is killed leaves nothing
of it behind. Elsewhere it is a hidden file in the same folder. Either way only its owner may
read it.

A lock is `flock`, or what Windows has for it. Every lock of ours is taken here, so that one place
says how two runs keep out of each other's way. A lock belongs to the open file: it is given up when
that is closed, by a kill too.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pegsynth.errors import OutputError

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


_HIDDEN = re.compile(r"/\.pegs-[0-9a-f]{16}\.tmp$")
_REMEDIES = {
    errno.ENOENT: "its folder does not exist; create the folder or choose another",
    errno.ENOTDIR: "its folder is not a folder; choose another",
    errno.EACCES: "its folder may not be written to; change its permissions or choose another",
    errno.EPERM: "its folder may not be written to; change its permissions or choose another",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.ENOSPC: "the disk is full; free some space or choose another folder",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another folder",
    errno.EFBIG: "the file grew beyond the size allowed here; choose another folder",
    errno.EISDIR: "it is a folder; give the name of a file",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.EIO: "the disk reports an error; choose another folder",
}


@contextmanager
def atomic_file(
    path: str | Path, *, mode: int | None = None, before: Callable[[], None] | None = None
) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` if the block succeeds.

    Parameters
    ----------
    path
        The file to appear. A symbolic link is followed, not replaced.
    mode
        Permissions of the finished file; None gives what the umask leaves of 0666. Until
        then only the owner may read it.
    before
        Called when the file is complete and before it becomes visible, for what must be
        written first.

    Raises
    ------
    OutputError
        The folder is missing or may not be written to, the disk is full, or `path` is a
        folder or a device. Nothing is left behind and an earlier file is untouched.
    """
    path = Path(path)
    draft: _NamedDraft | _NamelessDraft | None = None
    try:
        target = _target(path)
        draft = _NamelessDraft.of(target.parent) or _NamedDraft(target.parent)
        yield draft.path
        if before is not None:
            before()
        if mode is None:
            # Reading the umask means setting it; a strict value for that moment harms nobody.
            umask = os.umask(0o077)
            os.umask(umask)
            mode = 0o666 & ~umask
        draft.publish(target, mode)
    except OutputError:
        raise
    except OSError as error:
        # An error may concern a file that the caller was reading, and not the output.
        name = None if draft is None or error.filename is None else str(error.filename)
        if name is not None and name != str(draft and draft.path) and not _HIDDEN.search(name):
            raise
        raise output_error(path, error) from None
    finally:
        if draft is not None:
            draft.discard()


def atomic_text(path: str | Path, text: str, mode: int | None = None) -> None:
    """Write `text` as UTF-8 to `path`, whole or not at all."""
    with atomic_file(path, mode=mode) as temporary:
        temporary.write_bytes(text.encode())


def output_error(path: str | Path, error: OSError) -> OutputError:
    """Say which file could not be written and what to do about it."""
    # Polars writes the system's number into the text of its errors.
    found = re.search(r"\(os error (\d{1,4})\)", str(error))
    number = error.errno or (int(found[1]) if found else 0)
    known = _REMEDIES.get(number)
    reason = error.strerror or (os.strerror(number) if number else "no more")
    what = known or f"the system says {reason}; choose another place"
    return OutputError(f"cannot write {str(path)!r}: {what}")


def _target(path: Path) -> Path:
    try:
        target = path.resolve()
    except RuntimeError:
        raise OutputError(f"cannot write {str(path)!r}: its links form a loop") from None
    try:
        kind = target.stat().st_mode
    except FileNotFoundError:
        if not path.name or str(path) in {".", ".."}:
            raise OSError(errno.EISDIR, "is a directory") from None
        return target
    if stat.S_ISDIR(kind):
        raise OSError(errno.EISDIR, "is a directory")
    if not stat.S_ISREG(kind):
        raise OutputError(
            f"cannot write {str(path)!r}: it is not an ordinary file; give the name of a file"
        )
    return target


def check_target(path: str | Path) -> None:
    """Refuse, before any work, a path that `atomic_file` could not write to."""
    path = Path(path)
    try:
        folder = _target(path).parent
        if not folder.exists():
            raise OSError(errno.ENOENT, "no such folder")
        if not folder.is_dir():
            raise OSError(errno.ENOTDIR, "not a folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, "not writable")
    except OutputError:
        raise
    except OSError as error:
        raise output_error(path, error) from None


def check_space(path: str | Path, least: int) -> None:
    """Refuse, before any work, a path in a file system that has no room for so many bytes."""
    try:
        there = next(each for each in Path(path).resolve().parents if each.exists())
        free = shutil.disk_usage(there).free
    except OSError as error:
        raise output_error(path, error) from None
    if free < least:
        raise OutputError(
            f"cannot write {str(path)!r}: the disk is full: at least {least:,} bytes are needed "
            f"there and {free:,} are free; free some space or choose another folder"
        )


class _NamedDraft:
    """A file that is not visible under its name yet: a hidden one beside its target."""

    def __init__(self, folder: Path) -> None:
        self.path = _hidden(folder)
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def publish(self, target: Path, mode: int) -> None:
        handle = os.open(self.path, os.O_RDONLY)
        try:
            _settle(handle, mode)
        finally:
            os.close(handle)
        _rename(self.path, target)

    def discard(self) -> None:
        with suppress(OSError):
            self.path.unlink()


class _NamelessDraft:
    """A file that has no name until it is complete."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.path = Path(f"/proc/self/fd/{handle}")

    @classmethod
    def of(cls, folder: Path) -> _NamelessDraft | None:
        """Make a draft in a folder, if its file system has files without a name."""
        nameless = getattr(os, "O_TMPFILE", 0)
        # What else is wrong with the folder is said where a file with a name is made there.
        with suppress(OSError):
            draft = cls(os.open(folder, nameless | os.O_RDWR, 0o600)) if nameless else None
            if draft is None or draft.path.exists():
                return draft
            draft.discard()
        return None

    def publish(self, target: Path, mode: int) -> None:
        _settle(self._handle, mode)
        hidden = _hidden(target.parent)
        try:
            # An existing file cannot be linked over, so a name is needed for a moment. The
            # folder given is not used: it makes Python follow the link to the open file.
            os.link(self.path, hidden, src_dir_fd=self._handle, follow_symlinks=True)
        except OSError:
            # Where it cannot be given a name, it is published by way of a file that has one.
            named = _NamedDraft(target.parent)
            try:
                shutil.copyfile(self.path, named.path)
                named.publish(target, mode)
            finally:
                named.discard()
            return
        try:
            _rename(hidden, target)
        finally:
            with suppress(OSError):
                hidden.unlink()

    def discard(self) -> None:
        with suppress(OSError):
            os.close(self._handle)


def _hidden(folder: Path) -> Path:
    return folder / f".pegs-{secrets.token_hex(8)}.tmp"


def _settle(handle: int, mode: int) -> None:
    set_mode(handle, mode)
    os.fsync(handle)


def set_mode(handle: int, mode: int) -> None:
    """Give an open file its permissions, on systems where files have them."""
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def _rename(temporary: Path, target: Path) -> None:
    temporary.replace(target)
    # The rename itself must survive a power cut; not every file system can promise that.
    with suppress(OSError):
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
