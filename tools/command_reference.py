"""Writes the site's page of commands from the declarations in `pegsynth.cli.commands`.

python tools/command_reference.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

OPENING = """# Commands

Every command of `pegs` with its arguments and flags, as `pegs COMMAND --help` shows them. What an
option means, and which methods take it, is told in [Options](../options.md).

Exit status: 0 done, 1 a check failed, 2 bad input or usage, 3 a fault of the program, 128 + n after
signal n.
"""


def write(file: Path) -> None:
    """Write the page."""
    file.write_text("\n".join([OPENING, *map(_section, _commands().items())]))


def _commands() -> dict[str, Any]:
    from pegsynth.cli import commands

    app = typer.Typer()
    commands.register(app)
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def _section(named: tuple[str, Any]) -> str:
    name, command = named
    rows = [_row(each) for each in command.params if not getattr(each, "hidden", False)]
    table = ["| | meaning | if left out |", "|---|---|---|", *rows] if rows else []
    words = " ".join((command.help or "").split())
    return "\n".join([f"## pegs {name}", "", words, "", *table, ""])


def _row(each: Any) -> str:
    is_option = each.param_type_name == "option"
    names = each.opts + each.secondary_opts if is_option else [each.metavar or each.name.upper()]
    shown = " ".join(f"`{_cell(name)}`" for name in names)
    empty = each.default is None or each.default is False or callable(each.default)
    default = "required" if each.required else "" if empty else f"`{each.default}`"
    return f"| {shown} | {_cell(getattr(each, 'help', None) or '')} | {default} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
