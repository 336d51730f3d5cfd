"""Every option of a release, declared once: name, type, default and help.

The options of a method are one frozen dataclass, put together from the groups in `_methods`
(`RowOptions`, `KeyOptions`, ..). `BudgetOptions` say what may be spent, `RunOptions` and
`SourceOptions` how the work is done and where the table is, `Publication` what a release folder
takes. `pegsynth.pipeline.request.Request` is all of them together but the last, as a command or a
call states them. All are public choices.

The flags of the command line, the keyword arguments in Python, their checks, the help texts
and docs/options.md are made of these declarations. Which method takes an option follows from
the dataclass of the method (`pegsynth.methods`).
"""

from pegsynth.options._commands import DraftOptions, EvaluateOptions, LimitOptions
from pegsynth.options._methods import (
    AUTO,
    DEFAULT_BLOCK_SIZE,
    MOST_REPLICATES,
    MOST_VISITS,
    PAPER_METHOD,
    REPLICATES,
    BlockSizeOptions,
    CapOptions,
    GivenOptions,
    HeadOptions,
    KeyOptions,
    LogLinearOptions,
    MethodChoice,
    MethodOptions,
    Order,
    PartialOptions,
    PriorKind,
    PriorOptions,
    ProperOptions,
    ReplicateOptions,
    RowOptions,
    SweepOptions,
)
from pegsynth.options._runs import (
    DEFAULT_IMPUTATIONS,
    BookOptions,
    BudgetOptions,
    CompletionOptions,
    EngineOptions,
    How,
    Publication,
    RunOptions,
    SourceOptions,
)
from pegsynth.options.weight_names import WEIGHT, named_weights

GROUPS = (
    MethodChoice,
    RowOptions,
    HeadOptions,
    KeyOptions,
    PriorOptions,
    SweepOptions,
    BlockSizeOptions,
    CapOptions,
    GivenOptions,
    PartialOptions,
    LogLinearOptions,
    ProperOptions,
    ReplicateOptions,
    CompletionOptions,
    BudgetOptions,
    BookOptions,
    RunOptions,
    SourceOptions,
    EngineOptions,
)
"""The groups whose options together are a `Request`."""

COMMAND_GROUPS = (Publication, DraftOptions, EvaluateOptions, LimitOptions)
"""Groups that commands take as values of their own."""

__all__ = [
    "AUTO",
    "COMMAND_GROUPS",
    "DEFAULT_BLOCK_SIZE",
    "DEFAULT_IMPUTATIONS",
    "GROUPS",
    "MOST_REPLICATES",
    "MOST_VISITS",
    "PAPER_METHOD",
    "REPLICATES",
    "WEIGHT",
    "BlockSizeOptions",
    "BookOptions",
    "BudgetOptions",
    "CapOptions",
    "CompletionOptions",
    "DraftOptions",
    "EngineOptions",
    "EvaluateOptions",
    "GivenOptions",
    "HeadOptions",
    "How",
    "KeyOptions",
    "LimitOptions",
    "LogLinearOptions",
    "MethodChoice",
    "MethodOptions",
    "Order",
    "PartialOptions",
    "PriorKind",
    "PriorOptions",
    "ProperOptions",
    "Publication",
    "ReplicateOptions",
    "RowOptions",
    "RunOptions",
    "SourceOptions",
    "SweepOptions",
    "named_weights",
]
