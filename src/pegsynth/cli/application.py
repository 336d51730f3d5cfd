"""The application behind ``pegs``: its name, its help, its version."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pegsynth.kernels.notice import when_compiling

if TYPE_CHECKING:
    from pegsynth.random import Streams

app = typer.Typer(
    name="pegs",
    help="Turn a confidential table of categories into synthetic tables that can be published, "
    "with a disclosure risk that is quantified and true.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        from pegsynth import __version__

        print(f"pegs {__version__}")
        raise typer.Exit


@app.callback()
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
options.__doc__ = app.info.help


def _say_compiling() -> None:
    print("Preparing compiled code, once: about 5 seconds.", file=sys.stderr)


def run(arguments: Sequence[str] | None = None, streams: Streams | None = None) -> None:
    """Parse the command line and do what it says; see `pegsynth.cli.main.main`."""
    from pegsynth.cli import commands
    from pegsynth.runtime import check_threads

    check_threads()
    if not app.registered_commands:
        commands.register(app)
    if sys.stderr.isatty():
        when_compiling(_say_compiling)
    app(arguments, prog_name="pegs", obj=streams)
