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
from pegsynth.options._kinds import METADATA, Kind, Option

if TYPE_CHECKING:
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

_TYPES: dict[Kind, Any] = {
    "whole": int,
    "number": float,
    "flag": bool,
    "choice": str,
    "text": str,
    "path": str,
    "file": Path,
    "names": str,
    "values": list[str],
    "shares": list[str],
}


def _declared() -> dict[str, tuple[Option, Any]]:
    """Return every option with its default, those of registered methods too."""
    ours = {
        each.name: (each.metadata[METADATA], each.default)
        for group in GROUPS
        for each in fields(group)
        if METADATA in each.metadata
    }
    return method_options() | ours


def of_registered_methods() -> tuple[str, ...]:
    """Return the options of methods that were registered from outside."""
    ours = {each.name for group in GROUPS for each in fields(group)}
    return tuple(name for name in method_options() if name not in ours)


def taking(
    *names: str,
    help: dict[str, str] | None = None,  # noqa: A002
    **defaults: Any,
) -> Callable[[Command], Command]:
    """Give a command the flags of these options; it gets them as one argument, `request`.

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
        own.pop("request")
        told = SimpleNamespace(__annotations__={n: p.annotation for n, p in own.items()})
        hints = get_type_hints(told, command.__globals__, include_extras=True)
        flags = [
            _parameter(name, (help or {}).get(name, ""), defaults.get(name, _unstated(name)))
            for name in names
        ]
        kept = [p.replace(annotation=hints[name]) for name, p in own.items()]
        needed = [p for p in (*kept, *flags) if p.default is p.empty]
        rest = [p for p in (*kept, *flags) if p.default is not p.empty]

        @wraps(command)
        def run(context: typer.Context, **given: Any) -> None:
            from pegsynth.pipeline.request import Request

            options = {name: given.pop(name) for name in names}
            command(**given, request=Request.of(**options, streams=streams(context)))

        known = inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
        parameters = [p.replace(kind=known.kind) for p in (known, *needed, *rest)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        del run.__wrapped__
        return run

    return decorate


def streams(context: typer.Context) -> Streams:
    """Return what makes random streams: as whoever started the command has stated."""
    from pegsynth.random import RandomStream

    return context.obj or RandomStream


def of(name: str) -> Any:
    """Return the flag of one option, for a command that has few others of a release."""
    option, default = _declared()[name]
    return _flag(name, option, "", default)


def _unstated(name: str) -> Any:
    option, default = _declared()[name]
    return None if option.kind in ("values", "names", "shares") else default


def _parameter(name: str, said: str, default: Any) -> inspect.Parameter:
    option, _ = _declared()[name]
    kind, empty = _TYPES[option.kind], inspect.Parameter.empty
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=empty if default is ... else default,
        annotation=Annotated[
            kind | None if default is None else kind, _flag(name, option, said, default)
        ],
    )


def _flag(name: str, option: Option, said: str, default: Any) -> Any:
    flag = option.flag_of(name)
    if option.kind == "flag" and default is None:
        # A flag that is off by default has no other side.
        flag = f"{flag}/--no-{name}"
    text = option.text
    if option.unless:
        text = f"{text.removesuffix('.')} [default: {option.unless}]."
    return typer.Option(flag, help=said or text, metavar=option.metavar or None)
