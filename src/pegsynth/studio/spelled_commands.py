"""The commands of the studio, as they are run, and the same in Python.

What a page does is what the shown command does: the page runs these very words.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from pegsynth.options import GROUPS
from pegsynth.options._kinds import declared
from pegsynth.studio.project import CHOICES, COMPARISON, COUNTS, SCHEMA, Project

OPTIONS = declared(*GROUPS)
_RELEASED_ONLY = ("method", "seed", "book", "resume")


@dataclass(frozen=True)
class Spelled:
    """One deed: the words after ``pegs``, and Python code that does the same."""

    words: tuple[str, ...]
    code: str

    @property
    def command(self) -> str:
        """Return the command line, for a terminal in the project's folder."""
        return shlex.join(("pegs", *self.words))


def draft(project: Project, *, private: bool, replace: bool = False) -> Spelled:
    """Draft the codebook of the table."""
    words = ["schema", project.data, *_table(project), "-o", SCHEMA]
    words += ["--private"] if private else []
    words += ["--force"] if replace else []
    begin, source = _source(project)
    code = (
        f"import pegsynth\n{begin}\npegsynth.Schema.draft({source}).save({SCHEMA!r})\n"
        if not private
        else f"import pegsynth\n{begin}from pegsynth.schema.toml import save\n\n"
        f"save(pegsynth.Schema.draft({source}, private=True), {SCHEMA!r}, notes=True)\n"
    )
    return Spelled(tuple(words), code)


def codebook(file: str, *, replace: bool = False) -> Spelled:
    """Take the schema from a codebook that exists."""
    code = (
        "from pathlib import Path\n\nfrom pegsynth.schema.codebooks import read_codebook\n"
        "from pegsynth.schema.toml import save\n\n"
        f"save(read_codebook(Path({file!r})), {SCHEMA!r}, notes=True)\n"
    )
    words = ("schema", "--from", file, "-o", SCHEMA, *(["--force"] if replace else []))
    return Spelled(words, code)


def check(changes: str) -> Spelled:
    """Check the codebook; in Python, make the changes that were made here."""
    code = changes or f"import pegsynth\n\nprint(pegsynth.Schema.load({SCHEMA!r}))\n"
    return Spelled(("schema", "check", SCHEMA), code)


def count(project: Project) -> Spelled:
    """Count rows by the codebook."""
    begin, source = _source(project)
    words = ("schema", "count", SCHEMA, project.data, *_table(project), "-o", COUNTS)
    code = (
        f"import pegsynth\n{begin}from pegsynth.tables.atomic import atomic_text\n"
        "from pegsynth.codec.codebook_counts import count_rows\n\n"
        f"found = count_rows({source}, pegsynth.Schema.load({SCHEMA!r}))\n"
        f"atomic_text({COUNTS!r}, found.to_json(), mode=0o600)\n"
    )
    return Spelled(words, code)


def book_show(file: str) -> Spelled:
    """Show a budget book."""
    code = (
        "from pegsynth.storage.book.book_file import read_book\n"
        "from pegsynth.storage.book.book_file import page\n\n"
        f"print(page(read_book({file!r})))\n"
    )
    return Spelled(("book", "show", file), code)


def compare(names: Sequence[str]) -> Spelled:
    """Put releases side by side."""
    code = (
        "from pathlib import Path\n\nfrom pegsynth.cli.evaluating import compare\n\n"
        f"compare([Path(name) for name in {list(names)!r}], Path({COMPARISON!r}))\n"
    )
    return Spelled(("compare", *names, "--report", COMPARISON), code)


def plan(project: Project) -> Spelled:
    """Show what every method could do with the budget."""
    chosen = {name: text for name, text in _chosen(project).items() if name not in _RELEASED_ONLY}
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


def _source(project: Project) -> tuple[str, str]:
    """Return what to import, and the table as Python code names it."""
    if not project.table:
        return "", repr(project.data)
    told = f"named_source({project.data!r}, table={project.table!r})"
    return "from pegsynth.tables.table_input import named_source\n", told


def _flags(chosen: dict[str, str]) -> list[str]:
    return [word for name, text in chosen.items() for word in (OPTIONS[name].flag_of(name), text)]


def _keywords(chosen: dict[str, str]) -> str:
    numbers = (int, float)
    return ", ".join(
        f"{name}={text if OPTIONS[name].typed in numbers else repr(text)}"
        for name, text in chosen.items()
    )
