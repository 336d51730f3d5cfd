"""The commands of the studio, as they are run, and the same in Python.

What a page does is what the shown command does: the page runs these very words.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from pegsynth.studio.project import CHOICES, SCHEMA, Project

_NUMBERS = ("epsilon", "delta", "rows", "rows_in", "datasets", "replicates", "seed")


@dataclass(frozen=True)
class Spelled:
    """One deed: the words after ``pegs``, and Python code that does the same."""

    words: tuple[str, ...]
    code: str

    @property
    def command(self) -> str:
        """Return the command line, for a terminal in the project's folder."""
        return shlex.join(("pegs", *self.words))


def draft(project: Project, *, private: bool) -> Spelled:
    """Draft the codebook of the table."""
    words = ["schema", project.data, *_table(project), "-o", SCHEMA]
    words += ["--private"] if private else []
    told = f", table={project.table!r}" if project.table else ""
    code = (
        "import pegsynth\nfrom pegsynth.io.table_input import named_source, open_table\n\n"
        f"with open_table(named_source({project.data!r}{told})) as rows:\n"
        f"    pegsynth.Schema.draft(rows{', private=True' if private else ''}).save({SCHEMA!r})\n"
    )
    return Spelled(tuple(words), code)


def codebook(file: str) -> Spelled:
    """Take the schema from a codebook that exists."""
    code = (
        "from pathlib import Path\n\nfrom pegsynth.schema.codebooks import read_codebook\n\n"
        f"read_codebook(Path({file!r})).save({SCHEMA!r})\n"
    )
    return Spelled(("schema", "--from", file, "-o", SCHEMA), code)


def plan(project: Project) -> Spelled:
    """Show what every method could do with the budget."""
    chosen = {
        name: text for name, text in _chosen(project).items() if name not in ("method", "seed")
    }
    code = f"import pegsynth\n\nprint(pegsynth.plan({SCHEMA!r}, {_keywords(chosen)}).to_frame())\n"
    return Spelled(("plan", "--schema", SCHEMA, *_flags(chosen)), code)


def release(project: Project, folder: str) -> Spelled:
    """Write a release folder."""
    chosen = _chosen(project)
    words = ("release", project.data, *_table(project), "--schema", SCHEMA, *_flags(chosen))
    told = f"table={project.table!r}, " if project.table else ""
    code = (
        "import pegsynth\n\n"
        f"pegsynth.release({project.data!r}, {SCHEMA!r}, folder={folder!r}, "
        f"{told}{_keywords(chosen)})\n"
    )
    return Spelled((*words, "-o", folder), code)


def _chosen(project: Project) -> dict[str, str]:
    return {name: project.choices[name] for name in CHOICES if project.choices.get(name)}


def _table(project: Project) -> Sequence[str]:
    return ("--table", project.table) if project.table else ()


def _flags(chosen: dict[str, str]) -> list[str]:
    return [word for name, text in chosen.items() for word in (f"--{name.replace('_', '-')}", text)]


def _keywords(chosen: dict[str, str]) -> str:
    return ", ".join(
        f"{name}={text if name in _NUMBERS else repr(text)}" for name, text in chosen.items()
    )
