"""Flags of the commands: those of a release are made of its declared options.

`taking` gives a command the flags of some options, and hands them over as one `Request`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from pegsynth.methods.registry import method_options
from pegsynth.options import GROUPS
from pegsynth.options._kinds import METADATA, Option, is_group, made_of
from pegsynth.runtime import loading

if TYPE_CHECKING:
    from pegsynth.pipeline.request import Request
    from pegsynth.random import Streams

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .tsv, .parquet, .arrow, .sav, .dta, .sas7bdat, .xlsx or .duckdb file, a "
        "quoted glob, a folder, an s3:// or gs:// address of such, or postgresql://.. or "
        "sqlite:///.. with --table or --query.",
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


def _declared() -> dict[str, tuple[Option, Any]]:
    """Return every option with its default, those of registered methods too."""
    return method_options() | {n: o for group in GROUPS for n, o in _options(group).items()}


def _options(group: type) -> dict[str, tuple[Option, Any]]:
    return {
        each.name: (each.metadata[METADATA], each.default)
        for each in fields(group)
        if METADATA in each.metadata
    }


_DECLARED = _declared()


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
        groups = {name: hint for name, hint in hints.items() if is_group(hint)}
        parameters: list[inspect.Parameter] = []
        for name, parameter in own.items():
            if name in groups:
                declared = _options(groups[name]).items()
                parameters += [_parameter(each, *option) for each, option in declared]
            else:
                parameters.append(parameter.replace(annotation=hints[name]))
        for name in names:
            option, default = _DECLARED[name]
            default = defaults.get(name, default)
            parameters.append(_parameter(name, option, default, (help or {}).get(name, "")))

        @wraps(command)
        def run(context: typer.Context, **given: Any) -> None:
            values = {name: made_of(group, given) for name, group in groups.items()}
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
    option, default = _DECLARED[name]
    return _flag(name, option, default)


def _parameter(name: str, option: Option, default: Any, said: str = "") -> inspect.Parameter:
    if option.several:
        default = None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[
            option.typed | None if default is None else option.typed,
            _flag(name, option, default, said),
        ],
    )


def _flag(name: str, option: Option, default: Any, said: str = "") -> Any:
    flag = option.flag_of(name)
    if option.kind == "flag" and default is None:
        # A flag that is off by default has no other side.
        flag = f"{flag}/--no-{name}"
    text = option.text
    if option.unless:
        text = f"{text.removesuffix('.')} [default: {option.unless}]."
    return typer.Option(flag, help=said or text, metavar=option.metavar or None)


def source(data: str | tuple[str, str], request: Request) -> Any:
    """Return the table, or the two tables, that the flags of a command name."""
    from pegsynth.tables.table_input import named_source

    return named_source(
        data, table=request.table, query=request.query, rowwise=request.query_is_rowwise
    )
