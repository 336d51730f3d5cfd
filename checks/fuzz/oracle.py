"""Run one command as a user does, in this process, and judge what it did."""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import os
import re
import signal
import sys
import tomllib
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from checks.fuzz.tables import CANARY, SECRET, SECRET_NUMBER

SECRETS = (SECRET, str(SECRET_NUMBER))
MOST_MESSAGE = 4000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Outcome:
    """What a command left behind; `error` is the traceback of an error that got out."""

    code: int
    out: str
    err: str
    error: str = ""


@functools.cache
def _command_built_once() -> None:
    """Build the parser of the command line once; it takes longer than a case."""
    import typer.main

    typer.main.get_command = functools.cache(typer.main.get_command)


def run(arguments: Sequence[str]) -> Outcome:
    """Run ``pegs`` with these arguments; nothing gets out of here, whatever it raises."""
    from pegsynth.cli.main import main

    _command_built_once()
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    error = ""
    handlers = {
        number: signal.getsignal(number)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    }
    with (
        mock.patch.object(sys, "argv", ["pegs", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
        except BaseException:  # noqa: BLE001
            error = traceback.format_exc()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    status = code if isinstance(code, int) else int(code is not None)
    return Outcome(status, out.getvalue(), err.getvalue(), error)


def faults(arguments: Sequence[str], outcome: Outcome) -> list[str]:
    """Say what is wrong with an outcome; nothing is wrong with most."""
    found = []
    if outcome.error:
        found.append(f"traceback: {signature(outcome.error)}")
    elif outcome.code == 2:
        found += _message_faults(outcome)
    elif internal := re.search(r"internal error \((.*?)\)", outcome.err):
        found.append(f"internal error: {internal[1]}")
    elif outcome.code not in ((0, 1) if arguments[0] == "inspect" else (0,)):
        found.append(f"exit status {outcome.code}")
    printed = outcome.out + outcome.err
    if any(secret in printed for secret in SECRETS):
        found.append("secret: a value of the data is in a message")
    if control := _CONTROL.search(printed):
        found.append(f"control character {ord(control[0]):#x} is printed")
    return found


def _message_faults(outcome: Outcome) -> list[str]:
    """Hold a refusal to the rule of `tests/command.py`: one message, and nothing else."""
    found = []
    message = re.sub(r"\AMethod: .*\n", "", outcome.err)
    if outcome.out:
        found.append("a refusal after output")
    if message.startswith("Usage: "):
        if message.count("\nError: ") != 1:
            found.append("usage without one error")
    elif not message.startswith("pegs: ") or "\npegs: " in message:
        found.append("not one message")
    if not message.endswith("\n") or "Traceback" in message:
        found.append("not a readable message")
    if len(message) > MOST_MESSAGE:
        found.append("a message that is too long")
    if "not enough memory" in message:
        found.append("memory: ran out")
    return found


def signature(error: str) -> str:
    """Shorten a traceback to the kind of error and the last line of ours that it went through."""
    frames = re.findall(r'File ".*?/(pegsynth/[^"]+)", line \d+, in (\S+)', error)
    where = ":".join(frames[-1]) if frames else "?"
    last = error.strip().splitlines()[-1]
    return f"{last.split(':')[0].strip()} in {where}"


def output_faults(folder: Path) -> list[str]:
    """Look for formulas in the CSV files of a folder."""
    return [
        f"formula in {file.name}"
        for file in sorted(folder.rglob("*.csv"))
        if any(map(_is_formula, _cells(file, _separator(folder))))
    ]


def _separator(folder: Path) -> str:
    """Return what separates fields by the schema that stands there: comma unless it says so."""
    for book in sorted(folder.rglob("*.toml")):
        with contextlib.suppress(tomllib.TOMLDecodeError, UnicodeDecodeError, OSError):
            table = tomllib.loads(book.read_text(encoding="utf-8")).get("table", {})
            if isinstance(table, dict) and table.get("separator") in (";", "\t", "|"):
                return str(table["separator"])
    return ","


def _cells(file: Path, mark: str) -> list[str]:
    """Return the cells of a file in whatever encoding it was written."""
    content = file.read_bytes()
    text = ""
    for coding in ("utf-16", "utf-8", "cp1251", "latin-1"):
        if coding != "utf-16" or content[:2] == codecs.BOM_UTF16_LE:
            with contextlib.suppress(UnicodeDecodeError):
                text = content.decode(coding)
                break
    return [
        cell for line in csv.reader(io.StringIO(text, newline=""), delimiter=mark) for cell in line
    ]


def _is_formula(cell: str) -> bool:
    return bool(_FORMULA.match(cell)) and not _NUMBER.fullmatch(cell.replace(",", ".", 1))


def watch() -> list[str]:
    """Return a list that fills up with what a file must never make this process do."""
    seen: list[str] = []
    forbidden = ("os.system", "subprocess.", "os.exec", "os.posix_spawn", "os.fork")
    network = ("socket.connect", "socket.bind", "socket.getaddrinfo")

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        unpickled = event == "pickle.find_class" and arguments[:1] in (("posix",), ("os",))
        if event.startswith(forbidden) or event in network or unpickled:
            seen.append(f"execution: {event}")

    sys.addaudithook(hook)
    return seen


def files_below(folder: Path) -> dict[str, tuple[int, int, int]]:
    """List the files below a folder with their numbers, sizes and times."""
    found = {}
    for root, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(root, name)
            state = os.stat(path)
            found[path] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def written_faults(
    folder: Path, before: Mapping[str, tuple[int, int, int]], outcome: Outcome
) -> list[str]:
    """Look at what a command wrote: nothing if it refused, and schemas that can be read again."""
    after = files_below(folder)
    if outcome.code or outcome.error:
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        return [f"a refusal that changes files: {', '.join(changed)[:80]}"] if changed else []
    return [
        f"{path} was written and cannot be read again"
        for path in sorted(after)
        if path.endswith(".toml") and before.get(path) != after[path] and not _is_schema(path)
    ]


def _is_schema(path: str) -> bool:
    from pegsynth import Schema
    from pegsynth.errors import PegsynthError

    try:
        Schema.load(path)
    except PegsynthError:
        return False
    return True


def surroundings(folder: Path) -> dict[str, tuple[int, int]]:
    """List the files below a folder with sizes and times, but for the folder ``out``."""
    found = {}
    for root, folders, files in os.walk(folder):
        if root == str(folder):
            folders[:] = [name for name in folders if name != "out"]
        found |= {os.path.join(root, name): (0, 0) for name in folders}
        for name in files:
            path = os.path.join(root, name)
            state = os.stat(path)
            found[path] = (state.st_size, state.st_mtime_ns)
    return found


def canary(folder: Path) -> bool:
    """Say whether a file ran code of its own."""
    return any(CANARY in files for _, _, files in os.walk(folder))


def call(function: Callable[[], object]) -> Outcome:
    """Call a function of the library and say what the command line would have made of it."""
    from pegsynth.errors import PegsynthError, legible

    try:
        function()
    except PegsynthError as error:
        return Outcome(2, "", f"pegs: {legible(str(error))}\n")
    except BaseException:  # noqa: BLE001
        return Outcome(1, "", "", traceback.format_exc())
    return Outcome(0, "", "")
