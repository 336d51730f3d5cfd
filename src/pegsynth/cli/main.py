"""The command ``pegs``: parses, calls the library, prints. One message per error."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from pegsynth.errors import PegsynthError

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


def main() -> None:
    """Run the command line; errors of the user are one message and exit status 2."""
    from pegsynth.cli import commands

    if not app.registered_commands:
        commands.register(app)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    try:
        app(prog_name="pegs")
    except PegsynthError as error:
        print(f"pegs: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("pegs: not enough memory; use fewer heads or a smaller block", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _leave(number: int, frame: FrameType | None) -> None:
    """Leave through an exception, which removes files that are half-written."""
    print("pegs: stopped; no output was changed", file=sys.stderr)
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
