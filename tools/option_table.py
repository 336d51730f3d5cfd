"""Writes docs/options.md from the declarations in `pegsynth.options` and `pegsynth.methods`.

python tools/option_table.py docs/options.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from pegsynth.methods import methods, names, taking
from pegsynth.options import (
    BlockSizeOptions,
    BookOptions,
    BudgetOptions,
    CapOptions,
    CompletionOptions,
    EngineOptions,
    GivenOptions,
    HeadOptions,
    KeyOptions,
    LogLinearOptions,
    MethodChoice,
    PartialOptions,
    PriorOptions,
    ProperOptions,
    Publication,
    ReplicateOptions,
    RowOptions,
    RunOptions,
    SourceOptions,
    SweepOptions,
)
from pegsynth.options._kinds import Option, declared, in_python

SECTIONS = {
    "Which method, and how many rows": (MethodChoice, RowOptions),
    "What may be spent": (BudgetOptions, BookOptions),
    "How the table is cut into blocks": (HeadOptions, KeyOptions),
    "How rows are drawn": (
        SweepOptions,
        PriorOptions,
        BlockSizeOptions,
        CapOptions,
        GivenOptions,
        PartialOptions,
        LogLinearOptions,
        ProperOptions,
        ReplicateOptions,
    ),
    "Whether missing values are imputed": (CompletionOptions,),
    "How the work is done": (RunOptions,),
    "Which rows, and how they are written": (SourceOptions,),
    "Where the work is done": (EngineOptions,),
    "What a release folder takes (`pegs release`, `pegsynth.release`)": (Publication,),
}
OPENING = """# Options

Every option of a release, as it is declared in `pegsynth.options`. The command line has them as
flags, Python as keyword arguments of `pegsynth.synthesize` and `pegsynth.PeGS`; not every command
has all of them (`pegs COMMAND --help`). An option that the method does not take is refused. This
page is written by `python tools/option_table.py docs/options.md`.
"""


def page() -> str:
    """Return the page."""
    parts = [OPENING, "## Methods\n\n| method | what it does |\n|---|---|"]
    parts += [f"| `{method.name}` | {method.summary} |" for method in methods()]
    for title, groups in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        parts.append("| flag | argument | default | methods | meaning |\n|---|---|---|---|---|")
        for group in groups:
            for name, option in declared(group).items():
                if name in group.__annotations__:
                    parts.append(_line(name, option))
    return "\n".join([*parts, ""])


def _line(name: str, option: Option) -> str:
    default = option.default
    left_out = option.unless or ("" if default in (None, (), False) else str(default))
    taken = taking(name)
    every = "all" if not taken or set(taken) == set(names()) else _listed(taken)
    meaning = option.text.replace("|", "\\|")
    return f"| `{option.flag_of(name)}` | `{name}` | {in_python(left_out)} | {every} | {meaning} |"


def _listed(taken: tuple[str, ...]) -> str:
    others = [method for method in names() if method not in taken]
    return f"all but {', '.join(others)}" if len(others) < 3 else ", ".join(taken)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
