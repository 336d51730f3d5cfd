"""Public names with their signatures, and all ``--help``, as plain text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import polars as pl

import pegsynth
from checks.golden.command import outcome

_HOME = re.compile(r"\bpegsynth\.(?:\w+\.)*(?=\w)")
_PLACE = re.compile(r" at 0x[0-9a-f]+")


def names() -> str:
    """Return a line for every public name, and for every public attribute of a class."""
    lines = [line for name in sorted(pegsynth.__all__) for line in _of(name, _public(name))]
    for kind in _results():
        lines += _of(kind.__name__, kind)
    return "\n".join(dict.fromkeys(lines)) + "\n"


def helps() -> str:
    """Return ``pegs --help`` and that of every command."""
    return "\n".join(_helps(()))


def _public(name: str) -> Any:
    return getattr(pegsynth, name)


def _results() -> list[type]:
    """Return the types of what public functions return."""
    schema = pegsynth.Schema((pegsynth.Feature("a", categories=("x", "y")),), reviewed=True)
    table = pl.DataFrame({"a": ["x", "y"] * 50})
    model = pegsynth.fit(table, schema, method="marginal", epsilon=1.0, rows=50, seed=1)
    metrics = pegsynth.evaluate(table, [table], schema)
    forecast = pegsynth.plan(schema, epsilon=1.0, rows=50)
    return [type(each) for each in (model, model.ledger.guarantee, metrics, forecast)]


def _of(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, ModuleType):
        for each in sorted(getattr(value, "__all__", ())):
            yield from _of(f"{name}.{each}", getattr(value, each))
    elif inspect.isclass(value):
        bases = [base.__name__ for base in value.__bases__ if base is not object]
        yield f"{name}{_signature(value)}" + (f" [{', '.join(bases)}]" if bases else "")
        for each in sorted(dir(value)):
            if not each.startswith("_") and not _inherited(value, each):
                yield f"{name}.{each}{_signature(getattr(value, each))}"
    else:
        yield f"{name}{_signature(value)}"


def _inherited(kind: type, name: str) -> bool:
    """Say whether an attribute is of a class outside the program, such as Exception."""
    home = next(each for each in kind.__mro__ if name in vars(each))
    return not home.__module__.startswith("pegsynth")


def _signature(value: Any) -> str:
    if not callable(value):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(..)"
    # Modules move; what they hold stays.
    return _PLACE.sub("", _HOME.sub("", text))


def _helps(command: tuple[str, ...]) -> Iterator[str]:
    code, out, err = outcome(*command, "--help")
    if code:
        raise RuntimeError(f"pegs {' '.join(command)} --help: {err}")
    yield f"$ pegs {' '.join((*command, '--help'))}\n{out}"
    _, _, listed = out.partition("\nCommands:\n")
    for found in re.finditer(r"^  (\S+)  ", listed, re.MULTILINE):
        yield from _helps((*command, found[1]))
