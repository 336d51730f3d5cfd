"""Non-interference: once the paid answers are given, nothing of a release depends on the table.

A `Configuration` is a few commands and three tables of the same header: one, one that has nothing
in common with it, and the first with one unit more. The shipped command line releases each of them
with the same given answers (`given_answers`). Everything public is then compared byte for byte,
the steps with the ledger, and what the additional unit changes in each step with its price.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from pegsynth.auditing.given_answers import Answers, Step, unpaid, worst_ratio
from pegsynth.privacy import Ledger

Tables: TypeAlias = Mapping[str, pl.DataFrame]
Command: TypeAlias = Callable[..., None]
"""`pegsynth.cli.main.main`: it takes arguments and `streams`, and leaves by `SystemExit`."""

_LEDGERS = ("privacy.json", ".verification.json")
_SIGNALLED = 128


@dataclass(frozen=True)
class Configuration:
    """Commands, and tables that they are run on.

    Parameters
    ----------
    commands
        Arguments of ``pegs``, one command after the other, ``@`` standing for the folder of the
        run. They find the tables in ``data`` and may write confidential files into ``kept``. What
        they write into ``out`` is public, ``internal`` folders of releases aside.
    files
        Public files by name, such as the schema.
    tables
        Three sets of files by name: a table, another one, and the first with one unit more.
    turn
        Which answers are given.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    files: Mapping[str, str]
    tables: tuple[Tables, Tables, Tables]
    turn: int = 0


@dataclass(frozen=True)
class Released:
    """All that a run made public, and what it asked for.

    Parameters
    ----------
    published
        Exit status and messages of every command, and every file, by name.
    """

    published: dict[str, bytes]
    steps: list[Step] = field(repr=False)
    ledgers: list[Ledger] = field(repr=False)

    @property
    def status(self) -> Literal["claims", "promises nothing", "refused"]:
        """Whether there is a guarantee: of all that was released, or not, or nothing was."""
        if not self.ledgers:
            return "refused"
        covered = all(each.guarantee.kind != "none" for each in self.ledgers)
        return "claims" if covered else "promises nothing"


@dataclass(frozen=True)
class Compared:
    """What was found out about one configuration.

    Parameters
    ----------
    broken
        Differences, unpaid steps and prices that are too low, in words.
    ratios
        The largest change that one unit makes in each kind of step, as a part of its price.
    """

    name: str
    status: str
    broken: tuple[str, ...]
    steps: int
    ratios: Mapping[str, float]


def compare_all(
    configurations: Sequence[Configuration], command: Command, *, threads: int = 1
) -> Iterator[Compared]:
    """Compare configurations one by one, or in processes of their own: a command prints."""
    if threads == 1:
        yield from (compare(each, command) for each in configurations)
        return
    with ProcessPoolExecutor(threads, mp_context=get_context("spawn")) as workers:
        yield from workers.map(compare, configurations, repeat(command))


def compare(each: Configuration, command: Command) -> Compared:
    """Release the three tables of a configuration with the same answers, and compare.

    What promises nothing may depend on the table. What is refused may not: the message is public.
    """
    with tempfile.TemporaryDirectory() as folder:
        one, other, more = (_released(each, Path(folder), some, command) for some in each.tables)
    status = one.status
    if status == "promises nothing":
        return Compared(each.name, status, (), len(one.steps), {})
    broken = [f"another table: {text}" for text in _differences(one, other)]
    broken += [f"a unit more: {text}" for text in _differences(one, more)]
    ratios: dict[str, float] = {}
    if status == "claims":
        broken += unpaid(one.steps, one.ledgers)
    if status == "claims" and one.steps == more.steps:
        ratios = worst_ratio(one.steps, more.steps, one.ledgers)
        broken += [
            f"{name}: a unit changes {n:.3f} of its price" for name, n in ratios.items() if n > 1
        ]
    return Compared(each.name, status, tuple(broken), len(one.steps), ratios)


def _released(each: Configuration, folder: Path, tables: Tables, command: Command) -> Released:
    """Run the commands on a table; its place has the same name every time."""
    root = folder / "run"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("data", "out", "kept"):
        (root / name).mkdir(parents=True)
    for name, table in tables.items():
        target = root / "data" / name
        (table.write_parquet if target.suffix == ".parquet" else table.write_csv)(target)
    for name, text in each.files.items():
        (root / name).write_text(text)
    answers = Answers(each.turn)
    published = {
        f"command {number}": _printed(command, root, arguments, answers)
        for number, arguments in enumerate(each.commands, start=1)
    }
    out = root / "out"
    files = [path for path in sorted(out.rglob("*")) if path.is_file()]
    for path in files:
        if "internal" not in path.relative_to(out).parts:
            published[str(path.relative_to(out))] = path.read_bytes()
    ledgers = [Ledger.from_json(p.read_bytes()) for p in files if p.name.endswith(_LEDGERS)]
    return Released(published, answers.steps, ledgers)


def _printed(command: Command, root: Path, arguments: Sequence[str], answers: Answers) -> bytes:
    """Run a command; return how it ended and what it printed."""
    out, error = io.StringIO(), io.StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(error), warnings.catch_warnings():
        # A warning is shown once by default: the second table would look silent.
        warnings.simplefilter("always")
        try:
            command([each.replace("@", f"{root}/") for each in arguments], streams=answers.stream)
        except SystemExit as leaving:
            code = leaving.code
            if isinstance(code, int) and code >= _SIGNALLED:
                raise
    return f"exit {code}\n{out.getvalue()}\n{error.getvalue()}".encode()


def _differences(one: Released, other: Released) -> list[str]:
    """Say which public things differ, and at which line or byte; and whether steps do."""
    found = [
        f"{name} differs: {_first(one.published.get(name), other.published.get(name))}"
        for name in sorted({*one.published, *other.published})
        if one.published.get(name) != other.published.get(name)
    ]
    if one.steps != other.steps:
        place = next(
            (i for i, (a, b) in enumerate(zip(one.steps, other.steps, strict=False)) if a != b),
            min(len(one.steps), len(other.steps)),
        )
        found.append(f"the steps differ from step {place + 1} on")
    return found


def _first(one: bytes | None, other: bytes | None) -> str:
    """Show the first line that differs; the tables of an audit are invented."""
    if one is None or other is None:
        return "only one of the two has it"
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    line = next(((a, b) for a, b in pairs if a != b), (b"(end)", b"(end)"))
    return " | ".join(text[:120].decode(errors="replace") for text in line)
