"""Every method by its name; the only place where names decide anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from pegsynth.errors import ParameterError
from pegsynth.option_kinds import METADATA, Option

if TYPE_CHECKING:
    from pegsynth.methods.base import Method

_further: dict[str, Method[Any, Any]] = {}


@cache
def _built_in() -> dict[str, Method[Any, Any]]:
    from pegsynth.methods.bootstrap import BOOTSTRAP
    from pegsynth.methods.contingency import CONTINGENCY
    from pegsynth.methods.imputation import CART, FOREST, MI, PMI
    from pegsynth.methods.marginal import MARGINAL
    from pegsynth.methods.pegs import PEGS
    from pegsynth.methods.pegs_capped import PEGS_CAPPED
    from pegsynth.methods.pegs_once import PEGS_ONCE
    from pegsynth.methods.pegs_rs import PEGS_RS

    listed: tuple[Method[Any, Any], ...] = (
        PEGS,
        PEGS_RS,
        PEGS_CAPPED,
        PEGS_ONCE,
        CONTINGENCY,
        MARGINAL,
        BOOTSTRAP,
        MI,
        PMI,
        CART,
        FOREST,
    )
    return {method.name: method for method in listed}


def methods() -> tuple[Method[Any, Any], ...]:
    """Return every method, those of the package first."""
    return (*_built_in().values(), *_further.values())


def names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return tuple(method.name for method in methods())


def get(name: str) -> Method[Any, Any]:
    """Return a method by its name."""
    found = _built_in().get(name) or _further.get(name)
    if found is None:
        raise ParameterError(f"--method is one of {', '.join(names())}, not {name!r}")
    return found


def register(method: Method[Any, Any]) -> None:
    """Add a method. The command line, Python, model files, plan and ledger know it from now on."""
    if method.name in names():
        raise ParameterError(f"there is a method {method.name!r} already; choose another name")
    _further[method.name] = method


@contextmanager
def registered(method: Method[Any, Any]) -> Iterator[None]:
    """Add a method for a while, for tests."""
    register(method)
    try:
        yield
    finally:
        del _further[method.name]


def taking(option: str) -> tuple[str, ...]:
    """Return the names of the methods that take an option."""
    return tuple(
        method.name for method in methods() if option in method.options.__dataclass_fields__
    )


def method_options() -> dict[str, tuple[Option, Any]]:
    """Return every option of any method with its default, each once."""
    return {
        each.name: (each.metadata[METADATA], each.default)
        for method in methods()
        for each in fields(method.options)
        if METADATA in each.metadata
    }
