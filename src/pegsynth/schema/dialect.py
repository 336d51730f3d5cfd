"""How a table is written as text: its separator, decimal mark and encoding.

A `Dialect` is declared, by the keys of ``[table]`` in the schema or by flags, and is public. A
release reads by it and looks at no value to find it (R30); only a draft recognises one. What is
left open is settled by the name of the file and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from pegsynth.errors import SchemaError
from pegsynth.schema.keys import documented, optional

SEPARATORS: tuple[str, ...] = (",", ";", "\t", "|", ":", "^", "~")
DECIMALS: tuple[str, ...] = (".", ",")
THOUSANDS: tuple[str, ...] = (",", ".", "'", "\u2019", " ", "\u00a0", "\u202f")
ENCODINGS: Mapping[str, str] = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "utf-16-le": "utf-16-le",
    "utf-16-be": "utf-16-be",
    "latin-1": "latin-1",
    "iso-8859-2": "iso-8859-2",
    "iso-8859-15": "iso-8859-15",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1252": "cp1252",
    "windows-1254": "cp1254",
}
"""Encodings by the name that a schema gives them, and what Python calls them."""

_SEPARATOR_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
_ENCODING_WORDS = {
    **{"utf8": "utf-8", "utf-8-sig": "utf-8", "ascii": "utf-8", "us-ascii": "utf-8"},
    **{"utf16": "utf-16", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"},
    **{"iso-8859-1": "latin-1", "latin1": "latin-1", "l1": "latin-1", "latin-9": "iso-8859-15"},
    **{"latin-2": "iso-8859-2", "latin2": "iso-8859-2"},
    **{f"cp{page}": f"windows-{page}" for page in (1250, 1251, 1252, 1254)},
}


@documented
@dataclass(frozen=True)
class Dialect:
    r"""What is declared of a table that is written as text; an empty text declares nothing.

    Examples
    --------
    >>> Dialect(separator="tab", encoding="cp1252")
    Dialect(separator='\t', decimal='', thousands='', encoding='windows-1252')
    """

    separator: str = optional(
        "",
        '";"',
        "What stands between the fields of a text file.",
        left_out="comma; tab in .tsv files",
        choices=(*SEPARATORS, "tab"),
    )
    decimal: str = optional(
        "", '","', "Decimal mark of numbers written as text.", left_out='"."', choices=DECIMALS
    )
    thousands: str = optional(
        "",
        '"\u2019"',
        "Mark that may stand between groups of three digits.",
        choices=THOUSANDS,
    )
    encoding: str = optional(
        "",
        '"windows-1252"',
        "How the characters of a text file are written.",
        left_out='"utf-8"',
        choices=tuple(ENCODINGS),
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            if not isinstance(getattr(self, each.name), str):
                raise SchemaError(f"{each.name} must be a text")
        separator = _SEPARATOR_WORDS.get(self.separator.lower(), self.separator)
        object.__setattr__(self, "separator", separator)
        name = self.encoding.lower().replace("_", "-")
        object.__setattr__(self, "encoding", _ENCODING_WORDS.get(name, name))
        self._check("separator", SEPARATORS)
        self._check("decimal", DECIMALS)
        self._check("thousands", THOUSANDS)
        self._check("encoding", tuple(ENCODINGS))
        if self.thousands and self.thousands == (self.decimal or "."):
            raise SchemaError("thousands and decimal are the same mark; they must differ")

    def _check(self, key: str, known: tuple[str, ...]) -> None:
        value = getattr(self, key)
        if value and value not in known:
            listed = ", ".join(_spelt(each) for each in known)
            raise SchemaError(f"{key} must be one of {listed}; it was {value[:60]!r}")

    def __bool__(self) -> bool:
        """Say whether anything is declared."""
        return any(getattr(self, each.name) for each in fields(self))

    def over(self, other: Dialect) -> Dialect:
        """Return what this one declares, and what the other one does where this is silent."""
        return Dialect(
            **{n.name: getattr(self, n.name) or getattr(other, n.name) for n in fields(self)}
        )

    def settled(self, name: str) -> Dialect:
        """Return the dialect of a file of this name, with nothing left open."""
        usual = "\t" if ".tsv" in name.lower()[-8:] else ","
        return replace(
            self,
            separator=self.separator or usual,
            decimal=self.decimal or ".",
            encoding=self.encoding or "utf-8",
        )

    @property
    def codec(self) -> str:
        """What Python calls the encoding."""
        return ENCODINGS[self.encoding or "utf-8"]

    def said(self) -> str:
        """Return in words what is declared."""
        words = {
            "separator": "fields are separated by {}",
            "decimal": "the decimal mark is {}",
            "thousands": "thousands are separated by {}",
            "encoding": "the text is {}",
        }
        stated = [
            text.format(_spelt(getattr(self, key)) if key != "encoding" else self.encoding)
            for key, text in words.items()
            if getattr(self, key)
        ]
        return ", ".join(stated)


def _spelt(text: str) -> str:
    return {"\t": "tab", " ": "space", "\u00a0": "no-break space", "\u202f": "narrow space"}.get(
        text, repr(text) if not text[:1].isalnum() else text
    )
