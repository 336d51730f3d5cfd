"""Every method by its name, and its options; the only place where names decide anything.

Options are frozen dataclasses made of the groups in `pegsynth.options`. They stand here, apart from
the methods, so that the command line can print its help without loading what does the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from pegsynth.errors import ParameterError
from pegsynth.options import (
    BlockSizeOptions,
    CapOptions,
    GivenOptions,
    HeadOptions,
    KeyOptions,
    LogLinearOptions,
    PartialOptions,
    PriorOptions,
    ProperOptions,
    ReplicateOptions,
    RowOptions,
    SweepOptions,
    TablesOptions,
)
from pegsynth.options._kinds import Option, declared

if TYPE_CHECKING:
    from pegsynth.methods.base import AnyMethod


@dataclass(frozen=True)
class PegsOptions(PriorOptions, PartialOptions, KeyOptions, RowOptions):
    """Options of `pegs`."""


@dataclass(frozen=True)
class PegsRsOptions(
    PriorOptions, BlockSizeOptions, SweepOptions, GivenOptions, KeyOptions, RowOptions
):
    """Options of `pegs-rs`."""


@dataclass(frozen=True)
class PegsCappedOptions(
    PriorOptions, CapOptions, SweepOptions, GivenOptions, KeyOptions, RowOptions
):
    """Options of `pegs-capped`."""


@dataclass(frozen=True)
class ReplicatedOptions(ReplicateOptions, RowOptions):
    """Options of methods whose rows come from published counts (R28)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.replicates:
            object.__setattr__(self, "replicates", None)
        if self.replicates is not None and self.datasets > 1:
            raise ParameterError(
                "--replicates gives one table with weights, --datasets several tables with noise "
                "of their own; leave one of them out"
            )

    @property
    def own_noise(self) -> bool:
        """Whether every table has sampling and noise of its own."""
        return self.datasets > 1 and not self.shared_noise


@dataclass(frozen=True)
class PegsOnceOptions(GivenOptions, HeadOptions, ReplicatedOptions):
    """Options of `pegs-once`."""


@dataclass(frozen=True)
class PegsTablesOptions(TablesOptions, ReplicatedOptions):
    """Options of `pegs-tables`."""

    @property
    def own_noise(self) -> bool:
        """Several tables are drawn from one fit, and share the errors of the tables."""
        return False


@dataclass(frozen=True)
class ContingencyOptions(LogLinearOptions, GivenOptions, RowOptions):
    """Options of `contingency`."""


@dataclass(frozen=True)
class MarginalOptions(RowOptions):
    """Options of `marginal`."""


@dataclass(frozen=True)
class BootstrapOptions(GivenOptions, RowOptions):
    """Options of `bootstrap`."""


@dataclass(frozen=True)
class PmiOptions(PartialOptions, RowOptions):
    """Options of `pmi`."""


@dataclass(frozen=True)
class MiOptions(ProperOptions, PartialOptions, RowOptions):
    """Options of `mi`, `cart` and `forest`."""


_further: dict[str, AnyMethod] = {}

_BUILT_IN: dict[str, tuple[str, str, type[RowOptions]]] = {
    "pegs": ("gibbs.pegs", "PEGS", PegsOptions),
    "pegs-rs": ("gibbs.pegs", "PEGS_RS", PegsRsOptions),
    "pegs-capped": ("gibbs.pegs", "PEGS_CAPPED", PegsCappedOptions),
    "pegs-once": ("released", "PEGS_ONCE", PegsOnceOptions),
    "pegs-tables": ("evidence.pegs_tables", "PEGS_TABLES", PegsTablesOptions),
    "contingency": ("baselines.contingency", "CONTINGENCY", ContingencyOptions),
    "marginal": ("baselines.marginal", "MARGINAL", MarginalOptions),
    "bootstrap": ("baselines.bootstrap", "BOOTSTRAP", BootstrapOptions),
    "mi": ("baselines.imputation", "MI", MiOptions),
    "pmi": ("baselines.imputation", "PMI", PmiOptions),
    "cart": ("baselines.imputation", "CART", MiOptions),
    "forest": ("baselines.imputation", "FOREST", MiOptions),
}
"""Module, object and options of every method; the object is loaded when it is asked for."""


def names() -> tuple[str, ...]:
    """Return the names of all methods, those of the package first."""
    return (*_BUILT_IN, *_further)


def methods() -> tuple[AnyMethod, ...]:
    """Return every method."""
    return tuple(map(get, names()))


def get(name: str) -> AnyMethod:
    """Return a method by its name."""
    if name in _BUILT_IN:
        module, object_name, _ = _BUILT_IN[name]
        found: AnyMethod = getattr(import_module(f"pegsynth.methods.{module}"), object_name)
        return found
    if name in _further:
        return _further[name]
    raise ParameterError(f"--method is one of {', '.join(names())}, not {name!r}")


def options_of(name: str) -> type[RowOptions]:
    """Return the options of a method, without loading the method."""
    return _BUILT_IN[name][2] if name in _BUILT_IN else _further[name].options


def register(method: AnyMethod) -> None:
    """Add a method. The command line, Python, model files, plan and ledger know it from now on."""
    if method.name in names():
        raise ParameterError(f"there is a method {method.name!r} already; choose another name")
    _further[method.name] = method


@contextmanager
def registered(method: AnyMethod) -> Iterator[None]:
    """Add a method for a while, for tests."""
    register(method)
    try:
        yield
    finally:
        del _further[method.name]


def taking(option: str) -> tuple[str, ...]:
    """Return the names of the methods that take an option."""
    return tuple(name for name in names() if option in options_of(name).__dataclass_fields__)


def method_options() -> dict[str, Option]:
    """Return every option of any method, each once."""
    return declared(*map(options_of, names()))
