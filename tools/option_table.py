"""Writes docs/options.md from the declarations in `pegsynth.options`.

python tools/option_table.py docs/options.md
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

from pegsynth.option_kinds import METADATA, Option, in_python
from pegsynth.options import GROUPS, METHODS

TITLES = {
    "DrawOptions": "How rows are drawn",
    "BudgetOptions": "What may be spent",
    "FitOptions": "How the table is cut into blocks",
    "RunOptions": "How the work is done",
    "SourceOptions": "Which rows, and how they are written",
    "EngineOptions": "Where the work is done",
}
OPENING = """# Options

Every option of a release, as it is declared in `pegsynth/options.py`. The command line has them as
flags, Python as keyword arguments of `pegsynth.synthesize` and `pegsynth.PeGS`; not every command
has all of them (`pegs COMMAND --help`). An option that the method does not take is refused. This
page is written by `python tools/option_table.py docs/options.md`.
"""


def page() -> str:
    """Return the page."""
    parts = [OPENING]
    for group in GROUPS:
        parts.append(f"## {TITLES[group.__name__]}\n")
        parts.append("| flag | argument | default | methods | meaning |\n|---|---|---|---|---|")
        for each in fields(group):
            option: Option = each.metadata[METADATA]
            parts.append(_line(each.name, option, each.default))
        parts.append("")
    return "\n".join(parts)


def _line(name: str, option: Option, default: object) -> str:
    left_out = option.unless or ("" if default in (None, (), False) else str(default))
    taken = "all" if not option.methods else _listed(option.methods)
    meaning = option.help.replace("|", "\\|")
    return f"| `{option.flag_of(name)}` | `{name}` | {in_python(left_out)} | {taken} | {meaning} |"


def _listed(methods: tuple[str, ...]) -> str:
    others = [method for method in METHODS if method not in methods]
    return f"all but {', '.join(others)}" if len(others) < 3 else ", ".join(methods)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
