"""The options of every method, each one frozen dataclass made of the groups in `pegsynth.options`.

They stand apart from the methods so that the command line can print its help without loading
what does the work.
"""

from __future__ import annotations

from dataclasses import dataclass

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
)


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
class PegsOnceOptions(ReplicateOptions, GivenOptions, HeadOptions, RowOptions):
    """Options of `pegs-once`."""

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
