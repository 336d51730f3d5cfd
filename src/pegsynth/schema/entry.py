"""One table of a TOML file, read with a check of every key and type.

In goes what the TOML parser made of a table; out come plain typed values, or a
`SchemaError` that names the table, the key and the form expected.
"""

from __future__ import annotations

import datetime as dt
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema.feature import number_text
from pegsynth.schema.keys import REFERENCE, Place, misplaced, names


@dataclass(frozen=True)
class Entry:
    """A table of the file: how messages call it, and its values by key."""

    where: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, where: str, value: Any, known: tuple[str, ...]) -> Entry:
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
        return cls(where, value)

    @classmethod
    def at(cls, place: Place, where: str, value: Any) -> Entry:
        """Wrap a parsed value that must be a table with none but the keys of a place.

        A key that belongs elsewhere is told where.
        """
        known = names(place)
        if isinstance(value, dict):
            for key in value:
                if key not in known:
                    raise SchemaError(
                        f"{where}: the key {shown(key)} is not known; {misplaced(key, place)}. "
                        f"Known keys: {', '.join(known)}; {REFERENCE} explains them"
                    )
        return cls.of(where, value, known)

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

    def _list(self, key: str) -> list[Any]:
        values = self.values.get(key, [])
        if not isinstance(values, list):
            raise self.error(f"{key} must be a list in square brackets, as {key} = [..]")
        return values

    def _finite(self, key: str, value: Any) -> float:
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

    def _category(self, key: str, value: Any) -> str:
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


def shown(text: str) -> str:
    """Quote a name for a message, cut when it would drown the message."""
    return repr(text) if len(text) <= 60 else repr(text[:60]) + ".."
