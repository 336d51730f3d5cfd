"""Files that appear whole or not at all.

A path goes in; a hidden temporary file in the same folder comes out, to be filled by the
caller. When the block ends well it is synced and renamed over the path; when it does not,
it is removed and whatever stood under the name before is untouched.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pegsynth.errors import OutputError

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
    temporary: Path | None = None
    try:
        target = _target(path)
        temporary = _create(target.parent)
        yield temporary
        if before is not None:
            before()
        _publish(temporary, target, _umasked(0o666) if mode is None else mode)
        temporary = None
    except OutputError:
        raise
    except OSError as error:
        if not _ours(error, temporary):
            raise
        raise output_error(path, error) from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


def atomic_text(path: str | Path, text: str, mode: int | None = None) -> None:
    """Write `text` as UTF-8 to `path`, whole or not at all."""
    with atomic_file(path, mode=mode) as temporary:
        temporary.write_bytes(text.encode())


def output_error(path: str | Path, error: OSError) -> OutputError:
    """Say which file could not be written and what to do about it."""
    number = error.errno or _number_in(error)
    known = _REMEDIES.get(number)
    reason = error.strerror or (os.strerror(number) if number else "no more")
    what = known or f"the system says {reason}; choose another place"
    return OutputError(f"cannot write {str(path)!r}: {what}")


def _number_in(error: OSError) -> int:
    """Return the system's error number that Polars writes into the text of its errors."""
    found = re.search(r"\(os error (\d{1,4})\)", str(error))
    return int(found[1]) if found else 0


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


def _create(folder: Path) -> Path:
    temporary = folder / f".pegs-{secrets.token_hex(8)}.tmp"
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return temporary


def _publish(temporary: Path, target: Path, mode: int) -> None:
    handle = os.open(temporary, os.O_RDONLY)
    try:
        os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)
    temporary.replace(target)
    # The rename itself must survive a power cut; not every file system can promise that.
    with suppress(OSError):
        _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umasked(mode: int) -> int:
    # Reading the umask means setting it; a strict value for that moment harms nobody.
    umask = os.umask(0o077)
    os.umask(umask)
    return mode & ~umask


def _ours(error: OSError, temporary: Path | None) -> bool:
    """Whether an error concerns the output and not a file the caller was reading."""
    if temporary is None or error.filename is None:
        return True
    return str(error.filename) == str(temporary)
