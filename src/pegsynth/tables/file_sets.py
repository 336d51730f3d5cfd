"""The files of a table, wherever they lie: one file, a glob, or a folder with partitions.

A name goes in, a list of `TableFile` comes out, in the order in which they are read. Names
may be paths, ``file://`` addresses, or addresses of object stores and remote file systems
that PyArrow knows (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``). Folders called
``column=value`` give every file below them that column. An address that holds a key or a
password is refused without being repeated.

Folders of Delta, Hudi and Iceberg tables are refused: their logs say which files count. Such a
folder also keeps files whose rows were deleted or rewritten. Read as plain files, people who were
deleted return, and rewritten rows count twice.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pegsynth.errors import DataError

STORES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
DATABASES = ("postgresql", "postgres", "sqlite")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET = re.compile(r"passw|secret|token|credential|signature|key$", re.IGNORECASE)
_NOT_SECRET = ("sslkey",)

Listed = Callable[[str], Sequence[str] | None]
"""The names in a folder; None for one that is not there."""

_REMEDIES = {
    "a Delta": "with DuckDB (COPY (SELECT * FROM delta_scan('..')) TO 'snapshot.parquet') or Spark "
    '(spark.read.format("delta"))',
    "a Hudi": 'with Spark (spark.read.format("hudi"))',
    "an Iceberg": "with DuckDB (COPY (SELECT * FROM iceberg_scan('..')) TO 'snapshot.parquet') or "
    'Spark (spark.read.format("iceberg"))',
}
_LOGS = {"_delta_log": "a Delta", ".hoodie": "a Hudi"}
_ICEBERG = re.compile(r"v?\d.*\.metadata\.json")
"""How Iceberg itself names its files; tables that were migrated in place have no ``data/``."""

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_SAMPLE = 1 << 16


@dataclass(frozen=True)
class RemoteFile:
    """A file of a PyArrow file system; it opens and prints as a path does."""

    name: str
    path: str
    filesystem: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.name

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the file for reading."""
        opened: BinaryIO = self.filesystem.open_input_file(self.path)
        return opened


File = Path | RemoteFile


@dataclass(frozen=True)
class TableFile:
    """One file of a table, and the columns that its folders give it.

    `named` says that the user named this one file, not a folder or a pattern.
    """

    file: File
    fixed: Mapping[str, str | None] = field(default_factory=dict)
    named: bool = False


@dataclass(frozen=True)
class TableInFile:
    """One table of a file that may hold several: a sheet of a workbook, a table of a database.

    Parameters
    ----------
    path
        The file, or a glob of files alike.
    table, query
        Which table, or a SELECT; None for the only or the first one.
    declared_rowwise
        The caller's word that the query or view selects rows one by one.
    kind
        What the file is, where its name need not say it.
    """

    path: str
    table: str | None = None
    query: str | None = field(default=None, repr=False)
    declared_rowwise: bool = False
    kind: str | None = None


def scheme_of(source: str) -> str | None:
    """Return the scheme of an address in small letters; None for a path."""
    found = _SCHEME.match(source)
    return found[1].lower() if found else None


def duckdb_path(address: str) -> str:
    """Return the file that an address of DuckDB names, as those of SQLite do."""
    parts = urlsplit(address)
    if parts.netloc or len(parts.path) < 2:
        raise DataError(
            "write duckdb:///file.duckdb for a file of this folder and duckdb:////path/file.duckdb "
            "for any other"
        )
    return unquote(parts.path)[1:]


def find_files(source: str) -> list[TableFile]:
    """Return the files that a path, a glob, a folder or an address stands for."""
    scheme = scheme_of(source)
    if scheme in STORES:
        return _remote_files(source)
    if scheme not in (None, "file"):
        known = ", ".join(f"{name}://" for name in ("file", *STORES, *DATABASES))
        raise DataError(f"addresses that start with {scheme}:// cannot be read; known are {known}")
    if scheme is not None and urlsplit(source).netloc not in ("", "localhost"):
        raise DataError(f"{source}: file:// names files of this machine; write file:///path")
    text = source if scheme is None else unquote(urlsplit(source).path)
    path = Path(text)
    if path.is_dir():
        found = list(_walk(path))
        _refuse_lakehouses_here([path, *found])
        return _folder_files(text, [(p, p.relative_to(path).as_posix()) for p in found])
    if path.exists():
        _refuse_lakehouses_here([path])
    if path.exists() or not glob.has_magic(text):
        return [TableFile(path, named=True)]
    names = sorted(glob.glob(text, recursive=True))
    if not names:
        raise DataError(f"{text}: no file matches; check the pattern and the folder")
    _refuse_lakehouses_here(map(Path, names))
    return [TableFile(Path(name)) for name in names]


def refuse_lakehouses(places: Iterable[str], listed: Listed) -> None:
    """Refuse files and folders that lie in or below the folder of a lakehouse table.

    Parameters
    ----------
    places
        Their full names, with slashes.
    listed
        Looks into a folder.
    """
    folders: dict[str, None] = {}
    for place in places:
        # Up to the root or the bucket.
        above = place.rstrip("/")
        while above and not above.endswith(("/", ":")):
            folders[above] = None
            above = above.rpartition("/")[0]
    for folder in folders:
        for mark, kind in _LOGS.items():
            if listed(f"{folder}/{mark}") is not None:
                raise _lakehouse(folder, kind, mark)
        names = listed(f"{folder}/metadata") or ()
        tables = [name for name in names if name.endswith(".metadata.json")]
        own = any(map(_ICEBERG.fullmatch, tables))
        if own or (tables and listed(f"{folder}/data") is not None):
            raise _lakehouse(folder, "an Iceberg", "metadata/*.metadata.json")


def _lakehouse(folder: str, kind: str, mark: str) -> DataError:
    return DataError(
        f"{folder}: this folder is {kind} table (it has {mark}), and its files also "
        "hold rows that were deleted or replaced; export its current rows to a Parquet "
        f"file, {_REMEDIES[kind]}, and give that file"
    )


def _refuse_lakehouses_here(places: Iterable[Path]) -> None:
    """Refuse files and folders of this machine that lie in or below a lakehouse table."""
    # A link may lead into such a folder from elsewhere.
    folders = {p if p.is_symlink() or p.is_dir() else p.parent: None for p in places}
    ways = (way(folder) for folder in folders for way in (os.path.abspath, os.path.realpath))
    refuse_lakehouses((Path(way).as_posix() for way in ways), _listed)


def _listed(folder: str) -> list[str] | None:
    try:
        return os.listdir(folder)
    except OSError:
        # One that may not be looked into is there all the same.
        return [] if Path(folder).is_dir() else None


def local_files(source: str) -> list[Path]:
    """Return the existing files of this machine that a source names."""
    scheme = scheme_of(source)
    if scheme == "sqlite":
        text = unquote(urlsplit(source).path)[1:]
    elif scheme not in (None, "file"):
        return []
    else:
        text = source if scheme is None else unquote(urlsplit(source).path)
    if Path(text).is_dir():
        return list(_walk(Path(text)))
    names = [text] if Path(text).exists() else glob.glob(text, recursive=True)
    return [Path(name) for name in names if Path(name).exists()]


def fingerprint(files: Sequence[File]) -> str:
    """Return a text that changes when a file does: names, sizes, times, first and last bytes."""
    digest = hashlib.sha256()
    for file in files:
        size, changed, _ = _state(file)
        digest.update(f"{file}\0{size}\0{changed}\0".encode())
        with file.open("rb") as handle:
            digest.update(handle.read(_SAMPLE))
            handle.seek(max(size - _SAMPLE, 0))
            digest.update(handle.read(_SAMPLE))
    return digest.hexdigest()


FileState = tuple[int, int, int]


def file_states(files: Sequence[File]) -> tuple[FileState, ...]:
    """Return of every file its size, when it was changed and which file it is."""
    return tuple(map(_state, files))


def size_of(file: File) -> int:
    """Return the number of bytes of a file."""
    return _state(file)[0]


def refuse_secrets(source: str, remedy: str) -> None:
    """Refuse an address that holds a password or a key; the message does not repeat it."""
    parts = urlsplit(source)
    user, at, _ = parts.netloc.rpartition("@")
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    named = any(_SECRET.search(name) and name not in _NOT_SECRET for name in names)
    if (at and ":" in user) or named:
        scheme = scheme_of(source)
        raise DataError(f"the {scheme}:// address holds a password or key; {remedy}")


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in order, but none that is hidden or a marker."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _aside(name))
        for name in sorted(names):
            if not _aside(name):
                yield Path(root, name)


def _aside(name: str) -> bool:
    return name.startswith((".", "_"))


def _folder_files(source: str, found: Sequence[tuple[File, str]]) -> list[TableFile]:
    """Give every file of a folder the columns that its folders name."""
    files = []
    for file, inside in found:
        pairs = (part.partition("=") for part in inside.split("/")[:-1])
        fixed = {
            unquote(name): None if value == _NO_VALUE else unquote(value)
            for name, equals, value in pairs
            if equals and name
        }
        files.append(TableFile(file, fixed))
    if not files:
        raise DataError(f"{source}: the folder holds no files; give a file, or another folder")
    names = list(files[0].fixed)
    for each in files:
        if list(each.fixed) != names:
            raise DataError(
                f"{each.file}: its folders name other columns than those of {files[0].file}; "
                "give files alike"
            )
    return files


def _state(file: File) -> FileState:
    if isinstance(file, RemoteFile):
        info = file.filesystem.get_file_info(file.path)
        return info.size or 0, info.mtime_ns or 0, 0
    found = file.stat()
    # What a pipe says of its size and time changes by itself.
    plain = stat.S_ISREG(found.st_mode)
    return (found.st_size, found.st_mtime_ns, found.st_ino) if plain else (0, 0, found.st_ino)


def _remote_files(source: str) -> list[TableFile]:
    import pyarrow as pa
    from pyarrow import fs

    refuse_secrets(source, "let PyArrow find it in the environment or a configuration file")
    parts = urlsplit(source)
    # A path is cut before the first folder or file name that is a pattern.
    names = parts.path.split("/")
    magic = next((at for at, name in enumerate(names) if glob.has_magic(name)), len(names))
    folder, pattern = "/".join(names[:magic]), names[magic:]
    options = f"?{parts.query}" if parts.query else ""
    prefix = f"{parts.scheme}://{parts.netloc}"
    try:
        filesystem, base = _filesystem(f"{prefix}{quote(folder, safe='/%=')}{options}")
        info = filesystem.get_file_info(base)
        if info.type == fs.FileType.NotFound:
            raise DataError(f"{prefix}{folder}: there is no such file; check the name and rights")
        refuse_lakehouses([base], partial(_listed_remote, filesystem))
        if info.type == fs.FileType.File:
            return [TableFile(RemoteFile(prefix + parts.path, base, filesystem), named=True)]
        listed = filesystem.get_file_info(fs.FileSelector(base, recursive=True))
    except (pa.ArrowException, OSError):
        raise DataError(
            f"{prefix}{folder}: it cannot be reached or read; check the address, your rights and "
            "the network"
        ) from None
    found = []
    for entry in sorted(listed, key=lambda entry: entry.path.split("/")):
        inside = entry.path[len(base.rstrip("/")) + 1 :]
        names = inside.split("/")
        if entry.type != fs.FileType.File or any(map(_aside, names)):
            continue
        # Name by name: no pattern reaches over a slash.
        if pattern and (
            len(names) != len(pattern) or not all(map(fnmatch.fnmatchcase, names, pattern))
        ):
            continue
        found.append(
            (RemoteFile(f"{prefix}{folder.rstrip('/')}/{inside}", entry.path, filesystem), inside)
        )
    refuse_lakehouses((file.path for file, _ in found), _folders_of(listed).get)
    if pattern:
        if not found:
            raise DataError(f"{prefix}{parts.path}: no file matches; check the pattern")
        return [TableFile(file) for file, _ in found]
    return _folder_files(prefix + folder, found)


def _listed_remote(filesystem: Any, folder: str) -> list[str] | None:
    """Return the names in a folder; one above the table that may not be looked into is none."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        return [entry.base_name for entry in filesystem.get_file_info(fs.FileSelector(folder))]
    except (pa.ArrowException, OSError):
        return None


def _folders_of(listed: Iterable[Any]) -> dict[str, list[str]]:
    """Return the names in every folder, of all that lies below one."""
    from pyarrow import fs

    folders: dict[str, list[str]] = {}
    for entry in listed:
        folders.setdefault(entry.path.rpartition("/")[0], []).append(entry.base_name)
        if entry.type == fs.FileType.Directory:
            folders.setdefault(entry.path, [])
    return folders


def _filesystem(address: str) -> tuple[Any, str]:
    from pyarrow import fs

    found: tuple[Any, str] = fs.FileSystem.from_uri(address)
    return found
