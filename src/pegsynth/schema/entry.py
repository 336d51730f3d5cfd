"""One table of a TOML file, read with a check of every key and type.

In goes what the TOML parser made of a table; out come plain typed values, or a
`SchemaError` that names the table, the key and the form expected.
"""

from __future__ import annotations

import datetime as dt
import difflib
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pegsynth.errors import SchemaError, escaped
from pegsynth.schema.feature import number_text
from pegsynth.schema.hierarchy import Hierarchy, listed_codes
from pegsynth.schema.keys import PRIVATE, Key, keys_of, parts_of

MOST_BYTES = 1 << 26
REFERENCE = "docs/schema.md"

Made = TypeVar("Made")


@dataclass(frozen=True)
class PublicFiles:
    """Where the public files of a schema lie; they are read whole, and never named again.

    What they say becomes part of the schema, so that a model and a release are whole without them.

    Parameters
    ----------
    folder
        The folder of the schema file; None: the schema came as text, and may name no files.
    """

    folder: Path | None = None

    def lines(self, name: str, where: str) -> list[tuple[int, list[str]]]:
        """Return the numbered lines of a list of codes; see `listed_codes`.

        Raises
        ------
        SchemaError
            With the key and the file, which `where` names.
        """
        if self.folder is None:
            raise SchemaError(
                f"{where}: a schema that is not itself a file names no others; write the list into "
                "the schema"
            )
        path = self.folder / name
        try:
            if not path.is_file():
                raise FileNotFoundError
            if path.stat().st_size > MOST_BYTES:
                raise SchemaError(f"{where}: the file is larger than 64 MiB; list fewer codes")
            text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            raise SchemaError(
                f"{where}: there is no such file; names count from the folder of the schema"
            ) from None
        except UnicodeDecodeError:
            raise SchemaError(f"{where}: the file is not UTF-8 text; save it as UTF-8") from None
        except (OSError, ValueError):
            raise SchemaError(f"{where}: the file cannot be read; check its name") from None
        try:
            lines = listed_codes(text)
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}") from None
        if not lines:
            raise SchemaError(f"{where}: the file lists nothing; write a line for each code")
        return lines


@dataclass(frozen=True)
class Entry:
    """A table of the file: how messages call it, its values by key, and the files it may name."""

    where: str
    values: Mapping[str, Any]
    files: PublicFiles = field(default_factory=PublicFiles)

    @classmethod
    def of(
        cls, where: str, value: object, known: tuple[str, ...], files: PublicFiles | None = None
    ) -> Entry:
        """Wrap a parsed value that must be a table with none but the known keys."""
        if not isinstance(value, dict):
            raise SchemaError(f"{where}: must be a table of keys and values")
        for key in value:
            if key not in known:
                nearest = difflib.get_close_matches(key[:60], known, n=1, cutoff=0.0)[0]
                raise SchemaError(
                    f"{where}: the key {shown(key)} is not known; did you mean {nearest!r}? "
                    f"Known keys: {', '.join(known)}"
                )
        return cls(where, value, files or PublicFiles())

    @classmethod
    def at(cls, kind: type, where: str, value: object, files: PublicFiles | None = None) -> Entry:
        """Wrap a parsed value that must be a table with none but the keys that a type declares.

        A key that belongs elsewhere is told where.
        """
        known = tuple(key.name for key in keys_of(kind))
        if isinstance(value, dict):
            for key in value:
                if key not in known:
                    from pegsynth.schema.toml import misplaced

                    raise SchemaError(
                        f"{where}: the key {shown(key)} is not known; {misplaced(key, kind)}. "
                        f"Known keys: {', '.join(known)}; {REFERENCE} explains them"
                    )
        return cls.of(where, value, known, files)

    def made(self, kind: type[Made], **stated: Any) -> Made:
        """Return a value of a type of the keys that it declares.

        Parameters
        ----------
        stated
            Fields that are known already and not read.
        """
        found = dict(stated)
        for key in keys_of(kind):
            if key.part or key.name in stated:
                continue
            if key.needed or key.name in self.values:
                found[key.name] = self.read(key)
        for name, inner in parts_of(kind).items():
            if name not in stated and any(key.name in self.values for key in keys_of(inner)):
                try:
                    found[name] = self.made(inner)
                except SchemaError as error:
                    raise self.error(str(error).removeprefix(f"{self.where}: ")) from None
        return kind(**found)

    def read(self, key: Key) -> Any:
        """Read what a key holds by its form; an empty text is none where there may be none."""
        value = _READERS[key.form](self, key.name)
        return None if key.default is None and value == "" else value

    def error(self, what: str) -> SchemaError:
        """Make an error about this table."""
        return SchemaError(f"{self.where}: {what}")

    def text(self, key: str, default: str = "") -> str:
        """Read a text."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(f'{key} must be a text in quotes, as {key} = ".."')
        return value

    def flag(self, key: str) -> bool:
        """Read true or false; false when absent."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{key} must be true or false, without quotes")
        return value

    def whole(self, key: str, default: int) -> int:
        """Read a whole number."""
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"{key} must be a whole number, without quotes")
        return value

    def whole_or_none(self, key: str) -> int | None:
        """Read a whole number; None when absent."""
        return self.whole(key, 0) if key in self.values else None

    def number(self, key: str) -> float | None:
        """Read a finite number; None when absent."""
        if key not in self.values:
            return None
        return self._finite(key, self.values[key])

    def numbers(self, key: str) -> tuple[float, ...]:
        """Read a list of finite numbers; empty when absent."""
        return tuple(self._finite(key, value) for value in self._list(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts; empty when absent."""
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            raise self.error(f"{key} must be a list of texts in quotes")
        return tuple(values)

    def labels(self, key: str) -> tuple[tuple[str, str], ...]:
        """Read a table of texts by code; empty when absent."""
        table = self.values.get(key, {})
        if not isinstance(table, dict) or not all(isinstance(t, str) for t in table.values()):
            raise self.error(f'{key} must name texts by code, as {key} = {{ "1" = ".." }}')
        return tuple(table.items())

    def categories(self, key: str) -> tuple[str, ...]:
        """Read a list of categories: texts, or numbers and truth values taken as text."""
        return tuple(self._category(key, value) for value in self._list(key))

    def listed(self, key: str) -> tuple[str, ...] | str:
        """Read a list of categories, the name of a public file that lists them, or "private"."""
        if self.values.get(key) == PRIVATE:
            return PRIVATE
        if not isinstance(self.values.get(key), str):
            return self.categories(key)
        return tuple(cells[0] for _, cells in self._lines(key))

    def labels_or_file(self, key: str) -> tuple[tuple[str, str], ...]:
        """Read texts by code: a table, or the name of a public file that lists them."""
        if not isinstance(self.values.get(key), str):
            return self.labels(key)
        found = []
        for number, cells in self._lines(key):
            if len(cells) < 2 or not cells[1]:
                raise self.error(
                    f"{self._named_file(key)}: line {number} has no text for its code; write the "
                    "code and what it means"
                )
            found.append((cells[0], cells[1]))
        return tuple(found)

    def hierarchy(self, key: str) -> Hierarchy:
        """Read what codes belong to: by prefix, or by a table or a public file of parents."""
        if isinstance(self.values[key], dict):
            return Hierarchy(self.labels(key))
        text = self.text(key)
        by_prefix = Hierarchy.by_prefix(text)
        if by_prefix is not None:
            return by_prefix
        if text.startswith("prefix"):
            raise self.error('hierarchy by prefix is written "prefix:3", or "prefix:3,1"')
        lines = self._lines(key)
        try:
            return Hierarchy.of_lines(lines)
        except SchemaError as error:
            raise self.error(f"{key} = {text[:80]!r}: {error}") from None

    def groups(self, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Read values by the name of their group."""
        table = self.values.get(key, {})
        if not isinstance(table, dict):
            raise self.error('groups must be a table, as groups = { heart = ["I20", "I21"] }')
        inside = Entry(f"{self.where}, groups", table)
        return tuple((name, inside.categories(name)) for name in table)

    def tables(self, key: str) -> list[Any]:
        """Read tables in double brackets."""
        found = self.values.get(key, [])
        if not isinstance(found, list):
            raise SchemaError(f"{key} must be tables headed [[{key}]], in double brackets")
        return found

    def _lines(self, key: str) -> list[tuple[int, list[str]]]:
        try:
            return self.files.lines(self.text(key), self._named_file(key))
        except SchemaError as error:
            raise self.error(str(error)) from None

    def _named_file(self, key: str) -> str:
        return f"{key} = {escaped(self.text(key)[:80])!r}"

    def _list(self, key: str) -> list[Any]:
        values = self.values.get(key, [])
        if not isinstance(values, list):
            raise self.error(f"{key} must be a list in square brackets, as {key} = [..]")
        return values

    def _finite(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{key} must hold numbers, without quotes")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.error(f"{key} must hold finite numbers; give the lowest or highest value")
        if number != value:
            raise self.error(f"{key} holds a number of too many digits; round it")
        return number

    def _category(self, key: str, value: object) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float) and math.isfinite(value):
            return number_text(value)
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return value.isoformat()
        raise self.error(f"{key} must list texts in quotes, or numbers")


_READERS: Mapping[str, Callable[[Entry, str], Any]] = {
    "flag": Entry.flag,
    "whole": lambda entry, key: entry.whole(key, 0),
    "number": Entry.number,
    "text": Entry.text,
    "texts": Entry.texts,
    "values": Entry.categories,
    "numbers": Entry.numbers,
    "groups": Entry.groups,
    "tables": Entry.tables,
    "listed": Entry.listed,
    "labels": Entry.labels_or_file,
    "hierarchy": Entry.hierarchy,
    # A text is left to be judged by its type.
    "gaps": lambda e, k: v if isinstance(v := e.values[k], str) else e.numbers(k),
    **dict.fromkeys(("table", "bins", "edges", "bound"), lambda e, k: e.values.get(k)),
}
"""How a key of each form is read."""


def file_text(path: str | Path) -> str:
    """Return the text of a file that a person wrote.

    Raises
    ------
    SchemaError
        The file cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SchemaError(f"{path}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise SchemaError(f"{path}: this is a folder; give a file in it") from None
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"{path}: byte {error.start} is not UTF-8 text; save the file as UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not valid"
        raise SchemaError(f"{str(path)!r}: cannot be read ({reason}); check the path") from None


def parsed(text: str) -> dict[str, Any]:
    """Return what a text of TOML holds."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SchemaError("lists or tables are nested too deeply; write them flat") from None
    except ValueError as error:
        # Besides its own error the parser lets through that of numbers with too many digits.
        raise SchemaError(f"not valid TOML: {error}; correct that line") from None


def shown(text: str) -> str:
    """Quote a name for a message, cut when it would drown the message."""
    return repr(text) if len(text) <= 60 else repr(text[:60]) + ".."
