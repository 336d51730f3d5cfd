"""How a key of ``schema.toml`` is declared: once, at the field of the type that it belongs to.

The reader, the writer, the reference (docs/schema.md), the JSON Schema for editors, the messages
about misplaced keys and the docstring of the type follow from these declarations.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

PRIVATE = "private"
"""What stands for edges or categories that a release measures or finds, and pays for."""

MISSING_LABEL = "(missing)"
UNKNOWN_LABEL = "(other)"

Kind = TypeVar("Kind", bound=type)


_FORM_OF_TYPE = {bool: "flag", int: "whole", float: "number", str: "text"}
_FORM_OF_LIST = {str: "texts", float: "numbers"}


@dataclass(frozen=True)
class Key:
    """A key: what it holds, what it means.

    Parameters
    ----------
    example
        A line of TOML, or the value of one.
    meaning
        What it says.
    guarantee
        What it means for the guarantee.
    name
        That of its field.
    form
        What its value is, such as `texts` (`pegsynth.schema.entry` reads each); by the type of the
        field, if not said.
    left_out
        What holds where it is left out, in words; by the default of the field, if not said.
    choices
        The texts that it may be; empty: any, or those of the field's type.
    inside
        The type that declares the keys of its table.
    always
        Whether it is written even where it is what holds without it.
    of
        The kinds of feature that can have it; empty: all.
    part
        The field that holds it, where it is declared by a part of the type.
    default
        That of its field.
    """

    example: str
    meaning: str
    guarantee: str = "none"
    name: str = ""
    form: str = ""
    left_out: str = ""
    choices: tuple[str, ...] = ()
    inside: type | None = None
    always: bool = False
    of: tuple[str, ...] = ()
    part: str = ""
    default: Any = None

    @property
    def needed(self) -> bool:
        """Whether a table without it is refused."""
        return self.left_out == "needed"


def optional(default: Any, example: str, meaning: str, guarantee: str = "none", **more: Any) -> Any:
    """Declare a key at a field with a default; for what may be said besides see `Key`."""
    return field(default=default, metadata={"key": Key(example, meaning, guarantee, **more)})


def needed(example: str, meaning: str, guarantee: str = "none", **more: Any) -> dict[str, Key]:
    """Declare a key at a field without default, as its metadata."""
    return {"key": Key(example, meaning, guarantee, left_out="needed", **more)}


def part(kind: type, default: Any = None, **more: Any) -> Any:
    """Declare that the keys of another type stand in the same table."""
    return field(default=default, metadata={"part": kind}, **more)


def keys_of(kind: type) -> tuple[Key, ...]:
    """Return the keys that a type declares, those of its parts included, as files have them.

    A type may name an order in `_file_order`; keys that it does not list come last.
    """
    return _keys_of(kind)


@cache
def _keys_of(kind: type) -> tuple[Key, ...]:
    order = vars(kind).get("_file_order", ())
    place = {name: number for number, name in enumerate(order)}
    return tuple(sorted(_declared(kind), key=lambda each: place.get(each.name, len(place))))


def parts_of(kind: type) -> dict[str, type]:
    """Return the fields of a type whose keys stand in its own table, and their types."""
    return {each.name: each.metadata["part"] for each in fields(kind) if "part" in each.metadata}


def _declared(kind: type) -> Iterator[Key]:
    hints = get_type_hints(kind)
    for each in fields(kind):
        if "key" in each.metadata:
            yield _completed(each, hints[each.name])
        elif "part" in each.metadata:
            for inner in keys_of(each.metadata["part"]):
                yield replace(inner, part=each.name)


def _completed(declared: Field[Any], hint: Any) -> Key:
    """Return the key of a field with what follows from the field's type and default."""
    stated: Key = declared.metadata["key"]
    options = [each for each in get_args(hint) if each is not type(None)]
    if type(None) in get_args(hint) and len(options) == 1:
        hint, options = options[0], list(get_args(options[0]))
    literal = get_origin(hint) is Literal
    form = stated.form or ("text" if literal else _FORM_OF_TYPE.get(hint, ""))
    return replace(
        stated,
        name=declared.name,
        form=form or _FORM_OF_LIST[options[0]],
        left_out=stated.left_out or _words(declared.default),
        choices=stated.choices or (tuple(options) if literal else ()),
        default=declared.default,
    )


def _words(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str) and default:
        return f'"{default}"'
    return "none" if default in (None, "", ()) else str(default)


def documented(kind: Kind) -> Kind:
    """Add the keys that a type declares to the parameters of its docstring."""
    text, examples, rest = (kind.__doc__ or "").partition("\n    Examples\n")
    lines = [text.rstrip(), ""]
    if "----" in text:
        lines.pop()
    else:
        lines += ["    Parameters", "    ----------"]
    for each in keys_of(kind):
        if not each.part:
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each.meaning)
            lines.append(f"    {each.name}")
            lines += textwrap.wrap(plain, 96, initial_indent=8 * " ", subsequent_indent=8 * " ")
    kind.__doc__ = "\n".join((*lines, "")) + examples + (rest or "    ")
    return kind
