"""Flags of the commands: those of a release are made of its declared options.

`taking` gives a command the flags of some options, and hands them over as one `Request`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from pegsynth.methods.registry import method_options
from pegsynth.options import GROUPS
from pegsynth.options._kinds import Option, declared, made_of
from pegsynth.runtime import loading

if TYPE_CHECKING:
    from pegsynth.random import Streams

_KINDS_OF_DATA = (
    "A .csv, .tsv, .parquet, .arrow, .sav, .dta, .sas7bdat, .xlsx or .duckdb file, a quoted glob, "
    "a folder, an s3:// or gs:// address of such, or postgresql://.. or sqlite:///.. with --table "
    "or --query."
)
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help=_KINDS_OF_DATA,
    ),
]
DataIfAny = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATA]",
        help=f"{_KINDS_OF_DATA} None with --from-tables.",
        show_default=False,
    ),
]
SecondData = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATA]",
        help="The second of two tables that the schema describes ([[tables]]).",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model.pegs file.")]
SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema.toml of the table.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Where to write.")]
TableOutput = Annotated[
    str,
    typer.Option(
        "-o", "--output", help="File to write, or a database address with --output-table."
    ),
]
OutputTable = Annotated[
    str | None,
    typer.Option("--output-table", help="Table to make in the database that -o names."),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Where to write the ledger [default: OUTPUT.privacy.json]."),
]

Command = Callable[..., None]

BUDGET = ("epsilon", "delta", "epsilon_per_row", "l", "alpha", "book")
KEYS = ("heads", "tail_bits", "order", "order_rows")
DRAWS = ("sweeps", "block_size", "visits", "chains", "urn", "prior", "seed_pool", "rows_in")
GIVEN = ("where", "synthesize", "no_guarantee", "log_linear", "proper")
RUN = ("decode", "wide", "threads", "seed")
WRITTEN = ("separator", "decimal", "thousands", "encoding")
SOURCE = ("table", "query", "query_is_rowwise", *WRITTEN, "analyses")
ENGINE = ("engine", "master")
NOISE = ("replicates", "weight_name", "shared_noise")
COMPLETED = ("complete", "imputations")


_DECLARED = method_options() | declared(*GROUPS)
"""Every option, those of registered methods too."""


def of_registered_methods() -> tuple[str, ...]:
    """Return the options of methods that were registered from outside."""
    ours = {each.name for group in GROUPS for each in fields(group)}
    return tuple(name for name in _DECLARED if name not in ours)


def taking(
    *names: str,
    help: dict[str, str] | None = None,  # noqa: A002
    **defaults: Any,
) -> Callable[[Command], Command]:
    """Give a command the flags of these options; it gets them as one argument, `request`.

    An argument of the command that is itself a group of options gets flags in its place, and
    `streams` is what makes random streams.

    Parameters
    ----------
    help
        What some of them mean to this command, where that is something else.
    **defaults
        Defaults of this command; ``...`` makes a flag necessary.
    """

    def decorate(command: Command) -> Command:
        own = dict(inspect.signature(command).parameters)
        # Loading what a request is takes longer than printing the help.
        wanted = own.pop("request", None) is not None
        random = own.pop("streams", None) is not None
        told = SimpleNamespace(__annotations__={n: p.annotation for n, p in own.items()})
        hints = get_type_hints(told, command.__globals__, include_extras=True)
        types = {name: hint for name, hint in hints.items() if isinstance(hint, type)}
        groups = {name: hint for name, hint in types.items() if is_dataclass(hint)}
        parameters: list[inspect.Parameter] = []
        for name, parameter in own.items():
            if name in groups:
                parameters += [_parameter(*each) for each in declared(groups[name]).items()]
            else:
                parameters.append(parameter.replace(annotation=hints[name]))
        for name in names:
            option = _DECLARED[name]
            option = replace(option, default=defaults.get(name, option.default))
            parameters.append(_parameter(name, option, (help or {}).get(name, "")))

        @wraps(command)
        def run(context: typer.Context, **given: Any) -> None:
            values: dict[str, Any] = {name: made_of(group, given) for name, group in groups.items()}
            if random:
                values["streams"] = streams(context)
            if wanted:
                with loading():
                    from pegsynth.pipeline.request import Request

                options = {name: given.pop(name) for name in names}
                values["request"] = Request.of(**options, streams=streams(context))
            command(**given, **values)

        known = inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
        # What is needed comes first.
        parameters.sort(key=lambda each: each.default is not each.empty)
        parameters = [each.replace(kind=known.kind) for each in (known, *parameters)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        del run.__wrapped__
        return run

    return decorate


def streams(context: typer.Context) -> Streams:
    """Return what makes random streams: as whoever started the command has stated."""
    from pegsynth.random import RandomStream

    return context.obj or RandomStream


def of(name: str) -> Any:
    """Return the flag of one option, for a command that has few others of a release."""
    return _flag(name, _DECLARED[name])


def _parameter(name: str, option: Option, said: str = "") -> inspect.Parameter:
    if option.several:
        option = replace(option, default=None)
    default = option.default
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[
            option.typed | None if default is None else option.typed,
            _flag(name, option, said),
        ],
    )


def _flag(name: str, option: Option, said: str = "") -> Any:
    flag = option.flag_of(name)
    if option.kind == "flag" and option.default is None:
        # A flag that is off by default has no other side.
        flag = f"{flag}/--no-{name}"
    text = option.text
    if option.unless:
        text = f"{text.removesuffix('.')} [default: {option.unless}]."
    return typer.Option(flag, help=said or text, metavar=option.metavar or None)
