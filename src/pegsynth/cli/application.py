"""The application behind ``pegs``: its name, its help, its version."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer

from pegsynth.kernels.loading import only_kernels
from pegsynth.kernels.notice import when_compiling

if TYPE_CHECKING:
    from pegsynth.random import Streams

_HELP = (
    "Turn a confidential table of categories into synthetic tables that can be published, "
    "with a disclosure risk that is quantified and true."
)


def _print_version(asked: bool) -> None:
    if asked:
        from pegsynth import __version__

        print(f"pegs {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Options of the program itself; everything else belongs to a command."""


# The callback's words are for readers of the code; users see the application's own.
options.__doc__ = _HELP


@cache
def _application(only: str | None) -> typer.Typer:
    """Return the application, with the one command that is run or with all."""
    from pegsynth.cli import commands

    app = typer.Typer(
        name="pegs",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(options)
    commands.register(app, only)
    return app


def _say_compiling() -> None:
    print("Preparing compiled code, once: about 5 seconds.", file=sys.stderr)


def run(arguments: Sequence[str] | None = None, streams: Streams | None = None) -> None:
    """Parse the command line and do what it says; see `pegsynth.cli.main.main`."""
    from pegsynth.runtime import check_threads, loading

    with loading():
        from pegsynth.cli import commands
    check_threads()
    only_kernels()
    first = next(iter(sys.argv[1:] if arguments is None else arguments), None)
    if sys.stderr.isatty():
        when_compiling(_say_compiling)
    app = _application(first if first in commands.COMMANDS else None)
    app(arguments, prog_name="pegs", obj=streams)
