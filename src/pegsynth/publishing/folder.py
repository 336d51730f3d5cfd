"""A folder that appears whole or not at all.

`new_folder` yields a hidden folder beside the wanted one and renames it when the block
ends well; an earlier release changes places with it in one step. A folder that holds anything
else is never replaced. `seal` writes the checksum list of exactly what may be published.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pegsynth.errors import OutputError
from pegsynth.tables.atomic import atomic_text, output_error

CHECKSUMS = "SHA256SUMS"
_HERE = -100
_EXCHANGE = 2
_TEXTS = (
    r"privacy\.json|PRIVACY(\.[a-z]{2})?\.md|HOW-TO-ANALYSE\.md|README\.md|schema\.toml|SHA256SUMS"
)
_QUALITY = r"QUALITY\.(json|md|html)|table-[0-9]+\.csv"
_STANDARDS = r"croissant\.json|dcat\.jsonld|dp-registry\.yaml|release\.intoto\.json"
_NAMES = r"synthetic-[0-9]+(-[A-Za-z0-9_-]+)?|completed-[0-9]+-[0-9]+"
_TABLES = rf"({_NAMES})\.(csv(-metadata\.json)?|parquet)"
_KNOWN = {
    "public": re.compile(rf"{_TEXTS}|{_QUALITY}|{_STANDARDS}|{_TABLES}"),
    "internal": re.compile(r"metrics\.json|report\.html|sign-off\.html"),
}
"""The folders of a release, and the names of the files in each."""


def check_folder(path: str | Path, *, force: bool) -> None:
    """Refuse, before any work, a folder that cannot be made, or exists and is not to be lost.

    `force` replaces an empty folder or an earlier release, and nothing else.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise OutputError(f"cannot write {str(path)!r}: a file of that name is in the way")
    if target.exists() and not _replaceable(target):
        raise OutputError(
            f"cannot write {str(path)!r}: the folder exists and holds other things than a "
            "release; choose another, or move them away"
        )
    if target.exists() and not force:
        raise OutputError(
            f"cannot write {str(path)!r}: the folder exists; choose another, or replace it with "
            "--force"
        )
    parent = target.absolute().parent
    if not parent.is_dir():
        raise OutputError(f"cannot write {str(path)!r}: its parent folder does not exist")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write {str(path)!r}: its parent folder may not be written to")


def is_release(folder: Path) -> bool:
    """Whether a folder holds a release, and nothing that no release writes."""
    public = folder / "public"
    whole = (public / CHECKSUMS).is_file() and (public / "privacy.json").is_file()
    return whole and _holds_only_known(folder)


def _holds_only_known(folder: Path) -> bool:
    for part in folder.iterdir():
        if part.name not in _KNOWN or not part.is_dir():
            return False
        known = _KNOWN[part.name]
        if not all(known.fullmatch(file.name) and file.is_file() for file in part.iterdir()):
            return False
    return True


def _replaceable(target: Path) -> bool:
    """Whether nothing but a release would be lost with a folder."""
    while True:
        try:
            before = target.stat()
            verdict = not any(target.iterdir()) or is_release(target)
            # Another run may have put its own folder there while this one was looked through.
            if verdict or os.path.samestat(before, target.stat()):
                return verdict
        except FileNotFoundError:
            if not target.exists():
                return True
        except OSError:
            return False


@contextmanager
def new_folder(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a folder to fill; it appears under `path` when the block ends well."""
    check_folder(path, force=force)
    target = Path(path).absolute()
    building = target.parent / f".pegs-{secrets.token_hex(8)}.tmp"
    try:
        building.mkdir(mode=0o700)
        yield building
        building.chmod(0o755)
        _swap(building, target, force=force)
    except OutputError as error:
        # The caller knows the folder by its own name, not by that of the one being filled.
        raise OutputError(str(error).replace(str(building), str(path))) from None
    except OSError as error:
        raise output_error(path, error) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _swap(building: Path, target: Path, *, force: bool) -> None:
    check_folder(target, force=force)
    if not target.exists():
        building.rename(target)
        return
    # After an exchange the folder that was replaced stands under the hidden name.
    if not _exchanged(building, target):
        _take_turns(building, target)
        return
    _remove(building)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change names in one step, if the system can.

    Nobody ever finds neither of them, not even after a kill.
    """
    if os.name == "nt":
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(number, os.strerror(number))


def _take_turns(building: Path, target: Path) -> None:
    """Rename the old folder away and the new one to its place."""
    old = target.parent / f".pegs-{secrets.token_hex(8)}.tmp"
    target.rename(old)
    try:
        building.rename(target)
    except OSError:
        old.rename(target)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def seal(folder: Path) -> None:
    """Write the checksum list of all files below a folder, in the form sha256sum reads."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{sha256(file)}  {file.relative_to(folder)}" for file in files]
    atomic_text(folder / CHECKSUMS, "\n".join(lines) + "\n")
