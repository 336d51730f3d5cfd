"""Lists of codes as offices keep them in spreadsheets: the text of a CSV file in, lines out.

Public hierarchies of codes: which code belongs to which, from a file or by prefix.

A `Hierarchy` says the parent of every code, and the parent of that, and so on. It is a public
function of one code, so recoding by it keeps neighbours neighbours (R31).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from pegsynth.errors import SchemaError

_HEADS = ("code", "codes", "value", "values", "schluessel", "schlüssel", "kod", "id")


def listed_codes(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines of a list, each with its number in the file, cells without spaces around.

    The first line may name the columns. Fields are separated by commas, semicolons or tabs,
    whichever the first line has most of. Empty lines are passed over.
    """
    mark = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in line]) for line in reader if line]
    except csv.Error:
        raise SchemaError("the list cannot be read; save it as CSV") from None
    if lines and lines[0][1][0].lower() in _HEADS:
        del lines[0]
    return lines


PREFIX = re.compile(r"prefix:([1-9][0-9]{0,2}(?:,[1-9][0-9]{0,2})*)", re.ASCII)


@dataclass(frozen=True)
class Hierarchy:
    """Codes and what they belong to.

    Parameters
    ----------
    pairs
        A code and its parent, each code once, in the order of its file.
    prefixes
        Instead of pairs: how many characters of a code are its parent, its parent's parent ..

    Examples
    --------
    >>> Hierarchy.of({"I21": "heart", "heart": "IX"}).above("I21")
    ('heart', 'IX')
    >>> Hierarchy(prefixes=(3, 1)).above("I21.9")
    ('I21', 'I')
    """

    pairs: tuple[tuple[str, str], ...] = ()
    prefixes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.pairs) == bool(self.prefixes):
            raise SchemaError(
                "a hierarchy lists codes with their parents, or is prefix:3 or the like"
            )
        if any(a <= b for a, b in pairwise(self.prefixes)):
            raise SchemaError("prefixes of a hierarchy get shorter, as prefix:3,1")
        if not all(isinstance(text, str) and text for pair in self.pairs for text in pair):
            raise SchemaError("every code of a hierarchy has a parent, both texts; name it")
        if len(self._parents) < len(self.pairs):
            raise SchemaError("a code of the hierarchy is listed twice; list each once")
        _check_cycles(self._parents)

    @classmethod
    def of(cls, parents: Mapping[str, str]) -> Hierarchy:
        """Make a hierarchy of codes and their parents."""
        return cls(tuple(parents.items()))

    @classmethod
    def by_prefix(cls, text: str) -> Hierarchy | None:
        """Read ``prefix:3`` or ``prefix:3,1``; None where a text is something else."""
        found = PREFIX.fullmatch(text)
        return cls(prefixes=tuple(map(int, found[1].split(",")))) if found else None

    @classmethod
    def of_lines(cls, lines: Iterable[tuple[int, list[str]]]) -> Hierarchy:
        """Make a hierarchy of the lines of a file: code, parent, parent's parent, ..

        Raises
        ------
        SchemaError
            With the line that is wrong, and what to do.
        """
        parents: dict[str, str] = {}
        for number, cells in lines:
            names = cells[: max((i + 1 for i, cell in enumerate(cells) if cell), default=0)]
            if len(names) < 2 or not all(names):
                raise SchemaError(
                    f"line {number}: a code has no parent; write the code, its parent, and what "
                    "that belongs to, without gaps"
                )
            for code, parent in pairwise(names):
                if parents.setdefault(code, parent) != parent:
                    raise SchemaError(
                        f"line {number}: a code has another parent than on an earlier line; give "
                        "it one"
                    )
        if not parents:
            raise SchemaError("it lists no codes; write a line with code and parent for each")
        return cls.of(parents)

    @cached_property
    def _parents(self) -> dict[str, str]:
        return dict(self.pairs)

    def above(self, code: str) -> tuple[str, ...]:
        """Return all that a code belongs to, nearest first."""
        if self.prefixes:
            return tuple(code[:length] for length in self.prefixes)
        found = []
        while (parent := self._parents.get(code)) is not None:
            found.append(parent)
            code = parent
        return tuple(found)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The codes at the bottom, which nothing belongs to; none are known by prefix."""
        inner = set(self._parents.values())
        return tuple(code for code, _ in self.pairs if code not in inner)

    def at(self, level: int) -> dict[str, str]:
        """Return what every code at the bottom becomes some levels up.

        Raises
        ------
        SchemaError
            A code has fewer levels above it.
        """
        above = {code: (code, *self.above(code)) for code in self.codes}
        if any(len(line) <= level for line in above.values()):
            raise SchemaError(
                f"a code of the hierarchy has no parent at level {level}; add what it belongs to, "
                "or state a lower level"
            )
        return {code: line[level] for code, line in above.items()}


def _check_cycles(parents: Mapping[str, str]) -> None:
    """Refuse codes that belong to themselves, by however many steps."""
    safe: set[str] = set()
    for code in parents:
        path: dict[str, None] = {}
        at: str | None = code
        while at is not None and at not in safe:
            if at in path:
                raise SchemaError(
                    "the hierarchy has a cycle: a code belongs to itself, by way of its parents; "
                    "let one of them belong to nothing"
                )
            path[at] = None
            at = parents.get(at)
        safe.update(path)
